// Many predictions, each in a process of its own, several at a time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/study/predict.hpp"

namespace tandem {

struct SweepOutcome {
  std::optional<Prediction> prediction;  // or
  std::optional<Error> error;
};

struct SweepWatcher {
  // Called as runs finish, in any order: how many have, which one did, and what came of it.
  std::function<void(std::size_t done, std::size_t index, const SweepOutcome& outcome)> on_done;
  // Called about once a second in between.
  std::function<void(std::size_t done)> on_wait;
};

// Element i is the outcome of configs[i], whatever the order in which they finished. A failed run does not stop the
// others. Starts at most `jobs` runs at a time.
[[nodiscard]] std::vector<SweepOutcome> predict_all(const std::vector<RunConfig>& configs, int jobs,
                                                    const SweepWatcher& watcher);

}  // namespace tandem
