// Dragonfly (Kim et al., ISCA 2008): groups of a routers that are all joined to each other, p devices a router, h
// global ports a router; all groups are joined to each other, q = floor(a*h / (g-1)) cables a pair (the ports that are
// left over stay free). Balanced where a = 2p = 2h.
//
//   device (group, router, server) = (group*a + router)*p + server
//   global port u = router*h + port of group x: v = u mod (g-1), w = u div (g-1) leads to group y = (x+1+v) mod g,
//   there to its port w*(g-1) + (g-2-v): the circulant rule, an involution
//
// Routing, minimal: to a router with a cable to the other group, over it, to the destination: at most one global cable.
// Of the q cables one with the fewest local hops, hashed from (src, dst, flow). That is not always the shortest path in
// the graph: two global cables without local hops can be shorter, which nobody routes. Valiant: the same by way of a
// group that is hashed too, so that adversarial traffic spreads.
#include <algorithm>

#include "platforms/graph_search.hpp"
#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

struct DragonflySizes {
  int p = 1;
  int a = 1;
  int h = 1;
  int g = 1;
  bool valiant = false;
};

class Dragonfly final : public Topology {
 public:
  Dragonfly(const DragonflySizes& sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(sizes), pair_cables_(sizes.g > 1 ? sizes.a * sizes.h / (sizes.g - 1) : 0) {
    instance_ = fmt::format("dragonfly:p={},a={},h={},g={}{},planes={}", sizes.p, sizes.a, sizes.h, sizes.g,
                            sizes.valiant ? ",routing=valiant" : "", planes);
    const auto routers = std::int64_t{sizes.a} * sizes.g;
    check_size(instance_, routers * sizes.p, 0);
    check_size(instance_, routers * sizes.p, routers * sizes.p + local_cables() * sizes.g + global_cables());
    devices_ = static_cast<int>(routers * sizes.p);
    vertices_ = devices_ + static_cast<int>(routers);
    first_local_ = devices_;
    first_global_ = first_local_ + static_cast<int>(local_cables()) * sizes.g;
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    Random random(flow_hash(src, dst, flow));
    int router = src.value / sizes_.p;
    const int target = dst.value / sizes_.p;
    const int from = router / sizes_.a;
    const int to = target / sizes_.a;
    path.push_back(LinkId{2 * src.value});
    if (sizes_.valiant && from != to && sizes_.g > 2) {
      // One of the g-2 other groups; the cable towards it is chosen as if any of its routers would do.
      int way = static_cast<int>(random.below(static_cast<std::uint32_t>(sizes_.g - 2)));
      for (const int taken : {std::min(from, to), std::max(from, to)}) way += way >= taken ? 1 : 0;
      router = cross(router, way, -1, random, path);
    }
    if (router / sizes_.a != to) router = cross(router, to, target, random, path);
    move(router, target, path);
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] bool shortest_routing() const override { return false; }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex >= devices_) {
      const int router = vertex - devices_;
      return fmt::format("router {}.{}", router / sizes_.a, router % sizes_.a);
    }
    const int router = vertex / sizes_.p;
    return fmt::format("device {} ({},{},{})", vertex, router / sizes_.a, router % sizes_.a, vertex % sizes_.p);
  }

  [[nodiscard]] std::vector<int> radices() const override { return {sizes_.p, sizes_.a, sizes_.g}; }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    const auto between = sizes_.g * local_cables() + global_cables();
    const double devices = devices_;
    const int used = pair_cables_ * (sizes_.g - 1);  // global ports of a group
    result.devices = devices_;
    result.switches = std::int64_t{sizes_.a} * sizes_.g * planes_;
    result.max_switch_radix = sizes_.p + sizes_.a - 1 + std::min(sizes_.h, used);
    result.links = (devices_ + between) * planes_;
    result.ports_per_device = planes_;
    result.switch_ports_per_device = static_cast<double>((devices_ + 2 * between) * planes_) / devices;
    const auto paths = search_paths(*this);
    result.diameter = paths.diameter;
    result.mean_path = paths.mean_path;
    result.paths = paths.sources < devices_ ? Characteristics::Paths::sampled : Characteristics::Paths::searched;
    result.bisection_links = static_cast<double>(std::min<std::int64_t>(bisection_cables(), devices_ / 2) * planes_);
    return result;
  }

  // A group is a few racks.
  [[nodiscard]] CostItems cost_items() const override {
    const auto device_cables = std::int64_t{devices_} * planes_;
    const auto local = local_cables() * sizes_.g * planes_;
    const auto global = global_cables() * planes_;
    return {.switch_ports = device_cables + 2 * (local + global),
            .device_ports = device_cables,
            .copper_cables = device_cables + local,
            .optical_cables = global};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return id.value / 2 < devices_ + local_cables() * sizes_.g ? LengthClass::copper : LengthClass::optical;
  }

 private:
  [[nodiscard]] std::int64_t local_cables() const { return std::int64_t{sizes_.a} * (sizes_.a - 1) / 2; }
  [[nodiscard]] std::int64_t global_cables() const {
    return std::int64_t{sizes_.g} * (sizes_.g - 1) / 2 * pair_cables_;
  }

  void build() {
    for (int device = 0; device < devices_; ++device) {
      connect(device, devices_ + device / sizes_.p, LinkKind::device_port);
    }
    for (int group = 0; group < sizes_.g; ++group) {
      const int first = devices_ + group * sizes_.a;
      for (int i = 0; i < sizes_.a; ++i) {
        for (int j = i + 1; j < sizes_.a; ++j) connect(first + i, first + j, LinkKind::switch_link);
      }
    }
    for (int x = 0; x < sizes_.g; ++x) {
      for (int y = x + 1; y < sizes_.g; ++y) {
        for (int w = 0; w < pair_cables_; ++w) {
          connect(devices_ + gateway(x, y, w), devices_ + gateway(y, x, w), LinkKind::switch_link);
        }
      }
    }
  }

  // The router of group x with the w-th cable to group y.
  [[nodiscard]] int gateway(int x, int y, int w) const {
    const int v = (y - x - 1 + sizes_.g) % sizes_.g;
    // Seen from the higher group the port is the involution's image, which the same rule gives.
    return x * sizes_.a + (w * (sizes_.g - 1) + v) / sizes_.h;
  }

  [[nodiscard]] LinkId global_link(int x, int y, int w) const {
    const int low = std::min(x, y);
    const int pair = low * (2 * sizes_.g - low - 1) / 2 + std::max(x, y) - low - 1;
    return LinkId{2 * (first_global_ + pair * pair_cables_ + w) + (x < y ? 0 : 1)};
  }

  // From `router` to group `to` over a cable with the fewest local hops before it and, where the router there is known
  // (target >= 0), behind it.
  int cross(int router, int to, int target, Random& random, std::vector<LinkId>& path) const {
    const int from = router / sizes_.a;
    std::vector<int> best;
    int least = 3;
    for (int w = 0; w < pair_cables_; ++w) {
      const int hops =
          (gateway(from, to, w) != router ? 1 : 0) + (target >= 0 && gateway(to, from, w) != target ? 1 : 0);
      if (hops < least) best.clear();
      least = std::min(least, hops);
      if (hops == least) best.push_back(w);
    }
    const int w = best[random.below(static_cast<std::uint32_t>(best.size()))];
    move(router, gateway(from, to, w), path);
    path.push_back(global_link(from, to, w));
    return gateway(to, from, w);
  }

  void move(int from, int to, std::vector<LinkId>& path) const {
    if (from == to) return;
    const int i = std::min(from, to) % sizes_.a;
    const int j = std::max(from, to) % sizes_.a;
    const int pair = i * (2 * sizes_.a - i - 1) / 2 + j - i - 1;
    const int cable = first_local_ + from / sizes_.a * static_cast<int>(local_cables()) + pair;
    path.push_back(LinkId{2 * cable + (from < to ? 0 : 1)});
  }

  // Half of the groups, or half of the routers (or devices) of one group.
  [[nodiscard]] std::int64_t bisection_cables() const {
    const std::int64_t g = sizes_.g;
    const std::int64_t a = sizes_.a;
    const std::int64_t p = sizes_.p;
    const auto one_group = std::min((a / 2) * (a - a / 2) + a % 2 * (p / 2), a * p / 2);
    if (g == 1) return one_group;
    return (g / 2) * (g / 2) * pair_cables_ + (g % 2) * middle_group();
  }

  // With an odd number of groups the one in the middle is split; its routers go by number, and every global cable of a
  // router on the far side of its group is cut.
  [[nodiscard]] std::int64_t middle_group() const {
    const int middle = sizes_.g / 2;
    std::int64_t least = -1;
    for (const bool first_low : {true, false}) {
      const auto low = [&](int router) { return (router % sizes_.a < sizes_.a / 2) == first_low; };
      std::int64_t cut = std::int64_t{sizes_.a / 2} * (sizes_.a - sizes_.a / 2);
      for (int y = 0; y < sizes_.g; ++y) {
        for (int w = 0; y != middle && w < pair_cables_; ++w) {
          cut += low(gateway(middle, y, w)) != (y < middle) ? 1 : 0;
        }
      }
      if (sizes_.a % 2 != 0) cut += sizes_.p / 2;
      if (least < 0 || cut < least) least = cut;
    }
    return least;
  }

  DragonflySizes sizes_;
  int pair_cables_;
  int first_local_ = 0;
  int first_global_ = 0;
};

