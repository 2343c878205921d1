#include "platforms/min_cut.hpp"

#include <algorithm>

namespace tandem {
namespace {

constexpr int kSource = 0;
constexpr int kSink = 1;

// The devices of a side are one vertex; arcs 2i and 2i + 1 are each other's residual.
class CutSearch {
 public:
  CutSearch(const Network& network, const std::vector<bool>& side)
      : first_arc_(static_cast<std::size_t>(network.vertices() - network.devices()) + 2, -1) {
    const auto vertex = [&](int v) {
      return v >= network.devices() ? v - network.devices() + 2 : side[static_cast<std::size_t>(v)] ? kSource : kSink;
    };
    for (const auto& link : network.links()) {
      const int from = vertex(link.from);
      const int to = vertex(link.to);
      if (from == to || from == kSink || to == kSource) continue;
      add(from, to, link.width);
      add(to, from, 0);
    }
  }

  std::int64_t run() {
    std::int64_t total = 0;
    while (layer()) {
      next_ = first_arc_;
      while (augment(total)) {
      }
    }
    return total;
  }

 private:
  struct Arc {
    int to;
    int next;  // of the same vertex, -1: the last
    std::int64_t capacity;
  };
  Arc& arc(int id) { return arcs_[static_cast<std::size_t>(id)]; }
  static std::size_t at(int vertex) { return static_cast<std::size_t>(vertex); }

  void add(int from, int to, std::int64_t capacity) {
    arcs_.push_back({to, first_arc_[at(from)], capacity});
    first_arc_[at(from)] = static_cast<int>(arcs_.size()) - 1;
  }

  bool layer() {
    level_.assign(first_arc_.size(), -1);
    level_[kSource] = 0;
    std::vector<int> order{kSource};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (int a = first_arc_[at(order[i])]; a >= 0; a = arc(a).next) {
        if (arc(a).capacity == 0 || level_[at(arc(a).to)] >= 0) continue;
        level_[at(arc(a).to)] = level_[at(order[i])] + 1;
        order.push_back(arc(a).to);
      }
    }
    return level_[kSink] >= 0;
  }

  // One path of the layered graph, found without recursion: a path may be as long as the network.
  bool augment(std::int64_t& total) {
    std::vector<int> path;
    int vertex = kSource;
    while (vertex != kSink) {
      int& a = next_[at(vertex)];
      while (a >= 0 && (arc(a).capacity == 0 || level_[at(arc(a).to)] != level_[at(vertex)] + 1)) a = arc(a).next;
      if (a >= 0) {
        path.push_back(a);
        vertex = arc(a).to;
      } else if (path.empty()) {
        return false;
      } else {
        level_[at(vertex)] = -1;
        vertex = arc(path.back() ^ 1).to;
        path.pop_back();
      }
    }
    auto least = arc(path.front()).capacity;
    for (const int a : path) least = std::min(least, arc(a).capacity);
    for (const int a : path) {
      arc(a).capacity -= least;
      arc(a ^ 1).capacity += least;
    }
    total += least;
    return true;
  }

  std::vector<Arc> arcs_;
  std::vector<int> first_arc_;
  std::vector<int> next_;
  std::vector<int> level_;
};

}  // namespace

std::int64_t min_cut(const Network& network, const std::vector<bool>& side) {
  return CutSearch(network, side).run();
}

}  // namespace tandem
