// The analytic fidelity's time of a collective: every link is shared by the messages that take it, without flows.
#pragma once

#include <optional>
#include <vector>

#include "platforms/network.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/estimate/step_network.hpp"
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
// A message begins when its sender is through the steps before, takes the route's latency and the overhead, and then
// shares the links of its path. Receivers then work on what they got, where the rates are given. Where all members are
// alike, every member has a clock of its own, and a message takes as long as the most loaded link of its path needs for
// all that the step puts on it. Where members have different roles, or where chunks follow each other through the
// stages of a channel, messages of different steps share links, too (chunk_pipeline.hpp), and members of one role take
// a step together.
[[nodiscard]] CollectiveEstimate collective_estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                                                     const std::vector<DeviceId>& devices,
                                                     const AlphaBetaOptions& options);

// The same as tasks, for collectives that are under way at once and share links: of every member its own, or else of
// members of one role; none where that takes more than `most_tasks`. Loads name the links of the network.
[[nodiscard]] std::optional<PipelinedCollective> collective_steps(const std::vector<CollectivePiece>& pieces,
                                                                  const Network& network,
                                                                  const std::vector<DeviceId>& devices,
                                                                  const AlphaBetaOptions& options, int most_tasks);

}  // namespace tandem
