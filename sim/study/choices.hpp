// What `auto` picked, and why, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/collectives/collective.hpp"

namespace tandem {

// "direct 12.3 us, ring 45.0 us; not blueconnect: why"
[[nodiscard]] std::string to_text(const CollectiveChoice& choice);
// [{"algorithm", "estimate_s"} in order of the estimates, then {"algorithm", "refusal"}]
[[nodiscard]] nlohmann::ordered_json to_json_value(const CollectiveChoice& choice);

}  // namespace tandem
