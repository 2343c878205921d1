// HammingMesh (Hoefler et al., SC 2022): boards of a x b accelerators in a 2-D mesh; y rows of x boards. In every row
// of accelerators the west and east edge ports of all boards go to one switch, in every column the north and south
// ones. (The paper joins more than a switch holds by a small fat-tree; here a row or column is one switch of 2x or 2y
// ports.)
//
//   column c = i + a*I (accelerator i of board column I), row r = j + b*J; device r*(a*x) + c
//   ports: 4 a device; a board one accelerator wide has both its edge ports at the same device
//
// Routing: along the row to the destination's column, then along the column; each the shorter of the mesh inside the
// board and the way to an edge, through the switch, and from an edge inwards. Which edges, where they are equally far,
// is hashed from (src, dst, flow). Shortest for all pairs.
#include <algorithm>
#include <array>

#include "platforms/topologies/box_cut.hpp"
#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

// One direction of the grid: `boards` boards of `size` accelerators on every line.
struct GridAxis {
  int size = 1;
  int boards = 1;
  [[nodiscard]] int length() const { return size * boards; }
  // A line of one accelerator has nobody to talk to.
  [[nodiscard]] bool has_switches() const { return length() > 1; }
  [[nodiscard]] int ports() const { return has_switches() ? 2 * boards : 0; }  // of a switch
  [[nodiscard]] int edges() const { return size == 1 ? 1 : 2; }                // bundles from a board to its switch
  [[nodiscard]] int line_cables() const { return boards * (size - 1) + (has_switches() ? boards * edges() : 0); }
};

// A way along a line: over the mesh, or by way of edges (0: the low one, 1: the high one).
struct LineWay {
  int links = 0;
  bool through_switch = false;
  int out = 0, in = 0;
};

std::vector<LineWay> shortest_ways(const GridAxis& axis, int from, int to) {
  std::vector<LineWay> ways;
  const auto consider = [&](const LineWay& way) {
    if (!ways.empty() && way.links > ways.front().links) return;
    if (!ways.empty() && way.links < ways.front().links) ways.clear();
    ways.push_back(way);
  };
  const int i = from % axis.size;
  const int k = to % axis.size;
  if (from / axis.size == to / axis.size) consider({std::abs(i - k), false, 0, 0});
  if (!axis.has_switches()) return ways;
  const auto to_edge = [&](int at, int edge) { return edge == 0 ? at : axis.size - 1 - at; };
  for (int out = 0; out < axis.edges(); ++out) {
    for (int in = 0; in < axis.edges(); ++in) {
      // Out and in by one port of one board would take its cable both ways; the mesh is shorter.
      if (from / axis.size == to / axis.size && out == in) continue;
      consider({to_edge(i, out) + 2 + to_edge(k, in), true, out, in});
    }
  }
  return ways;
}

class HammingMesh final : public Topology {
 public:
  HammingMesh(const GridAxis& x, const GridAxis& y, int planes, const PluginContext& context)
      : Topology(context, planes), axes_{x, y} {
    instance_ = fmt::format("hamming-mesh:a={},b={},x={},y={},planes={}", x.size, y.size, x.boards, y.boards, planes);
    const auto wanted = std::int64_t{x.length()} * y.length();
    check_size(instance_, wanted, 0);
    const auto bundles = std::int64_t{x.line_cables()} * y.length() + std::int64_t{y.line_cables()} * x.length();
    check_size(instance_, wanted, bundles);
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_;
    links_.reserve(2 * static_cast<std::size_t>(bundles));
    for (int axis = 0; axis < 2; ++axis) {
      first_switch_[static_cast<std::size_t>(axis)] = vertices_;
      if (axis_of(axis).has_switches()) vertices_ += lines(axis);
      first_cable_[static_cast<std::size_t>(axis)] = static_cast<int>(links_.size() / 2);
      for (int line = 0; line < lines(axis); ++line) build(axis, line);
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    const auto hash = flow_hash(src, dst, flow);
    const int width = axes_[0].length();
    walk(0, src.value / width, src.value % width, dst.value % width, hash, path);
    walk(1, dst.value % width, src.value / width, dst.value / width, mix(hash), path);
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < devices_) {
      const int c = vertex % axes_[0].length();
      const int r = vertex / axes_[0].length();
      return fmt::format("device {} (board {},{}; {},{})", vertex, c / axes_[0].size, r / axes_[1].size,
                         c % axes_[0].size, r % axes_[1].size);
    }
    const bool column = vertex >= first_switch_[1];
    return fmt::format("{} switch {}", column ? "column" : "row", vertex - first_switch_[column ? 1 : 0]);
  }

