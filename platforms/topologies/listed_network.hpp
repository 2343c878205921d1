// What the topologies have in common that a file lists vertex by vertex and link by link: no formula describes them, so
// that distances and cuts are searched for, and links may differ in rate, also between the two directions of a cable.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platforms/topologies/build.hpp"

namespace tandem {

inline constexpr std::uintmax_t kMostNetworkFileBytes = std::uintmax_t{256} << 20;

class ListedNetwork : public Topology {
 public:
  [[nodiscard]] std::string vertex_name(int vertex) const override { return names_[static_cast<std::size_t>(vertex)]; }
  [[nodiscard]] std::vector<int> radices() const override { return radices_; }
  [[nodiscard]] bool shortest_routing() const override { return shortest_; }

  // A cable is what joins two vertices: the more of either direction where those differ. The bisection is the best of
  // the halves by number and by each digit of the address.
  [[nodiscard]] Characteristics characteristics() const override;
  // How far links reach is not in the file: those at devices are taken for copper, those between switches for optical
  // cables, those inside of a node (intra_node, host) for parts of a board.
  [[nodiscard]] CostItems cost_items() const override;
  [[nodiscard]] std::vector<bool> bisection_split() const override;

 protected:
  ListedNetwork(const PluginContext& context, int planes) : Topology(context, planes) {}

  // Rate and width of one of the file's links, in every plane. Input errors without a place: a rate that is not above
  // 0 and finite, a latency below 0, more links than are accepted.
  LinkId list_link(int from, int to, BytesPerSecond bandwidth, Seconds latency, LinkKind kind, int cables);
  [[nodiscard]] LinkKind kind_between(int from, int to) const;
  // Input error where a device cannot reach another.
  void check_connected() const;

  std::vector<std::string> names_;  // of vertices; unique
  std::vector<int> radices_;
  bool shortest_ = true;
  std::size_t joints_ = SIZE_MAX;  // links from this id on are no cables and add nothing to a path

 private:
  struct Cable {
    int low, high;
    std::int64_t width;
    LinkKind kind;
  };
  [[nodiscard]] std::vector<Cable> cables() const;
  [[nodiscard]] Characteristics measure() const;
  void measure_paths(Characteristics& result) const;
  // Cables of the best split that was found, and its side.
  [[nodiscard]] std::pair<std::int64_t, std::vector<bool>> bisection() const;
  [[nodiscard]] std::int64_t placed_cut(const std::vector<bool>& side) const;

  mutable std::optional<Characteristics> measured_;
};

}  // namespace tandem
