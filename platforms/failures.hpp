// Parts of a network that have failed for good, and the way round them. A flow keeps its route where that avoids them;
// else it takes the route of another path choice of the topology's own (another ECMP hash) that does; else a shortest
// path through what is left, found by search, as a routing protocol would after it has converged.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platforms/graph_search.hpp"
#include "platforms/network.hpp"

namespace tandem {

// "link:FROM -> TO" (both directions of all cables of the bundle), "link:ID", "switch:NAME" or "rank:R", as given to
// --failure. Names are those that `tandem topology --links` shows; an internal switch ("node 3") is one too.
// Blanks in names do not count.
struct Failure {
  enum class Kind { link, vertex, rank };
  Kind kind = Kind::link;
  std::string name;
};
// Several are separated by commas, each with its kind in front (names may have commas of their own).
[[nodiscard]] std::vector<Failure> parse_failures(const std::string& text);
[[nodiscard]] std::string to_text(const Failure& failure);

class FailedParts {
 public:
  // Both directions of the cable that `link` belongs to.
  void fail_link(const Network& network, LinkId link);
  void fail_vertex(const Network& network, int vertex);

  [[nodiscard]] bool empty() const { return vertices_.empty() && links_.empty(); }
  [[nodiscard]] bool failed(int vertex) const {
    return !vertices_.empty() && vertices_[static_cast<std::size_t>(vertex)] != 0;
  }
  [[nodiscard]] bool failed(LinkId link) const { return !links_.empty() && links_[link.index()] != 0; }
  [[nodiscard]] bool hits(const std::vector<LinkId>& path) const;

  // A shortest path through what is left; the choice among equal ones is hashed. Nothing where there is none.
  [[nodiscard]] std::optional<std::vector<LinkId>> detour(const Network& network, DeviceId src, DeviceId dst,
                                                          FlowHash flow) const;

 private:
  std::vector<char> vertices_;
  std::vector<char> links_;
  [[nodiscard]] const std::vector<int>& distances_to(const Network& network, DeviceId dst) const;

  // Found once they are needed: detours are asked for again in every step of a collective.
  mutable std::unique_ptr<Adjacency> leaving_;
  mutable std::unique_ptr<Adjacency> entering_;
  mutable std::map<DeviceId, std::vector<int>> distances_;  // by destination, from every vertex
};

// The link or vertex that a failure names. Usage error where there is none.
[[nodiscard]] LinkId find_link(const Network& network, const std::string& name);
[[nodiscard]] int find_switch(const Network& network, const std::string& name);

}  // namespace tandem
