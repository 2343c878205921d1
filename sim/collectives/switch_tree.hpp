// Switches that take part in a collective themselves: they add what comes up from below (in-network reduction) and hand
// out what comes down (multicast). The tree that a group of devices hangs on.
#pragma once

#include <vector>

#include "platforms/network.hpp"

namespace tandem {

struct SwitchTree {
  struct Node {
    int parent = -1;  // member; the root has none
    int depth = 0;    // cables to the root
    LinkId up;        // towards the parent, and from it
    LinkId down;
  };
  std::vector<int> switches;  // vertices of the network, ascending
  std::vector<Node> nodes;    // by member: the devices in their order, then the switches in theirs
};

// Shortest paths from every device to one switch, passing no other device: the switch whose farthest device is nearest,
// the first one where several are. Parallel cables count as one, of which the first that works is taken. Usage error
// where no switch is reached by all.
[[nodiscard]] SwitchTree switch_tree(const Network& network, const std::vector<DeviceId>& devices);

}  // namespace tandem
