// A device's timeline: what it was busy with at every instant, counted once however many streams were busy, and when
// it was idle.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {

struct Activity {
  std::int64_t start = 0, end = 0;  // any unit
  std::int32_t priority = 0;        // an instant counts for the lowest; among equals for the one that began first
  std::uint32_t account = 0;        // what the time is charged to
};

struct Timeline {
  std::vector<std::int64_t> charged;                        // of each account
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;  // nothing runs, between the first start and the last end
};

[[nodiscard]] Timeline timeline_of(const std::vector<Activity>& activities, std::size_t accounts);

}  // namespace tandem
