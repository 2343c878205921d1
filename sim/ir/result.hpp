// What a run of a Program gives back: plain data, times in simulated seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

// Where a rank's time went; the parts add up to the run's length by definition (sim/engine/breakdown.hpp).
struct Breakdown {
  Seconds compute{};
  Seconds exposed_comm{};
  Seconds bubble{};
  Seconds idle{};
  Seconds input{};
  [[nodiscard]] Seconds total() const { return compute + exposed_comm + bubble + idle + input; }
};

struct LinkUse {
  LinkId link;
  std::int64_t bytes = 0;
  std::int64_t flows = 0;
  Seconds busy{};       // at least one transfer is on the link
  Seconds saturated{};  // the link's whole bandwidth is in use
};

// One operation on one rank, as it happened.
struct Span {
  std::int32_t op = 0;
  Rank rank;
  Seconds start{};
  Seconds end{};
};

// What is worth keeping of an operation for reports.
struct OpSummary {
  std::string name;
  std::int32_t kind = 0;  // Op::Kind
  std::int32_t layer = -1;
  std::int32_t pass = -1;
  std::int32_t bucket = -1;
  std::int32_t iteration = 0;
  std::int64_t bytes = 0;  // payload of a transfer or collective
  Seconds first_start{};
  Seconds last_end{};
  Seconds mean_duration{};  // over ranks, from start to end
  Seconds active{};         // collective, transfer: time with at least one transfer under way
};

// A finished job.
struct JobResult {
  Seconds makespan{};                   // from the job's start to its last operation's end
  std::vector<Seconds> iteration_ends;  // last end of any operation of iteration i, from the job's start
  Seconds communication{};              // at least one transfer of the job is under way
  std::vector<Breakdown> ranks;
  std::vector<OpSummary> ops;
  std::vector<Span> spans;  // only where asked for
};

struct RunResult {
  std::vector<JobResult> jobs;
  std::vector<LinkUse> links;  // links that carried something
  Seconds end{};
  std::int64_t flows = 0;
  std::int64_t bytes_injected = 0;
};

}  // namespace tandem
