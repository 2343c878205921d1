// k-ary fat-tree of three tiers (Al-Fares, SIGCOMM 2008): k pods, each with k/2 edge switches of k/2 devices.
//
// Oversubscription o is physical: an edge switch keeps its k/2 devices and has u = k/2 / o up ports instead of k/2, so
// a pod has u aggregation switches and the tree u*k/2 cores. Every cable has the same rate. (4:1 at k=8: 2 switch
// ports a device instead of 5.)
//
//   device (p,e,h) - edge (p,e);   edge (p,e) - aggregation (p,a) for all e, a;   aggregation (p,a) - core (a,x)
//   with p < k;  e, h, x < k/2;  a < u
//
// Routing goes up to the lowest common tier and down by the destination. The way up is D-mod-k by default, a = h mod u
// and x = e of the destination (p,e,h): all flows to one device share one core, so that they meet as early as
// possible and different destinations spread over all up ports. With ecmp both are hashed from (src, dst, flow).
#include <cmath>

#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

struct FatTreeSizes {
  int k = 0;
  int uplinks = 0;  // of an edge switch
  double oversubscription = 1;
};

// Up ports of an edge switch, or 0 where k/2 / oversubscription is not a whole number.
int uplinks_of(int k, double oversubscription) {
  const double uplinks = k / 2 / oversubscription;
  const double whole = std::round(uplinks);
  return whole >= 1 && std::abs(uplinks - whole) < 1e-6 * whole ? static_cast<int>(whole) : 0;
}

class FatTree final : public Topology {
 public:
  FatTree(const FatTreeSizes& sizes, bool ecmp, int planes, const PluginContext& context)
      : Topology(context, planes), half_(sizes.k / 2), up_(sizes.uplinks), ecmp_(ecmp) {
    instance_ = fmt::format("fat-tree:k={},oversubscription={}{},planes={}", sizes.k, sizes.oversubscription,
                            ecmp ? ",routing=ecmp" : "", planes);
    const std::int64_t wanted = 2 * std::int64_t{half_} * half_ * half_;
    check_size(instance_, wanted, wanted + 2 * edge_cables());
    devices_ = static_cast<int>(wanted);
    first_edge_ = devices_;
    first_aggregation_ = first_edge_ + pods() * half_;
    first_core_ = first_aggregation_ + pods() * up_;
    vertices_ = first_core_ + up_ * half_;
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const int src_edge = src.value / half_;  // numbered over all pods
    const int dst_edge = dst.value / half_;
    path.push_back(up(src.value));
    if (src_edge != dst_edge) {
      const auto [a, x] = way_up(src, dst, flow);
      const int src_pod = src_edge / half_;
      const int dst_pod = dst_edge / half_;
      path.push_back(up(edge_cable(src_edge, a)));
      if (src_pod != dst_pod) {
        path.push_back(up(core_cable(src_pod, a, x)));
        path.push_back(down(core_cable(dst_pod, a, x)));
      }
      path.push_back(down(edge_cable(dst_edge, a)));
    }
    path.push_back(down(dst.value));
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < first_edge_) {
      return fmt::format("device {} ({},{},{})", vertex, vertex / half_ / half_, vertex / half_ % half_,
                         vertex % half_);
    }
    if (vertex < first_aggregation_) {
      const int edge = vertex - first_edge_;
      return fmt::format("edge {}.{}", edge / half_, edge % half_);
    }
    if (vertex < first_core_) {
      const int aggregation = vertex - first_aggregation_;
      return fmt::format("aggregation {}.{}", aggregation / up_, aggregation % up_);
    }
    const int core = vertex - first_core_;
    return fmt::format("core {}.{}", core / half_, core % half_);
  }

  [[nodiscard]] std::vector<int> radices() const override { return {half_, half_, pods()}; }

  [[nodiscard]] Characteristics characteristics() const override;

  [[nodiscard]] CostItems cost_items() const override {
    const auto between_switches = 2 * edge_cables() * planes_;
    const auto device_cables = std::int64_t{devices_} * planes_;
    return {.switch_ports = device_cables + 2 * between_switches,
            .device_ports = device_cables,
            .copper_cables = device_cables,
            .optical_cables = between_switches};
  }

 private:
  struct WayUp {
    int aggregation;
    int core;
  };

  [[nodiscard]] int pods() const { return 2 * half_; }
  // Cables between edge and aggregation switches; there are as many between aggregation and core switches.
  [[nodiscard]] std::int64_t edge_cables() const { return 2 * std::int64_t{half_} * half_ * up_; }

  // Cables in the order they are built, so that ids follow from addresses.
  [[nodiscard]] int edge_cable(int edge, int a) const { return devices_ + edge * up_ + a; }
  [[nodiscard]] int core_cable(int pod, int a, int x) const {
    return devices_ + static_cast<int>(edge_cables()) + (pod * up_ + a) * half_ + x;
  }
  [[nodiscard]] static LinkId up(int cable) { return LinkId{2 * cable}; }
  [[nodiscard]] static LinkId down(int cable) { return LinkId{2 * cable + 1}; }

  [[nodiscard]] WayUp way_up(DeviceId src, DeviceId dst, FlowHash flow) const {
    if (!ecmp_) return {dst.value % half_ % up_, dst.value / half_ % half_};
    const auto hash = flow_hash(src, dst, flow);
    return {static_cast<int>((hash & 0xffffffffU) % static_cast<unsigned>(up_)),
            static_cast<int>((hash >> 32) % static_cast<unsigned>(half_))};
  }

  void build() {
    links_.reserve(2 * static_cast<std::size_t>(devices_ + 2 * edge_cables()));
    for (int device = 0; device < devices_; ++device) {
      connect(device, first_edge_ + device / half_, LinkKind::device_port);
    }
    for (int edge = 0; edge < pods() * half_; ++edge) {
      for (int a = 0; a < up_; ++a) {
        connect(first_edge_ + edge, first_aggregation_ + edge / half_ * up_ + a, LinkKind::switch_link);
      }
    }
    for (int aggregation = 0; aggregation < pods() * up_; ++aggregation) {
      for (int x = 0; x < half_; ++x) {
        connect(first_aggregation_ + aggregation, first_core_ + aggregation % up_ * half_ + x, LinkKind::switch_link);
      }
    }
  }

  int half_;  // k/2
  int up_;
  bool ecmp_;
  int first_edge_ = 0;
  int first_aggregation_ = 0;
  int first_core_ = 0;
};

