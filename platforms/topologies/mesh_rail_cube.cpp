// MRC(m; n_1..n_k), the mesh-rail cube: modules of m devices that are joined directly (board links), and rails: one
// port of every device goes to a switch that joins the same position of many modules.
//
//   address (a_k, ..., a_1; j): 0 <= a_l < n_l, 0 <= j < m; module A = sum of a_l * (n_1 * .. * n_(l-1)); device A*m +
//   j level of a position: lam(j) = (j mod k) + 1; its rail in the level: rho(j) = j div k, one of r = m/k rule 1,
//   module: (A;i) - (A;j) for all i != j (module=ring: only neighbours, modulo m; module=WxH: a torus) rule 2, rails:
//   the rail port of (a;j) goes to port a_l of switch W(l; a without a_l; j), l = lam(j)
//
// One switch port a device whatever k is, and the levels rotate over positions. With t > 1 a device has t rail ports,
// to the levels lam(j), lam(j)+1, ... (cyclic). A level of radix 1 has nothing to join: no switches and no cables. A
// top level that is filled with fewer whole cubes than its switches have ports for is simply a smaller n_k; with
// `modules` its last cube has only the first modules, which leaves ports of all levels free.
//
// Routing corrects every digit that differs by one rail hop and moves inside the module to get at rails: from the rails
// of the source's position, over as few other positions as cover the remaining levels, to the rails of the
// destination's position. It is shortest for all pairs. Which of the r rails of a level, and in which order the levels
// between, is hashed from (src, dst, flow); with routing=fixed levels go up, on the rails that lie in their levels as
// the destination's does in its own. In a partly filled cube digits that fall are corrected before those that rise: no
// module on the way then has a larger number than both ends have, so that all exist. That can take longer than a
// shortest path.
#include <algorithm>
#include <bit>
#include <charconv>

#include "platforms/graph_search.hpp"
#include "platforms/split_search.hpp"
#include "platforms/topologies/box_cut.hpp"
#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostLevels = 8;
constexpr int kMostPositions = 256;
constexpr std::int64_t kMostSearchWork = 50'000'000;  // links looked at for paths of partly filled cubes

// Sets of levels, bit l-1 for level l.
using Levels = unsigned;

struct CubeSizes {
  int m = 0;
  std::vector<int> n;  // n_1 first
  bool ring = false;
  std::vector<int> torus;  // sizes of a torus module, {W, H}, or none
  int t = 1;
  std::int64_t modules = 0;  // fewer than the product of n where the top level is partly filled
  bool fixed = false;        // routing

  [[nodiscard]] int k() const { return static_cast<int>(n.size()); }
  [[nodiscard]] int r() const { return m / k(); }
  [[nodiscard]] bool partial() const { return modules < capped_product(n); }
  // Levels (from 0) that a position with j mod k = c has rails of; bit set.
  [[nodiscard]] Levels window(int c) const {
    Levels levels = 0;
    for (int w = 0; w < t; ++w) levels |= 1U << ((c + w) % k());
    return levels;
  }
};

// How a message moves inside modules between its rail hops. Pure arithmetic on classes of positions (j mod k).
class ModuleWalks {
 public:
  explicit ModuleWalks(const CubeSizes& sizes) : sizes_(sizes) {
    for (int c = 0; c < sizes.k(); ++c) windows_.push_back(sizes.window(c));
  }

  [[nodiscard]] Levels window(int position) const { return windows_[static_cast<std::size_t>(position % sizes_.k())]; }

  // Fewest classes whose windows cover `levels`, as a set of bits like Levels. In the best cover some window starts at
  // a level of the set; from there on, each next window starts at the first level that is still missing.
  [[nodiscard]] Levels cover(Levels levels) const {
    Levels best = 0;
    for (int start = 0; start < sizes_.k(); ++start) {
      if ((levels >> start & 1U) == 0) continue;
      Levels chosen = 0;
      Levels missing = levels;
      for (int step = 0; step < sizes_.k(); ++step) {
        const int level = (start + step) % sizes_.k();
        if ((missing >> level & 1U) == 0) continue;
        chosen |= 1U << level;
        missing &= ~window(level);
      }
      if (best == 0 || std::popcount(chosen) < std::popcount(best)) best = chosen;
    }
    return best;
  }

