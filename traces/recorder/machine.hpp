// What this machine calls itself.
#pragma once

#include <string>

#include "sim/core/units.hpp"

namespace tandem {

struct Machine {
  std::string processor = "unknown";
  double clock_hz = 0;  // 0: unknown
};

[[nodiscard]] Machine this_machine();
[[nodiscard]] Bytes available_memory();  // what the kernel expects to hand out without swapping; 0 where unknown
[[nodiscard]] std::string today();       // ISO 8601, UTC

}  // namespace tandem
