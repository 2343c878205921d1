// Leaf-spine: a Clos network of two tiers. Every leaf switch has `down` devices and `up` ports, spread evenly over all
// spines, so that a leaf and a spine are joined by c = up / spines parallel cables.
//
//   device (leaf,h) - leaf;   leaf - spine (p mod spines) by its up port p;   h < down, p < up
//
// Oversubscription is down / up. Routing goes up to a spine where the leaves differ, and down. The up port is p =
// (destination's number) mod up by default (d-mod-k; Zahavi 2012: shifts meet nowhere where up is not less than down),
// and the same cable leads down again. With ecmp, switches hash (src, dst, flow): the leaf over its up ports, the spine
// over its parallel cables to the leaf.
#include <algorithm>
#include <cmath>

#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

struct LeafSpineSizes {
  std::int64_t leaves = 0;
  std::int64_t down = 0;
  std::int64_t spines = 0;
  std::int64_t up = 0;
};

class LeafSpine final : public Topology {
 public:
  LeafSpine(const LeafSpineSizes& sizes, bool ecmp, int planes, const PluginContext& context)
      : Topology(context, planes), ecmp_(ecmp) {
    instance_ = fmt::format("leaf-spine:leaves={},down={},spines={},up={}{},planes={}", sizes.leaves, sizes.down,
                            sizes.spines, sizes.up, ecmp ? ",routing=ecmp" : "", planes);
    check_size(instance_, sizes.leaves * sizes.down, sizes.leaves * (sizes.down + sizes.up));
    leaves_ = static_cast<int>(sizes.leaves);
    down_ = static_cast<int>(sizes.down);
    spines_ = static_cast<int>(sizes.spines);
    up_ = static_cast<int>(sizes.up);
    devices_ = leaves_ * down_;
    vertices_ = devices_ + leaves_ + spines_;
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const int from = src.value / down_;
    const int to = dst.value / down_;
    path.push_back(LinkId{2 * src.value});
    if (from != to) {
      int port = dst.value % up_;
      int back = port;
      if (ecmp_) {
        const auto hash = flow_hash(src, dst, flow);
        port = static_cast<int>((hash & 0xffffffffU) % static_cast<unsigned>(up_));
        const int cable = static_cast<int>((hash >> 32) % static_cast<unsigned>(up_ / spines_));
        back = port % spines_ + cable * spines_;
      }
      path.push_back(LinkId{2 * up_cable(from, port)});
      path.push_back(LinkId{2 * up_cable(to, back) + 1});
    }
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < devices_) return fmt::format("device {} ({},{})", vertex, vertex / down_, vertex % down_);
    if (vertex < devices_ + leaves_) return fmt::format("leaf {}", vertex - devices_);
    return fmt::format("spine {}", vertex - devices_ - leaves_);
  }

  [[nodiscard]] std::vector<int> radices() const override { return {down_, leaves_}; }

  [[nodiscard]] Characteristics characteristics() const override;

  [[nodiscard]] CostItems cost_items() const override {
    const auto device_cables = std::int64_t{devices_} * planes_;
    const auto up_cables = std::int64_t{leaves_} * up_ * planes_;
    return {.switch_ports = device_cables + 2 * up_cables,
            .device_ports = device_cables,
            .copper_cables = device_cables,
            .optical_cables = up_cables};
  }

 private:
  [[nodiscard]] int up_cable(int leaf, int port) const { return devices_ + leaf * up_ + port; }

  void build() {
    links_.reserve(2 * (static_cast<std::size_t>(devices_) + static_cast<std::size_t>(leaves_) * up_));
    for (int device = 0; device < devices_; ++device) {
      connect(device, devices_ + device / down_, LinkKind::device_port);
    }
    for (int leaf = 0; leaf < leaves_; ++leaf) {
      for (int port = 0; port < up_; ++port) {
        connect(devices_ + leaf, devices_ + leaves_ + port % spines_, LinkKind::switch_link);
      }
    }
  }

  [[nodiscard]] std::int64_t bisection_cables() const;

  int leaves_ = 0;
  int down_ = 0;
  int spines_ = 0;
  int up_ = 0;
  bool ecmp_;
};

