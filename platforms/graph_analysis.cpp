#include "platforms/graph_analysis.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "platforms/graph_search.hpp"
#include "platforms/max_flow.hpp"
#include "sim/core/random.hpp"

namespace tandem {
namespace {

using Pair = std::pair<int, int>;

int poorest_device(const Network& network) {
  std::vector<std::int64_t> cables(static_cast<std::size_t>(network.vertices()), 0);
  for (const auto& link : network.links()) cables[static_cast<std::size_t>(link.from)] += link.width;
  return static_cast<int>(std::min_element(cables.begin(), cables.begin() + network.devices()) - cables.begin());
}

std::vector<Pair> pairs_to_look_at(const Network& network, int most) {
  const int devices = network.devices();
  std::vector<Pair> pairs;
  if (std::int64_t{devices} * (devices - 1) / 2 <= most) {
    for (int a = 0; a < devices; ++a) {
      for (int b = a + 1; b < devices; ++b) pairs.emplace_back(a, b);
    }
    return pairs;
  }
  Random random(1);
  const auto other_than = [&](int device) {
    const auto b = static_cast<int>(random.below(static_cast<std::uint32_t>(devices - 1)));
    return b + (b >= device ? 1 : 0);
  };
  std::set<Pair> known;
  for (int a = poorest_device(network); static_cast<int>(pairs.size()) < most;
       a = static_cast<int>(random.below(static_cast<std::uint32_t>(devices)))) {
    const int b = other_than(a);
    if (known.emplace(std::min(a, b), std::max(a, b)).second) pairs.emplace_back(a, b);
  }
  return pairs;
}

// Breadth-first search from one vertex that counts shortest paths; what it allocates serves many searches.
class ShortestPaths {
 public:
  explicit ShortestPaths(const Network& network)
      : network_(network),
        adjacency_(network),
        distance_(static_cast<std::size_t>(network.vertices())),
        paths_(distance_.size()),
        below_(distance_.size()) {}

  void search(int source) {
    std::fill(distance_.begin(), distance_.end(), -1);
    std::fill(paths_.begin(), paths_.end(), 0.0);
    order_.assign(1, source);
    distance_[static_cast<std::size_t>(source)] = 0;
    paths_[static_cast<std::size_t>(source)] = 1;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto at = static_cast<std::size_t>(order_[i]);
      adjacency_.for_each(order_[i], [&](LinkId, int vertex) {
        const auto to = static_cast<std::size_t>(vertex);
        if (distance_[to] < 0) {
          distance_[to] = distance_[at] + 1;
          order_.push_back(vertex);
        }
        if (distance_[to] == distance_[at] + 1) paths_[to] += paths_[at];
      });
    }
  }

  [[nodiscard]] double paths_to(int vertex) const { return paths_[static_cast<std::size_t>(vertex)]; }

  // One unit from the source to every other device, split evenly over its shortest paths, far ends first.
  void add_loads(std::vector<double>& load) {
    std::fill(below_.begin(), below_.end(), 0.0);
    for (auto i = order_.size(); i-- > 0;) {
      const auto at = static_cast<std::size_t>(order_[i]);
      adjacency_.for_each(order_[i], [&](LinkId id, int vertex) {
        const auto to = static_cast<std::size_t>(vertex);
        if (distance_[to] != distance_[at] + 1) return;
        const double arrives = below_[to] + (vertex < network_.devices() ? 1 : 0);
        const double share = paths_[at] / paths_[to] * arrives;
        load[id.index()] += share;
        below_[at] += share;
      });
    }
  }

 private:
  const Network& network_;
  Adjacency adjacency_;
  std::vector<int> distance_;
  std::vector<double> paths_;
  std::vector<double> below_;
  std::vector<int> order_;
};

void tell(const AnalysisProgress& progress, std::int64_t done, std::int64_t total) {
  if (progress) progress(done, total);
}

}  // namespace

PathDiversity path_diversity(const Network& network, int most_pairs, const AnalysisProgress& progress) {
  PathDiversity result;
  if (network.devices() < 2) return result;
  const auto pairs = pairs_to_look_at(network, most_pairs);
  MaxFlow flow(network);
  ShortestPaths search(network);
  result.pairs = static_cast<std::int64_t>(pairs.size());
  result.all_pairs = result.pairs == std::int64_t{network.devices()} * (network.devices() - 1) / 2;
  result.least_disjoint = std::numeric_limits<std::int64_t>::max();
  result.least_equal = std::numeric_limits<double>::max();
  int searched = -1;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    const auto disjoint = flow.between(a, b);
    if (searched != a) search.search(a);
    searched = a;
    const double equal = search.paths_to(b);
    result.least_disjoint = std::min(result.least_disjoint, disjoint);
    result.least_equal = std::min(result.least_equal, equal);
    result.mean_disjoint += static_cast<double>(disjoint);
    result.mean_equal += equal;
    tell(progress, static_cast<std::int64_t>(i) + 1, result.pairs);
  }
  result.mean_disjoint /= static_cast<double>(pairs.size());
  result.mean_equal /= static_cast<double>(pairs.size());
  return result;
}

UniformTraffic uniform_traffic(const Network& network, const AnalysisProgress& progress) {
  ShortestPaths search(network);
  std::vector<double> load(network.links().size(), 0);
  const int devices = network.devices();
  for (int source = 0; source < devices; ++source) {
    search.search(source);
    search.add_loads(load);
    tell(progress, source + 1, devices);
  }
  UniformTraffic result;
  for (std::size_t id = 0; id < load.size(); ++id) {
    result.most_load = std::max(result.most_load, load[id] / network.links()[id].width);
  }
  if (result.most_load > 0) {
    result.bisection_lower =
        static_cast<double>(std::int64_t{devices / 2} * (devices - devices / 2)) / result.most_load;
    result.all_to_all = (devices - 1) / result.most_load;
  }
  return result;
}

}  // namespace tandem
