#include "sim/collectives/switch_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

// Cables that work in both directions and end at a switch, of parallel ones the first.
class Cables {
 public:
  struct Cable {
    int from = 0;
    int to = 0;
    LinkId link;
  };

  explicit Cables(const Network& network) : network_(network) {
    for (std::size_t i = 0; i < network.links().size(); ++i) {
      const auto& link = network.links()[i];
      const LinkId id{static_cast<std::int32_t>(i)};
      const bool at_a_switch = link.from >= network.devices() || link.to >= network.devices();
      if (at_a_switch && network.works(id)) cables_.push_back({link.from, link.to, id});
    }
    const auto key = [](const Cable& cable) { return std::tuple(cable.from, cable.to, cable.link); };
    std::sort(cables_.begin(), cables_.end(), [&](const Cable& a, const Cable& b) { return key(a) < key(b); });
    const auto same = [](const Cable& a, const Cable& b) { return a.from == b.from && a.to == b.to; };
    cables_.erase(std::unique(cables_.begin(), cables_.end(), same), cables_.end());
  }

  // Invalid where there is none.
  [[nodiscard]] LinkId link(int from, int to) const {
    const auto found = at(from, to);
    return found != cables_.end() && found->from == from && found->to == to ? found->link : LinkId{};
  }

  struct Search {
    std::vector<int> distance;  // by vertex; -1: not reached
    std::vector<int> before;    // on the way from the source
  };
  // Passes switches only.
  [[nodiscard]] Search search(int source) const {
    const auto vertices = static_cast<std::size_t>(network_.vertices());
    Search result{std::vector<int>(vertices, -1), std::vector<int>(vertices, -1)};
    std::vector<int> reached{source};
    result.distance[static_cast<std::size_t>(source)] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const int from = reached[i];
      if (from < network_.devices() && from != source) continue;
      for (auto cable = at(from, 0); cable != cables_.end() && cable->from == from; ++cable) {
        const auto to = static_cast<std::size_t>(cable->to);
        if (result.distance[to] >= 0 || link(cable->to, from).value < 0) continue;
        result.distance[to] = result.distance[static_cast<std::size_t>(from)] + 1;
        result.before[to] = from;
        reached.push_back(cable->to);
      }
    }
    return result;
  }

 private:
  [[nodiscard]] std::vector<Cable>::const_iterator at(int from, int to) const {
    return std::lower_bound(cables_.begin(), cables_.end(), std::pair(from, to),
                            [](const Cable& cable, auto ends) { return std::pair(cable.from, cable.to) < ends; });
  }

  const Network& network_;
  std::vector<Cable> cables_;
};

int farthest(const std::vector<int>& distance, const std::vector<DeviceId>& devices) {
  int most = 0;
  for (const auto device : devices) most = std::max(most, distance[device.index()]);
  return most;
}

Error no_tree(const Network& network, DeviceId from, DeviceId to) {
  return usage_error(fmt::format(
      "reduction in the network needs switches, joined by working cables, that all ranks hang on; no way over switches "
      "alone leads from {} to {}; take a switched topology (star, leaf-spine, fat-tree) or another algorithm",
      network.vertex_name(from.value), network.vertex_name(to.value)));
}

// No switch has its farthest device nearer than half of the longest way from the first one, so that most networks need
// one look at a switch that far away.
Cables::Search from_the_root(const Network& network, const std::vector<DeviceId>& devices, const Cables& cables) {
  constexpr std::size_t kMostTried = 1024;
  const auto first = cables.search(devices.front().value);
  for (const auto device : devices) {
    if (first.distance[device.index()] < 0) throw no_tree(network, devices.front(), device);
  }
  const int least = (farthest(first.distance, devices) + 1) / 2;
  std::vector<int> candidates;
  for (int vertex = network.devices(); vertex < network.vertices(); ++vertex) {
    if (first.distance[static_cast<std::size_t>(vertex)] >= 0) candidates.push_back(vertex);
  }
  const auto off = [&](int vertex) { return std::abs(first.distance[static_cast<std::size_t>(vertex)] - least); };
  std::stable_sort(candidates.begin(), candidates.end(), [&](int a, int b) { return off(a) < off(b); });
  if (candidates.size() > kMostTried) candidates.resize(kMostTried);
  Cables::Search best;
  int nearest = network.vertices();
  for (const int candidate : candidates) {
    auto search = cables.search(candidate);
    const int far = farthest(search.distance, devices);
    if (far >= nearest) continue;
    nearest = far;
    best = std::move(search);
    if (nearest == least) break;
  }
  return best;
}

}  // namespace

SwitchTree switch_tree(const Network& network, const std::vector<DeviceId>& devices) {
  SwitchTree tree;
  tree.nodes.resize(devices.size());
  if (devices.size() < 2) return tree;
  const Cables cables(network);
  const auto search = from_the_root(network, devices, cables);
  std::vector<int> vertices;
  for (const auto device : devices) vertices.push_back(device.value);
  std::vector<int> member(static_cast<std::size_t>(network.vertices()), -1);
  for (const auto device : devices) {
    int at = search.before[device.index()];
    for (; at >= 0 && member[static_cast<std::size_t>(at)] < 0; at = search.before[static_cast<std::size_t>(at)]) {
      member[static_cast<std::size_t>(at)] = 0;
      tree.switches.push_back(at);
    }
  }
  std::sort(tree.switches.begin(), tree.switches.end());
  for (const int vertex : tree.switches) {
    member[static_cast<std::size_t>(vertex)] = static_cast<int>(vertices.size());
    vertices.push_back(vertex);
  }
  tree.nodes.resize(vertices.size());
  for (std::size_t m = 0; m < vertices.size(); ++m) {
    auto& node = tree.nodes[m];
    const int above = search.before[static_cast<std::size_t>(vertices[m])];
    node.depth = search.distance[static_cast<std::size_t>(vertices[m])];
    if (above < 0) continue;
    node.parent = member[static_cast<std::size_t>(above)];
    node.up = cables.link(vertices[m], above);
    node.down = cables.link(above, vertices[m]);
  }
  return tree;
}

}  // namespace tandem
