// Placement: which device of a cluster each rank runs on. One of the plug-in kinds; policies are pure functions.
#pragma once

#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/core/registry.hpp"

namespace tandem {

class PlacementPolicy {
 public:
  static constexpr const char* plugin_kind = "placement";
  static constexpr const char* plugin_help = "which device each rank runs on";
  struct PluginContext {};

  virtual ~PlacementPolicy() = default;

  // Element r is the device of rank r: `ranks` different devices of the cluster, which has at least that many.
  [[nodiscard]] virtual std::vector<DeviceId> place(const Cluster& cluster, int ranks) const = 0;
};

// Places `ranks` ranks as "name:key=value,..." says. Usage errors for unknown names and for more ranks than devices;
// input errors, with the line, for what a file says.
[[nodiscard]] std::vector<DeviceId> place(const std::string& text, const Cluster& cluster, int ranks);

}  // namespace tandem
