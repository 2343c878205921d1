// What happened to every operation of a job: the executor's own records, read by the breakdown and the reports.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/ir/op.hpp"

namespace tandem {

struct Interval {
  double begin = 0;
  double end = 0;
};

enum class OpStatus : std::uint8_t { waiting, ready, running, done, cancelled };

// An operation on one rank.
struct OpOnRank {
  double start = 0;
  double end = 0;
  std::int32_t missing = 0;      // arrivals still needed before it may start
  OpId stream_predecessor = -1;  // what its stream ran just before
  OpStatus status = OpStatus::waiting;
};

struct OpRecord {
  Op op;
  std::vector<OpOnRank> on;      // one a rank of op.ranks
  std::vector<Interval> active;  // times with at least one transfer of the operation under way, in order
  OpId cause = -1;               // the completion whose on_done emitted it ...
  Rank cause_rank;
  bool caused_by_event = false;  // ... or an event
  double emitted = 0;
};

struct History {
  int ranks = 0;
  double start = 0;  // the job's start date
  double end = 0;    // last completion, or stop of something that ran
  std::vector<StreamSpec> streams;
  std::vector<OpRecord> ops;
};

}  // namespace tandem
