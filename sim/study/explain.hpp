// Why an iteration takes as long as it does, and what would make it shorter.
#pragma once

#include "sim/study/setup.hpp"

namespace tandem {

// Re-runs the same program at twice the link bandwidth, half the latency and twice the device speed.
[[nodiscard]] Explanation explain(const RunConfig& config, const Setup& setup, const RunResult& result,
                                  const Record& row);

}  // namespace tandem
