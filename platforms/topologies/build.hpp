// What the topology plug-ins share: the parameter every one of them takes, limits on sizes, the choice of sizes that
// were left out, the hash behind equal-cost path choices, and what those read from a file have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/core/random.hpp"

namespace tandem {

// Both directions counted. Links are stored one by one (40 bytes each); this is about 2.7 GB.
inline constexpr std::int64_t kMostLinks = 67'108'864;

// "planes=P": P parallel NICs and fabrics a device. The last parameter of every topology.
[[nodiscard]] ParameterSpec planes_parameter();
[[nodiscard]] int planes_of(const Arguments& arguments);

// The product of `sizes`, kept from overflowing: anything above kMostLinks comes out as kMostLinks + 1.
[[nodiscard]] std::int64_t capped_product(const std::vector<int>& sizes);

// Usage errors for an instance that is too large to hold. `cables` counts bundles, not planes.
void check_size(const std::string& instance, std::int64_t devices, std::int64_t cables);

// The `dimensions` sizes, ascending, each at most `most`, with the smallest product that is at least `count` and
// the largest size at most twice the smallest; among equal products the smallest sum, so 64 in 3 dimensions is
// {4,4,4} and 128 is {4,4,8}. Empty where no such sizes exist.
[[nodiscard]] std::vector<int> cube_like(std::int64_t count, int dimensions, int most);

// "4x4x2": the way lists are written inside one parameter value.
[[nodiscard]] std::string joined(const std::vector<int>& sizes);

// A file in memory. Input errors: no such file, not a regular one, more than `most` bytes. They do not name the file.
[[nodiscard]] std::string file_contents(const std::string& path, std::uintmax_t most);

// For topologies whose file states the rates: others that are asked for would change nothing, so they are refused
// rather than ignored.
void refuse_other_rates(std::string_view topology, const Topology::PluginContext& context);

[[nodiscard]] constexpr std::uint64_t flow_hash(DeviceId src, DeviceId dst, FlowHash flow) {
  const auto pair =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(src.value)) << 32) | static_cast<std::uint32_t>(dst.value);
  return mix(mix(pair) ^ flow);
}

}  // namespace tandem
