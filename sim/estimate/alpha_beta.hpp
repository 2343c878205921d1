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
  double latency_factor = 1;  // of links only
};

// `pieces`: one a channel, which take their steps together; `devices[m]` is the device of member m. A step costs the
// largest route latency plus the overhead, plus the largest load on the first or last link of its routes over that
// link's bandwidth.
[[nodiscard]] Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                                      const std::vector<DeviceId>& devices, const AlphaBetaOptions& options);

}  // namespace tandem
