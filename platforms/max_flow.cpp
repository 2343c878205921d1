#include "platforms/max_flow.hpp"

#include <algorithm>
#include <limits>

#include "platforms/cables.hpp"

namespace tandem {

MaxFlow::MaxFlow(const Network& network, bool with_halves)
    : network_vertices_(network.vertices()), devices_(network.devices()) {
  for (const auto& bundle : bundles_of(network)) {
    add(bundle.from, bundle.to, bundle.width, bundle.back.value < 0 ? 0 : network.link(bundle.back).width);
  }
  first_half_arc_ = arcs_.size();
  if (with_halves) {
    for (int device = 0; device < devices_; ++device) add(network_vertices_, device, 0, 0);
    for (int device = 0; device < devices_; ++device) add(device, network_vertices_ + 1, 0, 0);
  }
  finish();
}

void MaxFlow::add(int from, int to, std::int64_t there, std::int64_t back) {
  arcs_.push_back({to, there});
  arcs_.push_back({from, back});
  from_.push_back(from);
  from_.push_back(to);
}

void MaxFlow::finish() {
  const auto vertices = static_cast<std::size_t>(network_vertices_) + 2;
  offsets_.assign(vertices + 1, 0);
  for (const int from : from_) ++offsets_[static_cast<std::size_t>(from) + 1];
  for (std::size_t v = 1; v <= vertices; ++v) offsets_[v] += offsets_[v - 1];
  auto slot = offsets_;
  order_.resize(arcs_.size());
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) {
    order_[slot[static_cast<std::size_t>(from_[arc])]++] = static_cast<int>(arc);
  }
  for (const auto& arc : arcs_) capacities_.push_back(arc.capacity);
}

std::int64_t MaxFlow::between(int source, int sink) {
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) arcs_[arc].capacity = capacities_[arc];
  return run(source, sink);
}

std::int64_t MaxFlow::between_halves(const std::vector<bool>& side) {
  constexpr std::int64_t kUncut = std::int64_t{1} << 40;
  for (std::size_t arc = 0; arc < arcs_.size(); ++arc) arcs_[arc].capacity = capacities_[arc];
  for (std::size_t device = 0; device < static_cast<std::size_t>(devices_); ++device) {
    const auto sink_arcs = first_half_arc_ + 2 * static_cast<std::size_t>(devices_);
    arcs_[(side[device] ? first_half_arc_ : sink_arcs) + 2 * device].capacity = kUncut;
  }
  return run(network_vertices_, network_vertices_ + 1);
}

std::vector<bool> MaxFlow::source_side() const {
  std::vector<bool> side;
  for (int vertex = 0; vertex < network_vertices_; ++vertex) {
    side.push_back(level_[static_cast<std::size_t>(vertex)] >= 0);
  }
  return side;
}

std::int64_t MaxFlow::run(int source, int sink) {
  std::int64_t total = 0;
  while (layer(source, sink)) {
    next_.assign(offsets_.begin(), offsets_.end() - 1);
    while (const auto pushed = augment(source, sink)) total += pushed;
  }
  return total;
}

// Distances from the source over arcs with capacity left; false where the sink is out of reach.
bool MaxFlow::layer(int source, int sink) {
  level_.assign(offsets_.size() - 1, -1);
  level_[static_cast<std::size_t>(source)] = 0;
  std::vector<int> open{source};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto at = static_cast<std::size_t>(open[i]);
    for (auto slot = offsets_[at]; slot < offsets_[at + 1]; ++slot) {
      const auto& arc = arcs_[static_cast<std::size_t>(order_[slot])];
      auto& level = level_[static_cast<std::size_t>(arc.to)];
      if (arc.capacity == 0 || level >= 0) continue;
      level = level_[at] + 1;
      open.push_back(arc.to);
    }
  }
  return level_[static_cast<std::size_t>(sink)] >= 0;
}

// One path of the layered graph, found without recursion: rings are long. 0 where there is none left.
std::int64_t MaxFlow::augment(int source, int sink) {
  std::vector<std::size_t> path;
  int at = source;
  while (at != sink) {
    const auto vertex = static_cast<std::size_t>(at);
    auto& slot = next_[vertex];
    for (; slot < offsets_[vertex + 1]; ++slot) {
      const auto& arc = arcs_[static_cast<std::size_t>(order_[slot])];
      if (arc.capacity > 0 && level_[static_cast<std::size_t>(arc.to)] == level_[vertex] + 1) break;
    }
    if (slot < offsets_[vertex + 1]) {
      path.push_back(static_cast<std::size_t>(order_[slot]));
      at = arcs_[path.back()].to;
    } else if (path.empty()) {
      return 0;
    } else {
      at = from_[path.back()];
      path.pop_back();
      ++next_[static_cast<std::size_t>(at)];
    }
  }
  auto pushed = std::numeric_limits<std::int64_t>::max();
  for (const auto arc : path) pushed = std::min(pushed, arcs_[arc].capacity);
  for (const auto arc : path) {
    arcs_[arc].capacity -= pushed;
    arcs_[arc ^ 1U].capacity += pushed;
  }
  return pushed;
}

}  // namespace tandem
