#include "tests/platforms/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

namespace tandem::testing {
namespace {

// Outgoing link ids of every vertex.
std::vector<std::vector<int>> outgoing(const Network& network) {
  std::vector<std::vector<int>> result(static_cast<std::size_t>(network.vertices()));
  for (std::size_t id = 0; id < network.links().size(); ++id) {
    result[static_cast<std::size_t>(network.links()[id].from)].push_back(static_cast<int>(id));
  }
  return result;
}

// Dinic's algorithm. Arcs 2i and 2i+1 are each other's residual.
class Flow {
 public:
  explicit Flow(int vertices) : arcs_of_(static_cast<std::size_t>(vertices)) {}

  void add(int from, int to, std::int64_t capacity) {
    arcs_of_[static_cast<std::size_t>(from)].push_back(static_cast<int>(to_.size()));
    to_.push_back(to);
    capacity_.push_back(capacity);
    arcs_of_[static_cast<std::size_t>(to)].push_back(static_cast<int>(to_.size()));
    to_.push_back(from);
    capacity_.push_back(0);
  }

  std::int64_t run(int source, int sink) {
    std::int64_t total = 0;
    while (layer(source, sink)) {
      next_.assign(arcs_of_.size(), 0);
      while (const auto pushed = push(source, sink, std::numeric_limits<std::int64_t>::max())) total += pushed;
    }
    return total;
  }

 private:
  bool layer(int source, int sink) {
    level_.assign(arcs_of_.size(), -1);
    level_[static_cast<std::size_t>(source)] = 0;
    std::queue<int> open({source});
    while (!open.empty()) {
      const auto at = static_cast<std::size_t>(open.front());
      open.pop();
      for (const int arc : arcs_of_[at]) {
        auto& level = level_[static_cast<std::size_t>(to_[static_cast<std::size_t>(arc)])];
        if (capacity_[static_cast<std::size_t>(arc)] == 0 || level >= 0) continue;
        level = level_[at] + 1;
        open.push(to_[static_cast<std::size_t>(arc)]);
      }
    }
    return level_[static_cast<std::size_t>(sink)] >= 0;
  }

