// STR-K(m; d_1..d_k), the torus of meshes: this project's ablation "rails replaced by rings". Modules of m devices as
// in mesh-rail-cube; position j of all modules owns rings of one dimension.
//
//   address (a_k, ..., a_1; j): 0 <= a_l < d_l, 0 <= j < m; module A = sum of a_l * (d_1 * .. * d_(l-1)); device A*m +
//   j dimension of a position: lam(j) = (j mod k) + 1; r = m/k positions a dimension module: (A;i) - (A;j) for all i !=
//   j; with module=switch every device to one switch instead rings: (a;j) - (a with a_l + 1 mod d_l; j), l = lam(j);
//   one cable where d_l = 2, none where d_l = 1
//
// Routing: as in mesh-rail-cube, each dimension that differs in turn, the source position's first and the destination
// position's last, the shorter way round, with moves inside modules to positions that own the rings. Shortest for all
// pairs. With routing=hashed the order between, which of the r positions, and the way round where both are equally long
// are hashed from (src, dst, flow); with routing=fixed dimensions go up, on the rings that lie as the destination's
// position does, and ties alternate.
#include <algorithm>
#include <bit>

#include "platforms/split_search.hpp"
#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostDimensions = 8;
constexpr int kMostPositions = 256;
constexpr int kBlock = 4;  // modules of a row of racks

struct TorusSizes {
  int m = 0;
  std::vector<int> d;  // d_1 first
  bool switched = false;
  bool fixed = false;

  [[nodiscard]] int k() const { return static_cast<int>(d.size()); }
  [[nodiscard]] int r() const { return m / k(); }
};

