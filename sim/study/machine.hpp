// The cluster that a run needs with its ranks placed on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"

namespace tandem {

struct Machine {
  std::unique_ptr<Cluster> cluster;
  std::vector<DeviceId> placement;  // workers, then dedicated servers
};

// Ranks that have failed are placed like all others and then taken out with their devices, so that the others stay
// where they were. Usage errors.
[[nodiscard]] Machine make_machine(const ClusterOptions& options, const std::string& placement, int servers);

[[nodiscard]] bool has_failures(const ClusterOptions& options);
// The same machine before anything failed.
[[nodiscard]] ClusterOptions without_failures(ClusterOptions options);

}  // namespace tandem