  // A walk on the ring, in positions relative to its start: it reaches -left and right and ends at `end`.
  struct Arc {
    int left = 0;
    int right = 0;
    int end = 0;
    // Against the end first, then past it and back.
    [[nodiscard]] int length() const { return end >= 0 ? 2 * left + 2 * right - end : 2 * right + 2 * left + end; }
  };

  // The shortest walks from position i to j on the ring that pass rails of all `levels`. Because levels repeat every k
  // positions it is enough to look k positions past either end, and at most once around.
  [[nodiscard]] std::vector<Arc> arcs(int i, int j, Levels levels) const {
    std::vector<Arc> best;
    const int ahead = (j - i + sizes_.m) % sizes_.m;
    for (const int end : {ahead, ahead - sizes_.m, ahead + sizes_.m}) {
      const int least_left = std::max(0, -end);
      for (int left = least_left; left < least_left + sizes_.k(); ++left) {
        const Arc arc{left, right_of(i, left, std::max(0, end), levels), end};
        if (!best.empty() && arc.length() > best.front().length()) continue;
        if (!best.empty() && arc.length() < best.front().length()) best.clear();
        best.push_back(arc);
      }
    }
    return best;
  }

  // Moves inside modules on a shortest path from position i to j that corrects `levels`.
  [[nodiscard]] int moves(int i, int j, Levels levels) const {
    if (!sizes_.torus.empty()) return torus_distance(i, j);  // every position has rails of all levels
    if (sizes_.ring) return arcs(i, j, levels).front().length();
    const auto between = levels & ~window(i) & ~window(j);
    if (i == j && between == 0) return 0;
    return std::popcount(cover(between)) + 1;
  }

 private:
  // The least `right` with which positions i-left .. i+right have rails of all levels.
  [[nodiscard]] int right_of(int i, int left, int least, Levels levels) const {
    const int k = sizes_.k();
    Levels seen = 0;
    for (int x = -std::min(left, k); x <= std::min(least, k); ++x) seen |= window((i % k + x + 2 * k) % k);
    int right = least;
    while ((levels & ~seen) != 0) seen |= window((i + ++right) % k);
    return right;
  }

  [[nodiscard]] int torus_distance(int i, int j) const {
    int sum = 0;
    int below = 1;
    for (const int size : sizes_.torus) {
      const int ahead = (j / below % size - i / below % size + size) % size;
      sum += std::min(ahead, size - ahead);
      below *= size;
    }
    return sum;
  }

  CubeSizes sizes_;
  std::vector<Levels> windows_;
};

class MeshRailCube final : public Topology {
 public:
  MeshRailCube(CubeSizes sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(std::move(sizes)), walks_(sizes_) {
    instance_ =
        fmt::format("mesh-rail-cube:m={},n={}{}{}{}{},planes={}", sizes_.m, joined(sizes_.n), module_text(),
                    sizes_.partial() ? fmt::format(",modules={}", sizes_.modules) : "",
                    sizes_.t > 1 ? fmt::format(",t={}", sizes_.t) : "", sizes_.fixed ? ",routing=fixed" : "", planes);
    modules_ = sizes_.modules;
    number_rails();
    check_size(instance_, modules_ * sizes_.m, 0);
    check_size(instance_, modules_ * sizes_.m, modules_ * (mesh_cables() + rail_cables_));
    devices_ = static_cast<int>(modules_ * sizes_.m);
    number_switches();
    links_.reserve(2 * static_cast<std::size_t>(modules_ * (mesh_cables() + rail_cables_)));
    build_modules();
    build_rails();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    Walker walker{*this, src.value / sizes_.m, src.value % sizes_.m, dst.value / sizes_.m, 0, path};
    walker.missing = differing(walker.module, walker.target);
    const int end = dst.value % sizes_.m;
    if (sizes_.partial()) {
      walk_partial(walker, end, flow_hash(src, dst, flow));
    } else if (!sizes_.torus.empty()) {
      walk_torus(walker, end, flow_hash(src, dst, flow));
    } else if (sizes_.ring) {
      walk_ring(walker, end, flow_hash(src, dst, flow));
    } else {
      walk_mesh(walker, end, flow_hash(src, dst, flow));
    }
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < devices_) {
      return fmt::format("device {} ({};{})", vertex, address(vertex / sizes_.m, -1), vertex % sizes_.m);
    }
    int level = sizes_.k() - 1;
    while (first_switch_[static_cast<std::size_t>(level)] > vertex || sizes_.n[static_cast<std::size_t>(level)] == 1) {
      --level;
    }
    const int index = vertex - first_switch_[static_cast<std::size_t>(level)];
    const int rail = index % rails_per_level();  // window offset * r + rho, as in switch_of
    const int line = index / rails_per_level();
    const int below = below_[static_cast<std::size_t>(level)];
    const int module = line / below * below * sizes_.n[static_cast<std::size_t>(level)] + line % below;
    const int c = (level - rail / sizes_.r() + sizes_.k()) % sizes_.k();
    return fmt::format("rail switch ({};{})", address(module, level), c + sizes_.k() * (rail % sizes_.r()));
  }

