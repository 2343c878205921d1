// Prices that a user keeps in a file:
//
//     # US dollars; '#' starts a comment at a line's start or after a blank
//     switch-port = 223
//     node-switch-port = 110
//     nic-port = 150
//     board-link = 30
//     copper-cable = 272
//     optical-cable = 603
//
// Names that are left out keep their assumed price. The files in sim/study/prices are such files, and assumptions.
#pragma once

#include <string>
#include <string_view>

#include "sim/study/cost.hpp"

namespace tandem {

// Input errors with the line ("prices.txt:3: ..."): unknown or repeated names, what is no number or negative.
[[nodiscard]] Prices parse_prices(std::string_view text, const std::string& name);
[[nodiscard]] Prices read_prices(const std::string& path);  // input error where it cannot be read

}  // namespace tandem