Characteristics LeafSpine::characteristics() const {
  const std::int64_t devices = devices_;
  const auto up_cables = std::int64_t{leaves_} * up_;
  Characteristics result;
  result.devices = devices;
  result.switches = std::int64_t{leaves_ + spines_} * planes_;
  result.max_switch_radix = std::max<std::int64_t>(down_ + up_, up_cables / spines_);
  result.links = (devices + up_cables) * planes_;
  result.ports_per_device = planes_;
  result.switch_ports_per_device =
      static_cast<double>(devices + 2 * up_cables) / static_cast<double>(devices) * planes_;
  if (devices > 1) {
    result.diameter = leaves_ > 1 ? 4 : 2;
    const auto total = 2 * std::int64_t{down_ - 1} + 4 * (devices - down_);
    result.mean_path = static_cast<double>(total) / static_cast<double>(devices - 1);
  }
  result.bisection_links = static_cast<double>(bisection_cables() * planes_);
  result.bisection_proved = true;
  return result;
}

// Exact, by trying what a cut can be: x leaf switches on one side. Each spine then costs c * min(x, leaves - x), and
// the devices that are more or fewer than half of all lose their cable to a leaf of the other side. With an even number
// of leaves and up <= down it is leaves * up / 2.
std::int64_t LeafSpine::bisection_cables() const {
  const std::int64_t half = devices_ / 2;
  auto least = std::int64_t{devices_};
  for (std::int64_t x = 0; x <= leaves_; ++x) {
    const auto inside = x * down_;
    const auto moved = std::min(std::abs(inside - half), std::abs(inside - (devices_ - half)));
    least = std::min(least, std::min<std::int64_t>(x, leaves_ - x) * up_ + moved);
  }
  return least;
}

// ---- sizes ----

// Up ports of a leaf, or 0 where down / oversubscription is not a whole number.
std::int64_t uplinks_of(std::int64_t down, double oversubscription) {
  const double uplinks = static_cast<double>(down) / oversubscription;
  const double whole = std::round(uplinks);
  const bool fits = whole >= 1 && whole <= kMostLinks && std::abs(uplinks - whole) < 1e-6 * whole;
  return fits ? static_cast<std::int64_t>(whole) : 0;
}

// The least number of devices a leaf, from `down` on, that has a whole number of up ports; 0 where there is none.
std::int64_t next_down(std::int64_t down, double oversubscription) {
  while (down <= kMostDevices && uplinks_of(down, oversubscription) == 0) ++down;
  return down <= kMostDevices ? down : 0;
}

Error no_sizes(std::int64_t devices, double oversubscription) {
  return usage_error(
      fmt::format("topology 'leaf-spine': no sizes give {} devices and a whole number of up ports with "
                  "oversubscription {}",
                  devices, oversubscription));
}

// The smallest product of leaves and down that holds the devices; down is not less than leaves, because a leaf's up
// ports take as many ports again, and not more than twice (or, where no such sizes exist, 4, 8, .. times) as large.
LeafSpineSizes square_sizes(std::int64_t devices, double oversubscription) {
  const auto least_down = next_down(1, oversubscription);
  if (least_down == 0) throw no_sizes(devices, oversubscription);
  LeafSpineSizes best;
  for (std::int64_t ratio = 2; best.down == 0 && ratio <= kMostDevices; ratio *= 2) {
    for (auto down = least_down; down != 0; down = next_down(down + 1, oversubscription)) {
      const auto leaves = (devices + down - 1) / down;
      if (down > std::max(ratio * leaves, least_down)) break;
      if (leaves > down) continue;
      if (best.down == 0 || leaves * down < best.leaves * best.down) best = {leaves, down, 0, 0};
    }
  }
  if (best.down == 0) throw no_sizes(devices, oversubscription);
  return best;
}

