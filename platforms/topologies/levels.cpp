#include "platforms/topologies/levels.hpp"

#include <optional>

#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

constexpr int kMostPorts = 64;  // of a switch that nobody asked for
constexpr int kMostLevels = 3;  // of ports that nobody asked for
constexpr int kLargestN = 65536;

// Sizes grow with n, and with k.
std::optional<int> least_n(int k, int most, std::int64_t devices, const LevelRules& rules) {
  for (int n = rules.least_n; n <= most; n += rules.step) {
    const auto size = rules.devices(n, k);
    if (size > kMostDevices) break;
    if (size >= devices) return n;
  }
  return std::nullopt;
}

std::optional<int> least_k(int n, std::int64_t devices, const LevelRules& rules) {
  for (int k = 1; k <= kMostRecursion; ++k) {
    const auto size = rules.devices(n, k);
    if (size > kMostDevices) break;
    if (size >= devices) return k;
  }
  return std::nullopt;
}

std::optional<Levels> smallest(std::int64_t devices, const LevelRules& rules) {
  std::optional<Levels> best;
  for (int k = 1; k <= kMostLevels; ++k) {
    const auto n = least_n(k, kMostPorts, devices, rules);
    if (n && (!best || rules.devices(*n, k) < rules.devices(best->n, best->k))) best = Levels{*n, k};
  }
  return best;
}

Error does_not_fit(const LevelRules& rules, std::int64_t devices, const std::string& with) {
  return usage_error(fmt::format("topology '{}': no size up to {} devices {} holds {} devices", rules.topology,
                                 kMostDevices, with, devices));
}

}  // namespace

Levels levels_of(const Arguments& arguments, std::int64_t devices, const LevelRules& rules) {
  Levels levels;
  if (arguments.has("n")) levels.n = static_cast<int>(arguments.integer("n", rules.least_n, kLargestN));
  if (levels.n % rules.step != 0) {
    throw usage_error(fmt::format("topology '{}': 'n' is {}: it must be even", rules.topology, levels.n));
  }
  if (arguments.has("k")) levels.k = static_cast<int>(arguments.integer("k", 0, kMostRecursion));
  if (arguments.has("n") && arguments.has("k")) return levels;
  if (arguments.has("n")) {
    const auto k = least_k(levels.n, devices, rules);
    if (!k) throw does_not_fit(rules, devices, fmt::format("with n={}", levels.n));
    return {levels.n, *k};
  }
  if (arguments.has("k")) {
    const auto n = least_n(levels.k, kLargestN, devices, rules);
    if (!n) throw does_not_fit(rules, devices, fmt::format("with k={}", levels.k));
    return {*n, levels.k};
  }
  const auto both = smallest(devices, rules);
  if (!both) throw does_not_fit(rules, devices, fmt::format("with switches of {} ports", kMostPorts));
  return *both;
}

}  // namespace tandem
