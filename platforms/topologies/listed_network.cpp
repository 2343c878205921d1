#include "platforms/topologies/listed_network.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <tuple>

#include "platforms/graph_search.hpp"
#include "platforms/max_flow.hpp"
#include "sim/core/csv_text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostLinksOfExactCuts = 100'000;  // max-flow takes seconds from here on
constexpr int kMostSources = 1024;                      // of searches for the mean path, as search_paths

}  // namespace

LinkId ListedNetwork::list_link(int from, int to, BytesPerSecond bandwidth, Seconds latency, LinkKind kind,
                                int cables) {
  const int width = cables * planes_;
  const auto rate = bandwidth * width;
  if (!(bandwidth.count() > 0) || !std::isfinite(rate.count())) {
    throw input_error(fmt::format("bandwidth is {}: it must be above 0 and finite", to_text(bandwidth)));
  }
  if (!(latency.count() >= 0) || !std::isfinite(latency.count())) {
    throw input_error(fmt::format("latency is {} s: it must be 0 or more", latency.count()));
  }
  if (static_cast<std::int64_t>(links_.size()) >= kMostLinks) {
    throw input_error(fmt::format("there are more than the {} links that are accepted", kMostLinks));
  }
  return add_link({from, to, rate, latency, kind, width});
}

LinkKind ListedNetwork::kind_between(int from, int to) const {
  const int devices = (from < devices_ ? 1 : 0) + (to < devices_ ? 1 : 0);
  return devices == 2 ? LinkKind::direct : devices == 1 ? LinkKind::device_port : LinkKind::switch_link;
}

// Whatever all devices reach and are reached from ties them together; the first device is as good as any.
void ListedNetwork::check_connected() const {
  const Adjacency outgoing(*this);
  std::vector<std::vector<int>> before(static_cast<std::size_t>(vertices_));
  for (const auto& link : links_) before[static_cast<std::size_t>(link.to)].push_back(link.from);
  const auto there = outgoing.distances(0);
  std::vector<bool> back(before.size(), false);
  std::vector<int> open{0};
  back[0] = true;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const int from : before[static_cast<std::size_t>(at)]) {
      if (back[static_cast<std::size_t>(from)]) continue;
      back[static_cast<std::size_t>(from)] = true;
      open.push_back(from);
    }
  }
  for (int device = 0; device < devices_; ++device) {
    const auto i = static_cast<std::size_t>(device);
    if (there[i] >= 0 && back[i]) continue;
    const auto [from, to] = there[i] < 0 ? std::pair(0, device) : std::pair(device, 0);
    throw input_error(fmt::format("the network is disconnected: no links lead from {} to {}", shown(vertex_name(from)),
                                  shown(vertex_name(to))));
  }
}

std::vector<ListedNetwork::Cable> ListedNetwork::cables() const {
  struct Half {
    int low, high;
    bool down;
    std::int64_t width;
    LinkKind kind;
  };
  std::vector<Half> halves;
  for (std::size_t id = 0; id < std::min(joints_, links_.size()); ++id) {
    const auto& link = links_[id];
    halves.push_back(
        {std::min(link.from, link.to), std::max(link.from, link.to), link.from > link.to, link.width, link.kind});
  }
  std::sort(halves.begin(), halves.end(),
            [](const Half& a, const Half& b) { return std::tie(a.low, a.high) < std::tie(b.low, b.high); });
  std::vector<Cable> result;
  for (std::size_t i = 0; i < halves.size();) {
    const auto& first = halves[i];
    std::int64_t up = 0;
    std::int64_t down = 0;
    for (; i < halves.size() && halves[i].low == first.low && halves[i].high == first.high; ++i) {
      (halves[i].down ? down : up) += halves[i].width;
    }
    result.push_back({first.low, first.high, std::max(up, down), first.kind});
  }
  return result;
}

CostItems ListedNetwork::cost_items() const {
  CostItems items;
  for (const auto& cable : cables()) {
    const bool board = cable.kind == LinkKind::intra_node || cable.kind == LinkKind::host;
    for (const int end : {cable.low, cable.high}) {
      (end < devices_ ? items.device_ports : items.switch_ports) += cable.width;
      if (end >= devices_ && board) items.node_switch_ports += cable.width;
    }
    (board                                                          ? items.board_links
     : kind_between(cable.low, cable.high) == LinkKind::switch_link ? items.optical_cables
                                                                    : items.copper_cables) += cable.width;
  }
  return items;
}

Characteristics ListedNetwork::characteristics() const {
  if (!measured_) measured_ = measure();
  return *measured_;
}

