// What a network costs per device: counts of a topology's parts times prices.
#pragma once

#include "platforms/topology.hpp"

namespace tandem {

// US dollars. Assumptions, not quotations: switch and cable level of the HammingMesh paper (Hoefler et al., SC'22: a
// 64-port switch $14,280, a copper cable $272, an optical one $603), the others this project's own guesses.
struct Prices {
  double switch_port = 223;
  double node_switch_port = 110;  // of a switch inside a node (NVSwitch)
  double device_port = 150;
  double board_link = 30;
  double copper_cable = 272;
  double optical_cable = 603;
};

// Of the topology's end points (NICs, where nodes hold several devices).
[[nodiscard]] double cost_per_device(const Topology& topology, const Prices& prices);

}  // namespace tandem
