// Breadth-first search over a network: shortest paths where no formula is known.
#pragma once

#include <functional>
#include <vector>

#include "platforms/network.hpp"

namespace tandem {

// The links that leave each vertex, or those that enter it, in compressed form.
class Adjacency {
 public:
  enum class Of { leaving, entering };
  // Of the links that `keep` keeps; all where it is empty.
  explicit Adjacency(const Network& network, const std::function<bool(LinkId)>& keep = {}, Of of = Of::leaving);

  // Calls visit(link id, vertex at its other end) for every link of `vertex`, in order of link ids.
  template <class Visit>
  void for_each(int vertex, Visit&& visit) const {
    const auto at = static_cast<std::size_t>(vertex);
    for (auto i = offsets_[at]; i < offsets_[at + 1]; ++i) visit(links_[i], to_[i]);
  }
  [[nodiscard]] int vertices() const { return static_cast<int>(offsets_.size()) - 1; }

  // Links from `source` to every vertex (to it from every vertex, of entering links), -1 where there is no way.
  [[nodiscard]] std::vector<int> distances(int source) const;

 private:
  std::vector<std::size_t> offsets_;
  std::vector<LinkId> links_;
  std::vector<int> to_;
};

struct PathStatistics {
  int diameter = 0;      // of the sources searched: a lower bound where those are not all
  double mean_path = 0;  // over ordered pairs of a source and another device
  int sources = 0;       // searched
};

// From every device, or where there are more than `most_sources` from that many spread evenly over their numbers.
[[nodiscard]] PathStatistics search_paths(const Network& network, int most_sources = 1024);

}  // namespace tandem
