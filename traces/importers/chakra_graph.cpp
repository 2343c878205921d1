#include "traces/importers/chakra_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/chakra_file.hpp"

namespace tandem {
namespace {

constexpr std::uint64_t kMostMicros = 1'000'000'000'000;  // twelve days

// Places of nodes by id, sorted: no choice of ids makes it slow.
class Index {
 public:
  explicit Index(const std::vector<ChakraGraphNode>& nodes) {
    entries_.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) entries_.emplace_back(nodes[i].id, static_cast<std::uint32_t>(i));
    std::sort(entries_.begin(), entries_.end());
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != entries_.end()) throw input_error(fmt::format("node {} is given twice", twice->first));
  }
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t id) const {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), std::pair{id, std::uint32_t{0}});
    if (found == entries_.end() || found->first != id) return std::nullopt;
    return found->second;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> entries_;
};

std::vector<std::uint32_t> data_of(const ChakraGraphNode& node, const Index& index) {
  std::vector<std::uint32_t> places;
  places.reserve(node.data.size());
  for (const auto id : node.data) {
    const auto place = index.find(id);
    if (!place) {
      throw input_error(fmt::format("node {}: depends on the data of node {}, which is not in the file", node.id, id));
    }
    places.push_back(*place);
  }
  return places;
}

bool control_is_trusted(const ChakraGraph& graph, const Index& index) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const ChakraGraphNode& node) {
    return std::all_of(node.control.begin(), node.control.end(),
                       [&](std::uint64_t id) { return id != node.id && index.find(id).has_value(); });
  });
}

void order_nodes(ChakraGraph& graph) {
  const auto size = graph.nodes.size();
  std::vector<std::vector<std::uint32_t>> followers(size);
  std::vector<std::size_t> waiting(size, 0);
  for (std::uint32_t i = 0; i < size; ++i) {
    for (const auto* places : {&graph.data[i], &graph.control[i]}) {
      for (const auto place : *places) followers[place].push_back(i);
      waiting[i] += places->size();
    }
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  graph.order.clear();
  while (!ready.empty()) {
    const auto i = ready.back();
    ready.pop_back();
    graph.order.push_back(i);
    for (const auto follower : followers[i]) {
      if (--waiting[follower] == 0) ready.push_back(follower);
    }
  }
  if (graph.order.size() == size) return;
  for (std::size_t i = 0; i < size; ++i) {
    if (waiting[i] > 0) {
      throw input_error(fmt::format("the dependencies of node {} run in a cycle, or behind one", graph.nodes[i].id));
    }
  }
}

}  // namespace

bool ChakraGraphNode::is_communication() const {
  return type == static_cast<int>(ChakraNodeType::collective) || type == static_cast<int>(ChakraNodeType::send) ||
         type == static_cast<int>(ChakraNodeType::receive);
}

void resolve(ChakraGraph& graph) {
  for (const auto& node : graph.nodes) {
    if (node.micros > kMostMicros) {
      throw input_error(
          fmt::format("node {}: a duration of {} us; at most {} is accepted", node.id, node.micros, kMostMicros));
    }
  }
  const Index index(graph.nodes);
  graph.data.clear();
  for (const auto& node : graph.nodes) graph.data.push_back(data_of(node, index));
  graph.control_is_trusted = control_is_trusted(graph, index);
  graph.control.assign(graph.nodes.size(), {});
  for (std::size_t i = 0; graph.control_is_trusted && i < graph.nodes.size(); ++i) {
    for (const auto id : graph.nodes[i].control) graph.control[i].push_back(*index.find(id));
  }
  order_nodes(graph);
}

}  // namespace tandem
