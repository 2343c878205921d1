// What a spreadsheet would say of a collective: each step costs its latency plus its bytes over its bandwidth, steps
// are added, and nothing in the network is shared but the ports of the members.
#pragma once

#include <vector>

#include "platforms/network.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

struct AlphaBetaOptions {
  Seconds overhead{};  // of a step, added to the route's latency
  double bandwidth_factor = 1;
  double latency_factor = 1;     // of links only
  BytesPerSecond reduce_rate{};  // at which a receiver adds what it received, message by message; 0: free
  BytesPerSecond copy_rate{};    // the same for what it need not add
  bool shared_inside = false;    // links inside the network are shared too, by the flows that will take them
};

// `devices[m]` is the device of member m; channels take their steps together. A step costs the largest route latency
// plus the overhead, plus the largest load on a link over that link's bandwidth: the first and last link of each route,
// or with `shared_inside` every link; and, where the rates are given, what its busiest receiver then does with its
// bytes.
//
// Steps that repeat are looked at once (sim/ir/folded_schedule.hpp).
//
// With `shared_inside` a step is no barrier, as in the engine: every member has a clock of its own, and a message takes
// as long as the most loaded link of its path needs for the step's load.
//
// Chunks of a channel follow each other: the first one costs all its steps, and each one behind it what holds it up
// most, the steps in which one member sends within one stage, or all bytes of a chunk on one link.
[[nodiscard]] Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                                      const std::vector<DeviceId>& devices, const AlphaBetaOptions& options);

// The same with what each link carries in all; `loads` has links that carry something, in no order.
struct LinkLoad {
  LinkId link;
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
};
struct CollectiveEstimate {
  Seconds time{};
  std::int64_t bytes = 0;  // of all messages, counted once each
  std::vector<LinkLoad> loads;
};
[[nodiscard]] CollectiveEstimate collective_estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                                                     const std::vector<DeviceId>& devices,
                                                     const AlphaBetaOptions& options);

}  // namespace tandem
