// A network as what is plugged together: one entry a cable, with the ports at its ends. A bundle of several equal
// cables is taken apart, and planes, which share one description, become fabrics of their own.
#pragma once

#include <vector>

#include "platforms/topology.hpp"

namespace tandem {

// Both directions between two vertices: links `there` and `back`, `width` cables.
struct Bundle {
  LinkId there;
  LinkId back;
  int from = 0;
  int to = 0;
  int width = 1;
};

// In the order of links. A link whose opposite is not the next link is a bundle of one direction (`back` is -1).
[[nodiscard]] std::vector<Bundle> bundles_of(const Network& network);

struct Cable {
  LinkId link;    // one direction of its bundle: its ends are the cable's
  int plane = 0;  // of the switches at its ends; a device is in all planes
  std::int64_t from_port = 0;
  std::int64_t to_port = 0;
  LengthClass length = LengthClass::copper;
};

// Ports are numbered from 0 in the order of links; on a device the ports of plane 1 follow those of plane 0, while each
// plane has switches of its own with numbers of their own.
[[nodiscard]] std::vector<Cable> cables_of(const Topology& topology);

[[nodiscard]] const char* to_text(LengthClass length);  // "board", "copper", "optical"

}  // namespace tandem
