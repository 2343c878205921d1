#include "platforms/graph_search.hpp"

#include <algorithm>

namespace tandem {

Adjacency::Adjacency(const Network& network, const std::function<bool(LinkId)>& keep, Of of)
    : offsets_(static_cast<std::size_t>(network.vertices()) + 1, 0) {
  const auto kept = [&](std::size_t id) { return !keep || keep(LinkId{static_cast<std::int32_t>(id)}); };
  const auto own_end = [&](const Link& link) {
    return static_cast<std::size_t>(of == Of::leaving ? link.from : link.to);
  };
  for (std::size_t id = 0; id < network.links().size(); ++id) {
    if (kept(id)) ++offsets_[own_end(network.links()[id]) + 1];
  }
  for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];
  links_.resize(offsets_.back());
  to_.resize(offsets_.back());
  auto next = offsets_;
  for (std::size_t id = 0; id < network.links().size(); ++id) {
    if (!kept(id)) continue;
    const auto& link = network.links()[id];
    const auto slot = next[own_end(link)]++;
    links_[slot] = LinkId{static_cast<std::int32_t>(id)};
    to_[slot] = of == Of::leaving ? link.to : link.from;
  }
}

std::vector<int> Adjacency::distances(int source) const {
  std::vector<int> distance(static_cast<std::size_t>(vertices()), -1);
  std::vector<int> order{source};
  order.reserve(distance.size());
  distance[static_cast<std::size_t>(source)] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int hops = distance[static_cast<std::size_t>(order[i])] + 1;
    for_each(order[i], [&](LinkId, int to) {
      auto& known = distance[static_cast<std::size_t>(to)];
      if (known >= 0) return;
      known = hops;
      order.push_back(to);
    });
  }
  return distance;
}

PathStatistics search_paths(const Network& network, int most_sources) {
  const Adjacency adjacency(network);
  const int devices = network.devices();
  PathStatistics result;
  result.sources = std::min(devices, most_sources);
  double total = 0;
  for (int i = 0; i < result.sources; ++i) {
    const auto source = static_cast<int>(std::int64_t{i} * devices / result.sources);
    const auto distance = adjacency.distances(source);
    for (int device = 0; device < devices; ++device) {
      const int hops = distance[static_cast<std::size_t>(device)];
      total += hops;
      result.diameter = std::max(result.diameter, hops);
    }
  }
  const double pairs = static_cast<double>(result.sources) * (devices - 1);
  if (pairs > 0) result.mean_path = total / pairs;
  return result;
}

}  // namespace tandem
