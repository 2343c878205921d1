// What is left of a network when cables and switches fail at random: the largest connected part, and how much longer
// the ways in it get.
#pragma once

#include "platforms/graph_analysis.hpp"
#include "platforms/topology.hpp"

namespace tandem {

struct FailureShares {
  double links = 0;     // each cable fails with this probability, independently
  double switches = 0;  // each switch, of each plane
  std::uint64_t seed = 1;
  int trials = 10;
};

// Over trials.
struct Spread {
  double mean = 0;
  double deviation = 0;  // of one trial (divided by trials - 1)
};

struct FailureImpact {
  Spread failed_links;
  Spread failed_switches;
  Spread connected_share;   // devices in the largest connected part / all devices
  Spread mean_path;         // links, over the pairs looked at in the largest part
  Spread path_stretch;      // mean of length / length of the healthy network, over the same pairs
  double healthy_path = 0;  // mean over the pairs looked at
  int sources = 0;          // devices from which paths were searched
};

// From at most `most_sources` devices, spread evenly. Every plane is a fabric of its own, joined to the others by
// the devices, which pass messages on. A trial in which no two devices are connected has no paths and does not count
// in mean_path and path_stretch (NaN where there is none at all).
[[nodiscard]] FailureImpact random_failures(const Topology& topology, const FailureShares& shares,
                                            int most_sources = 1024, const AnalysisProgress& progress = {});

}  // namespace tandem
