// What a run is held against: other ranks, the whole network, the finest level, a closed form.
#pragma once

#include "sim/study/setup.hpp"

namespace tandem {

// A run and its baseline are simulated at one level, the coarser of the two that fit them.
[[nodiscard]] Fidelity level_for(const RunConfig& config, const Setup& setup);

// Samples per second of the baseline.
[[nodiscard]] double baseline_throughput(const RunConfig& config);

// The iteration of all ranks on the whole network.
[[nodiscard]] Seconds healthy_iteration(const RunConfig& config);

// What a spreadsheet says: compute and all-reduces one after the other.
[[nodiscard]] Seconds alpha_beta_iteration(const Setup& setup, const RunConfig& config);

// Of the setup's level. A smaller run is one before anything failed.
[[nodiscard]] FidelityError fidelity_error(const RunConfig& config, const Setup& setup);

}  // namespace tandem
