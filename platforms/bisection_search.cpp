// The upper bound of the bisection: candidates from several orders of the devices, the better ones improved.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "platforms/cables.hpp"
#include "platforms/graph_analysis.hpp"
#include "platforms/graph_search.hpp"
#include "platforms/max_flow.hpp"
#include "sim/core/random.hpp"

namespace tandem {
namespace {

constexpr std::size_t kImproved = 12;    // candidates worth exchanges and exact cuts
constexpr int kSizes = 5;                // of a box along one digit, from half to all
constexpr std::size_t kMostOrders = 24;  // of digits
constexpr std::size_t kMostBoxes = 400;  // in all
constexpr int kPasses = 8;               // of exchanges

// Cables without direction, by vertex.
class CableGraph {
 public:
  explicit CableGraph(const Network& network) : devices_(network.devices()), neighbours_(vertex_count(network)) {
    for (const auto& bundle : bundles_of(network)) {
      neighbours_[static_cast<std::size_t>(bundle.from)].push_back({bundle.to, bundle.width});
      neighbours_[static_cast<std::size_t>(bundle.to)].push_back({bundle.from, bundle.width});
    }
    for (const auto& list : neighbours_) {
      std::int64_t sum = 0;
      for (const auto& neighbour : list) sum += neighbour.cables;
      most_cables_ = std::max(most_cables_, sum);
    }
  }
  struct Neighbour {
    int vertex;
    int cables;
  };
  [[nodiscard]] const std::vector<Neighbour>& of(int vertex) const {
    return neighbours_[static_cast<std::size_t>(vertex)];
  }
  [[nodiscard]] int devices() const { return devices_; }
  [[nodiscard]] int vertices() const { return static_cast<int>(neighbours_.size()); }

  // Cables that a vertex would save by changing sides.
  [[nodiscard]] std::int64_t gain(int vertex, const std::vector<bool>& side) const {
    std::int64_t gain = 0;
    for (const auto& [other, cables] : of(vertex)) {
      const bool apart = side[static_cast<std::size_t>(other)] != side[static_cast<std::size_t>(vertex)];
      gain += apart ? cables : -cables;
    }
    return gain;
  }
  [[nodiscard]] std::int64_t most_cables() const { return most_cables_; }  // of one vertex
  [[nodiscard]] std::int64_t cut(const std::vector<bool>& side) const {
    std::int64_t twice = 0;
    for (int vertex = 0; vertex < vertices(); ++vertex) {
      for (const auto& [other, cables] : of(vertex)) {
        if (side[static_cast<std::size_t>(other)] != side[static_cast<std::size_t>(vertex)]) twice += cables;
      }
    }
    return twice / 2;
  }

 private:
  static std::size_t vertex_count(const Network& network) { return static_cast<std::size_t>(network.vertices()); }
  int devices_;
  std::vector<std::vector<Neighbour>> neighbours_;
  std::int64_t most_cables_ = 0;
};

// Fiduccia and Mattheyses: every vertex changes sides once, the best gain first, devices from the fuller side; the best
// balanced state on the way is kept. Switches have no weight.
class Exchanges {
 public:
  Exchanges(const CableGraph& graph, std::vector<bool> side) : graph_(graph), side_(std::move(side)) {}

  std::vector<bool> improved() {
    for (int pass = 0; pass < kPasses; ++pass) {
      if (!run_pass()) break;
    }
    return side_;
  }

 private:
  [[nodiscard]] bool on(int vertex) const { return side_[static_cast<std::size_t>(vertex)]; }

  // Sets by what may move: switches, devices of either side; the best gain last.
  [[nodiscard]] std::size_t kind(int vertex) const { return vertex >= graph_.devices() ? 0 : on(vertex) ? 1 : 2; }

  bool run_pass() {
    for (auto& set : open_) set.clear();
    gains_.clear();
    inside_ = 0;
    for (int vertex = 0; vertex < graph_.vertices(); ++vertex) {
      gains_.push_back(graph_.gain(vertex, side_));
      open_[kind(vertex)].emplace(gains_.back(), vertex);
      if (vertex < graph_.devices() && on(vertex)) ++inside_;
    }
    const int balanced = inside_;
    std::vector<int> moved;
    std::int64_t total = 0;
    std::int64_t best = 0;
    std::size_t keep = 0;
    while (const auto* set = next_set(balanced)) {
      const auto [gain, vertex] = *set->rbegin();
      move(vertex);
      moved.push_back(vertex);
      total += gain;
      if (total <= best || inside_ != balanced) continue;
      best = total;
      keep = moved.size();
    }
    for (auto i = keep; i < moved.size(); ++i) side_[static_cast<std::size_t>(moved[i])].flip();
    return best > 0;
  }