  [[nodiscard]] bool shortest_routing() const override { return !sizes_.partial(); }

  // None in a partly filled cube: not every combination of digits is a device.
  [[nodiscard]] std::vector<int> radices() const override {
    if (sizes_.partial()) return {};
    std::vector<int> result{sizes_.m};
    result.insert(result.end(), sizes_.n.begin(), sizes_.n.end());
    return result;
  }

  [[nodiscard]] Characteristics characteristics() const override;

  [[nodiscard]] CostItems cost_items() const override {
    const auto mesh = modules_ * mesh_cables() * planes_;
    const auto rails = modules_ * rail_cables_ * planes_;
    return {.switch_ports = rails, .device_ports = 2 * mesh + rails, .board_links = mesh, .optical_cables = rails};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return link(id).kind == LinkKind::direct ? LengthClass::board : LengthClass::optical;
  }

 private:
  // A message on its way: where it is, and which digits it still has to correct.
  struct Walker {
    const MeshRailCube& cube;
    int module;
    int position;
    int target;  // module
    Levels missing;
    std::vector<LinkId>& path;

    // Rail hops for all missing digits that the present position has rails of.
    void take_rails() { take_rails_of(missing); }
    void take_rails_of(Levels levels) {
      const auto& sizes = cube.sizes_;
      for (int w = 0; w < sizes.t; ++w) {
        const int level = (position + w) % sizes.k();
        if ((levels & missing & 1U << level) == 0) continue;
        missing &= ~(1U << level);
        path.push_back(LinkId{2 * cube.rail_cable(module, position, w)});
        module +=
            (cube.digit(target, level) - cube.digit(module, level)) * cube.below_[static_cast<std::size_t>(level)];
        path.push_back(LinkId{2 * cube.rail_cable(module, position, w) + 1});
      }
    }
    void move_to(int next) {
      if (next == position) return;
      path.push_back(cube.mesh_link(module, position, next));
      position = next;
    }
  };

  void walk_mesh(Walker& walker, int end, std::uint64_t hash) const {
    const auto between = walker.missing & ~walks_.window(walker.position) & ~walks_.window(end);
    walker.take_rails();
    if (between != 0) {
      std::vector<int> classes;
      for (auto left = walks_.cover(between); left != 0; left &= left - 1) classes.push_back(std::countr_zero(left));
      Random random(hash);
      if (!sizes_.fixed) random.shuffle(classes);
      for (const int c : classes) {
        walker.move_to(c + sizes_.k() * row(end, random));
        walker.take_rails();
      }
    }
    walker.move_to(end);
    walker.take_rails();
  }

  // Which of the r rails of a level.
  [[nodiscard]] int row(int end, Random& random) const {
    if (sizes_.fixed) return end / sizes_.k();
    return static_cast<int>(random.below(static_cast<std::uint32_t>(sizes_.r())));
  }

