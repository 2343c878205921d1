// SimGrid's platform file in memory: hosts and routers in nested zones, and the links that routes between them pass.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace tandem {

class PlatformFile {
 public:
  struct Point {  // a host, a router, or the middle of a Cluster zone that has neither backbone nor router
    std::string name;
    int zone = 0;
  };
  struct Resource {  // a link, or one direction of a SPLITDUPLEX link
    std::string name;
    BytesPerSecond bandwidth{};
    Seconds latency{};
  };
  std::vector<Point> points;
  std::vector<int> hosts;           // points, in the file's order
  std::vector<Resource> resources;  // those that a route passes, in the file's order

  // A route is a list of stops: points by number, and behind them resources.
  [[nodiscard]] bool is_resource(int stop) const { return stop >= static_cast<int>(points.size()); }
  [[nodiscard]] int resource(int stop) const { return stop - static_cast<int>(points.size()); }
  [[nodiscard]] int stop_of(int resource_number) const { return static_cast<int>(points.size()) + resource_number; }

  // From src to dst, both included. Input error where the file has no route.
  [[nodiscard]] std::vector<int> route(int src, int dst) const;
  // Input error where a zone has no route between two members that hold hosts of `hosts`.
  void check_zones() const;
  // All pairs of stops that follow each other on any route.
  [[nodiscard]] std::set<std::pair<int, int>> neighbours() const;

  // ---- how routes are found ----

  enum class Routing { full, shortest, cluster };
  struct Hop {                       // a <route> or <zoneRoute>, one direction
    int from = 0, to = 0;            // members of the zone
    int gate_from = 0, gate_to = 0;  // points
    std::vector<int> resources;
  };
  struct Spoke {  // of a Cluster zone's host
    int up = -1, down = -1;
  };
  struct Zone {
    std::string name;
    int parent = -1;
    int depth = 0;
    int member_of_parent = -1;
    Routing routing = Routing::full;
    std::vector<int> members;  // a point, or -1 - zone
    std::vector<Hop> hops;
    std::unordered_map<std::uint64_t, std::size_t> hop_between;  // by (from, to)
    std::vector<std::vector<std::size_t>> hops_from;             // of members
    std::unordered_map<int, Spoke> spokes;                       // by point
    int backbone = -1;                                           // resource
    int hub = -1;                                                // point, where there is no backbone
    // By the member that was asked for: the hop that leads to each other member. 8 bytes a member, kept up to 256 MiB.
    mutable std::unordered_map<int, std::vector<std::int64_t>> trees;
  };
  std::vector<Zone> zones;        // the first is the outermost
  std::vector<int> member_index;  // of points in their zone

 private:
  void append(int src, int dst, std::vector<int>& stops) const;
  void append_spokes(const Zone& zone, int src, int dst, std::vector<int>& stops) const;
  [[nodiscard]] std::vector<std::size_t> hops(const Zone& zone, int from, int to) const;
  void check_zone(const Zone& zone, const std::vector<int>& needed) const;
  [[nodiscard]] bool joined(const Zone& zone, int from, int to) const;
  [[nodiscard]] Error no_route(const Zone& zone, int from, int to) const;
  [[nodiscard]] const std::vector<std::int64_t>& tree(const Zone& zone, int from) const;
};

// Input errors name the file and the line.
[[nodiscard]] PlatformFile read_platform(const std::string& path);

}  // namespace tandem
