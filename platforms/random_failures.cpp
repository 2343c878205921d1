#include "platforms/random_failures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "platforms/cables.hpp"
#include "platforms/graph_search.hpp"
#include "sim/core/random.hpp"

namespace tandem {
namespace {

// Every plane's switches as vertices of their own; cables without direction.
class PlaneGraph {
 public:
  explicit PlaneGraph(const Topology& topology)
      : devices_(topology.devices()), planes_(topology.planes()), switches_(topology.vertices() - devices_) {
    for (const auto& cable : cables_of(topology)) {
      const auto& link = topology.link(cable.link);
      ends_.emplace_back(vertex(link.from, cable.plane), vertex(link.to, cable.plane));
    }
    offsets_.assign(static_cast<std::size_t>(vertices()) + 1, 0);
    for (const auto& [a, b] : ends_) {
      ++offsets_[static_cast<std::size_t>(a) + 1];
      ++offsets_[static_cast<std::size_t>(b) + 1];
    }
    for (std::size_t v = 1; v < offsets_.size(); ++v) offsets_[v] += offsets_[v - 1];
    auto slot = offsets_;
    at_.resize(2 * ends_.size());
    for (std::size_t cable = 0; cable < ends_.size(); ++cable) {
      const auto [a, b] = ends_[cable];
      at_[slot[static_cast<std::size_t>(a)]++] = {b, cable};
      at_[slot[static_cast<std::size_t>(b)]++] = {a, cable};
    }
  }

  [[nodiscard]] int devices() const { return devices_; }
  [[nodiscard]] int vertices() const { return devices_ + planes_ * switches_; }
  [[nodiscard]] std::size_t cables() const { return ends_.size(); }
  [[nodiscard]] std::pair<int, int> ends(std::size_t cable) const { return ends_[cable]; }

  // Distances over cables that are alive, -1 where there is no way.
  void search(int source, const std::vector<bool>& dead, std::vector<int>& distance, std::vector<int>& order) const {
    distance.assign(static_cast<std::size_t>(vertices()), -1);
    order.assign(1, source);
    distance[static_cast<std::size_t>(source)] = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto at = static_cast<std::size_t>(order[i]);
      for (auto slot = offsets_[at]; slot < offsets_[at + 1]; ++slot) {
        const auto& [to, cable] = at_[slot];
        if (dead[cable] || distance[static_cast<std::size_t>(to)] >= 0) continue;
        distance[static_cast<std::size_t>(to)] = distance[at] + 1;
        order.push_back(to);
      }
    }
  }

 private:
  struct End {
    int to;
    std::size_t cable;
  };
  [[nodiscard]] int vertex(int of_topology, int plane) const {
    return of_topology < devices_ ? of_topology : of_topology + plane * switches_;
  }

