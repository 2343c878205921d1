#include "platforms/topologies/rails.hpp"

#include <algorithm>
#include <array>

#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostRails = 1024;
constexpr int kMostRadix = 65536;
constexpr int kUsualRadix = 64;

int divided(int a, int b) {
  return (a + b - 1) / b;
}

// The least divisor of `cables` that is at least `count`.
int even_share(int cables, std::int64_t count) {
  int result = 1;
  while (result < count || cables % result != 0) ++result;
  return result;
}

class Rails final : public Topology {
 public:
  Rails(RailOptions options, const RailFabric& fabric, int planes, const PluginContext& context)
      : Topology(context, planes), options_(std::move(options)), fabric_(fabric) {
    instance_ = fmt::format(
        "{}:m={},{}={},radix={}{}{}{},planes={}", options_.name, options_.m, options_.nodes_name, options_.nodes,
        options_.radix, switched() ? fmt::format(",nvlink={}", options_.nvlink) : "",
        options_.cross == RailOptions::Cross::spines ? ",pxn=no" : "", options_.ecmp ? ",routing=ecmp" : "", planes);
    const auto wanted = std::int64_t{options_.m} * options_.nodes;
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, node_bundles() + wanted + leaf_bundles() + core_bundles());
    devices_ = static_cast<int>(wanted);
    first_leaf_ = devices_;
    first_spine_ = first_leaf_ + (fabric_.tiers > 0 ? fabric_.all_leaves() : 0);
    first_core_ = first_spine_ + fabric_.all_spines();
    first_node_switch_ = first_core_ + fabric_.all_cores();
    vertices_ = first_node_switch_ + (has_node_switches() ? options_.nodes : 0);
    first_rail_cable_ = static_cast<int>(node_bundles());
    first_leaf_cable_ = first_rail_cable_ + (fabric_.tiers > 0 ? devices_ : 0);
    first_core_cable_ = first_leaf_cable_ + static_cast<int>(leaf_bundles());
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    const int m = options_.m;
    const int from = src.value / m;
    const int to = dst.value / m;
    const int i = src.value % m;
    const int j = dst.value % m;
    const auto hash = flow_hash(src, dst, flow);
    if (from == to) {
      cross_node(from, i, j, path);
    } else if (options_.cross == RailOptions::Cross::spines) {
      cross_fabric(i, from, j, to, hash, path);
    } else if (options_.cross == RailOptions::Cross::node_first) {
      cross_node(from, i, j, path);
      cross_fabric(j, from, j, to, hash, path);
    } else {
      cross_fabric(i, from, i, to, hash, path);
      cross_node(to, i, j, path);
    }
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override;
  [[nodiscard]] std::vector<int> radices() const override { return {options_.m, options_.nodes}; }
  [[nodiscard]] Characteristics characteristics() const override;
  [[nodiscard]] CostItems cost_items() const override;
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return id.value / 2 < node_bundles() ? LengthClass::board : LengthClass::optical;
  }
  [[nodiscard]] bool shortest_routing() const override;

 private:
  // Ordered pairs of different nodes by what their devices of one rail are joined by: a leaf, a spine, a core.
  struct NodePairs {
    std::array<std::int64_t, 3> count{};
    static constexpr std::array<int, 3> kLength{2, 4, 6};
  };

  [[nodiscard]] bool switched() const { return options_.nvlink > 0; }
  [[nodiscard]] bool has_node_switches() const { return switched() && options_.m > 1; }
  [[nodiscard]] std::int64_t pairs_in_node() const { return std::int64_t{options_.m} * (options_.m - 1) / 2; }
  // Bundles as they are stored; node_cables() counts what is in them.
  [[nodiscard]] std::int64_t node_bundles() const {
    return switched() ? (options_.m > 1 ? std::int64_t{options_.m} * options_.nodes : 0)
                      : pairs_in_node() * options_.nodes;
  }
  [[nodiscard]] std::int64_t leaf_bundles() const {
    return fabric_.tiers < 2 ? 0 : std::int64_t{fabric_.all_leaves()} * fabric_.spines;
  }
  [[nodiscard]] std::int64_t core_bundles() const {
    return fabric_.tiers < 3 ? 0 : std::int64_t{fabric_.all_spines()} * fabric_.cores;
  }
  [[nodiscard]] std::int64_t node_cables() const { return node_bundles() * std::max(1, options_.nvlink); }
  [[nodiscard]] std::int64_t rail_cables() const { return fabric_.tiers > 0 ? devices_ : 0; }
  [[nodiscard]] std::int64_t switch_cables() const {
    return (fabric_.tiers < 2 ? 0 : leaf_bundles() * fabric_.leaf_width()) +
           (fabric_.tiers < 3 ? 0 : core_bundles() * fabric_.core_width());
  }

  [[nodiscard]] static LinkId up(int cable) { return LinkId{2 * cable}; }
  [[nodiscard]] static LinkId down(int cable) { return LinkId{2 * cable + 1}; }

  void build();
  void build_nodes();
  void cross_node(int node, int from, int to, std::vector<LinkId>& path) const;
  void cross_fabric(int from_rail, int from, int to_rail, int to, std::uint64_t hash, std::vector<LinkId>& path) const;

  [[nodiscard]] int node_hop() const { return switched() ? 2 : 1; }
  [[nodiscard]] NodePairs node_pairs() const;
  // Links between devices of different rails and nodes, by the class of the pair of nodes.
  [[nodiscard]] int crossing(std::size_t pair_class, bool as_routed) const;
  [[nodiscard]] std::int64_t node_cut(std::int64_t on_one_side) const;
  [[nodiscard]] std::int64_t bisection_cables() const;

  RailOptions options_;
  RailFabric fabric_;
  int first_leaf_ = 0;
  int first_spine_ = 0;
  int first_core_ = 0;
  int first_node_switch_ = 0;
  int first_rail_cable_ = 0;
  int first_leaf_cable_ = 0;
  int first_core_cable_ = 0;
};