Characteristics ListedNetwork::measure() const {
  Characteristics result;
  result.devices = devices_;
  result.switches = std::int64_t{vertices_ - devices_} * planes_;
  std::vector<std::int64_t> ports(static_cast<std::size_t>(vertices_), 0);
  for (const auto& cable : cables()) {
    result.links += cable.width;
    ports[static_cast<std::size_t>(cable.low)] += cable.width;
    ports[static_cast<std::size_t>(cable.high)] += cable.width;
  }
  std::int64_t device_ports = 0;
  std::int64_t switch_ports = 0;
  for (int vertex = 0; vertex < vertices_; ++vertex) {
    const auto own = ports[static_cast<std::size_t>(vertex)];
    (vertex < devices_ ? device_ports : switch_ports) += own;
    if (vertex >= devices_) result.max_switch_radix = std::max(result.max_switch_radix, own / planes_);
  }
  result.ports_per_device = static_cast<double>(device_ports) / devices_;
  result.switch_ports_per_device = static_cast<double>(switch_ports) / devices_;
  measure_paths(result);
  result.bisection_links = devices_ > 1 ? static_cast<double>(bisection().first) : 0;
  return result;
}

// Breadth first, where links that are no cables add nothing to the distance.
void ListedNetwork::measure_paths(Characteristics& result) const {
  const Adjacency outgoing(*this);
  const int sources = std::min(devices_, kMostSources);
  result.paths = sources == devices_ ? Characteristics::Paths::searched : Characteristics::Paths::sampled;
  double total = 0;
  for (int i = 0; i < sources; ++i) {
    const auto source = static_cast<int>(std::int64_t{i} * devices_ / sources);
    std::vector<int> distance(static_cast<std::size_t>(vertices_), INT32_MAX);
    std::deque<std::pair<int, int>> open{{source, 0}};
    distance[static_cast<std::size_t>(source)] = 0;
    while (!open.empty()) {
      const auto [at, hops] = open.front();
      open.pop_front();
      if (hops > distance[static_cast<std::size_t>(at)]) continue;
      outgoing.for_each(at, [&, from = hops](LinkId id, int to) {
        const bool cable = id.index() < joints_;
        const int there = from + (cable ? 1 : 0);
        auto& known = distance[static_cast<std::size_t>(to)];
        if (there >= known) return;
        known = there;
        cable ? open.emplace_back(to, there) : open.emplace_front(to, there);
      });
    }
    for (int device = 0; device < devices_; ++device) {
      const int hops = distance[static_cast<std::size_t>(device)];
      if (hops == INT32_MAX) continue;
      total += hops;
      result.diameter = std::max(result.diameter, hops);
    }
  }
  const double pairs = static_cast<double>(sources) * (devices_ - 1);
  if (pairs > 0) result.mean_path = total / pairs;
}

std::vector<bool> ListedNetwork::bisection_split() const {
  return devices_ > 1 ? bisection().second : std::vector<bool>{};
}

std::pair<std::int64_t, std::vector<bool>> ListedNetwork::bisection() const {
  std::optional<MaxFlow> flow;
  if (links_.size() <= kMostLinksOfExactCuts) flow.emplace(*this, true);
  std::pair<std::int64_t, std::vector<bool>> best{-1, {}};
  const auto consider = [&](const std::vector<int>& order) {
    std::vector<bool> side(static_cast<std::size_t>(devices_), false);
    for (int i = 0; i < devices_ / 2; ++i) side[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
    const auto cut = flow ? flow->between_halves(side) : placed_cut(side);
    if (best.first < 0 || cut < best.first) best = {cut, std::move(side)};
  };
  std::vector<int> numbers(static_cast<std::size_t>(devices_));
  std::iota(numbers.begin(), numbers.end(), 0);
  consider(numbers);
  int stride = 1;
  for (const int radix : radices_) {
    // In order of this digit, then of the number.
    auto order = numbers;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return a / stride % radix < b / stride % radix; });
    consider(order);
    stride *= radix;
  }
  return best;
}

// In large networks, a cut that exists but need not be the smallest: each switch goes where more of its cables go,
// nearest to the devices first.
std::int64_t ListedNetwork::placed_cut(const std::vector<bool>& side) const {
  const auto all = cables();
  std::vector<std::int64_t> pull(static_cast<std::size_t>(vertices_), 0);
  std::vector<int> place(static_cast<std::size_t>(vertices_), 0);
  for (int device = 0; device < devices_; ++device) {
    place[static_cast<std::size_t>(device)] = side[static_cast<std::size_t>(device)] ? 1 : -1;
  }
  for (int round = 0; round < 8; ++round) {
    std::fill(pull.begin(), pull.end(), 0);
    for (const auto& cable : all) {
      pull[static_cast<std::size_t>(cable.low)] += place[static_cast<std::size_t>(cable.high)] * cable.width;
      pull[static_cast<std::size_t>(cable.high)] += place[static_cast<std::size_t>(cable.low)] * cable.width;
    }
    for (auto v = static_cast<std::size_t>(devices_); v < place.size(); ++v) place[v] = (pull[v] > 0) - (pull[v] < 0);
  }
  std::int64_t crossing = 0;
  for (const auto& cable : all) {
    const bool low = place[static_cast<std::size_t>(cable.low)] > 0;
    const bool high = place[static_cast<std::size_t>(cable.high)] > 0;
    if (low != high) crossing += cable.width;
  }
  return crossing;
}

}  // namespace tandem
