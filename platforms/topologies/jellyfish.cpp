// Jellyfish (Singla et al., NSDI 2012): a random regular graph of switches, t devices each. From the seed: a circulant
// graph, then ten random exchanges of ends a cable that keep it simple, and more until it is connected (a chain of such
// exchanges reaches every regular graph alike; Cooper, Dyer and Greenhill, 2007).
//
//   device switch*t + server
//
// Routing: a shortest way, the choice at every switch hashed from (src, dst, flow). (The paper uses the eight shortest
// ways, longer ones among them.) Distances to a destination's switch are found by search when it is first sent to.
#include <algorithm>
#include <map>
#include <set>

#include "platforms/graph_search.hpp"
#include "platforms/split_search.hpp"
#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

using Edge = std::pair<int, int>;

class RandomGraph {
 public:
  RandomGraph(int vertices, int degree, std::uint64_t seed) : vertices_(vertices), random_(seed) {
    for (int v = 0; v < vertices; ++v) {
      for (int step = 1; step <= degree / 2; ++step) add(v, (v + step) % vertices);
    }
    // An odd degree needs an even number of vertices: everybody has an opposite.
    for (int v = 0; degree % 2 != 0 && v < vertices / 2; ++v) add(v, v + vertices / 2);
    exchange(10 * static_cast<std::int64_t>(edges_.size()));
    while (!connected()) exchange(static_cast<std::int64_t>(edges_.size()));
  }

  [[nodiscard]] std::vector<Edge> edges() const {
    auto sorted = edges_;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  static Edge ordered(int a, int b) { return {std::min(a, b), std::max(a, b)}; }
  void add(int a, int b) {
    if (known_.insert(ordered(a, b)).second) edges_.push_back(ordered(a, b));
  }

  void exchange(std::int64_t times) {
    const auto count = static_cast<std::uint32_t>(edges_.size());
    if (count < 2) return;
    for (std::int64_t i = 0; i < times; ++i) {
      auto& one = edges_[random_.below(count)];
      auto& other = edges_[random_.below(count)];
      auto [a, b] = one;
      auto [c, d] = other;
      if (random_.below(2) == 1) std::swap(c, d);
      const auto first = ordered(a, c);
      const auto second = ordered(b, d);
      if (a == c || b == d || a == d || b == c || known_.contains(first) || known_.contains(second)) continue;
      known_.erase(one);
      known_.erase(other);
      known_.insert(first);
      known_.insert(second);
      one = first;
      other = second;
    }
  }

  [[nodiscard]] bool connected() const {
    std::vector<std::vector<int>> near(static_cast<std::size_t>(vertices_));
    for (const auto& [a, b] : edges_) {
      near[static_cast<std::size_t>(a)].push_back(b);
      near[static_cast<std::size_t>(b)].push_back(a);
    }
    std::vector<char> seen(near.size(), 0);
    std::vector<int> open{0};
    seen[0] = 1;
    std::size_t reached = 0;
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      ++reached;
      for (const int to : near[static_cast<std::size_t>(at)]) {
        if (seen[static_cast<std::size_t>(to)] != 0) continue;
        seen[static_cast<std::size_t>(to)] = 1;
        open.push_back(to);
      }
    }
    return reached == near.size();
  }

  int vertices_;
  Random random_;
  std::vector<Edge> edges_;
  std::set<Edge> known_;
};

struct JellyfishSizes {
  int switches = 1;
  int degree = 0;
  int devices_per_switch = 1;
  std::int64_t seed = 1;
};

class Jellyfish final : public Topology {
 public:
  Jellyfish(const JellyfishSizes& sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(sizes) {
    instance_ = fmt::format("jellyfish:switches={},degree={},t={},seed={},planes={}", sizes.switches, sizes.degree,
                            sizes.devices_per_switch, sizes.seed, planes);
    const auto wanted = std::int64_t{sizes.switches} * sizes.devices_per_switch;
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, wanted + std::int64_t{sizes.switches} * sizes.degree / 2);
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_ + sizes.switches;
    for (int device = 0; device < devices_; ++device) {
      connect(device, devices_ + device / sizes.devices_per_switch, LinkKind::device_port);
    }
    const RandomGraph graph(sizes.switches, sizes.degree, static_cast<std::uint64_t>(sizes.seed));
    near_.resize(static_cast<std::size_t>(sizes.switches));
    for (const auto& [a, b] : graph.edges()) {
      const auto link = connect(devices_ + a, devices_ + b, LinkKind::switch_link);
      near_[static_cast<std::size_t>(a)].push_back({b, link});
      near_[static_cast<std::size_t>(b)].push_back({a, LinkId{link.value + 1}});
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    int at = src.value / sizes_.devices_per_switch;
    const int target = dst.value / sizes_.devices_per_switch;
    path.push_back(LinkId{2 * src.value});
    if (at != target) {
      const auto& distance = distances_to(target);
      auto hash = flow_hash(src, dst, flow);
      std::vector<Near> choices;
      while (at != target) {
        choices.clear();
        for (const auto& near : near_[static_cast<std::size_t>(at)]) {
          const int left = distance[static_cast<std::size_t>(near.at)];
          if (left < distance[static_cast<std::size_t>(at)]) choices.push_back(near);
        }
        hash = mix(hash);
        const auto& next = choices[hash % choices.size()];
        path.push_back(next.link);
        at = next.at;
      }
    }
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex >= devices_) return fmt::format("switch {}", vertex - devices_);
    return fmt::format("device {} ({};{})", vertex, vertex / sizes_.devices_per_switch,
                       vertex % sizes_.devices_per_switch);
  }