void Rails::build_nodes() {
  for (int node = 0; node < options_.nodes; ++node) {
    const int first = node * options_.m;
    for (int i = 0; i < options_.m; ++i) {
      if (has_node_switches()) connect(first + i, first_node_switch_ + node, LinkKind::intra_node, options_.nvlink);
      for (int j = i + 1; !switched() && j < options_.m; ++j) connect(first + i, first + j, LinkKind::direct);
    }
  }
}

void Rails::build() {
  links_.reserve(2 * static_cast<std::size_t>(first_core_cable_ + core_bundles()));
  build_nodes();
  if (fabric_.tiers == 0) return;
  for (int device = 0; device < devices_; ++device) {
    connect(device, first_leaf_ + fabric_.leaf(device % options_.m, device / options_.m), LinkKind::device_port);
  }
  for (int leaf = 0; fabric_.tiers > 1 && leaf < fabric_.all_leaves(); ++leaf) {
    for (int s = 0; s < fabric_.spines; ++s) {
      connect(first_leaf_ + leaf, first_spine_ + fabric_.group(leaf) * fabric_.spines + s, LinkKind::switch_link,
              fabric_.leaf_width());
    }
  }
  for (int spine = 0; fabric_.tiers > 2 && spine < fabric_.all_spines(); ++spine) {
    for (int c = 0; c < fabric_.cores; ++c) {
      connect(first_spine_ + spine, first_core_ + fabric_.core(spine / fabric_.spines, spine % fabric_.spines, c),
              LinkKind::switch_link, fabric_.core_width());
    }
  }
}

void Rails::cross_node(int node, int from, int to, std::vector<LinkId>& path) const {
  if (from == to) return;
  const int m = options_.m;
  if (switched()) {
    path.push_back(up(node * m + from));
    path.push_back(down(node * m + to));
    return;
  }
  const int low = std::min(from, to);
  const int cable =
      node * static_cast<int>(pairs_in_node()) + low * (2 * m - low - 1) / 2 + std::max(from, to) - low - 1;
  path.push_back(from < to ? up(cable) : down(cable));
}