class MeshTorus final : public Topology {
 public:
  MeshTorus(TorusSizes sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(std::move(sizes)) {
    instance_ = fmt::format("mesh-torus:m={},dims={}{}{},planes={}", sizes_.m, joined(sizes_.d),
                            sizes_.switched ? ",module=switch" : "", sizes_.fixed ? ",routing=fixed" : "", planes);
    modules_ = capped_product(sizes_.d);
    const auto wanted = modules_ * sizes_.m;
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, modules_ * module_cables() + ring_cables());
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_ + static_cast<int>(has_switches() ? modules_ : 0);
    links_.reserve(2 * static_cast<std::size_t>(modules_ * module_cables() + ring_cables()));
    build_modules();
    build_rings();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    const int target = dst.value / sizes_.m;
    const int end = dst.value % sizes_.m;
    int module = src.value / sizes_.m;
    int position = src.value % sizes_.m;
    Random random(flow_hash(src, dst, flow));
    const auto order = order_of(module, target, position % sizes_.k(), end % sizes_.k(), random);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int level = order[i];
      if (position % sizes_.k() != level) {
        const bool last = i + 1 == order.size() && end % sizes_.k() == level;
        const int next = last ? end : level + sizes_.k() * row(end, random);
        move(module, position, next, path);
        position = next;
      }
      module = walk_ring(level, module, target, position, random, path);
    }
    move(module, position, end, path);
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex >= devices_) return fmt::format("module switch ({})", address(vertex - devices_));
    return fmt::format("device {} ({};{})", vertex, address(vertex / sizes_.m), vertex % sizes_.m);
  }

  [[nodiscard]] std::vector<int> radices() const override {
    std::vector<int> result{sizes_.m};
    result.insert(result.end(), sizes_.d.begin(), sizes_.d.end());
    return result;
  }

  [[nodiscard]] Characteristics characteristics() const override;
  [[nodiscard]] CostItems cost_items() const override;
  [[nodiscard]] LengthClass length_class(LinkId id) const override;

 private:
  struct Ring {
    int size = 1;
    int below = 1;        // modules from one coordinate to the next
    int first_cable = 0;  // those of position `level` + k * rho: rho after rho, by the module they start at
  };

  [[nodiscard]] bool has_switches() const { return sizes_.switched && sizes_.m > 1; }
  [[nodiscard]] std::int64_t module_cables() const {
    if (sizes_.switched) return has_switches() ? sizes_.m : 0;
    return std::int64_t{sizes_.m} * (sizes_.m - 1) / 2;
  }
  // Cables of all rings of one position.
  [[nodiscard]] std::int64_t cables_along(int size) const {
    return size == 1 ? 0 : size == 2 ? modules_ / 2 : modules_;
  }
  [[nodiscard]] std::int64_t ring_cables() const {
    std::int64_t sum = 0;
    for (const int size : sizes_.d) sum += sizes_.r() * cables_along(size);
    return sum;
  }

  [[nodiscard]] int digit(int module, int level) const {
    const auto& ring = rings_[static_cast<std::size_t>(level)];
    return module / ring.below % ring.size;
  }
  [[nodiscard]] std::string address(int module) const {
    std::vector<int> digits;
    for (int level = sizes_.k() - 1; level >= 0; --level) digits.push_back(digit(module, level));
    return fmt::format("{}", fmt::join(digits, ","));
  }
  [[nodiscard]] int next_module(const Ring& ring, int module) const {
    return module + (module / ring.below % ring.size + 1 == ring.size ? 1 - ring.size : 1) * ring.below;
  }

  [[nodiscard]] int row(int end, Random& random) const {
    if (sizes_.fixed) return end / sizes_.k();
    return static_cast<int>(random.below(static_cast<std::uint32_t>(sizes_.r())));
  }

  // Dimensions (from 0) to correct: `first` first and `last` last where they are among them.
  [[nodiscard]] std::vector<int> order_of(int module, int target, int first, int last, Random& random) const {
    std::vector<int> between;
    std::vector<int> order;
    for (int level = 0; level < sizes_.k(); ++level) {
      if (digit(module, level) == digit(target, level)) continue;
      if (level == first) {
        order.push_back(level);
      } else if (level != last) {
        between.push_back(level);
      }
    }
    if (!sizes_.fixed) random.shuffle(between);
    order.insert(order.end(), between.begin(), between.end());
    if (last != first && digit(module, last) != digit(target, last)) order.push_back(last);
    return order;
  }

  void move(int module, int from, int to, std::vector<LinkId>& path) const {
    if (from == to) return;
    const int first = module * static_cast<int>(module_cables());
    if (sizes_.switched) {
      path.push_back(LinkId{2 * (first + from)});
      path.push_back(LinkId{2 * (first + to) + 1});
      return;
    }
    const int low = std::min(from, to);
    const int cable = first + low * (2 * sizes_.m - low - 1) / 2 + std::max(from, to) - low - 1;
    path.push_back(LinkId{2 * cable + (from < to ? 0 : 1)});
  }

  // Cable in the ring's direction that starts at `module`. A pair has only the one that starts at coordinate 0.
  [[nodiscard]] int ring_cable(const Ring& ring, int module, int position) const {
    const int index = ring.size > 2 ? module : module / (2 * ring.below) * ring.below + module % ring.below;
    return ring.first_cable + position / sizes_.k() * static_cast<int>(cables_along(ring.size)) + index;
  }

  int walk_ring(int level, int module, int target, int position, Random& random, std::vector<LinkId>& path) const {
    const auto& ring = rings_[static_cast<std::size_t>(level)];
    const int from = digit(module, level);
    const int to = digit(target, level);
    const int ahead = (to - from + ring.size) % ring.size;
    const int back = ring.size - ahead;
    const bool tie_ahead = sizes_.fixed ? (from + position / sizes_.k()) % 2 == 0 : random.below(2) == 0;
    const bool forward = ahead < back || (ahead == back && tie_ahead);
    for (int step = 0; step < std::min(ahead, back); ++step) {
      // A pair's one cable is the same both ways round.
      const bool with = ring.size == 2 ? digit(module, level) == 0 : forward;
      const int next = forward ? next_module(ring, module) : previous_module(ring, module);
      path.push_back(LinkId{2 * ring_cable(ring, with ? module : next, position) + (with ? 0 : 1)});
      module = next;
    }
    return module;
  }
  [[nodiscard]] int previous_module(const Ring& ring, int module) const {
    return module + (module / ring.below % ring.size == 0 ? ring.size - 1 : -1) * ring.below;
  }

  void build_modules() {
    for (int module = 0; module < modules_; ++module) {
      const int first = module * sizes_.m;
      for (int i = 0; i < sizes_.m; ++i) {
        if (has_switches()) connect(first + i, devices_ + module, LinkKind::device_port);
        for (int j = i + 1; !sizes_.switched && j < sizes_.m; ++j) connect(first + i, first + j, LinkKind::direct);
      }
    }
  }

  void build_rings() {
    int below = 1;
    for (int level = 0; level < sizes_.k(); ++level) {
      const int size = sizes_.d[static_cast<std::size_t>(level)];
      rings_.push_back({size, below, static_cast<int>(links_.size() / 2)});
      for (int position = level; position < sizes_.m; position += sizes_.k()) build_ring(rings_.back(), position);
      below *= size;
    }
  }
  void build_ring(const Ring& ring, int position) {
    for (int module = 0; ring.size > 1 && module < modules_; ++module) {
      if (ring.size == 2 && module / ring.below % 2 == 1) continue;
      connect(module * sizes_.m + position, next_module(ring, module) * sizes_.m + position, LinkKind::direct);
    }
  }

  void add_paths(Characteristics& result) const;

  TorusSizes sizes_;
  std::int64_t modules_ = 0;
  std::vector<Ring> rings_;  // by dimension
};

