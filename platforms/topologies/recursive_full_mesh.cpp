// RFM(m; g_1..g_L), the recursive full mesh: this project's ablation "no switches". DCell (Guo, SIGCOMM 2008) with K_m
// in place of its switch, and with the circulant rule of dragonfly's global links (Kim, ISCA 2008).
//
//   address (b_L, ..., b_1; j): 0 <= b_l < g_l, 0 <= j < m; P_0 = m, P_l = P_(l-1) * g_l; device j + sum of b_l *
//   P_(l-1) module: (b;i) - (b;j) for all i != j level l: the g_l groups of P_(l-1) devices are joined in pairs by q_l
//   = floor(P_(l-1) / (g_l - 1)) cables each: device u of group x, with v = u mod (g_l - 1) and w = u div (g_l - 1) <
//   q_l, and device w * (g_l - 1) + g_l - 2 - v of group (x + 1 + v) mod g_l
//
// A device has at most one cable a level, and m - 1 in its module. Routing is DCell's: to the gateway of one of the q_l
// cables between the two groups, over it, and on from there, at every level; which cable is hashed from (src, dst,
// flow), or by the destination with routing=fixed; devices that are joined by a cable use that one. It is not always
// shortest: another gateway may be nearer, or a third group lead there.
#include <algorithm>

#include "platforms/graph_search.hpp"
#include "platforms/split_search.hpp"
#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostLevels = 8;
constexpr int kMostPositions = 256;
constexpr std::int64_t kMostSearchWork = 50'000'000;  // links looked at for diameter and mean path