// The way up is by the destination (D-mod-k, Zahavi 2012: destinations of one pod spread over its spines and their
// cables to cores), or hashed.
void Rails::cross_fabric(int from_rail, int from, int to_rail, int to, std::uint64_t hash,
                         std::vector<LinkId>& path) const {
  const auto& f = fabric_;
  const int up_leaf = f.leaf(from_rail, from);
  const int down_leaf = f.leaf(to_rail, to);
  path.push_back(up(first_rail_cable_ + from * options_.m + from_rail));
  if (up_leaf != down_leaf) {
    const int in_leaf = to % f.per_leaf;
    const int s =
        options_.ecmp ? static_cast<int>((hash & 0xffffffffU) % static_cast<unsigned>(f.spines)) : in_leaf % f.spines;
    const int up_spine = f.group(up_leaf) * f.spines + s;
    const int down_spine = f.group(down_leaf) * f.spines + s;
    path.push_back(up(first_leaf_cable_ + up_leaf * f.spines + s));
    if (up_spine != down_spine) {
      const int in_pod = down_leaf % f.leaves % f.pod_leaves;
      const int c = options_.ecmp ? static_cast<int>((hash >> 32) % static_cast<unsigned>(f.cores))
                                  : (in_pod * f.leaf_width() + in_leaf / f.spines) % f.cores;
      path.push_back(up(first_core_cable_ + up_spine * f.cores + c));
      path.push_back(down(first_core_cable_ + down_spine * f.cores + c));
    }
    path.push_back(down(first_leaf_cable_ + down_leaf * f.spines + s));
  }
  path.push_back(down(first_rail_cable_ + to * options_.m + to_rail));
}

// Leaves and spines by rail, cores by rail where those are not common: "leaf 3.0", "spine 3.0.1", "core 0.1".
std::string Rails::vertex_name(int vertex) const {
  const auto& f = fabric_;
  if (vertex < devices_) {
    return fmt::format("device {} ({};{})", vertex, vertex / options_.m, vertex % options_.m);
  }
  if (vertex < first_spine_) {
    return fmt::format("leaf {}.{}", (vertex - first_leaf_) / f.leaves, (vertex - first_leaf_) % f.leaves);
  }
  if (vertex < first_core_) {
    const int group = (vertex - first_spine_) / f.spines;
    const int spine = (vertex - first_spine_) % f.spines;
    if (f.tiers == 2) return f.joined ? fmt::format("spine {}", spine) : fmt::format("spine {}.{}", group, spine);
    return fmt::format("spine {}.{}.{}", group / f.pods, group % f.pods, spine);
  }
  if (vertex < first_node_switch_) {
    const int core = vertex - first_core_;
    const auto of_spine = fmt::format("{}.{}", core / f.cores % f.spines, core % f.cores);
    return f.joined ? fmt::format("core {}", of_spine) : fmt::format("core {}.{}", core / f.cores / f.spines, of_spine);
  }
  return fmt::format("NVSwitch {}", vertex - first_node_switch_);
}

Rails::NodePairs Rails::node_pairs() const {
  NodePairs pairs;
  if (fabric_.tiers == 0) return pairs;
  const auto& f = fabric_;
  // Ordered pairs, equal ones too, inside chunks of `size` nodes.
  const auto inside = [&](std::int64_t size) {
    const auto whole = f.nodes / size;
    const auto rest = f.nodes % size;
    return whole * size * size + rest * rest;
  };
  const auto leaf = inside(f.per_leaf);
  const auto pod = f.tiers < 2 ? leaf : inside(std::int64_t{f.per_leaf} * f.pod_leaves);
  const auto all = std::int64_t{f.nodes} * f.nodes;
  pairs.count = {leaf - f.nodes, pod - leaf, all - pod};
  return pairs;
}

int Rails::crossing(std::size_t pair_class, bool as_routed) const {
  const int in_node = NodePairs::kLength[pair_class] + node_hop();
  const int over_top = fabric_.tiers == 2 ? 4 : 6;
  if (as_routed) return options_.cross == RailOptions::Cross::spines ? over_top : in_node;
  return fabric_.joined ? std::min(in_node, over_top) : in_node;
}

bool Rails::shortest_routing() const {
  if (options_.m == 1) return true;
  const auto pairs = node_pairs();
  for (std::size_t c = 0; c < pairs.count.size(); ++c) {
    if (pairs.count[c] > 0 && crossing(c, true) > crossing(c, false)) return false;
  }
  return true;
}