  [[nodiscard]] std::vector<int> radices() const override { return {sizes_.devices_per_switch, sizes_.switches}; }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    const double devices = devices_;
    const auto between = static_cast<std::int64_t>(links_.size() / 2) - devices_;
    result.devices = devices_;
    result.switches = std::int64_t{sizes_.switches} * planes_;
    result.max_switch_radix = sizes_.devices_per_switch + sizes_.degree;
    result.links = (devices_ + between) * planes_;
    result.ports_per_device = planes_;
    result.switch_ports_per_device = static_cast<double>((devices_ + 2 * between) * planes_) / devices;
    const auto paths = search_paths(*this);
    result.diameter = paths.diameter;
    result.mean_path = paths.mean_path;
    result.paths = paths.sources < devices_ ? Characteristics::Paths::sampled : Characteristics::Paths::searched;
    result.bisection_links = static_cast<double>(exchanged_split(*this, sizes_.devices_per_switch));
    result.bisection_searched = true;
    return result;
  }

  [[nodiscard]] CostItems cost_items() const override {
    const auto device_cables = std::int64_t{devices_} * planes_;
    const auto between = (static_cast<std::int64_t>(links_.size() / 2) - devices_) * planes_;
    return {.switch_ports = device_cables + 2 * between,
            .device_ports = device_cables,
            .copper_cables = device_cables,
            .optical_cables = between};
  }

 private:
  struct Near {
    int at;
    LinkId link;
  };

  [[nodiscard]] const std::vector<int>& distances_to(int target) const {
    constexpr std::size_t kMostKept = 16'777'216;  // 64 MiB
    if ((distances_.size() + 1) * near_.size() > std::max(kMostKept, near_.size())) distances_.clear();
    auto [known, is_new] = distances_.try_emplace(target);
    auto& distance = known->second;
    if (!is_new) return distance;
    distance.assign(near_.size(), -1);
    distance[static_cast<std::size_t>(target)] = 0;
    std::vector<int> order{target};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int hops = distance[static_cast<std::size_t>(order[i])] + 1;
      for (const auto& near : near_[static_cast<std::size_t>(order[i])]) {
        auto& own = distance[static_cast<std::size_t>(near.at)];
        if (own >= 0) continue;
        own = hops;
        order.push_back(near.at);
      }
    }
    return distance;
  }

  JellyfishSizes sizes_;
  std::vector<std::vector<Near>> near_;                // by switch
  mutable std::map<int, std::vector<int>> distances_;  // by destination's switch, in switches
};

JellyfishSizes jellyfish_sizes(const Arguments& arguments, int devices) {
  JellyfishSizes sizes;
  sizes.devices_per_switch = static_cast<int>(arguments.integer("t", 1, 65536));
  sizes.seed = arguments.integer("seed", 0, std::int64_t{1} << 62);
  const auto needed = (std::int64_t{devices} + sizes.devices_per_switch - 1) / sizes.devices_per_switch;
  sizes.degree = static_cast<int>(arguments.has("degree") ? arguments.integer("degree", 0, 65536)
                                                          : std::min<std::int64_t>(8, needed - 1));
  if (arguments.has("switches")) {
    sizes.switches = static_cast<int>(arguments.integer("switches", 1, kMostDevices));
    if (!arguments.has("degree")) sizes.degree = std::min(8, sizes.switches - 1);
  } else {
    // One more where a switch would have as many neighbours as there are others, or an odd number of ends is left.
    sizes.switches = static_cast<int>(std::max<std::int64_t>(needed, sizes.degree + 1));
  }
  if (!arguments.has("degree") && sizes.degree % 2 != 0 && sizes.switches % 2 != 0) --sizes.degree;
  if (!arguments.has("switches") && sizes.degree % 2 != 0 && sizes.switches % 2 != 0) ++sizes.switches;
  if (sizes.degree >= sizes.switches) {
    throw usage_error(fmt::format("topology 'jellyfish': degree={} cables a switch, but there are only {} switches",
                                  sizes.degree, sizes.switches));
  }
  if (sizes.degree % 2 != 0 && sizes.switches % 2 != 0) {
    throw usage_error(fmt::format("topology 'jellyfish': {} switches of degree {} leave one cable end over",
                                  sizes.switches, sizes.degree));
  }
  if (sizes.switches > 2 && sizes.degree < 2) {
    throw usage_error(fmt::format("topology 'jellyfish': {} switches of degree {} cannot be connected", sizes.switches,
                                  sizes.degree));
  }
  if (sizes.switches == 2 && sizes.degree == 0) {
    throw usage_error("topology 'jellyfish': 2 switches of degree 0 cannot be connected");
  }
  return sizes;
}

TANDEM_REGISTER(Topology, jellyfish, "jellyfish", "random regular graph of switches",
                [](const Arguments& arguments, const Topology::PluginContext& context) {
                  return std::make_unique<Jellyfish>(jellyfish_sizes(arguments, context.devices), planes_of(arguments),
                                                     context);
                },
                {{"switches", ParameterType::integer, "", "when left out: as many as hold the devices"},
                 {"degree", ParameterType::integer, "",
                  "cables of a switch to others (when left out: 8, or all others)"},
                 {"t", ParameterType::integer, "4", "devices of a switch"},
                 {"seed", ParameterType::integer, "1", "of the random graph"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