class RecursiveFullMesh final : public Topology {
 public:
  RecursiveFullMesh(int m, const std::vector<int>& groups, bool fixed, int planes, const PluginContext& context)
      : Topology(context, planes), m_(m), fixed_(fixed) {
    instance_ = fmt::format("recursive-full-mesh:m={},g={}{},planes={}", m, joined(groups),
                            fixed ? ",routing=fixed" : "", planes);
    auto sizes = groups;
    sizes.push_back(m);
    const auto wanted = capped_product(sizes);
    check_size(instance_, wanted, 0);
    auto cables = wanted / m * module_cables();
    std::int64_t below = m;
    for (const int g : groups) {
      Level level{g, static_cast<int>(below), g > 1 ? static_cast<int>(below / (g - 1)) : 0, cables};
      if (g > 1 && level.copies == 0) {
        throw usage_error(
            fmt::format("topology '{}': {} groups of {} devices cannot be joined in pairs: at most {} groups",
                        instance_, g, below, below + 1));
      }
      below *= g;
      cables += wanted / below * level.pairs() * level.copies;
      levels_.push_back(level);
    }
    check_size(instance_, wanted, cables);
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_;
    links_.reserve(2 * static_cast<std::size_t>(cables));
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    walk(src.value, dst.value, static_cast<int>(levels_.size()), flow_hash(src, dst, flow), path);
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    std::vector<int> digits;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) digits.push_back(level->group(vertex));
    return fmt::format("device {} ({};{})", vertex, fmt::join(digits, ","), vertex % m_);
  }

  [[nodiscard]] std::vector<int> radices() const override {
    std::vector<int> result{m_};
    for (const auto& level : levels_) result.push_back(level.groups);
    return result;
  }

  [[nodiscard]] Characteristics characteristics() const override;

  // Cables between modules are long, at every level.
  [[nodiscard]] CostItems cost_items() const override {
    const auto all = cables() * planes_;
    const auto boards = std::int64_t{devices_} / m_ * module_cables() * planes_;
    return {.device_ports = 2 * all, .board_links = boards, .optical_cables = all - boards};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    const bool one_module = link(id).from / m_ == link(id).to / m_;
    return one_module ? LengthClass::board : LengthClass::optical;
  }

  // With one cable between any two groups of one level, the way over it takes at most three links, and no way round
  // takes fewer: a device that one comes to over its cable has no second one.
  [[nodiscard]] bool shortest_routing() const override {
    const auto real = std::count_if(levels_.begin(), levels_.end(), [](const Level& l) { return l.groups > 1; });
    return real == 0 || (real == 1 && std::all_of(levels_.begin(), levels_.end(),
                                                  [](const Level& level) { return level.copies <= 1; }));
  }

 private:
  struct Level {
    int groups;
    int size;    // devices of a group
    int copies;  // cables between two groups
    std::int64_t first_cable;

    [[nodiscard]] std::int64_t pairs() const { return std::int64_t{groups} * (groups - 1) / 2; }
    [[nodiscard]] int group(int device) const { return device / size % groups; }
    // Device number, in group x, of the end of copy w of the cable to group y.
    [[nodiscard]] int gateway(int x, int y, int w) const { return w * (groups - 1) + (y - x - 1 + groups) % groups; }
    // From group x to y in the block (P_l devices) that `block` numbers.
    [[nodiscard]] LinkId link(int block, int x, int y, int w) const {
      const int low = std::min(x, y);
      const int pair = low * (2 * groups - low - 1) / 2 + std::max(x, y) - low - 1;
      const auto cable = static_cast<int>(first_cable + (block * pairs() + pair) * copies + w);
      return LinkId{2 * cable + (x < y ? 0 : 1)};
    }
  };

  [[nodiscard]] std::int64_t module_cables() const { return std::int64_t{m_} * (m_ - 1) / 2; }
  [[nodiscard]] std::int64_t cables() const { return static_cast<std::int64_t>(links_.size()) / 2; }

  void build() {
    for (int first = 0; first < devices_; first += m_) {
      for (int i = 0; i < m_; ++i) {
        for (int j = i + 1; j < m_; ++j) connect(first + i, first + j, LinkKind::direct);
      }
    }
    for (const auto& level : levels_) {
      for (int first = 0; first < devices_; first += level.size * level.groups) build_block(level, first);
    }
  }

  void build_block(const Level& level, int first) {
    for (int x = 0; x < level.groups; ++x) {
      for (int y = x + 1; y < level.groups; ++y) {
        for (int w = 0; w < level.copies; ++w) {
          connect(first + x * level.size + level.gateway(x, y, w), first + y * level.size + level.gateway(y, x, w),
                  LinkKind::direct);
        }
      }
    }
  }

  // From `at` to `to`, which are in the same block of level `top`.
  void walk(int at, int to, int top, std::uint64_t hash, std::vector<LinkId>& path) const {
    if (at == to) return;
    while (top > 0 && levels_[static_cast<std::size_t>(top) - 1].group(at) ==
                          levels_[static_cast<std::size_t>(top) - 1].group(to)) {
      --top;
    }
    if (top == 0) {
      path.push_back(module_link(at, to));
      return;
    }
    const auto& level = levels_[static_cast<std::size_t>(top) - 1];
    const int x = level.group(at);
    const int y = level.group(to);
    const int w = copy(level, at, to, hash);
    const int block = at / (level.size * level.groups);
    const int first = block * level.size * level.groups;
    walk(at, first + x * level.size + level.gateway(x, y, w), top - 1, mix(hash), path);
    path.push_back(level.link(block, x, y, w));
    walk(first + y * level.size + level.gateway(y, x, w), to, top - 1, mix(hash + 1), path);
  }

  [[nodiscard]] int copy(const Level& level, int at, int to, std::uint64_t hash) const {
    const int own = at % level.size / std::max(1, level.groups - 1);
    const int x = level.group(at);
    const int y = level.group(to);
    if (own < level.copies && level.gateway(x, y, own) == at % level.size &&
        level.gateway(y, x, own) == to % level.size) {
      return own;
    }
    if (fixed_) return to % level.size % level.copies;
    return static_cast<int>((hash >> 32) % static_cast<unsigned>(level.copies));
  }

  [[nodiscard]] LinkId module_link(int from, int to) const {
    const int low = std::min(from, to) % m_;
    const int high = std::max(from, to) % m_;
    const int cable = from / m_ * static_cast<int>(module_cables()) + low * (2 * m_ - low - 1) / 2 + high - low - 1;
    return LinkId{2 * cable + (from < to ? 0 : 1)};
  }

  void add_paths(Characteristics& result) const;

  int m_;
  bool fixed_;
  std::vector<Level> levels_;
};

