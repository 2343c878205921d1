// The contract of a topology plug-in: a network described by construction rules, with closed forms of its
// characteristics. One file each in platforms/topologies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/network.hpp"
#include "sim/core/registry.hpp"

namespace tandem {

// Of a topology and of a cluster.
inline constexpr int kMostDevices = 4'194'304;

// Closed forms wherever there are any; the contract tests compare them with breadth-first search. "Links" are cables
// (both directions together). All counts include every plane.
struct Characteristics {
  // Where diameter and mean path come from: a formula, a search from every device, or (a large network without a
  // formula) a search from some of them, so that the diameter is a lower bound and the mean an estimate.
  enum class Paths { formula, searched, sampled };

  std::int64_t devices = 0;
  std::int64_t switches = 0;
  std::int64_t max_switch_radix = 0;
  std::int64_t links = 0;
  double ports_per_device = 0;         // mean
  double switch_ports_per_device = 0;  // switch ports in use / devices
  int diameter = 0;                    // links on the longest of all shortest device-to-device paths
  double mean_path = 0;                // links, mean over ordered pairs of different devices
  Paths paths = Paths::formula;
  double bisection_links = 0;       // cables cut by an equal split of the devices, smallest known
  bool bisection_proved = false;    // false: an upper bound that is not known to be tight
  bool bisection_searched = false;  // the best of a few splits: others are known to be smaller sometimes
};

// What the cost of a network is counted in (prices are applied elsewhere, and are the user's to replace).
struct CostItems {
  std::int64_t switch_ports = 0;
  std::int64_t node_switch_ports = 0;  // of switch_ports, those of board links: switches inside a node (NVSwitch)
  std::int64_t device_ports = 0;
  std::int64_t board_links = 0;     // inside a module, a backplane or a board
  std::int64_t copper_cables = 0;   // short: device to first switch, neighbours of a torus
  std::int64_t optical_cables = 0;  // long: between switches, top levels
};

// How far a cable reaches, which decides what it costs; the classes that CostItems counts.
enum class LengthClass { board, copper, optical };

class Topology : public Network {
 public:
  static constexpr const char* plugin_kind = "topology";
  static constexpr const char* plugin_help = "interconnects: devices, switches, links and routing";

  // Where a topology's sizes are left out, the smallest instance with at least `devices` devices is built.
  struct PluginContext {
    int devices = 1;
    BytesPerSecond link_bandwidth{12.5e9};  // one direction of one cable
    Seconds link_latency{500e-9};           // one link
  };

  [[nodiscard]] virtual Characteristics characteristics() const = 0;
  [[nodiscard]] virtual CostItems cost_items() const = 0;

  // Of all cables of a link's bundle, the same for both of its directions; counted over all cables it gives
  // cost_items(). A topology whose cables do not follow from the kinds of their ends alone says so itself.
  [[nodiscard]] virtual LengthClass length_class(LinkId id) const;

  // Whether every route is one of the shortest. False for routings that go round on purpose (Valiant), and for those
  // that the literature defines by address although shorter ways exist (DCell).
  [[nodiscard]] virtual bool shortest_routing() const { return true; }

  // One side of an equal split of the devices that cuts `bisection_links` cables. Empty where half of a corner of the
  // address space is such a side.
  [[nodiscard]] virtual std::vector<bool> bisection_split() const { return {}; }

  // The instance as built, in the form that builds it again: "fat-tree:k=8,oversubscription=1,planes=1".
  [[nodiscard]] const std::string& instance() const { return instance_; }
  [[nodiscard]] int planes() const { return planes_; }

 protected:
  Topology(const PluginContext& context, int planes)
      : planes_(planes), bandwidth_(context.link_bandwidth * planes), latency_(context.link_latency) {}

  // Both directions of the bundle of planes() x `cables` equal cables between two vertices; ids as of add_cable.
  LinkId connect(int from, int to, LinkKind kind, int cables = 1) {
    return add_cable(from, to, bandwidth_ * cables, latency_, kind, planes_ * cables);
  }

  std::string instance_;
  int planes_ = 1;

 private:
  BytesPerSecond bandwidth_;
  Seconds latency_;
};

// Builds "name:key=value,..."; throws usage errors for unknown names, bad sizes and instances that are too small
// for context.devices or too large to hold (more than 4,194,304 devices).
[[nodiscard]] std::unique_ptr<Topology> make_topology(std::string_view text, const Topology::PluginContext& context);

}  // namespace tandem
