// Short ways to write programs and to read dates off a run, for tests.
//
// Numbers in these tests are chosen for arithmetic by hand: the star below has links of 100 B/s and 0.5 s, so that a
// route (two links) has a latency of 1 s and a transfer of 100 B alone takes 1 + 1 = 2 s.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/engine/simulate.hpp"

namespace tandem {

inline std::unique_ptr<Topology> slow_star(int devices) {
  return star(devices, 100, 0.5);
}

inline Op compute_op(std::string name, RankSet ranks, double duration, StreamId stream) {
  Op op;
  op.kind = Op::Kind::compute;
  op.name = std::move(name);
  op.ranks = std::move(ranks);
  op.duration = Seconds(duration);
  op.stream = stream;
  return op;
}

inline Op delay_op(std::string name, RankSet ranks, double duration, StreamId stream,
                   Op::DelayKind kind = Op::DelayKind::idle) {
  auto op = compute_op(std::move(name), std::move(ranks), duration, stream);
  op.kind = Op::Kind::delay;
  op.delay_kind = kind;
  return op;
}

inline Op transfer_op(std::string name, RankSet senders, RankMap receiver, std::int64_t bytes, StreamId stream) {
  Op op;
  op.kind = Op::Kind::transfer;
  op.name = std::move(name);
  op.ranks = std::move(senders);
  op.peer = std::move(receiver);
  op.bytes = Bytes(bytes);
  op.stream = stream;
  return op;
}

inline Op all_reduce_op(std::string name, RankSet ranks, std::int64_t bytes, StreamId stream,
                        const std::string& algorithm = "ring") {
  Op op;
  op.kind = Op::Kind::collective;
  op.name = std::move(name);
  GroupShape shape;
  shape.workers = ranks.size();
  op.pieces.push_back({Registry<CollectiveAlgorithm>::instance().make(algorithm)->all_reduce(shape, Bytes(bytes)), 0});
  op.ranks = std::move(ranks);
  op.stream = stream;
  return op;
}

inline Op after(Op op, std::vector<Dependency> dependencies, int needed = -1) {
  op.waits_for = std::move(dependencies);
  op.needed = needed;
  return op;
}

inline Op notifying(Op op) {
  op.notify = true;
  return op;
}

inline Op in_group(Op op, CancelGroup group) {
  op.cancel_group = group;
  return op;
}

inline Op with_priority(Op op, int priority) {
  op.priority = priority;
  return op;
}

inline RankSet only(int rank) {
  return RankSet::one(Rank{rank});
}
inline RankMap from(int rank) {
  return RankMap::fixed(Rank{rank});
}

// A program made of functions, for those that are used once.
class ScriptedProgram : public Program {
 public:
  ScriptedProgram(int ranks, std::vector<StreamSpec> streams) : ranks_(ranks), streams_(std::move(streams)) {}
  std::function<void(Emit&)> at_start = [](Emit&) {};
  std::function<void(OpId, Rank, Emit&)> when_done = [](OpId, Rank, Emit&) {};
  std::function<void(const Event&, Emit&)> at_event = [](const Event&, Emit&) {};

  [[nodiscard]] int ranks() const override { return ranks_; }
  [[nodiscard]] std::vector<StreamSpec> streams() const override { return streams_; }
  void start(Emit& emit) override { at_start(emit); }
  void on_done(OpId op, Rank rank, Seconds, Emit& emit) override { when_done(op, rank, emit); }
  void on_event(const Event& event, Emit& emit) override { at_event(event, emit); }

 private:
  int ranks_;
  std::vector<StreamSpec> streams_;
};

inline RunResult run_one(Program& program, const Network& network, const ExecutorOptions& options = {},
                         std::vector<Event> events = {}, RunOptions run_options = {}) {
  run_options.keep_spans = true;
  return run({{&program, in_order(program.ranks()), Seconds(0), options, std::move(events)}}, network, run_options);
}

// Start and end of the operation of that name on that rank, from the job's start; a failure where it did not run.
inline std::pair<double, double> dates(const JobResult& job, const std::string& name, int rank) {
  for (const auto& span : job.spans) {
    if (span.rank.value == rank && job.ops[static_cast<std::size_t>(span.op)].name == name) {
      return {span.start.count(), span.end.count()};
    }
  }
  ADD_FAILURE() << "'" << name << "' was not done on rank " << rank;
  return {-1, -1};
}

inline bool was_done(const JobResult& job, const std::string& name, int rank) {
  for (const auto& span : job.spans) {
    if (span.rank.value == rank && job.ops[static_cast<std::size_t>(span.op)].name == name) return true;
  }
  return false;
}

inline void expect_dates(const JobResult& job, const std::string& name, int rank, double start, double end) {
  const auto [from_date, to_date] = dates(job, name, rank);
  EXPECT_NEAR(from_date, start, 1e-9) << "start of '" << name << "' on rank " << rank;
  EXPECT_NEAR(to_date, end, 1e-9) << "end of '" << name << "' on rank " << rank;
}

inline void expect_parts_fill_the_makespan(const JobResult& job) {
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    EXPECT_NEAR(job.ranks[r].total().count(), job.makespan.count(), 1e-12 * job.makespan.count()) << "rank " << r;
  }
}

// The kind and text of the error that the body ends with.
inline std::pair<ErrorKind, std::string> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::usage, ""};
}

}  // namespace tandem