// No formula is known. The top level's rule is the same seen from each of its groups, so that searching from the
// devices of one group is searching from all.
void RecursiveFullMesh::add_paths(Characteristics& result) const {
  if (devices_ == 1) return;
  const Adjacency adjacency(*this);
  const int group = levels_.back().size;
  const auto affordable = std::max<std::int64_t>(1, kMostSearchWork / (2 * cables()));
  const auto sources = static_cast<int>(std::min<std::int64_t>(group, affordable));
  double total = 0;
  for (int i = 0; i < sources; ++i) {
    const auto distance = adjacency.distances(static_cast<int>(std::int64_t{i} * group / sources));
    for (const int hops : distance) {
      total += hops;
      result.diameter = std::max(result.diameter, hops);
    }
  }
  result.mean_path = total / sources / (devices_ - 1);
  result.paths = sources == group ? Characteristics::Paths::searched : Characteristics::Paths::sampled;
}

// Bisection: about N/4 (half of the groups of the top level against the others, g^2/4 pairs of q cables); what splits
// of the address space cost, counted.
Characteristics RecursiveFullMesh::characteristics() const {
  Characteristics result;
  result.devices = devices_;
  result.links = cables() * planes_;
  result.ports_per_device = 2 * static_cast<double>(result.links) / devices_;
  add_paths(result);
  result.bisection_links = static_cast<double>(least_split(*this, radices()));
  return result;
}

// The fewest levels that can hold the modules, and of those the sizes with the smallest product; among equal ones the
// largest groups at the lowest levels, where cables are shortest.
class GroupSearch {
 public:
  GroupSearch(int m, std::int64_t modules) : m_(m), modules_(modules) {}

  std::vector<int> best() {
    for (std::size_t count = 1; best_.empty() && count <= kMostLevels; ++count) {
      sizes_.assign(count, 0);
      extend(0, 1);
    }
    return best_;
  }

 private:
  void extend(std::size_t level, std::int64_t product) {
    const auto most = product * m_ + 1;  // groups of product * m devices that can be joined in pairs
    if (level + 1 == sizes_.size()) {
      const auto last = std::max<std::int64_t>((modules_ + product - 1) / product, 1);
      if (last > most || (best_product_ != 0 && product * last >= best_product_)) return;
      best_product_ = product * last;
      sizes_[level] = static_cast<int>(last);
      best_ = sizes_;
      return;
    }
    for (auto size = std::min(most, modules_ / product + 1); size >= 2; --size) {
      sizes_[level] = static_cast<int>(size);
      extend(level + 1, product * size);
    }
  }

  std::int64_t m_;
  std::int64_t modules_;
  std::int64_t best_product_ = 0;
  std::vector<int> sizes_;
  std::vector<int> best_;
};

std::unique_ptr<Topology> make_recursive_full_mesh(const Arguments& arguments, const Topology::PluginContext& context) {
  const int m = static_cast<int>(arguments.integer("m", 1, kMostPositions));
  const auto& routing = arguments.text("routing");
  if (routing != "hashed" && routing != "fixed") {
    throw usage_error(fmt::format("topology 'recursive-full-mesh': unknown routing '{}'{}", routing,
                                  suggestion(routing, {"hashed", "fixed"})));
  }
  const auto groups = arguments.has("g") ? arguments.integers("g", 1, kMostDevices)
                                         : GroupSearch(m, (std::int64_t{context.devices} + m - 1) / m).best();
  if (groups.size() > kMostLevels) {
    throw usage_error(fmt::format("topology 'recursive-full-mesh': g={} has {} levels: at most {} are accepted",
                                  joined(groups), groups.size(), kMostLevels));
  }
  return std::make_unique<RecursiveFullMesh>(m, groups, routing == "fixed", planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, recursive_full_mesh, "recursive-full-mesh",
                "full meshes of full meshes of directly joined devices, without switches", make_recursive_full_mesh,
                {{"m", ParameterType::integer, "8", "devices of a module"},
                 {"g", ParameterType::integer_list, "",
                  "groups joined in pairs, by level, g_1 first, e.g. 8x64 (when left out: the fewest levels that fit)"},
                 {"routing", ParameterType::text, "hashed", "which cable between two groups: hashed or fixed"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
