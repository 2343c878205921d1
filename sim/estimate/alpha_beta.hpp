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
};

// `devices[m]` is the device of member m; channels take their steps together. A step costs the largest route latency
// plus the overhead, plus the largest load on a port over its bandwidth (the first and last link of each route), plus,
// where the rates are given, what its busiest receiver then does with its bytes.
//
// Steps that repeat are looked at once (sim/ir/folded_schedule.hpp).
//
// Chunks of a channel follow each other: the first one costs all its steps, and each one behind it what holds it up
// most, the steps in which one member sends within one stage, or all bytes of a chunk on one port.
[[nodiscard]] Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                                      const std::vector<DeviceId>& devices, const AlphaBetaOptions& options);

}  // namespace tandem