Characteristics FatTree::characteristics() const {
  const std::int64_t half = half_;
  const std::int64_t devices = devices_;
  Characteristics result;
  result.devices = devices;
  result.switches = (2 * half * half + 2 * half * up_ + half * up_) * planes_;
  result.max_switch_radix = 2 * half;
  result.links = (devices + 2 * edge_cables()) * planes_;
  result.ports_per_device = planes_;
  result.switch_ports_per_device =
      static_cast<double>(devices + 4 * edge_cables()) / static_cast<double>(devices) * planes_;
  result.diameter = 6;
  const auto total = 2 * (half - 1) + 4 * (half * half - half) + 6 * (devices - half * half);
  result.mean_path = static_cast<double>(total) / static_cast<double>(devices - 1);
  // Half of the pods: each of u*k/2 cores loses k/2 cables. Nothing is smaller: with x of the E edge switches on one
  // side, |x - E/2| * k/2 device cables are cut, and above the edge tier the tree is rearrangeably non-blocking, so
  // that min(x, E-x) pairs of edge switches have u cable-disjoint paths each; the sum is least at x = E/2.
  result.bisection_links = static_cast<double>(half * half * up_ * planes_);
  result.bisection_proved = true;
  return result;
}

FatTreeSizes explicit_sizes(int k, double oversubscription) {
  if (k % 2 != 0) throw usage_error(fmt::format("topology 'fat-tree': 'k' is {}: it must be even", k));
  const int uplinks = uplinks_of(k, oversubscription);
  if (uplinks == 0) {
    throw usage_error(
        fmt::format("topology 'fat-tree': k={} cannot be oversubscribed {}:1: an edge switch would have {}/{} = {:.4g} "
                    "up ports, and it must be a whole number",
                    k, oversubscription, k / 2, oversubscription, k / 2 / oversubscription));
  }
  return {k, uplinks, oversubscription};
}

FatTreeSizes smallest_sizes(int devices, double oversubscription) {
  constexpr int kMostK = 256;  // 4,194,304 devices
  for (int k = 2; k <= kMostK; k += 2) {
    const int uplinks = uplinks_of(k, oversubscription);
    if (uplinks > 0 && std::int64_t{k} * k * k / 4 >= devices) return {k, uplinks, oversubscription};
  }
  throw usage_error(fmt::format("topology 'fat-tree': no k up to {} holds {} devices with oversubscription {}", kMostK,
                                devices, oversubscription));
}

std::unique_ptr<Topology> make_fat_tree(const Arguments& arguments, const Topology::PluginContext& context) {
  const double oversubscription = arguments.number("oversubscription");
  if (!(oversubscription >= 1) || !std::isfinite(oversubscription)) {
    throw usage_error(fmt::format("topology 'fat-tree': 'oversubscription' is {}: it must be 1 or more",
                                  arguments.text("oversubscription")));
  }
  const auto& routing = arguments.text("routing");
  if (routing != "d-mod-k" && routing != "ecmp") {
    throw usage_error(
        fmt::format("topology 'fat-tree': unknown routing '{}'{}", routing, suggestion(routing, {"d-mod-k", "ecmp"})));
  }
  const auto sizes = arguments.has("k")
                         ? explicit_sizes(static_cast<int>(arguments.integer("k", 2, 65536)), oversubscription)
                         : smallest_sizes(context.devices, oversubscription);
  return std::make_unique<FatTree>(sizes, routing == "ecmp", planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, fat_tree, "fat-tree", "k-ary fat-tree of three tiers (Al-Fares)", make_fat_tree,
                {{"k", ParameterType::integer, "",
                  "ports of a switch, even; k^3/4 devices (the smallest that fits when left out)"},
                 {"oversubscription", ParameterType::number, "1", "down ports to up ports of an edge switch"},
                 {"routing", ParameterType::text, "d-mod-k", "way up: d-mod-k (by destination) or ecmp (hashed)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