// Over classes of pairs: the set of dimensions that differ, and the two positions. The ways along rings do not depend
// on positions, nor the moves on how far apart coordinates are. Positions k apart are alike, so i < k stands for all.
void MeshTorus::add_paths(Characteristics& result) const {
  const int k = sizes_.k();
  double rings = 0;  // mean length along rings over all ordered pairs, equal ones too
  for (const double d : sizes_.d) rings += static_cast<int>(d) % 2 == 0 ? d / 4 : (d * d - 1) / (4 * d);
  std::int64_t moves = 0;  // of all destinations, from one module's positions 0 .. k-1
  const int move_length = sizes_.switched ? 2 : 1;
  for (unsigned levels = 0; levels < 1U << k; ++levels) {
    std::int64_t ways = 1;
    int farthest = 0;
    for (int level = 0; level < k; ++level) {
      if ((levels >> level & 1U) == 0) continue;
      ways *= sizes_.d[static_cast<std::size_t>(level)] - 1;
      farthest += sizes_.d[static_cast<std::size_t>(level)] / 2;
    }
    if (ways == 0) continue;
    for (int i = 0; i < k; ++i) {
      for (int j = 0; j < sizes_.m; ++j) {
        const auto between = std::popcount(levels & ~(1U << i) & ~(1U << (j % k)));
        const int own = i == j && between == 0 ? 0 : (between + 1) * move_length;
        moves += ways * own;
        result.diameter = std::max(result.diameter, farthest + own);
      }
    }
  }
  const auto devices = static_cast<double>(devices_);
  if (devices_ > 1) result.mean_path = (rings * devices + static_cast<double>(moves) / k) / (devices - 1);
}

// Bisection: halves along the longest dimension cost 2 (m/k) M/d cables (where it is even and above 2); what this and
// other splits of the address space cost, counted.
Characteristics MeshTorus::characteristics() const {
  const auto devices = static_cast<double>(devices_);
  const auto items = cost_items();
  Characteristics result;
  result.devices = devices_;
  result.switches = std::int64_t{vertices_ - devices_} * planes_;
  result.max_switch_radix = has_switches() ? sizes_.m : 0;
  result.links = (modules_ * module_cables() + ring_cables()) * planes_;
  result.ports_per_device = static_cast<double>(items.device_ports) / devices;
  result.switch_ports_per_device = static_cast<double>(items.switch_ports) / devices;
  add_paths(result);
  result.bisection_links = static_cast<double>(least_split(*this, radices()));
  return result;
}

