// Files that `tandem topology` writes of one network, as their content.
#pragma once

#include <string>

#include "platforms/cluster.hpp"

namespace tandem {

// One line a cable of the fabric: its ends, the ports it is plugged into, its plane and its length class.
[[nodiscard]] std::string cables_csv(const Cluster& cluster);

// A picture of the topology (SVG, in itself complete): switches in layers above the devices; without switches a grid
// of the address, or a circle. Usage error for more than a few hundred vertices.
[[nodiscard]] std::string drawing(const Topology& topology);

// A platform file of SimGrid (DTD version 4.1) with all routes of flow 0. Usage error for more devices than a full
// table of routes is good for.
[[nodiscard]] std::string platform_xml(const Cluster& cluster);

}  // namespace tandem
