// The analytic fidelity's time of a collective: every link is shared by the messages that take it, without flows.
#pragma once

#include <vector>

#include "platforms/network.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

struct LinkLoad {
  LinkId link;
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
};

struct CollectiveEstimate {
  Seconds time{};
  std::int64_t bytes = 0;       // of all messages, counted once each
  std::vector<LinkLoad> loads;  // of links that carry something, in order of links
};

// `devices[m]` is the device of member m. Steps that repeat are looked at once (sim/ir/folded_schedule.hpp).
//
// A step is no barrier: every member has a clock of its own. A message begins when its sender is through the steps
// before, takes the route's latency and the overhead, and then as long as the most loaded link of its path needs for
// all that the step puts on it. Receivers then work on what they got, where the rates are given.
//
// Chunks of a channel follow each other through its stages, as in the engine, and share links with each other
// (chunk_pipeline.hpp); there a step of a chunk is as fast as its slowest message.
[[nodiscard]] CollectiveEstimate collective_estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                                                     const std::vector<DeviceId>& devices,
                                                     const AlphaBetaOptions& options);

}  // namespace tandem