  [[nodiscard]] std::vector<int> radices() const override {
    return {axes_[0].size, axes_[0].boards, axes_[1].size, axes_[1].boards};
  }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    std::int64_t switch_ports = 0;
    std::int64_t mesh = 0;
    double mean = 0;
    for (int axis = 0; axis < 2; ++axis) {
      const auto& own = axis_of(axis);
      result.switches += std::int64_t{vertices_of(axis)} * planes_;
      result.max_switch_radix = std::max<std::int64_t>(result.max_switch_radix, own.ports());
      switch_ports += std::int64_t{lines(axis)} * own.ports();
      mesh += std::int64_t{lines(axis)} * own.boards * (own.size - 1);
      const auto [longest, sum] = line_paths(own);
      result.diameter += longest;
      mean += sum / own.length();
    }
    const double devices = devices_;
    result.devices = devices_;
    result.links = (mesh + switch_ports) * planes_;
    result.ports_per_device = static_cast<double>((2 * mesh + switch_ports) * planes_) / devices;
    result.switch_ports_per_device = static_cast<double>(switch_ports * planes_) / devices;
    if (devices_ > 1) result.mean_path = mean * devices / (devices - 1);
    result.bisection_links = static_cast<double>(bisection_cables() * planes_);
    result.bisection_searched = true;
    return result;
  }

  [[nodiscard]] CostItems cost_items() const override {
    std::int64_t mesh = 0;
    std::int64_t edge = 0;
    for (int axis = 0; axis < 2; ++axis) {
      mesh += std::int64_t{lines(axis)} * axis_of(axis).boards * (axis_of(axis).size - 1) * planes_;
      edge += std::int64_t{lines(axis)} * axis_of(axis).ports() * planes_;
    }
    return {.switch_ports = edge, .device_ports = 2 * mesh + edge, .board_links = mesh, .optical_cables = edge};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return link(id).kind == LinkKind::direct ? LengthClass::board : LengthClass::optical;
  }

 private:
  [[nodiscard]] const GridAxis& axis_of(int axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] int lines(int axis) const { return axis_of(1 - axis).length(); }
  [[nodiscard]] int vertices_of(int axis) const { return axis_of(axis).has_switches() ? lines(axis) : 0; }
  [[nodiscard]] int device(int axis, int line, int at) const {
    return axis == 0 ? line * axes_[0].length() + at : at * axes_[0].length() + line;
  }

  // Board by board: its mesh cables, then those of its low and high edge.
  [[nodiscard]] int board_cable(int axis, int line, int board) const {
    const auto& own = axis_of(axis);
    const int per_board = own.line_cables() / own.boards;
    return first_cable_[static_cast<std::size_t>(axis)] + line * own.line_cables() + board * per_board;
  }

  void build(int axis, int line) {
    const auto& own = axis_of(axis);
    for (int board = 0; board < own.boards; ++board) {
      const int first = board * own.size;
      for (int i = 0; i + 1 < own.size; ++i) {
        connect(device(axis, line, first + i), device(axis, line, first + i + 1), LinkKind::direct);
      }
      for (int edge = 0; own.has_switches() && edge < own.edges(); ++edge) {
        connect(device(axis, line, first + edge * (own.size - 1)), first_switch_[static_cast<std::size_t>(axis)] + line,
                LinkKind::device_port, own.size == 1 ? 2 : 1);
      }
    }
  }

  void walk(int axis, int line, int from, int to, std::uint64_t hash, std::vector<LinkId>& path) const {
    if (from == to) return;
    const auto& own = axis_of(axis);
    const auto ways = shortest_ways(own, from, to);
    const auto& way = ways[hash % ways.size()];
    if (!way.through_switch) {
      step(axis, line, from, to, path);
      return;
    }
    const auto at_edge = [&](int at, int edge) { return at / own.size * own.size + edge * (own.size - 1); };
    step(axis, line, from, at_edge(from, way.out), path);
    path.push_back(LinkId{2 * edge_cable(axis, line, from / own.size, way.out)});
    path.push_back(LinkId{2 * edge_cable(axis, line, to / own.size, way.in) + 1});
    step(axis, line, at_edge(to, way.in), to, path);
  }
  [[nodiscard]] int edge_cable(int axis, int line, int board, int edge) const {
    return board_cable(axis, line, board) + axis_of(axis).size - 1 + edge;
  }
  // Over the mesh of one board.
  void step(int axis, int line, int from, int to, std::vector<LinkId>& path) const {
    const auto& own = axis_of(axis);
    const int first = board_cable(axis, line, from / own.size);
    for (int at = from; at != to; at += from < to ? 1 : -1) {
      const int low = (from < to ? at : at - 1) % own.size;
      path.push_back(LinkId{2 * (first + low) + (from < to ? 0 : 1)});
    }
  }

  // The longest way along a line, and the mean over its accelerators of the sum over all others.
  [[nodiscard]] static std::pair<int, double> line_paths(const GridAxis& axis) {
    int longest = 0;
    double sum = 0;
    for (int i = 0; i < axis.size; ++i) {
      for (int k = 0; k < axis.size; ++k) {
        const int inside = shortest_ways(axis, i, k).front().links;
        longest = std::max(longest, inside);
        sum += inside;
        if (axis.boards == 1) continue;
        const int outside = shortest_ways(axis, i, axis.size + k).front().links;
        longest = std::max(longest, outside);
        sum += static_cast<double>(outside) * (axis.boards - 1);
      }
    }
    return {longest, sum / axis.size};
  }

  // Halves of the boards of every row or of every column (of the accelerators of a board where there is only one): half
  // of each switch's ports. Where there is an even number of boards, half of them in a corner too, as in a BCube of two
  // digits: 56 cables, not 64, for 8x8 boards of one accelerator. Splits that exist, not known to be the least.
  [[nodiscard]] std::int64_t bisection_cables() const {
    std::int64_t least = -1;
    for (int axis = 0; axis < 2; ++axis) {
      const auto& own = axis_of(axis);
      if (own.length() == 1) continue;
      std::int64_t line = own.boards / 2 * 2;
      if (own.boards % 2 != 0) line = own.ports() / 2 + (own.size > 1 ? 1 : 0);
      const auto cut = line * lines(axis);
      if (least < 0 || cut < least) least = cut;
    }
    const auto& [x, y] = axes_;
    if (x.boards % 2 == 0 || y.boards % 2 == 0) {
      // Every board has two ports at each of its y.size row switches, and at each of its x.size column switches.
      BoxCut boards({x.boards, y.boards}, {std::int64_t{2} * y.size, std::int64_t{2} * x.size});
      least = std::min(least, boards.least());
    }
    return std::max<std::int64_t>(least, 0);
  }

  std::array<GridAxis, 2> axes_;
  std::array<int, 2> first_switch_{};
  std::array<int, 2> first_cable_{};
};