  using Open = std::set<std::pair<std::int64_t, int>>;

  // The set with the best gain of those that may give one up now.
  const Open* next_set(int balanced) const {
    const Open* best = nullptr;
    for (std::size_t k = 0; k < open_.size(); ++k) {
      if (open_[k].empty() || (k == 1 && inside_ < balanced) || (k == 2 && inside_ >= balanced)) continue;
      if (best == nullptr || open_[k].rbegin()->first > best->rbegin()->first) best = &open_[k];
    }
    return best;
  }

  void move(int vertex) {
    open_[kind(vertex)].erase({gains_[static_cast<std::size_t>(vertex)], vertex});
    gains_[static_cast<std::size_t>(vertex)] = kMoved;
    if (vertex < graph_.devices()) inside_ += on(vertex) ? -1 : 1;
    side_[static_cast<std::size_t>(vertex)].flip();
    for (const auto& [other, cables] : graph_.of(vertex)) {
      auto& gain = gains_[static_cast<std::size_t>(other)];
      if (gain == kMoved) continue;
      auto node = open_[kind(other)].extract({gain, other});
      gain += on(other) == on(vertex) ? -2 * cables : 2 * cables;
      node.value().first = gain;
      open_[kind(other)].insert(std::move(node));
    }
  }

  static constexpr std::int64_t kMoved = std::int64_t{1} << 62;
  const CableGraph& graph_;
  std::vector<bool> side_;
  std::array<Open, 3> open_;
  std::vector<std::int64_t> gains_;
  int inside_ = 0;  // devices marked true
};

struct Candidate {
  std::vector<bool> side;  // by vertex
  std::int64_t cut = 0;
  std::string found_by;
};

class SplitSearch {
 public:
  SplitSearch(const Network& network, const AnalysisProgress& progress)
      : network_(network), graph_(network), progress_(progress) {}

  BisectionSplit best() {
    std::vector<int> order(static_cast<std::size_t>(network_.devices()));
    std::iota(order.begin(), order.end(), 0);
    consider(order, "device numbers");
    add_boxes();
    add_distances();
    add_spectral();
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const auto& a, const auto& b) { return a.cut < b.cut; });
    // The best overall, and the best of every kind: a worse start may end lower.
    std::vector<Candidate> starts;
    std::set<std::string> kinds;
    for (const auto& candidate : candidates_) {
      if (kinds.insert(candidate.found_by).second || starts.size() < kImproved) starts.push_back(candidate);
    }
    return best_of(starts);
  }

 private:
  BisectionSplit best_of(const std::vector<Candidate>& starts) {
    MaxFlow flow(network_, true);
    BisectionSplit best;
    best.cables = -1;
    const auto count = [&](std::vector<bool> side, const std::string& found_by) {
      side.resize(static_cast<std::size_t>(network_.devices()));
      const auto cables = flow.between_halves(side);
      if (best.cables < 0 || cables < best.cables) best = {cables, found_by, std::move(side)};
    };
    for (std::size_t i = 0; i < starts.size(); ++i) {
      count(starts[i].side, starts[i].found_by);
      count(Exchanges(graph_, starts[i].side).improved(), starts[i].found_by + ", improved");
      if (progress_) progress_(static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(starts.size()));
    }
    return best;
  }

  // The first half of the devices in this order against the rest.
  void consider(const std::vector<int>& order, const std::string& found_by) {
    std::vector<bool> side(static_cast<std::size_t>(network_.vertices()), false);
    for (std::size_t i = 0; i < order.size() / 2; ++i) side[static_cast<std::size_t>(order[i])] = true;
    if (!tried_.insert(side).second) return;
    place_switches(side);
    const auto cut = graph_.cut(side);
    candidates_.push_back({std::move(side), cut, found_by});
  }

  // Each to the side where most of its cables lead, those nearest to devices first: a quick guess, for ranking.
  void place_switches(std::vector<bool>& side) const {
    std::vector<bool> placed(side.size(), false);
    std::fill(placed.begin(), placed.begin() + network_.devices(), true);
    for (int sweep = 0; sweep < 4; ++sweep) {
      for (int vertex = network_.devices(); vertex < network_.vertices(); ++vertex) {
        std::int64_t balance = 0;
        for (const auto& [other, cables] : graph_.of(vertex)) {
          if (!placed[static_cast<std::size_t>(other)]) continue;
          balance += side[static_cast<std::size_t>(other)] ? cables : -cables;
          placed[static_cast<std::size_t>(vertex)] = true;
        }
        side[static_cast<std::size_t>(vertex)] = balance > 0;
      }
    }
  }

