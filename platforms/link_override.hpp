// Links that are not as the topology says: a slow cable, an older switch, a rack at half rate.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/network.hpp"

namespace tandem {

struct LinkOverride {
  std::string pattern;                      // of the link's name or of its kind; '*' and '?' stand for any characters
  std::optional<BytesPerSecond> bandwidth;  // of one cable, one direction
  std::optional<Seconds> latency;
};

// "PATTERN:bandwidth=10Gbps,latency=5us", several joined with commas. Patterns may hold any characters, so that an
// override ends where its last 'bandwidth=' or 'latency=' does. Usage errors show what was read.
[[nodiscard]] std::vector<LinkOverride> parse_link_overrides(std::string_view text);

[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);
// Whether the pattern matches `name`, or where it has no blanks, the name without its blanks: study files split at
// them.
[[nodiscard]] bool reaches(const LinkOverride& override, std::string_view name);
[[nodiscard]] std::string to_text(const LinkOverride& override);

}  // namespace tandem