DragonflySizes dragonfly_sizes(const Arguments& arguments, int devices) {
  DragonflySizes sizes;
  const auto& routing = arguments.text("routing");
  if (routing != "minimal" && routing != "valiant") {
    throw usage_error(fmt::format("topology 'dragonfly': unknown routing '{}'{}", routing,
                                  suggestion(routing, {"minimal", "valiant"})));
  }
  sizes.valiant = routing == "valiant";
  const auto size = [&](const char* name, int otherwise) {
    return arguments.has(name) ? static_cast<int>(arguments.integer(name, 1, 4096)) : otherwise;
  };
  // The smallest balanced one (a = 2p = 2h) whose groups suffice, with as few groups as hold the devices.
  for (int h = 1;; ++h) {
    sizes.p = size("p", h);
    sizes.h = size("h", sizes.p);
    sizes.a = size("a", 2 * sizes.h);
    const auto most = std::int64_t{sizes.a} * sizes.h + 1;
    const auto group = std::int64_t{sizes.p} * sizes.a;
    const auto needed = std::max<std::int64_t>(1, (devices + group - 1) / group);
    if (arguments.has("g")) {
      sizes.g = static_cast<int>(arguments.integer("g", 1, 4'194'304));
      if (sizes.g > most) {
        throw usage_error(fmt::format("topology 'dragonfly': g={} groups, but {} routers of {} global ports join {}",
                                      sizes.g, sizes.a, sizes.h, most));
      }
      return sizes;
    }
    if (needed <= most) {
      sizes.g = static_cast<int>(needed);
      return sizes;
    }
    const bool all_given = arguments.has("p") && arguments.has("a") && arguments.has("h");
    if (all_given || h >= 256) {
      throw usage_error(fmt::format("topology 'dragonfly': at most {} groups of {} devices hold fewer than {} devices",
                                    most, group, devices));
    }
  }
}

TANDEM_REGISTER(Topology, dragonfly, "dragonfly", "groups of routers, all joined to each other by global cables",
                [](const Arguments& arguments, const Topology::PluginContext& context) {
                  return std::make_unique<Dragonfly>(dragonfly_sizes(arguments, context.devices), planes_of(arguments),
                                                     context);
                },
                {{"p", ParameterType::integer, "", "devices of a router (when left out: balanced, a = 2p = 2h)"},
                 {"a", ParameterType::integer, "", "routers of a group"},
                 {"h", ParameterType::integer, "", "global ports of a router"},
                 {"g", ParameterType::integer, "", "groups, at most a*h+1 (when left out: as few as fit)"},
                 {"routing", ParameterType::text, "minimal", "minimal, or valiant (by way of another group)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
