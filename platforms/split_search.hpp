// Small cuts between halves of a network's devices, found by trying: for topologies whose bisection has no formula.
#pragma once

#include <cstdint>
#include <vector>

#include "platforms/network.hpp"

namespace tandem {

// The fewest cables (widths of bundles) between the first half of the devices of a box of the address space, counted in
// lexicographic order, and the others; over orders of the digits and sizes of the box, as many as a fixed amount of
// work allows (halves along whole digits come first, with the lower digits counted upwards and downwards). Device id =
// sum of digit[l] * product of the radices below l; addresses from network.devices() on do not exist. Only for networks
// whose switches have no cables but to devices: each switch then goes to the side on which it has more.
[[nodiscard]] std::int64_t least_split(const Network& network, const std::vector<int>& radices);

}  // namespace tandem
