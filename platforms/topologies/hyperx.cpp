// HyperX (Ahn et al., SC 2009; flattened butterfly: Kim et al., ISCA 2007): routers in an array of digits, joined
// directly to all routers that differ in one digit; t devices a router.
//
//   address (s_L, ..., s_1; h): 0 <= s_l < S_l, 0 <= h < t; router R = sum of s_l * (S_1 * .. * S_(l-1)); device R*t +
//   h links: device - its router; router - every router with one other digit, `copies` cables each
//
// Routing corrects the digits that differ, one cable a digit: lowest first, or in an order hashed from (src, dst,
// flow). Shortest for all pairs.
#include <algorithm>

#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostDimensions = 8;

struct HyperXSizes {
  std::vector<int> sides;
  int devices_per_router = 1;
  int copies = 1;
  bool fixed = false;
};

// The fewest router cables (of one copy) around the first `count` routers in lexicographic order, by the order of
// digits: x of the S routers of a line on one side cut x(S-x) cables.
std::int64_t lexicographic_cut(std::vector<int> sides, std::int64_t count) {
  const auto routers = capped_product(sides);
  if (count == 0 || count == routers) return 0;
  std::int64_t least = -1;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::int64_t side = sides[i];
    if (side == 1) continue;
    auto rest = sides;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const auto slab = routers / side;
    const auto whole = count / slab;
    const auto left = count % slab;
    const auto cut = left * (whole + 1) * (side - whole - 1) + (slab - left) * whole * (side - whole) +
                     lexicographic_cut(std::move(rest), left);
    if (least < 0 || cut < least) least = cut;
  }
  return least;
}

class HyperX final : public Topology {
 public:
  HyperX(HyperXSizes sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(std::move(sizes)) {
    instance_ = fmt::format("hyperx:dims={},t={}{}{},planes={}", joined(sizes_.sides), sizes_.devices_per_router,
                            sizes_.copies > 1 ? fmt::format(",copies={}", sizes_.copies) : "",
                            sizes_.fixed ? ",routing=fixed" : "", planes);
    routers_ = capped_product(sizes_.sides);
    const auto wanted = routers_ * sizes_.devices_per_router;
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, wanted + router_cables());
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_ + static_cast<int>(routers_);
    links_.reserve(2 * static_cast<std::size_t>(wanted + router_cables()));
    for (int device = 0; device < devices_; ++device) {
      connect(device, devices_ + device / sizes_.devices_per_router, LinkKind::device_port);
    }
    int below = 1;
    for (const int side : sizes_.sides) {
      lines_.push_back({side, below, static_cast<int>(links_.size() / 2)});
      build(lines_.back());
      below *= side;
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    int router = src.value / sizes_.devices_per_router;
    const int target = dst.value / sizes_.devices_per_router;
    std::vector<std::size_t> order;
    for (std::size_t l = 0; l < lines_.size(); ++l) {
      if (lines_[l].digit(router) != lines_[l].digit(target)) order.push_back(l);
    }
    if (!sizes_.fixed) {
      Random random(flow_hash(src, dst, flow));
      random.shuffle(order);
    }
    path.push_back(LinkId{2 * src.value});
    for (const auto l : order) {
      const auto& line = lines_[l];
      path.push_back(line.link(router, line.digit(target)));
      router += (line.digit(target) - line.digit(router)) * line.below;
    }
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex >= devices_) return fmt::format("router ({})", address(vertex - devices_));
    return fmt::format("device {} ({};{})", vertex, address(vertex / sizes_.devices_per_router),
                       vertex % sizes_.devices_per_router);
  }

