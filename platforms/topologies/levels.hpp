// Choice of n and k where a recursive topology leaves them out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/core/registry.hpp"

namespace tandem {

inline constexpr int kMostRecursion = 21;  // 2^22 devices where every level doubles them

struct Levels {
  int n = 0;  // devices of the smallest unit: ports of its switch
  int k = 0;  // levels above it
};

struct LevelRules {
  std::string topology;
  int least_n = 2;
  int step = 1;  // between legal n
  // Devices of (n,k); anything above kMostDevices may come out as kMostDevices + 1.
  std::function<std::int64_t(int n, int k)> devices;
};

// The parameters "n" and "k" as given. What is left out: the fewest levels with which the given n holds the devices, or
// the least n with the given k; of both, the instance with the fewest devices among one to three levels of switches
// with at most 64 ports (fewest levels among equals). At least one level, for without any there is only a switch.
[[nodiscard]] Levels levels_of(const Arguments& arguments, std::int64_t devices, const LevelRules& rules);

}  // namespace tandem
