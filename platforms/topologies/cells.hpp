// What DCell and FiConn share: cells of n devices on one switch, joined recursively without further switches. A unit of
// level l consists of g units of level l-1 with t devices each, and every two of those are joined by one cable.
//
//   number of a device in its unit of level l: i * t + u, for device u of sub-unit i < g
//   every unit of level l-1 has g - 1 gateways, w < g - 1, for the cables of level l:
//   sub-unit i and sub-unit j > i are joined by gateway w = j-1 of i and gateway w = i of j
//
// Routing is the one of both papers: to the gateway of the one cable between the two sub-units in which source and
// destination lie, over it, and from there to the destination, recursively. Going through a third sub-unit is now and
// then shorter.
#pragma once

#include <string>
#include <vector>

#include "platforms/topologies/build.hpp"
#include "platforms/topologies/levels.hpp"

namespace tandem {

// Which devices are gateways.
enum class Gateways {
  all,   // at every level: w-th gateway is device w, and devices have a port a level (DCell)
  half,  // of the devices whose second port is free: w-th gateway is device w * 2^l + 2^(l-1) - 1 (FiConn)
};

class Cells final : public Topology {
 public:
  Cells(const std::string& name, Levels levels, Gateways gateways, int planes, const PluginContext& context);

  // Capped at kMostDevices + 1.
  [[nodiscard]] static std::int64_t count_devices(int n, int k, Gateways gateways);

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override;
  [[nodiscard]] bool shortest_routing() const override { return levels_.empty(); }
  [[nodiscard]] std::string vertex_name(int vertex) const override;
  [[nodiscard]] std::vector<int> radices() const override;
  [[nodiscard]] Characteristics characteristics() const override;
  [[nodiscard]] CostItems cost_items() const override;
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return link(id).kind == LinkKind::direct ? LengthClass::optical : LengthClass::copper;
  }
  [[nodiscard]] std::vector<bool> bisection_split() const override;

 private:
  // Of the cables that join units of `size` devices.
  struct Level {
    int units = 0;  // g
    int size = 0;   // t
    int stride = 1;
    int offset = 0;
    int first_cable = 0;

    [[nodiscard]] std::int64_t pairs() const { return std::int64_t{units} * (units - 1) / 2; }
    // The device of sub-unit `own` with the cable to sub-unit `other`, by its number in the sub-unit.
    [[nodiscard]] int gateway(int own, int other) const { return (other > own ? other - 1 : other) * stride + offset; }
    // Gateways of a sub-unit with numbers below `device`.
    [[nodiscard]] int gateways_below(int device) const;
  };

  // An equal split: see best_split().
  struct Split {
    std::int64_t cables = 0;
    int units = 0;  // 0: the first half of the devices against the second
    int moved = 0;  // devices that a unit gives up; 0: all units give up equally many
  };

  void build();
  void add_paths(Characteristics& result) const;
  void walk(int src, int dst, std::vector<LinkId>& path) const;
  [[nodiscard]] LinkId link_between(const Level& level, int instance, int from, int to) const;
  [[nodiscard]] std::int64_t cables() const;

  [[nodiscard]] Split best_split() const;
  [[nodiscard]] Split cheapest_moves(int units) const;
  [[nodiscard]] Split even_moves(int units) const;
  [[nodiscard]] std::int64_t suffix_cut(std::size_t level, std::int64_t count) const;
  [[nodiscard]] std::int64_t moving_cost(int units, int count) const;
  [[nodiscard]] int most_moved(int units) const;
  [[nodiscard]] int moved_device(int units, int index) const;

  int n_;
  std::vector<Level> levels_;  // levels_[l-1]: the cables of level l
};

}  // namespace tandem
