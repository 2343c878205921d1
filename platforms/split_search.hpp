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

// For networks whose devices hang `per_switch` on every switch by one bundle each: the fewest cables between halves of
// the switches that exchanges of two switches reach, each time the best one (Kernighan and Lin, 1970, without their
// sequences of losing exchanges), from a few starts; with an odd number of switches one's devices are split. A split
// that exists, not always the least.
[[nodiscard]] std::int64_t exchanged_split(const Network& network, int per_switch);

}  // namespace tandem