  int devices_;
  int planes_;
  int switches_;  // of one plane
  std::vector<std::pair<int, int>> ends_;
  std::vector<std::size_t> offsets_;
  std::vector<End> at_;
};

struct Trial {
  std::vector<bool> dead;  // by cable
  std::int64_t links = 0;  // that failed by themselves
  std::int64_t switches = 0;
  std::vector<bool> connected;  // device in the largest part
  double share = 0;
  double length = 0;  // sums over pairs
  double stretch = 0;
  std::int64_t pairs = 0;
};

// Draws in a fixed order, so that a seed is a set of failures whatever is done with them.
Trial draw(const PlaneGraph& graph, const FailureShares& shares, std::uint64_t seed) {
  Random random(seed);
  Trial trial;
  std::vector<bool> dead_vertex(static_cast<std::size_t>(graph.vertices()), false);
  for (int vertex = graph.devices(); vertex < graph.vertices(); ++vertex) {
    if (random.uniform() >= shares.switches) continue;
    dead_vertex[static_cast<std::size_t>(vertex)] = true;
    ++trial.switches;
  }
  for (std::size_t cable = 0; cable < graph.cables(); ++cable) {
    const bool fails = random.uniform() < shares.links;
    if (fails) ++trial.links;
    const auto [a, b] = graph.ends(cable);
    trial.dead.push_back(fails || dead_vertex[static_cast<std::size_t>(a)] || dead_vertex[static_cast<std::size_t>(b)]);
  }
  return trial;
}

void find_largest_part(const PlaneGraph& graph, Trial& trial) {
  std::vector<int> part(static_cast<std::size_t>(graph.devices()), -1);
  std::vector<int> distance;
  std::vector<int> order;
  std::vector<int> sizes;
  for (int device = 0; device < graph.devices(); ++device) {
    if (part[static_cast<std::size_t>(device)] >= 0) continue;
    graph.search(device, trial.dead, distance, order);
    const auto number = static_cast<int>(sizes.size());
    sizes.push_back(0);
    for (const int vertex : order) {
      if (vertex >= graph.devices()) continue;
      part[static_cast<std::size_t>(vertex)] = number;
      ++sizes.back();
    }
  }
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  for (const int number : part) trial.connected.push_back(number == largest - sizes.begin());
  trial.share = static_cast<double>(*largest) / graph.devices();
}

// Values of trials, those that are no number left out.
Spread spread_of(const std::vector<Trial>& trials, double (*value)(const Trial&)) {
  double sum = 0;
  double squares = 0;
  int count = 0;
  for (const auto& trial : trials) {
    if (std::isnan(value(trial))) continue;
    sum += value(trial);
    ++count;
  }
  if (count == 0) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  const double mean = sum / count;
  for (const auto& trial : trials) {
    if (!std::isnan(value(trial))) squares += (value(trial) - mean) * (value(trial) - mean);
  }
  return {mean, count > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

double per_pair(double sum, std::int64_t pairs) {
  return pairs > 0 ? sum / static_cast<double>(pairs) : std::numeric_limits<double>::quiet_NaN();
}

void add_paths(int source, const std::vector<int>& healthy, const std::vector<int>& distance, Trial& trial) {
  for (std::size_t device = 0; device < trial.connected.size(); ++device) {
    if (!trial.connected[device] || static_cast<int>(device) == source) continue;
    ++trial.pairs;
    trial.length += distance[device];
    trial.stretch += static_cast<double>(distance[device]) / healthy[device];
  }
}

}  // namespace

FailureImpact random_failures(const Topology& topology, const FailureShares& shares, int most_sources,
                              const AnalysisProgress& progress) {
  const PlaneGraph graph(topology);
  std::vector<Trial> trials;
  for (int i = 0; i < shares.trials; ++i) {
    trials.push_back(draw(graph, shares, mix(shares.seed) + static_cast<std::uint64_t>(i)));
    find_largest_part(graph, trials.back());
  }
  FailureImpact result;
  result.sources = std::min(graph.devices(), most_sources);
  double healthy_sum = 0;
  const std::vector<bool> none_dead(graph.cables(), false);
  std::vector<int> healthy;
  std::vector<int> distance;
  std::vector<int> order;
  for (int i = 0; i < result.sources; ++i) {
    const auto source = static_cast<int>(std::int64_t{i} * graph.devices() / result.sources);
    graph.search(source, none_dead, healthy, order);
    for (int device = 0; device < graph.devices(); ++device) healthy_sum += healthy[static_cast<std::size_t>(device)];
    for (auto& trial : trials) {
      if (!trial.connected[static_cast<std::size_t>(source)]) continue;
      graph.search(source, trial.dead, distance, order);
      add_paths(source, healthy, distance, trial);
    }
    if (progress) progress(i + 1, result.sources);
  }
  result.healthy_path = per_pair(healthy_sum, std::int64_t{result.sources} * (graph.devices() - 1));
  result.failed_links = spread_of(trials, [](const Trial& t) { return static_cast<double>(t.links); });
  result.failed_switches = spread_of(trials, [](const Trial& t) { return static_cast<double>(t.switches); });
  result.connected_share = spread_of(trials, [](const Trial& t) { return t.share; });
  result.mean_path = spread_of(trials, [](const Trial& t) { return per_pair(t.length, t.pairs); });
  result.path_stretch = spread_of(trials, [](const Trial& t) { return per_pair(t.stretch, t.pairs); });
  return result;
}

}  // namespace tandem
