// Where each rank's time went, by definition and not by remainder. For each rank and instant, in this order:
//   compute       its compute stream is busy;
//   exposed_comm  its next operation waits for an active transfer;
//   bubble        its next operation waits for an upstream or downstream stage's compute;
//   input         its next operation waits for input data;
//   idle          it waits for another rank's readiness (skew), for a server, or for the end of the run.
// "Waits for" follows unfinished dependencies, the operations ahead of them on their streams and the completions that
// emitted them, as far back as the instant. A rank that has nothing left to start, but whose own transfers are still
// under way, is in exposed_comm until they end. An instant that fits none is an internal error.
#pragma once

#include <vector>

#include "sim/engine/history.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

// One Breakdown a rank, over [history.start, history.end].
[[nodiscard]] std::vector<Breakdown> break_down(const History& history);

}  // namespace tandem