  // Levels one by one: digits that fall first. Among those that may come first, the ones that the source has rails of;
  // among those that may come last, the ones that the destination has.
  void walk_partial(Walker& walker, int end, std::uint64_t hash) const {
    Random random(hash);
    std::vector<int> order;
    for (int level = 0; level < sizes_.k(); ++level) {
      if ((walker.missing >> level & 1U) != 0) order.push_back(level);
    }
    if (!sizes_.fixed) random.shuffle(order);
    const auto at_source = walks_.window(walker.position);
    const auto at_end = walks_.window(end);
    const auto rank = [&](int level) {
      const bool rises = digit(walker.target, level) > digit(walker.module, level);
      return 4 * rises + 2 * ((at_source >> level & 1U) == 0) + ((at_end >> level & 1U) != 0 ? 1 : 0);
    };
    std::vector<std::pair<int, int>> ranked;
    for (const int level : order) ranked.emplace_back(rank(level), level);
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      const int level = ranked[i].second;
      if ((walks_.window(walker.position) >> level & 1U) == 0) {
        const bool last = i + 1 == ranked.size() && (at_end >> level & 1U) != 0;
        walker.move_to(last ? end : level + sizes_.k() * row(end, random));
      }
      walker.take_rails_of(1U << level);
    }
    walker.move_to(end);
  }

  // All rails are at hand at the source; then along the module's rows and columns, the shorter way round.
  void walk_torus(Walker& walker, int end, std::uint64_t hash) const {
    walker.take_rails();
    int below = 1;
    for (const int size : sizes_.torus) {
      const auto coordinate = [&](int position) { return position / below % size; };
      const int ahead = (coordinate(end) - coordinate(walker.position) + size) % size;
      const bool tie_ahead = sizes_.fixed ? coordinate(walker.position) % 2 == 0 : (hash & 1U) == 0;
      const bool forward = 2 * ahead < size || (2 * ahead == size && tie_ahead);
      hash >>= 1;
      while (coordinate(walker.position) != coordinate(end)) {
        const int from = coordinate(walker.position);
        const int to = (from + (forward ? 1 : size - 1)) % size;
        walker.move_to(walker.position + (to - from) * below);
      }
      below *= size;
    }
  }

  void walk_ring(Walker& walker, int end, std::uint64_t hash) const {
    const auto arcs = walks_.arcs(walker.position, end, walker.missing);
    const auto arc = arcs[sizes_.fixed ? 0 : hash % arcs.size()];
    walker.take_rails();
    const auto step = [&](int by, int count) {
      for (int i = 0; i < count; ++i) {
        walker.move_to((walker.position + by + sizes_.m) % sizes_.m);
        walker.take_rails();
      }
    };
    if (arc.end >= 0) {
      step(-1, arc.left);
      step(1, arc.left + arc.right);
      step(-1, arc.right - arc.end);
    } else {
      step(1, arc.right);
      step(-1, arc.right + arc.left);
      step(1, arc.left + arc.end);
    }
  }

  [[nodiscard]] int digit(int module, int level) const {
    return module / below_[static_cast<std::size_t>(level)] % sizes_.n[static_cast<std::size_t>(level)];
  }
  [[nodiscard]] Levels differing(int a, int b) const {
    Levels levels = 0;
    for (int level = 0; level < sizes_.k(); ++level) {
      if (digit(a, level) != digit(b, level)) levels |= 1U << level;
    }
    return levels;
  }

  // "a_k,...,a_1", with '*' for the level that a switch joins.
  [[nodiscard]] std::string address(int module, int joined_level) const {
    std::vector<std::string> digits;
    for (int level = sizes_.k() - 1; level >= 0; --level) {
      digits.push_back(level == joined_level ? "*" : std::to_string(digit(module, level)));
    }
    return fmt::format("{}", fmt::join(digits, ","));
  }

  [[nodiscard]] std::string module_text() const {
    if (!sizes_.torus.empty()) return ",module=" + joined(sizes_.torus);
    return sizes_.ring ? ",module=ring" : "";
  }

  // Of a torus module along one dimension: from each position to the next; a pair has one, at coordinate 0.
  [[nodiscard]] int torus_cables(std::size_t dimension) const {
    const int size = sizes_.torus[dimension];
    return size == 1 ? 0 : size == 2 ? sizes_.m / 2 : sizes_.m;
  }
  [[nodiscard]] LinkId torus_link(int module, int from, int to) const {
    const int width = sizes_.torus[0];
    const bool along = from / width == to / width;
    const int size = along ? width : sizes_.torus[1];
    const int below = along ? 1 : width;
    const int ahead = (to / below % size - from / below % size + size) % size;
    const bool backward = size == 2 ? from > to : ahead != 1;
    const int start = backward ? to : from;
    const int index = size > 2 ? start : start / (2 * below) * below + start % below;
    const int cable = module * static_cast<int>(mesh_cables()) + (along ? 0 : torus_cables(0)) + index;
    return LinkId{2 * cable + (backward ? 1 : 0)};
  }
  void build_torus_module(int first) {
    int below = 1;
    for (const int size : sizes_.torus) {
      for (int position = 0; size > 1 && position < sizes_.m; ++position) {
        const int from = position / below % size;
        if (size == 2 && from == 1) continue;
        connect(first + position, first + position + (from + 1 == size ? 1 - size : 1) * below, LinkKind::direct);
      }
      below *= size;
    }
  }

  // Cables of one module: pairs (i, j), i < j, in lexicographic order; on the ring, from each position to the next.
  [[nodiscard]] std::int64_t mesh_cables() const {
    if (!sizes_.torus.empty()) return torus_cables(0) + torus_cables(1);
    if (sizes_.ring) return sizes_.m > 2 ? sizes_.m : sizes_.m - 1;
    return std::int64_t{sizes_.m} * (sizes_.m - 1) / 2;
  }
  [[nodiscard]] LinkId mesh_link(int module, int from, int to) const {
    if (!sizes_.torus.empty()) return torus_link(module, from, to);
    const int low = std::min(from, to);
    const int high = std::max(from, to);
    int cable = low * (2 * sizes_.m - low - 1) / 2 + high - low - 1;
    bool backward = from > to;
    if (sizes_.ring) {
      const bool wraps =
          low == 0 && high == sizes_.m - 1 && sizes_.m > 2;  // the cable that starts at the last position
      cable = wraps ? high : low;
      backward = backward != wraps;
    }
    return LinkId{2 * (module * static_cast<int>(mesh_cables()) + cable) + (backward ? 1 : 0)};
  }

  // Rail cables of a module, numbered by position and window offset w, without those of levels of radix 1.
  void number_rails() {
    for (int j = 0; j < sizes_.m; ++j) {
      for (int w = 0; w < sizes_.t; ++w) {
        const bool has_cable = sizes_.n[static_cast<std::size_t>((j + w) % sizes_.k())] > 1;
        rail_slot_.push_back(has_cable ? rail_cables_++ : -1);
      }
    }
  }
  [[nodiscard]] int rail_cable(int module, int position, int w) const {
    return static_cast<int>(modules_ * mesh_cables()) + module * rail_cables_ +
           rail_slot_[static_cast<std::size_t>(position * sizes_.t + w)];
  }

  [[nodiscard]] int rails_per_level() const { return sizes_.t * sizes_.r(); }

  void number_switches() {
    vertices_ = devices_;
    int below = 1;
    for (const int n : sizes_.n) {
      below_.push_back(below);
      first_switch_.push_back(vertices_);
      if (n > 1) vertices_ += lines(below, n) * rails_per_level();
      below *= n;
    }
  }
  // Sets of modules that differ only in the digit of a level; in a partly filled cube some have only one module.
  [[nodiscard]] int lines(int below, int n) const {
    const auto modules = static_cast<int>(modules_);
    return modules / n / below * below + std::min(below, modules % (below * n));
  }
  [[nodiscard]] int switch_of(int module, int position, int w) const {
    const int level = (position + w) % sizes_.k();
    const int below = below_[static_cast<std::size_t>(level)];
    const int line = module / (below * sizes_.n[static_cast<std::size_t>(level)]) * below + module % below;
    return first_switch_[static_cast<std::size_t>(level)] + line * rails_per_level() + w * sizes_.r() +
           position / sizes_.k();
  }

  void build_modules() {
    for (int module = 0; module < modules_; ++module) {
      const int first = module * sizes_.m;
      if (!sizes_.torus.empty()) {
        build_torus_module(first);
        continue;
      }
      for (int i = 0; i < sizes_.m; ++i) {
        if (sizes_.ring) {
          if (i < mesh_cables()) connect(first + i, first + (i + 1) % sizes_.m, LinkKind::direct);
          continue;
        }
        for (int j = i + 1; j < sizes_.m; ++j) connect(first + i, first + j, LinkKind::direct);
      }
    }
  }

  void build_rails() {
    for (int module = 0; module < modules_; ++module) {
      for (int j = 0; j < sizes_.m; ++j) {
        for (int w = 0; w < sizes_.t; ++w) {
          if (rail_slot_[static_cast<std::size_t>(j * sizes_.t + w)] < 0) continue;
          connect(module * sizes_.m + j, switch_of(module, j, w), LinkKind::device_port);
        }
      }
    }
  }

  [[nodiscard]] std::int64_t bisection_cables() const;
  void add_paths(Characteristics& result) const;

  CubeSizes sizes_;
  ModuleWalks walks_;
  std::int64_t modules_ = 0;
  int rail_cables_ = 0;            // of one module
  std::vector<int> rail_slot_;     // by position * t + w; -1 where the level has radix 1
  std::vector<int> below_;         // by level: product of the radices below
  std::vector<int> first_switch_;  // by level
};

