// The tables behind a prediction: ranks, layers, buckets, links, timeline.
#pragma once

#include "sim/study/setup.hpp"

namespace tandem {

// Details::summary keeps the 20 busiest links, the 20 costliest layers and quantiles over ranks; Details::full keeps
// everything, with a timeline.
[[nodiscard]] std::vector<Table> detail_tables(const RunConfig& config, const Setup& setup, const RunResult& result);

struct BusiestLink {
  std::string name = "none";
  double utilization = 0;  // bytes carried / (simulated bandwidth x length of the run)
  Seconds saturated{};
};
[[nodiscard]] BusiestLink busiest_link(const RunConfig& config, const Setup& setup, const RunResult& result);

}  // namespace tandem