// Cables cut inside of a node with so many of its devices on one side.
std::int64_t Rails::node_cut(std::int64_t on_one_side) const {
  const auto others = options_.m - on_one_side;
  return switched() ? options_.nvlink * std::min(on_one_side, others) : on_one_side * others;
}

// Joined rails: half of all devices in the fabric, whatever the split, and the cut inside of one node where the number
// of nodes is odd, which is the least that nodes can add: min(h, m-h) is the distance of h from 0 modulo m, and the h
// of all nodes add up to N/2. With rails apart, the smallest of a family of splits: the first half of the devices of a
// box of positions and nodes, counted node by node or rail by rail.
std::int64_t Rails::bisection_cables() const {
  const std::int64_t m = options_.m;
  const std::int64_t nodes = options_.nodes;
  const auto half = m * nodes / 2;
  if (fabric_.joined && fabric_.tiers > 0 && switched()) return half + (nodes % 2 != 0 ? node_cut(m / 2) : 0);
  const auto rail_cut = [&](std::int64_t x) { return fabric_.tiers > 0 ? std::min(x, nodes - x) : 0; };
  std::int64_t least = -1;
  const auto consider = [&](std::int64_t cut) { least = least < 0 ? cut : std::min(least, cut); };
  for (auto p = (m + 1) / 2; p <= m; ++p) {
    const auto full = half / p;
    const auto rest = half % p;
    if (full + (rest > 0 ? 1 : 0) > nodes) continue;
    consider(full * node_cut(p) + node_cut(rest) + rest * rail_cut(full + 1) + (p - rest) * rail_cut(full));
  }
  for (auto q = (nodes + 1) / 2; q <= nodes; ++q) {
    const auto full = half / q;
    const auto rest = half % q;
    if (full + (rest > 0 ? 1 : 0) > m) continue;
    consider(full * rail_cut(q) + rail_cut(rest) + rest * node_cut(full + 1) + (q - rest) * node_cut(full));
  }
  return std::max<std::int64_t>(least, 0);
}

Characteristics Rails::characteristics() const {
  const auto& f = fabric_;
  const auto devices = static_cast<double>(devices_);
  const auto cables = node_cables() + rail_cables() + switch_cables();
  const auto items = cost_items();
  Characteristics result;
  result.devices = devices_;
  result.switches = std::int64_t{vertices_ - devices_} * planes_;
  result.max_switch_radix = has_node_switches() ? std::int64_t{options_.m} * options_.nvlink : 0;
  const auto radix = [&](std::int64_t ports) { result.max_switch_radix = std::max(result.max_switch_radix, ports); };
  if (f.tiers > 0) radix(f.tiers == 1 ? f.per_leaf : 2 * f.per_leaf);
  if (f.tiers == 2) radix(std::int64_t{f.joined ? f.all_leaves() : f.leaves} * f.leaf_width());
  if (f.tiers == 3) radix(2 * f.spine_uplinks());
  if (f.tiers == 3) radix(std::int64_t{f.joined ? f.groups() : f.pods} * f.core_width());
  result.links = cables * planes_;
  result.ports_per_device = static_cast<double>(items.device_ports) / devices;
  result.switch_ports_per_device = static_cast<double>(items.switch_ports) / devices;
  const auto pairs = node_pairs();
  const std::int64_t m = options_.m;
  auto total = options_.nodes * m * (m - 1) * node_hop();
  if (m > 1) result.diameter = node_hop();
  for (std::size_t c = 0; c < pairs.count.size(); ++c) {
    if (pairs.count[c] == 0) continue;
    total += pairs.count[c] * m * (NodePairs::kLength[c] + (m - 1) * crossing(c, false));
    result.diameter = std::max({result.diameter, NodePairs::kLength[c], m > 1 ? crossing(c, false) : 0});
  }
  if (devices_ > 1) result.mean_path = static_cast<double>(total) / devices / (devices - 1);
  result.bisection_links = static_cast<double>(bisection_cables() * planes_);
  result.bisection_proved = f.joined && f.tiers > 0 && switched();
  return result;
}