Characteristics MeshRailCube::characteristics() const {
  Characteristics result;
  const double devices = devices_;
  result.devices = devices_;
  result.switches = std::int64_t{vertices_ - devices_} * planes_;
  const int radix = *std::max_element(sizes_.n.begin(), sizes_.n.end());
  result.max_switch_radix = radix > 1 ? radix : 0;
  result.links = modules_ * (mesh_cables() + rail_cables_) * planes_;
  result.ports_per_device = static_cast<double>(modules_ * (2 * mesh_cables() + rail_cables_) * planes_) / devices;
  result.switch_ports_per_device = static_cast<double>(modules_ * rail_cables_ * planes_) / devices;
  result.bisection_links = static_cast<double>(bisection_cables() * planes_);
  add_paths(result);
  return result;
}

// Mean and diameter over classes of pairs: the set of digits that differ (in prod(n_l - 1) ways) and the two positions;
// the distance is two links a digit and the moves between them. Positions k apart are alike, so i < k stands for all
// (in a torus all positions are). A partly filled cube is searched.
void MeshRailCube::add_paths(Characteristics& result) const {
  if (sizes_.partial()) {
    const auto affordable = std::max<std::int64_t>(1, kMostSearchWork / static_cast<std::int64_t>(links_.size()));
    const auto found = search_paths(*this, static_cast<int>(std::min<std::int64_t>(affordable, 1024)));
    result.diameter = found.diameter;
    result.mean_path = found.mean_path;
    result.paths = found.sources == devices_ ? Characteristics::Paths::searched : Characteristics::Paths::sampled;
    return;
  }
  std::int64_t total = 0;  // over all destinations, from one module's positions 0 .. k-1
  for (Levels levels = 0; levels < 1U << sizes_.k(); ++levels) {
    std::int64_t ways = 1;
    for (int level = 0; level < sizes_.k(); ++level) {
      if ((levels >> level & 1U) != 0) ways *= sizes_.n[static_cast<std::size_t>(level)] - 1;
    }
    if (ways == 0) continue;
    for (int i = 0; i < sizes_.k(); ++i) {
      for (int j = 0; j < sizes_.m; ++j) {
        const int distance = 2 * std::popcount(levels) + walks_.moves(i, j, levels);
        total += ways * distance;
        result.diameter = std::max(result.diameter, distance);
      }
    }
  }
  if (devices_ > 1) result.mean_path = static_cast<double>(total) / sizes_.k() / static_cast<double>(devices_ - 1);
}