  // Corners of the address space: the devices whose digits lie in a box, in lexicographic order, come first.
  void add_boxes() {
    const auto radices = network_.radices();
    if (radices.empty()) return;
    std::vector<std::size_t> order(radices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::size_t orders = 0;
    do {
      add_boxes(radices, order);
    } while (++orders < kMostOrders && std::next_permutation(order.begin(), order.end()));
  }

  void add_boxes(const std::vector<int>& radices, const std::vector<std::size_t>& order) {
    std::vector<std::vector<int>> sizes;  // to choose from, by place in the order
    std::size_t choices = 1;
    for (const auto digit : order) {
      const int least = (radices[digit] + 1) / 2;
      std::set<int> some;
      // Few sizes where there are many digits.
      for (int i = 0; i <= kSizes - 1; ++i) some.insert(least + (radices[digit] - least) * i / (kSizes - 1));
      if (choices * some.size() > kMostBoxes) some = {least, radices[digit]};
      if (choices * some.size() > kMostBoxes) some = {radices[digit]};
      choices *= some.size();
      sizes.emplace_back(some.begin(), some.end());
    }
    for (std::size_t choice = 0; choice < choices && tried_.size() < kMostBoxes; ++choice) {
      std::vector<int> box;
      auto rest = choice;
      for (const auto& list : sizes) {
        box.push_back(list[rest % list.size()]);
        rest /= list.size();
      }
      consider(box_order(radices, order, box), "address digits");
    }
  }

  // Devices numbered anew by the digits in this order, the first the most significant; those outside of the box last.
  [[nodiscard]] std::vector<int> box_order(const std::vector<int>& radices, const std::vector<std::size_t>& order,
                                           const std::vector<int>& box) const {
    std::vector<std::int64_t> stride(radices.size(), 1);
    for (std::size_t d = 1; d < radices.size(); ++d) stride[d] = stride[d - 1] * radices[d - 1];
    std::vector<std::pair<std::int64_t, int>> keys;
    for (int device = 0; device < network_.devices(); ++device) {
      std::int64_t key = 0;
      bool outside = false;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto digit = device / stride[order[i]] % radices[order[i]];
        key = key * radices[order[i]] + digit;
        outside = outside || digit >= box[i];
      }
      keys.emplace_back(outside ? key + network_.devices() : key, device);
    }
    return sorted(std::move(keys));
  }

  template <class Key>
  static std::vector<int> sorted(std::vector<std::pair<Key, int>> keys) {
    std::sort(keys.begin(), keys.end());
    std::vector<int> order;
    for (const auto& [key, device] : keys) order.push_back(device);
    return order;
  }

  void add_distances() {
    const Adjacency adjacency(network_);
    for (const int source : {0, network_.devices() / 3, network_.devices() - 1}) {
      const auto distance = adjacency.distances(source);
      std::vector<std::pair<int, int>> keys;
      for (int device = 0; device < network_.devices(); ++device) {
        keys.emplace_back(distance[static_cast<std::size_t>(device)], device);
      }
      consider(sorted(std::move(keys)), "distance");
    }
  }

  // Power iteration on (most cables) I - Laplacian, the constant vector taken out.
  void add_spectral() {
    constexpr int kSteps = 300;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      Random random(seed);
      std::vector<double> x(static_cast<std::size_t>(network_.vertices()));
      for (auto& value : x) value = random.uniform() - 0.5;
      for (int step = 0; step < kSteps; ++step) iterate(x);
      std::vector<std::pair<double, int>> keys;
      for (int device = 0; device < network_.devices(); ++device) {
        keys.emplace_back(x[static_cast<std::size_t>(device)], device);
      }
      consider(sorted(std::move(keys)), "spectral");
    }
  }

  void iterate(std::vector<double>& x) const {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    for (auto& value : x) value -= mean;
    std::vector<double> next(x.size());
    double norm = 0;
    const double most = 2 * static_cast<double>(graph_.most_cables());
    for (int vertex = 0; vertex < graph_.vertices(); ++vertex) {
      const auto at = static_cast<std::size_t>(vertex);
      double sum = most * x[at];
      for (const auto& [other, cables] : graph_.of(vertex)) {
        sum += cables * (x[static_cast<std::size_t>(other)] - x[at]);
      }
      next[at] = sum;
      norm += sum * sum;
    }
    const double scale = norm > 0 ? 1 / std::sqrt(norm) : 0;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = next[i] * scale;
  }

  const Network& network_;
  CableGraph graph_;
  const AnalysisProgress& progress_;
  std::vector<Candidate> candidates_;
  std::set<std::vector<bool>> tried_;
};

}  // namespace

BisectionSplit bisection_upper(const Network& network, const AnalysisProgress& progress) {
  if (network.devices() < 2) return {0, "one device", std::vector<bool>(static_cast<std::size_t>(network.devices()))};
  return SplitSearch(network, progress).best();
}

}  // namespace tandem