  std::int64_t push(int at, int sink, std::int64_t limit) {
    if (at == sink) return limit;
    const auto vertex = static_cast<std::size_t>(at);
    for (auto& i = next_[vertex]; i < arcs_of_[vertex].size(); ++i) {
      const auto arc = static_cast<std::size_t>(arcs_of_[vertex][i]);
      const auto to = to_[arc];
      if (capacity_[arc] == 0 || level_[static_cast<std::size_t>(to)] != level_[vertex] + 1) continue;
      const auto pushed = push(to, sink, std::min(limit, capacity_[arc]));
      if (pushed == 0) continue;
      capacity_[arc] -= pushed;
      capacity_[arc ^ 1] += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<std::vector<int>> arcs_of_;
  std::vector<int> to_;
  std::vector<std::int64_t> capacity_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

Flow flow_of(const Network& network, int extra_vertices) {
  Flow flow(network.vertices() + extra_vertices);
  for (const auto& link : network.links()) flow.add(link.from, link.to, link.width);
  return flow;
}

// Shortest paths from `source` counted and their loads accumulated (Brandes 2001): each device receives one unit, split
// evenly over all shortest paths.
void add_even_loads(const Network& network, const std::vector<std::vector<int>>& out, int source,
                    std::vector<double>& load) {
  const auto n = static_cast<std::size_t>(network.vertices());
  std::vector<int> distance(n, -1);
  std::vector<double> paths(n, 0);
  std::vector<double> below(n, 0);
  std::vector<int> order{source};
  distance[static_cast<std::size_t>(source)] = 0;
  paths[static_cast<std::size_t>(source)] = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::size_t>(order[i]);
    for (const int id : out[at]) {
      const auto to = static_cast<std::size_t>(network.links()[static_cast<std::size_t>(id)].to);
      if (distance[to] < 0) {
        distance[to] = distance[at] + 1;
        order.push_back(static_cast<int>(to));
      }
      if (distance[to] == distance[at] + 1) paths[to] += paths[at];
    }
  }
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto at = static_cast<std::size_t>(order[i]);
    for (const int id : out[at]) {
      const auto to = static_cast<std::size_t>(network.links()[static_cast<std::size_t>(id)].to);
      if (distance[to] != distance[at] + 1) continue;
      const double own = static_cast<int>(to) < network.devices() ? 1 : 0;
      const double share = paths[at] / paths[to] * (own + below[to]);
      load[static_cast<std::size_t>(id)] += share;
      below[at] += share;
    }
  }
}

std::int64_t half_product(int devices) {
  return std::int64_t{devices / 2} * (devices - devices / 2);
}

// Devices whose digits, in the given order, all lie in the box come first, lexicographically; then the others. With
// `turned` the digits below the first are counted downwards.
std::vector<bool> first_half(const std::vector<int>& radices, const std::vector<std::size_t>& order,
                             const std::vector<int>& box, int devices, bool turned) {
  std::vector<std::pair<std::vector<int>, int>> keys;
  for (int device = 0; device < devices; ++device) {
    std::vector<int> digits;
    int rest = device;
    for (const int radix : radices) {
      digits.push_back(rest % radix);
      rest /= radix;
    }
    std::vector<int> key{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (digits[order[i]] >= box[i]) key[0] = 1;
      key.push_back(turned && i > 0 ? -digits[order[i]] : digits[order[i]]);
    }
    keys.emplace_back(std::move(key), device);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<bool> side(static_cast<std::size_t>(devices), false);
  for (int i = 0; i < devices / 2; ++i) side[static_cast<std::size_t>(keys[static_cast<std::size_t>(i)].second)] = true;
  return side;
}

}  // namespace

std::string walk_fault(const Network& network, DeviceId src, DeviceId dst, const std::vector<LinkId>& path) {
  std::set<LinkId> seen;
  int at = src.value;
  for (const auto id : path) {
    if (id.value < 0 || id.index() >= network.links().size()) return fmt::format("link {} does not exist", id.value);
    if (!seen.insert(id).second) return fmt::format("link {} is taken twice", network.link_name(id));
    if (network.link(id).from != at) {
      return fmt::format("link {} does not start at {}", network.link_name(id), network.vertex_name(at));
    }
    at = network.link(id).to;
  }
  return at == dst.value ? "" : fmt::format("the walk ends at {}", network.vertex_name(at));
}

std::vector<int> distances(const Network& network, int source) {
  const auto out = outgoing(network);
  std::vector<int> distance(static_cast<std::size_t>(network.vertices()), -1);
  std::queue<int> open({source});
  distance[static_cast<std::size_t>(source)] = 0;
  while (!open.empty()) {
    const auto at = static_cast<std::size_t>(open.front());
    open.pop();
    for (const int id : out[at]) {
      const int to = network.links()[static_cast<std::size_t>(id)].to;
      if (distance[static_cast<std::size_t>(to)] >= 0) continue;
      distance[static_cast<std::size_t>(to)] = distance[at] + 1;
      open.push(to);
    }
  }
  return distance;
}

Counts measure(const Network& network, int planes) {
  Counts counts;
  std::vector<std::int64_t> ports(static_cast<std::size_t>(network.vertices()), 0);
  for (const auto& link : network.links()) {
    ports[static_cast<std::size_t>(link.from)] += link.width;
    counts.links += link.width;
  }
  counts.links /= 2;
  for (int vertex = 0; vertex < network.vertices(); ++vertex) {
    const auto own = ports[static_cast<std::size_t>(vertex)];
    if (vertex < network.devices()) {
      counts.device_ports += own;
      continue;
    }
    counts.switches += planes;
    counts.switch_ports += own;
    counts.max_switch_radix = std::max(counts.max_switch_radix, own / planes);
  }
  double total = 0;
  for (int source = 0; source < network.devices(); ++source) {
    const auto distance = distances(network, source);
    for (const int hops : distance) counts.connected = counts.connected && hops >= 0;
    for (int device = 0; device < network.devices(); ++device) {
      total += distance[static_cast<std::size_t>(device)];
      counts.diameter = std::max(counts.diameter, distance[static_cast<std::size_t>(device)]);
    }
  }
  const double pairs = static_cast<double>(network.devices()) * (network.devices() - 1);
  counts.mean_path = pairs > 0 ? total / pairs : 0;
  return counts;
}

double bisection_lower_bound(const Network& network) {
  const auto out = outgoing(network);
  std::vector<double> load(network.links().size(), 0);
  for (int source = 0; source < network.devices(); ++source) add_even_loads(network, out, source, load);
  double most = 0;
  for (std::size_t id = 0; id < load.size(); ++id) most = std::max(most, load[id] / network.links()[id].width);
  return most > 0 ? static_cast<double>(half_product(network.devices())) / most : 0;
}

LoadRange routed_loads(const Network& network) {
  std::vector<double> load(network.links().size(), 0);
  std::vector<LinkId> path;
  for (int src = 0; src < network.devices(); ++src) {
    for (int dst = 0; dst < network.devices(); ++dst) {
      network.route(DeviceId{src}, DeviceId{dst}, 0, path);
      for (const auto id : path) load[id.index()] += 1;
    }
  }
  const auto [least, most] = std::minmax_element(load.begin(), load.end());
  return {*least, *most};
}

std::int64_t min_cut(const Network& network, const std::vector<bool>& side) {
  auto flow = flow_of(network, 2);
  const int source = network.vertices();
  constexpr std::int64_t kUncut = std::int64_t{1} << 40;
  for (int device = 0; device < network.devices(); ++device) {
    if (side[static_cast<std::size_t>(device)]) {
      flow.add(source, device, kUncut);
    } else {
      flow.add(device, source + 1, kUncut);
    }
  }
  return flow.run(source, source + 1);
}

std::int64_t max_flow(const Network& network, DeviceId src, DeviceId dst) {
  return flow_of(network, 0).run(src.value, dst.value);
}

std::int64_t bisection_upper_bound(const Network& network) {
  const auto radices = network.radices();
  std::vector<std::size_t> order(radices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto least = std::numeric_limits<std::int64_t>::max();
  std::set<std::vector<bool>> tried;
  const auto consider = [&](const std::vector<int>& box, bool turned) {
    const auto side = first_half(radices, order, box, network.devices(), turned);
    if (tried.insert(side).second) least = std::min(least, min_cut(network, side));
  };
  do {
    std::vector<int> whole;
    for (const auto digit : order) whole.push_back(radices[digit]);
    consider(whole, true);
    // The first digit of the order is bounded by what half of the devices need; the others go from half to all.
    std::vector<int> box;
    for (const auto digit : order) box.push_back((radices[digit] + 1) / 2);
    for (bool more = true; more;) {
      consider(box, false);
      more = false;
      for (std::size_t i = 0; i < box.size() && !more; ++i) {
        more = ++box[i] <= radices[order[i]];
        if (!more) box[i] = (radices[order[i]] + 1) / 2;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace tandem::testing