  [[nodiscard]] std::vector<int> radices() const override {
    std::vector<int> result{sizes_.devices_per_router};
    result.insert(result.end(), sizes_.sides.begin(), sizes_.sides.end());
    return result;
  }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    const double devices = devices_;
    const std::int64_t t = sizes_.devices_per_router;
    int dimensions = 0;
    double differing = 0;  // digits, mean over all routers
    std::int64_t router_ports = 0;
    for (const int side : sizes_.sides) {
      dimensions += side > 1 ? 1 : 0;
      differing += 1 - 1.0 / side;
      router_ports += std::int64_t{side - 1} * sizes_.copies;
    }
    result.devices = devices_;
    result.switches = routers_ * planes_;
    result.max_switch_radix = t + router_ports;
    result.links = (devices_ + router_cables() * sizes_.copies) * planes_;
    result.ports_per_device = planes_;
    result.switch_ports_per_device = static_cast<double>((devices_ + routers_ * router_ports) * planes_) / devices;
    if (devices_ > 1) {
      result.diameter = 2 + dimensions;
      result.mean_path = 2 + static_cast<double>(t * routers_) * differing / (devices - 1);
    }
    // Half of the routers, or half of the devices of each; with an odd number of routers one of them is split.
    const auto between = lexicographic_cut(sizes_.sides, routers_ / 2) * sizes_.copies + (routers_ % 2) * (t / 2);
    result.bisection_links = static_cast<double>(std::min<std::int64_t>(between, devices_ / 2) * planes_);
    return result;
  }

  // Devices stand next to their router; the array is as wide as the room.
  [[nodiscard]] CostItems cost_items() const override {
    const auto between = router_cables() * sizes_.copies * planes_;
    const auto device_cables = std::int64_t{devices_} * planes_;
    return {.switch_ports = device_cables + 2 * between,
            .device_ports = device_cables,
            .copper_cables = device_cables,
            .optical_cables = between};
  }

 private:
  // All lines of routers along one digit: complete graphs, pairs in lexicographic order.
  struct Line {
    int side;
    int below;
    int first_cable;
    [[nodiscard]] int digit(int router) const { return router / below % side; }
    [[nodiscard]] LinkId link(int router, int to) const {
      const int from = digit(router);
      const int low = std::min(from, to);
      const int line = router / (below * side) * below + router % below;
      const int pair = low * (2 * side - low - 1) / 2 + std::max(from, to) - low - 1;
      return LinkId{2 * (first_cable + line * (side * (side - 1) / 2) + pair) + (from < to ? 0 : 1)};
    }
  };

  void build(const Line& line) {
    for (int first = 0; first < routers_; ++first) {
      if (line.digit(first) != 0) continue;
      for (int i = 0; i < line.side; ++i) {
        for (int j = i + 1; j < line.side; ++j) {
          connect(devices_ + first + i * line.below, devices_ + first + j * line.below, LinkKind::switch_link,
                  sizes_.copies);
        }
      }
    }
  }

  // Bundles.
  [[nodiscard]] std::int64_t router_cables() const {
    std::int64_t sum = 0;
    for (const int side : sizes_.sides) {
      sum = std::min(sum + std::min(routers_, kMostLinks) * (side - 1), 2 * kMostLinks * kMostDimensions);
    }
    return sum / 2;
  }

  [[nodiscard]] std::string address(int router) const {
    std::vector<int> digits;
    for (std::size_t l = lines_.size(); l-- > 0;) digits.push_back(lines_[l].digit(router));
    return fmt::format("{}", fmt::join(digits, ","));
  }

  HyperXSizes sizes_;
  std::int64_t routers_ = 0;
  std::vector<Line> lines_;
};

// Two dimensions, as many devices a router as the array is wide.
HyperXSizes hyperx_sizes(const Arguments& arguments, int devices) {
  HyperXSizes sizes;
  const bool has_t = arguments.has("t");
  if (has_t) sizes.devices_per_router = static_cast<int>(arguments.integer("t", 1, 65536));
  sizes.copies = static_cast<int>(arguments.integer("copies", 1, 1024));
  const auto& routing = arguments.text("routing");
  if (routing != "hashed" && routing != "fixed") {
    throw usage_error(
        fmt::format("topology 'hyperx': unknown routing '{}'{}", routing, suggestion(routing, {"hashed", "fixed"})));
  }
  sizes.fixed = routing == "fixed";
  if (arguments.has("dims")) {
    sizes.sides = arguments.integers("dims", 1, 4096);
    if (sizes.sides.size() > kMostDimensions) {
      throw usage_error(fmt::format("topology 'hyperx': {} dimensions are given, at most {} are accepted",
                                    sizes.sides.size(), kMostDimensions));
    }
    if (!has_t) sizes.devices_per_router = *std::max_element(sizes.sides.begin(), sizes.sides.end());
    return sizes;
  }
  for (int side = 1;; ++side) {
    const int t = has_t ? sizes.devices_per_router : side;
    if (std::int64_t{side} * side * t < devices) continue;
    sizes.devices_per_router = t;
    sizes.sides = {side, side};
    return sizes;
  }
}

TANDEM_REGISTER(Topology, hyperx, "hyperx", "routers in an array, joined to all that differ in one digit",
                [](const Arguments& arguments, const Topology::PluginContext& context) {
                  return std::make_unique<HyperX>(hyperx_sizes(arguments, context.devices), planes_of(arguments),
                                                  context);
                },
                {{"dims", ParameterType::integer_list, "",
                  "routers along each digit, e.g. 8x8 (when left out: two equal ones that fit)"},
                 {"t", ParameterType::integer, "", "devices of a router (when left out: as the longest side)"},
                 {"copies", ParameterType::integer, "1", "parallel cables between two routers"},
                 {"routing", ParameterType::text, "hashed", "order of digits: hashed or fixed"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
