// Shortest paths over any network, found when they are asked for: for networks that no address describes.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "platforms/graph_search.hpp"

namespace tandem {

// By links, ties by the sum of latencies; where several are left, each vertex on the way takes one of its next links by
// a hash, as switches with equal-cost paths do. What is kept of a destination that was asked for is its distance from
// every vertex: 12 bytes a vertex, for the latest destinations that fit `most_bytes`. Not for several threads at once.
class ShortestPaths {
 public:
  // The network must stay where it is, and its links as they are.
  explicit ShortestPaths(const Network& network, std::size_t most_bytes = std::size_t{256} << 20);

  // Replaces `path`. The destination must be within reach.
  void find(int src, int dst, std::uint64_t hash, std::vector<LinkId>& path) const;

  // Links from every vertex to `dst`, -1 where there is no way.
  [[nodiscard]] const std::vector<std::int32_t>& hops_to(int dst) const { return towards(dst).hops; }

 private:
  struct Distances {
    std::vector<std::int32_t> hops;
    std::vector<double> latency;  // of the best among the shortest paths
  };
  [[nodiscard]] const Distances& towards(int dst) const;
  [[nodiscard]] Distances search(int dst) const;

  const Network& network_;
  Adjacency outgoing_;
  std::vector<std::size_t> offsets_;  // of incoming_ by vertex
  std::vector<LinkId> incoming_;
  std::size_t most_kept_;
  mutable std::unordered_map<int, Distances> kept_;
  mutable std::deque<int> order_;  // of kept_, oldest first
};

}  // namespace tandem
