// What `tandem topology` prints of one network: its characteristics as one record, and lists.
#pragma once

#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "platforms/random_failures.hpp"
#include "sim/results/record.hpp"
#include "sim/study/cost.hpp"

namespace tandem {

[[nodiscard]] Record characteristics_of(const Cluster& cluster, const Prices& prices);

// Path diversity and bounds of the bisection, of the topology's end points; what is too large to compute is NaN, and a
// line on standard error says so.
[[nodiscard]] Record analysis_of(const Topology& topology);

// "links=5%,switches=2%,seed=1,trials=10". Usage errors.
[[nodiscard]] FailureShares parse_random_failures(const std::string& text);
[[nodiscard]] Record failures_of(const Topology& topology, const FailureShares& shares);

[[nodiscard]] std::vector<Record> link_rows(const Cluster& cluster);
[[nodiscard]] std::vector<Record> address_rows(const Cluster& cluster);
// The links from one device to another ("SRC DST"); with several flows the different paths that they take, numbered,
// and how many of the flows take each.
[[nodiscard]] std::vector<Record> route_rows(const Cluster& cluster, const std::string& ends, int flows);

}  // namespace tandem