// Inside of a node everything is on boards. Rails run from node to node across the machine room: optical, the first
// cable too (so are mesh-rail-cube's).
CostItems Rails::cost_items() const {
  const auto node = node_cables() * planes_;
  const auto rail = rail_cables() * planes_;
  const auto above = switch_cables() * planes_;
  CostItems items;
  items.switch_ports = (switched() ? node : 0) + rail + 2 * above;
  items.node_switch_ports = switched() ? node : 0;
  items.device_ports = (switched() ? node : 2 * node) + rail;
  items.board_links = node;
  items.optical_cables = rail + above;
  return items;
}

}  // namespace

std::optional<RailFabric> rail_fabric(int rails, int nodes, int radix, bool joined) {
  RailFabric f;
  f.rails = rails;
  f.nodes = nodes;
  f.joined = joined && rails > 1;
  if (nodes == 1) return f;
  const int half = radix / 2;
  const int domain = f.joined ? rails : 1;  // rails that meet in the top tier
  const auto share_leaves = [&](int leaves) {
    f.per_leaf = divided(nodes, leaves);
    f.leaves = divided(nodes, f.per_leaf);
    f.pods = 1;
    f.pod_leaves = f.leaves;
  };
  if (!f.joined && nodes <= radix) {
    f.tiers = 1;
    share_leaves(1);
    return f;
  }
  if (half == 0) return std::nullopt;
  share_leaves(divided(nodes, half));
  const auto top_leaves = std::int64_t{domain} * f.leaves;
  if (top_leaves <= radix) {
    f.tiers = 2;
    f.spines = even_share(f.per_leaf, (top_leaves * f.per_leaf + radix - 1) / radix);
    return f;
  }
  f.pod_leaves = divided(f.leaves, divided(f.leaves, half));
  f.pods = divided(f.leaves, f.pod_leaves);
  if (std::int64_t{domain} * f.pods > radix) return std::nullopt;
  f.tiers = 3;
  f.spines = even_share(f.per_leaf, (std::int64_t{f.pod_leaves} * f.per_leaf + half - 1) / half);
  f.cores = even_share(f.spine_uplinks(), (std::int64_t{domain} * f.pods * f.spine_uplinks() + radix - 1) / radix);
  return f;
}

ParameterSpec rail_routing_parameter() {
  return {"routing", ParameterType::text, "d-mod-k", "way up in a rail: d-mod-k (by destination) or ecmp (hashed)"};
}

RailOptions rail_options(const std::string& name, const std::string& nodes_name, const Arguments& arguments,
                         const Topology::PluginContext& context) {
  RailOptions options;
  options.name = name;
  options.nodes_name = nodes_name;
  options.m = static_cast<int>(arguments.integer("m", 1, kMostRails));
  options.nodes = arguments.has(nodes_name) ? static_cast<int>(arguments.integer(nodes_name, 1, kMostDevices))
                                            : divided(context.devices, options.m);
  options.radix = arguments.has("radix") ? static_cast<int>(arguments.integer("radix", 2, kMostRadix)) : 0;
  const auto& routing = arguments.text("routing");
  if (routing != "d-mod-k" && routing != "ecmp") {
    throw usage_error(
        fmt::format("topology '{}': unknown routing '{}'{}", name, routing, suggestion(routing, {"d-mod-k", "ecmp"})));
  }
  options.ecmp = routing == "ecmp";
  return options;
}

std::unique_ptr<Topology> make_rails(RailOptions options, int planes, const Topology::PluginContext& context) {
  const bool choose = options.radix == 0;
  if (choose) options.radix = kUsualRadix;
  auto fabric = rail_fabric(options.m, options.nodes, options.radix, options.joined);
  while (choose && !fabric && options.radix < kMostRadix) {
    options.radix *= 2;
    fabric = rail_fabric(options.m, options.nodes, options.radix, options.joined);
  }
  if (!fabric) {
    throw usage_error(fmt::format("topology '{}': three tiers of switches with {} ports do not join {} nodes of {}",
                                  options.name, options.radix, options.nodes, options.m));
  }
  return std::make_unique<Rails>(std::move(options), *fabric, planes, context);
}

}  // namespace tandem
