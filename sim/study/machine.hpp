// The cluster that a run needs with its ranks placed on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/lowering/lower.hpp"

namespace tandem {

struct Machine {
  std::unique_ptr<Cluster> cluster;
  // Workers, then what the algorithm has besides: dedicated servers, or switches by their vertices.
  std::vector<DeviceId> placement;
  CollectiveGroup group;  // all of them, as members
};

// Ranks that have failed are placed like all others and then taken out with their devices, so that the others stay
// where they were. Usage errors.
[[nodiscard]] Machine make_machine(const ClusterOptions& options, const std::string& placement,
                                   const CollectiveAlgorithm& algorithm);

[[nodiscard]] bool has_failures(const ClusterOptions& options);
// The same machine before anything failed.
[[nodiscard]] ClusterOptions without_failures(ClusterOptions options);

}  // namespace tandem