// The smaller of two families of splits; an upper bound that is not tight for all sizes (annealing finds up to 8 % less
// where radices are odd or small: 24 for 26 at m=4,n=5x5, 33 for 35 at m=6,n=3x3x3; nothing less at m=4,n=8x8). Between
// modules: half of the modules in a corner of the cube (N/(2k) cables for halves along one digit, less for a compact
// corner). Between positions: half of every module, which cuts no rail but those of the middle position where m is odd.
// In a partly filled cube, the first half of the devices; of torus modules, splits of the address space, counted.
std::int64_t MeshRailCube::bisection_cables() const {
  if (sizes_.partial()) return least_split(*this, {devices_}) / planes_;
  if (!sizes_.torus.empty()) return least_split(*this, radices()) / planes_;
  const int half = sizes_.m / 2;
  const auto module_cut =
      sizes_.ring ? std::min<std::int64_t>(sizes_.m - 1, 2) : std::int64_t{half} * (sizes_.m - half);
  const auto levels = sizes_.n.size();
  std::vector<std::int64_t> extra(levels, 0);
  for (int j = 0; j < half; ++j) {
    for (std::size_t l = 0; l < levels; ++l) extra[l] += walks_.window(j) >> l & 1U;
  }
  BoxCut between_modules(sizes_.n, std::vector<std::int64_t>(levels, rails_per_level()));
  auto least = modules_ % 2 == 0 ? between_modules.least() : between_modules.least_through_a_cell(extra) + module_cut;
  for (int c = 0; c < (sizes_.m % 2 != 0 ? sizes_.k() : 1); ++c) {
    auto between_positions = modules_ * module_cut;
    if (sizes_.m % 2 != 0) {
      std::vector<std::int64_t> middle(levels, 0);
      for (std::size_t l = 0; l < levels; ++l) middle[l] = walks_.window(c) >> l & 1U;
      between_positions += BoxCut(sizes_.n, middle).least();
    }
    least = std::min(least, between_positions);
  }
  return least;
}

