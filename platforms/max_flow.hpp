// Largest flows and smallest cuts of a network's cables (Dinic 1970): as many units pass a bundle each way as it has
// cables.
#pragma once

#include <cstdint>
#include <vector>

#include "platforms/network.hpp"

namespace tandem {

class MaxFlow {
 public:
  // Besides the cables there may be a super source and a super sink, joined to every device (see between_halves).
  explicit MaxFlow(const Network& network, bool with_halves = false);

  // Cable-disjoint paths from one vertex to another (Menger).
  [[nodiscard]] std::int64_t between(int source, int sink);
  // Cables of a smallest cut between the devices marked true and the others, switches placed freely.
  [[nodiscard]] std::int64_t between_halves(const std::vector<bool>& side);
  // After either: the vertices on the source's side of a smallest cut.
  [[nodiscard]] std::vector<bool> source_side() const;

 private:
  // An arc's opposite is the next one (even) or the one before (odd).
  struct Arc {
    int to;
    std::int64_t capacity;
  };
  void add(int from, int to, std::int64_t there, std::int64_t back);
  void finish();
  std::int64_t run(int source, int sink);
  bool layer(int source, int sink);
  std::int64_t augment(int source, int sink);

  int network_vertices_;
  int devices_;
  std::vector<Arc> arcs_;
  std::vector<int> from_;  // by arc
  std::vector<std::int64_t> capacities_;
  std::size_t first_half_arc_ = 0;
  std::vector<std::size_t> offsets_;  // by vertex into order_
  std::vector<int> order_;            // arcs by the vertex they leave
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace tandem
