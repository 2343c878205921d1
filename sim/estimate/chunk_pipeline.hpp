// The time of chunks that follow each other through the steps of a collective, while the chunks under way share links.
#pragma once

#include "sim/core/units.hpp"
#include "sim/estimate/step_network.hpp"

namespace tandem {

// Up to the end of the last chunk. Of many chunks only the first are looked at, some tens of thousands of tasks; the
// others follow at the pace of the middle ones of those.
[[nodiscard]] Seconds pipeline_time(const PipelinedCollective& collective);

}  // namespace tandem