// The fewest levels whose switches have at most `radix` ports, and the most cube-like radices that hold the modules.
std::vector<int> smallest_levels(int m, int t, int radix, int devices) {
  const auto modules = (std::int64_t{devices} + m - 1) / m;
  for (int k = t; k <= std::min(m, kMostLevels); ++k) {
    if (m % k != 0) continue;
    auto n = cube_like(modules, k, radix);
    if (n.empty()) continue;
    std::reverse(n.begin(), n.end());
    return n;
  }
  throw usage_error(fmt::format(
      "topology 'mesh-rail-cube': no number of levels that divides m={} holds {} devices with switches of {} ports", m,
      devices, radix));
}

// "4x4": rows and columns of a module.
std::vector<int> torus_module(const std::string& text, int m) {
  const auto x = text.find('x');
  const auto size = [&](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size() && value <= kMostPositions ? value : 0;
  };
  const std::string_view view = text;
  const int width = x == std::string::npos ? 0 : size(view.substr(0, x));
  const int height = x == std::string::npos ? 0 : size(view.substr(x + 1));
  if (width < 1 || height < 1) {
    throw usage_error(fmt::format("topology 'mesh-rail-cube': unknown module '{}'{}: full, ring, or sizes as in 4x4",
                                  text, suggestion(text, {"full", "ring"})));
  }
  if (width * height != m) {
    throw usage_error(
        fmt::format("topology 'mesh-rail-cube': module={} has {} positions, but m={}", text, width * height, m));
  }
  return {width, height};
}

