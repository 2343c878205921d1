// What a network is measured with: walks, breadth-first search, link loads and exact cuts. None of it knows how any
// topology is built.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platforms/network.hpp"

namespace tandem::testing {

// "" where `path` leads from src to dst over consecutive links and takes none twice; otherwise what is wrong.
[[nodiscard]] std::string walk_fault(const Network& network, DeviceId src, DeviceId dst,
                                     const std::vector<LinkId>& path);

// Links from `source` to every vertex, -1 where there is no way.
[[nodiscard]] std::vector<int> distances(const Network& network, int source);

struct Counts {
  std::int64_t links = 0;         // cables, all planes
  std::int64_t switches = 0;      // all planes
  std::int64_t device_ports = 0;  // all planes
  std::int64_t switch_ports = 0;
  std::int64_t max_switch_radix = 0;
  int diameter = 0;
  double mean_path = 0;
  bool connected = true;
};
[[nodiscard]] Counts measure(const Network& network, int planes);

// Cables that any split of the devices into equal halves must cut: uniform all-to-all traffic, split evenly over all
// shortest paths, moves floor(N/2) * ceil(N/2) pairs each way through links that carry at most `maxload` of them.
[[nodiscard]] double bisection_lower_bound(const Network& network);

// The largest and smallest load of a link under uniform all-to-all traffic as the network routes it.
struct LoadRange {
  double least = 0;
  double most = 0;
};
[[nodiscard]] LoadRange routed_loads(const Network& network);

// Cables of a smallest cut between the devices marked true and the others, switches placed freely (max-flow).
[[nodiscard]] std::int64_t min_cut(const Network& network, const std::vector<bool>& side);
// The same between two devices: the number of cable-disjoint paths.
[[nodiscard]] std::int64_t max_flow(const Network& network, DeviceId src, DeviceId dst);

// The smallest min_cut over splits of the address space: the first half of the devices in lexicographic order of a
// box of digits, for every order of the digits and every size of the box (the whole space also with the digits below
// the first counted downwards).
[[nodiscard]] std::int64_t bisection_upper_bound(const Network& network);

}  // namespace tandem::testing
