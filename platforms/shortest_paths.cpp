#include "platforms/shortest_paths.hpp"

#include <algorithm>

#include "sim/core/random.hpp"

namespace tandem {

ShortestPaths::ShortestPaths(const Network& network, std::size_t most_bytes)
    : network_(network),
      outgoing_(network),
      offsets_(static_cast<std::size_t>(network.vertices()) + 1, 0),
      incoming_(network.links().size()),
      most_kept_(std::max<std::size_t>(1, most_bytes / (12 * (static_cast<std::size_t>(network.vertices()) + 1)))) {
  for (const auto& link : network.links()) ++offsets_[static_cast<std::size_t>(link.to) + 1];
  for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];
  auto next = offsets_;
  for (std::size_t id = 0; id < network.links().size(); ++id) {
    incoming_[next[static_cast<std::size_t>(network.links()[id].to)]++] = LinkId{static_cast<std::int32_t>(id)};
  }
}

// Breadth first: all vertices of one distance are final before the next distance reads their latencies.
ShortestPaths::Distances ShortestPaths::search(int dst) const {
  const auto vertices = static_cast<std::size_t>(network_.vertices());
  Distances result{std::vector<std::int32_t>(vertices, -1), std::vector<double>(vertices, 0)};
  std::vector<int> order{dst};
  result.hops[static_cast<std::size_t>(dst)] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = static_cast<std::size_t>(order[i]);
    for (auto k = offsets_[at]; k < offsets_[at + 1]; ++k) {
      const auto& link = network_.link(incoming_[k]);
      const auto from = static_cast<std::size_t>(link.from);
      const double latency = link.latency.count() + result.latency[at];
      if (result.hops[from] < 0) {
        result.hops[from] = result.hops[at] + 1;
        result.latency[from] = latency;
        order.push_back(link.from);
      } else if (result.hops[from] == result.hops[at] + 1) {
        result.latency[from] = std::min(result.latency[from], latency);
      }
    }
  }
  return result;
}

const ShortestPaths::Distances& ShortestPaths::towards(int dst) const {
  if (const auto found = kept_.find(dst); found != kept_.end()) return found->second;
  if (order_.size() >= most_kept_) {
    kept_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(dst);
  return kept_.emplace(dst, search(dst)).first->second;
}

void ShortestPaths::find(int src, int dst, std::uint64_t hash, std::vector<LinkId>& path) const {
  path.clear();
  const auto& known = towards(dst);
  const auto& hops = known.hops;
  const auto& latency = known.latency;
  for (int at = src; at != dst;) {
    const auto from = static_cast<std::size_t>(at);
    // Sums of the same latencies in another order may differ in their last digits.
    const double most = latency[from] * (1 + 1e-12);
    const auto on_the_way = [&](LinkId id, int to) {
      const auto next = static_cast<std::size_t>(to);
      return hops[next] + 1 == hops[from] && hops[next] >= 0 &&
             network_.link(id).latency.count() + latency[next] <= most;
    };
    std::uint64_t choices = 0;
    outgoing_.for_each(at, [&](LinkId id, int to) { choices += on_the_way(id, to) ? 1 : 0; });
    auto skipped = choices > 1 ? mix(hash ^ mix(from)) % choices : 0;
    int next = at;
    outgoing_.for_each(at, [&](LinkId id, int to) {
      if (next != at || !on_the_way(id, to) || skipped-- != 0) return;
      path.push_back(id);
      next = to;
    });
    at = next;
  }
}

}  // namespace tandem