// Checks what is given of the number of modules; all of them where nothing is.
std::int64_t modules_of(const Arguments& arguments, const CubeSizes& sizes) {
  const auto all = capped_product(sizes.n);
  if (!arguments.has("modules")) return all;
  if (!arguments.has("n")) throw usage_error("topology 'mesh-rail-cube': 'modules' needs the sizes of the cube, 'n'");
  const auto modules = arguments.integer("modules", 1, kMostDevices);
  const auto least = sizes.n.back() == 1 ? all : all - all / sizes.n.back() + 1;
  if (modules > all || (modules < least && modules < all)) {
    throw usage_error(
        fmt::format("topology 'mesh-rail-cube': modules={}, but n={} holds {} to {}: only the last of the top level's "
                    "{} cubes may be partly filled",
                    modules, joined(sizes.n), least, all, sizes.n.back()));
  }
  if (modules < all && (sizes.ring || !sizes.torus.empty())) {
    throw usage_error("topology 'mesh-rail-cube': only with module=full may the top level be partly filled");
  }
  return modules;
}

CubeSizes cube_sizes(const Arguments& arguments, int devices) {
  CubeSizes sizes;
  sizes.m = static_cast<int>(arguments.integer("m", 1, kMostPositions));
  const auto& module = arguments.text("module");
  sizes.ring = module == "ring";
  if (module != "full" && module != "ring") sizes.torus = torus_module(module, sizes.m);
  const auto& routing = arguments.text("routing");
  if (routing != "hashed" && routing != "fixed") {
    throw usage_error(fmt::format("topology 'mesh-rail-cube': unknown routing '{}'{}", routing,
                                  suggestion(routing, {"hashed", "fixed"})));
  }
  sizes.fixed = routing == "fixed";
  sizes.t = static_cast<int>(arguments.integer("t", 1, kMostLevels));
  const int radix = static_cast<int>(arguments.integer("radix", 2, 65536));
  sizes.n = arguments.has("n") ? arguments.integers("n", 1, 65536) : smallest_levels(sizes.m, sizes.t, radix, devices);
  if (sizes.k() > kMostLevels) {
    throw usage_error(fmt::format("topology 'mesh-rail-cube': n={} has {} levels: at most {} are accepted",
                                  joined(sizes.n), sizes.k(), kMostLevels));
  }
  if (sizes.m % sizes.k() != 0) {
    throw usage_error(fmt::format(
        "topology 'mesh-rail-cube': n={} has {} levels, which do not divide m={}: every level gets as many positions",
        joined(sizes.n), sizes.k(), sizes.m));
  }
  if (sizes.t > sizes.k()) {
    throw usage_error(fmt::format("topology 'mesh-rail-cube': t={} rail ports a device, but n={} has {} levels",
                                  sizes.t, joined(sizes.n), sizes.k()));
  }
  if (!sizes.torus.empty() && sizes.t != sizes.k()) {
    throw usage_error(
        fmt::format("topology 'mesh-rail-cube': module={} needs rails of all levels at every position: t={}, but n={} "
                    "has {} levels",
                    module, sizes.t, joined(sizes.n), sizes.k()));
  }
  sizes.modules = modules_of(arguments, sizes);
  return sizes;
}

std::unique_ptr<Topology> make_mesh_rail_cube(const Arguments& arguments, const Topology::PluginContext& context) {
  return std::make_unique<MeshRailCube>(cube_sizes(arguments, context.devices), planes_of(arguments), context);
}

TANDEM_REGISTER(
    Topology, mesh_rail_cube, "mesh-rail-cube", "modules of directly joined devices, joined by rotating rails",
    make_mesh_rail_cube,
    {{"m", ParameterType::integer, "8", "devices of a module"},
     {"n", ParameterType::integer_list, "",
      "modules a rail switch joins, by level, n_1 first, e.g. 64x8 (when left out: the fewest levels that fit)"},
     {"module", ParameterType::text, "full", "inside a module: full (every pair), ring, or a torus, as in 4x4"},
     {"modules", ParameterType::integer, "",
      "modules, where the last cube of the top level is partly filled (all of n when left out)"},
     {"t", ParameterType::integer, "1", "rail ports of a device, to as many levels"},
     {"radix", ParameterType::integer, "64", "most ports of a rail switch, where n is left out"},
     {"routing", ParameterType::text, "hashed", "choice among shortest paths: hashed or fixed"},
     planes_parameter()})

}  // namespace
}  // namespace tandem
