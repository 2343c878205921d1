// The fewest cables between two groups of devices: a bisection where no formula is known.
#pragma once

#include <cstdint>
#include <vector>

#include "platforms/network.hpp"

namespace tandem {

// Cables of a smallest cut between the devices marked true and the others, all other vertices placed freely: max-flow
// (Dinic 1970) over cables, those of a bundle counted one by one. At least one device on each side.
[[nodiscard]] std::int64_t min_cut(const Network& network, const std::vector<bool>& side);

}  // namespace tandem