// Modules are boards. Rings are short: as in the torus, copper between the modules of a block of up to kBlock along
// each dimension, optical from block to block.
CostItems MeshTorus::cost_items() const {
  CostItems items;
  items.board_links = modules_ * module_cables() * planes_;
  if (has_switches()) items.switch_ports = items.node_switch_ports = items.board_links;
  items.device_ports = sizes_.switched ? items.board_links : 2 * items.board_links;
  for (const std::int64_t size : sizes_.d) {
    const auto all = sizes_.r() * cables_along(static_cast<int>(size)) * planes_;
    const auto optical = size <= kBlock ? 0 : sizes_.r() * (modules_ / size) * ((size + kBlock - 1) / kBlock) * planes_;
    items.device_ports += 2 * all;
    items.copper_cables += all - optical;
    items.optical_cables += optical;
  }
  return items;
}

// A ring longer than a block leaves it behind the block's last coordinate, and behind its own.
LengthClass MeshTorus::length_class(LinkId id) const {
  const auto& cable = link(LinkId{id.value / 2 * 2});
  if (cable.to >= devices_) return LengthClass::board;
  const int from = cable.from / sizes_.m;
  const int to = cable.to / sizes_.m;
  if (from == to) return LengthClass::board;
  int level = 0;
  while (digit(from, level) == digit(to, level)) ++level;
  const int size = rings_[static_cast<std::size_t>(level)].size;
  const int at = digit(from, level);
  const bool leaves = size > kBlock && (at % kBlock == kBlock - 1 || at == size - 1);
  return leaves ? LengthClass::optical : LengthClass::copper;
}

std::vector<int> dimensions_of(const Arguments& arguments, int m, int devices) {
  const bool given = arguments.has("dims");
  if (given && arguments.has("dimensions")) {
    throw usage_error(
        "topology 'mesh-torus': 'dims' already says how many dimensions there are; leave 'dimensions' out");
  }
  // Two where the positions can be shared by them: a torus of modules as in the ablation's first sizes.
  const int usual = m % 2 == 0 ? 2 : 1;
  const int count =
      arguments.has("dimensions") ? static_cast<int>(arguments.integer("dimensions", 1, kMostDimensions)) : usual;
  auto d = given ? arguments.integers("dims", 1, kMostDevices)
                 : cube_like((std::int64_t{devices} + m - 1) / m, count, kMostDevices);
  if (d.size() > kMostDimensions) {
    throw usage_error(fmt::format("topology 'mesh-torus': dims={} has {} dimensions: at most {} are accepted",
                                  joined(d), d.size(), kMostDimensions));
  }
  if (static_cast<std::size_t>(m) % d.size() != 0) {
    throw usage_error(
        fmt::format("topology 'mesh-torus': {} dimensions do not divide m={}: every dimension gets as many positions",
                    d.size(), m));
  }
  return d;
}

std::unique_ptr<Topology> make_mesh_torus(const Arguments& arguments, const Topology::PluginContext& context) {
  TorusSizes sizes;
  sizes.m = static_cast<int>(arguments.integer("m", 1, kMostPositions));
  const auto one_of = [&](const std::string& parameter, const std::vector<std::string>& choices) {
    const auto& value = arguments.text(parameter);
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      throw usage_error(
          fmt::format("topology 'mesh-torus': unknown {} '{}'{}", parameter, value, suggestion(value, choices)));
    }
    return value;
  };
  sizes.switched = one_of("module", {"full", "switch"}) == "switch";
  sizes.fixed = one_of("routing", {"hashed", "fixed"}) == "fixed";
  sizes.d = dimensions_of(arguments, sizes.m, context.devices);
  return std::make_unique<MeshTorus>(std::move(sizes), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, mesh_torus, "mesh-torus", "modules of directly joined devices, joined by rotating rings",
                make_mesh_torus,
                {{"m", ParameterType::integer, "8", "devices of a module"},
                 {"dims", ParameterType::integer_list, "",
                  "modules along each dimension, d_1 first, e.g. 8x8 (when left out: the most cube-like that fits)"},
                 {"dimensions", ParameterType::integer, "",
                  "how many, where dims is left out (2 where m is even, or else 1, when left out)"},
                 {"module", ParameterType::text, "full", "inside a module: full (every pair) or switch"},
                 {"routing", ParameterType::text, "hashed", "choice among shortest paths: hashed or fixed"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