// The fewest spines that divide the up ports and need no more ports than a leaf; one an up port where all need more.
std::int64_t fewest_spines(const LeafSpineSizes& sizes) {
  for (std::int64_t spines = 1; spines < sizes.up; ++spines) {
    if (sizes.up % spines == 0 && sizes.leaves * (sizes.up / spines) <= sizes.down + sizes.up) return spines;
  }
  return sizes.up;
}

double oversubscription_of(const Arguments& arguments) {
  if (!arguments.has("oversubscription")) return 1;
  const double ratio = arguments.number("oversubscription");
  if (!(ratio > 0) || !std::isfinite(ratio)) {
    throw usage_error(fmt::format("topology 'leaf-spine': 'oversubscription' is {}: it must be above 0",
                                  arguments.text("oversubscription")));
  }
  if (arguments.has("up")) {
    throw usage_error(
        "topology 'leaf-spine': 'up' already says how many up ports a leaf has; leave 'oversubscription' out");
  }
  return ratio;
}

LeafSpineSizes leaf_spine_sizes(const Arguments& arguments, std::int64_t devices) {
  const auto given = [&](const char* name, std::int64_t most) {
    return arguments.has(name) ? arguments.integer(name, 1, most) : 0;
  };
  const double ratio = oversubscription_of(arguments);
  LeafSpineSizes sizes{given("leaves", kMostDevices), given("down", kMostDevices), given("spines", kMostDevices),
                       given("up", kMostDevices)};
  if (sizes.leaves == 0 && sizes.down == 0) {
    const auto square = square_sizes(devices, ratio);
    sizes.leaves = square.leaves;
    sizes.down = square.down;
  }
  if (sizes.leaves == 0) sizes.leaves = (devices + sizes.down - 1) / sizes.down;
  if (sizes.down == 0) {
    const auto least = (devices + sizes.leaves - 1) / sizes.leaves;
    sizes.down = sizes.up > 0 ? least : next_down(least, ratio);
    if (sizes.down == 0) throw no_sizes(devices, ratio);
  }
  if (sizes.up == 0) sizes.up = uplinks_of(sizes.down, ratio);
  if (sizes.up == 0) {
    throw usage_error(fmt::format(
        "topology 'leaf-spine': down={} cannot be oversubscribed {}:1: a leaf would have {}/{} = {:.4g} up ports, and "
        "it must be a whole number",
        sizes.down, ratio, sizes.down, ratio, static_cast<double>(sizes.down) / ratio));
  }
  if (sizes.spines == 0) sizes.spines = fewest_spines(sizes);
  if (sizes.up % sizes.spines != 0) {
    throw usage_error(
        fmt::format("topology 'leaf-spine': spines={} does not divide the {} up ports of a leaf: every spine gets as "
                    "many",
                    sizes.spines, sizes.up));
  }
  return sizes;
}

std::unique_ptr<Topology> make_leaf_spine(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto& routing = arguments.text("routing");
  if (routing != "d-mod-k" && routing != "ecmp") {
    throw usage_error(fmt::format("topology 'leaf-spine': unknown routing '{}'{}", routing,
                                  suggestion(routing, {"d-mod-k", "ecmp"})));
  }
  return std::make_unique<LeafSpine>(leaf_spine_sizes(arguments, context.devices), routing == "ecmp",
                                     planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, leaf_spine, "leaf-spine", "two tiers of switches, oversubscribed as wanted", make_leaf_spine,
                {{"leaves", ParameterType::integer, "",
                  "leaf switches (when left out: the most square network that fits)"},
                 {"down", ParameterType::integer, "", "devices of a leaf (as many as needed when left out)"},
                 {"spines", ParameterType::integer, "",
                  "spine switches; they divide up (when left out: the fewest with no more ports than a leaf)"},
                 {"up", ParameterType::integer, "", "up ports of a leaf (down / oversubscription when left out)"},
                 {"oversubscription", ParameterType::number, "", "down ports to up ports of a leaf (1 when left out)"},
                 {"routing", ParameterType::text, "d-mod-k", "way up: d-mod-k (by destination) or ecmp (hashed)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
