// Measures of a network for which no closed form is known: cable-disjoint and equally short paths between devices, and
// bounds of its bisection. They take the network as a graph of cables; none of them looks at how it routes.
#pragma once

#include <functional>
#include <string>

#include "platforms/network.hpp"

namespace tandem {

// Called now and then by what takes long: steps done of all.
using AnalysisProgress = std::function<void(std::int64_t done, std::int64_t total)>;

struct PathDiversity {
  std::int64_t least_disjoint = 0;  // cable-disjoint paths between two devices (max-flow)
  double mean_disjoint = 0;
  double least_equal = 0;  // different shortest paths over vertices; parallel cables and planes do not count
  double mean_equal = 0;
  std::int64_t pairs = 0;  // looked at
  bool all_pairs = true;
};

// Over all pairs of devices, or where there are more than `most_pairs` over so many random ones (always the same); a
// device with the fewest cables is among them, because no device has more disjoint paths than cables.
[[nodiscard]] PathDiversity path_diversity(const Network& network, int most_pairs = 64,
                                           const AnalysisProgress& progress = {});

// Uniform all-to-all traffic, one unit an ordered pair of devices, split evenly over all shortest paths (loads as in
// Brandes, J. Math. Sociol. 2001).
struct UniformTraffic {
  double most_load = 0;  // units on one cable, one direction
  // Cables that any split into equal halves must cut: floor(N/2) * ceil(N/2) units have to cross each way, and a cable
  // takes at most most_load of them.
  double bisection_lower = 0;
  double all_to_all = 0;  // what a device sends at most, in rates of a cable: (N - 1) / most_load
};
[[nodiscard]] UniformTraffic uniform_traffic(const Network& network, const AnalysisProgress& progress = {});

struct BisectionSplit {
  std::int64_t cables = 0;  // cut, switches placed freely
  std::string found_by;     // "device numbers", "address digits", "distance", "spectral" (+ ", improved")
  std::vector<bool> side;   // by device
};

// The best equal split of the devices that was found: an upper bound of the bisection. Splits by device number, by
// corners of the address space, by distance and by the second eigenvector (Fiedler 1973) are improved by exchanges
// (Fiduccia and Mattheyses, DAC 1982; switches may move freely), and counted by a smallest cut.
[[nodiscard]] BisectionSplit bisection_upper(const Network& network, const AnalysisProgress& progress = {});

}  // namespace tandem