std::unique_ptr<Topology> make_hamming_mesh(const Arguments& arguments, const Topology::PluginContext& context) {
  constexpr int kMost = 65536;
  GridAxis x{static_cast<int>(arguments.integer("a", 1, kMost)), 1};
  GridAxis y{static_cast<int>(arguments.integer("b", 1, kMost)), 1};
  const auto board = std::int64_t{x.size} * y.size;
  const auto boards = (context.devices + board - 1) / board;
  if (arguments.has("x") || arguments.has("y")) {
    const auto given = [&](const char* name) {
      return arguments.has(name) ? static_cast<int>(arguments.integer(name, 1, kMost)) : 0;
    };
    x.boards = given("x");
    y.boards = given("y");
    const auto other = [&](int known) { return static_cast<int>((boards + known - 1) / known); };
    if (x.boards == 0) x.boards = other(y.boards);
    if (y.boards == 0) y.boards = other(x.boards);
  } else {
    const auto sides = cube_like(boards, 2, kMost);
    x.boards = sides.at(0);
    y.boards = sides.at(1);
  }
  return std::make_unique<HammingMesh>(x, y, planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, hamming_mesh, "hamming-mesh",
                "boards of a 2-D mesh whose edges meet in row and column switches", make_hamming_mesh,
                {{"a", ParameterType::integer, "2", "accelerators along a row of a board"},
                 {"b", ParameterType::integer, "2", "accelerators along a column of a board"},
                 {"x", ParameterType::integer, "", "boards in a row (when left out: nearly square)"},
                 {"y", ParameterType::integer, "", "boards in a column"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
