// The breakdown against timelines drawn by hand, and on random programs. One column of a drawing is one second.
//
//   F, B, U  compute (forward, backward, update)     =  a transfer or collective under way     .  waiting
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <algorithm>
#include <map>

#include "sim/core/random.hpp"
#include "tests/engine/programs.hpp"

namespace tandem {
namespace {

using Role = StreamSpec::Role;
using Discipline = StreamSpec::Discipline;

enum : StreamId { kCompute, kComm, kCopy, kServer, kPriority };
const std::vector<StreamSpec> kStreams{{"compute", Role::compute, Discipline::in_order},
                                       {"comm", Role::communication, Discipline::in_order},
                                       {"copy", Role::copy, Discipline::by_arrival},
                                       {"server", Role::server, Discipline::by_arrival},
                                       {"priority", Role::communication, Discipline::by_priority}};

struct Parts {
  double compute = 0, exposed_comm = 0, bubble = 0, idle = 0, input = 0;
};

void expect_parts(const JobResult& job, int rank, const Parts& expected) {
  const auto& parts = job.ranks[static_cast<std::size_t>(rank)];
  EXPECT_NEAR(parts.compute.count(), expected.compute, 1e-9) << "rank " << rank;
  EXPECT_NEAR(parts.exposed_comm.count(), expected.exposed_comm, 1e-9) << "rank " << rank;
  EXPECT_NEAR(parts.bubble.count(), expected.bubble, 1e-9) << "rank " << rank;
  EXPECT_NEAR(parts.idle.count(), expected.idle, 1e-9) << "rank " << rank;
  EXPECT_NEAR(parts.input.count(), expected.input, 1e-9) << "rank " << rank;
  EXPECT_NEAR(parts.total().count(), job.makespan.count(), 1e-12 * job.makespan.count()) << "rank " << rank;
}

const auto kBoth = RankSet::range(0, 2);
const auto kSame = RankMap::same();

TEST(Breakdown, AFastRankIsIdleUntilTheSlowOneIsReady) {
  // Rank 1 takes twice as long. Ring of two, 200 B: 2 steps of 1 s latency and 1 s flow.
  //
  //           0  1  2  3  4  5  6  7  8  9 10 11 12
  //   rank 0  F  B  B  .  .  .  =  =  =  =  U  .        the last second waits for the end of the run
  //   rank 1  F  F  B  B  B  B  =  =  =  =  U  U
  //
  //   rank 0: compute 4, idle (skew) 3 + 1, exposed 4;  rank 1: compute 8, exposed 4
  std::vector<Op> ops{compute_op("F", kBoth, 1, kCompute), compute_op("B", kBoth, 2, kCompute),
                      after(all_reduce_op("all-reduce", kBoth, 200, kComm), {{1, kSame}}),
                      after(compute_op("U", kBoth, 1, kCompute), {{2, kSame}})};
  StaticProgram program(2, kStreams, ops);
  ExecutorOptions options;
  options.compute_slowdown = {1, 2};
  const auto job = run_one(program, *slow_star(2), options).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 12, 1e-9);
  expect_parts(job, 0, {.compute = 4, .exposed_comm = 4, .idle = 4});
  expect_parts(job, 1, {.compute = 8, .exposed_comm = 4});
  EXPECT_NEAR(job.ops[2].active.count(), 4, 1e-9);
}

TEST(Breakdown, OnlyTheTailOfOverlappedBucketsIsExposed) {
  // Bucket 1 (200 B, 4 s) is reduced under B2; bucket 2 (100 B, 2 x 1.5 s) follows on the same stream.
  //
  //            0  1  2  3  4  5  6  7  8  9
  //   compute  B1 B1 B2 B2 B2 .  .  .  .  U
  //   comm           =1 =1 =1 =1 =2 =2 =2
  //
  //   compute 6, exposed 4 of 7
  std::vector<Op> ops{
      compute_op("B1", kBoth, 2, kCompute), after(all_reduce_op("bucket 1", kBoth, 200, kComm), {{0, kSame}}),
      compute_op("B2", kBoth, 3, kCompute), after(all_reduce_op("bucket 2", kBoth, 100, kComm), {{2, kSame}}),
      after(compute_op("U", kBoth, 1, kCompute), {{1, kSame}, {3, kSame}})};
  StaticProgram program(2, kStreams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 10, 1e-9);
  for (int r = 0; r < 2; ++r) expect_parts(job, r, {.compute = 6, .exposed_comm = 4});
  // With 5 s more of backward, nothing is exposed but bucket 2.
  ops[2].duration = Seconds(8);
  StaticProgram hidden(2, kStreams, ops);
  const auto covered = run_one(hidden, *slow_star(2)).jobs[0];
  for (int r = 0; r < 2; ++r) expect_parts(covered, r, {.compute = 11, .exposed_comm = 3});
}

TEST(Breakdown, StagesOfAPipelineWaitInBubblesAndForTransfers) {
  // Two stages, two micro-batches; activations and gradients of 100 B take 2 s, one at a time a rank.
  //
  //            0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18
  //   stage 0  F1 F1 F2 F2 .  .  .  .  .  .  .  .  .  B1 B1 B1 B2 B2 B2
  //   0 -> 1         =1 =1 =2 =2
  //   stage 1  .  .  .  .  F1 F1 F2 F2 B1 B1 B1 B2 B2 B2 .  .  .  .  .
  //   1 -> 0                                    =1 =1    =2 =2
  //
  //   stage 0: compute 10; its B1 waits for =1 (11-13), before that for B1 and F2 of stage 1 (6-11), before that for
  //     activation 2, which is under way (4-6): exposed 4, bubble 5.
  //   stage 1: F1 waits for F1 of stage 0 (0-2, bubble) and activation 1 (2-4); compute 10; from 14 on gradient 2 is
  //     its own transfer (exposed 2), then the run ends elsewhere (idle 3).
  std::vector<Op> ops{
      compute_op("F1 of 0", only(0), 2, kCompute),                                     // 0
      compute_op("F2 of 0", only(0), 2, kCompute),                                     // 1
      after(transfer_op("activation 1", only(0), from(1), 100, kComm), {{0, kSame}}),  // 2
      after(transfer_op("activation 2", only(0), from(1), 100, kComm), {{1, kSame}}),  // 3
      after(compute_op("F1 of 1", only(1), 2, kCompute), {{2, from(0)}}),              // 4
      after(compute_op("F2 of 1", only(1), 2, kCompute), {{3, from(0)}}),              // 5
      compute_op("B1 of 1", only(1), 3, kCompute),                                     // 6
      compute_op("B2 of 1", only(1), 3, kCompute),                                     // 7
      after(transfer_op("gradient 1", only(1), from(0), 100, kComm), {{6, kSame}}),    // 8
      after(transfer_op("gradient 2", only(1), from(0), 100, kComm), {{7, kSame}}),    // 9
      after(compute_op("B1 of 0", only(0), 3, kCompute), {{8, RankMap::shift(1)}}),    // 10
      after(compute_op("B2 of 0", only(0), 3, kCompute), {{9, RankMap::shift(1)}}),    // 11
  };
  StaticProgram program(2, kStreams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 19, 1e-9);
  expect_parts(job, 0, {.compute = 10, .exposed_comm = 4, .bubble = 5});
  expect_parts(job, 1, {.compute = 10, .exposed_comm = 4, .bubble = 2, .idle = 3});
}

TEST(Breakdown, InputIsWhatTheFirstStageAndAllBehindItWaitFor) {
  //            0  1  2  3  4  5  6  7
  //   loader   i  i  i
  //   stage 0  .  .  .  F  F  .  .  .        exposed 2 (its own send), then idle 1
  //   0 -> 1                  =  =
  //   stage 1  .  .  .  .  .  .  .  F        input 3, bubble 2, exposed 2
  std::vector<Op> ops{delay_op("load", only(0), 3, kCopy, Op::DelayKind::input),
                      after(compute_op("F", only(0), 2, kCompute), {{0, kSame}}),
                      after(transfer_op("activation", only(0), from(1), 100, kComm), {{1, kSame}}),
                      after(compute_op("F", only(1), 1, kCompute), {{2, from(0)}})};
  StaticProgram program(2, kStreams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 8, 1e-9);
  expect_parts(job, 0, {.compute = 2, .exposed_comm = 2, .idle = 1, .input = 3});
  expect_parts(job, 1, {.compute = 1, .exposed_comm = 2, .bubble = 2, .input = 3});
}

TEST(Breakdown, WaitingForAServerIsIdle) {
  //             0  1  2  3  4  5  6  7  8
  //   worker    F  =  =  .  .  .  =  =  F     compute 2, exposed 4, idle 3 (the server's update)
  //   server    .  =  =  U  U  U  =  =  .
  std::vector<Op> ops{compute_op("F", only(0), 1, kCompute),
                      after(transfer_op("push", only(0), from(1), 100, kComm), {{0, kSame}}),
                      after(compute_op("U", only(1), 3, kServer), {{1, from(0)}}),
                      after(transfer_op("reply", only(1), from(0), 100, kComm), {{2, kSame}}),
                      after(compute_op("F", only(0), 1, kCompute), {{3, from(1)}})};
  StaticProgram program(2, kStreams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 9, 1e-9);
  expect_parts(job, 0, {.compute = 2, .exposed_comm = 4, .idle = 3});
  // The server waits for a worker's compute (0-1) as a stage would, and at the end for the worker's last F.
  expect_parts(job, 1, {.compute = 3, .exposed_comm = 4, .bubble = 1, .idle = 1});
}

TEST(Breakdown, AJobThatStartsLateCountsFromItsStart) {
  StaticProgram program(1, kStreams, {compute_op("F", only(0), 2, kCompute)});
  const auto job = run({{&program, in_order(1), Seconds(5), {}, {}}}, *slow_star(2), {}).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 2, 1e-9);
  expect_parts(job, 0, {.compute = 2});
}

// -------------------------------------------------------------------------------- random programs

// Operations in one global order with dependencies on earlier ones only; collectives on an in-order stream, so that
// all ranks enter them in that order: such a program always completes.
struct RandomProgram {
  int ranks = 2;
  std::vector<Op> ops;
  ExecutorOptions options;
};

RankSet random_ranks(Random& random, int ranks) {
  std::vector<Rank> chosen;
  for (int r = 0; r < ranks; ++r) {
    if (random.below(2) == 0) chosen.push_back(Rank{r});
  }
  if (chosen.empty())
    chosen.push_back(Rank{static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(ranks)))});
  if (random.below(2) == 0) random.shuffle(chosen);
  return RankSet::list(chosen);
}

double random_duration(Random& random) {
  return random.below(5) == 0 ? 0 : random.uniform() * 4;
}

Op random_op(Random& random, int ranks, int index) {
  const auto name = fmt::format("op {}", index);
  auto members = random_ranks(random, ranks);
  const auto receiver = from(static_cast<int>(random.below(static_cast<std::uint32_t>(ranks))));
  const auto bytes = random.below(5) == 0 ? 0 : static_cast<std::int64_t>(random.below(400));
  switch (random.below(6)) {
    case 0:
    case 1:
      return compute_op(name, members, random_duration(random), random.below(4) == 0 ? kServer : kCompute);
    case 2:
      return delay_op(name, members, random_duration(random), kCopy,
                      random.below(2) == 0 ? Op::DelayKind::input : Op::DelayKind::idle);
    case 3: {
      auto op = transfer_op(name, members, receiver, bytes, random.below(2) == 0 ? kCopy : kPriority);
      op.priority = static_cast<std::int32_t>(random.below(3));
      return op;
    }
    case 4:
      return transfer_op(name, members, receiver, bytes, kComm);
    default: {
      const std::vector<std::string> algorithms{"ring", "direct", "halving-doubling"};
      return all_reduce_op(name, members, bytes, kComm, algorithms[random.below(3)]);
    }
  }
}

void add_dependencies(Random& random, Op& op, const std::vector<Op>& earlier) {
  int arrivals = 0;
  for (std::uint32_t d = random.below(4); d > 0 && !earlier.empty(); --d) {
    const auto id = random.below(static_cast<std::uint32_t>(earlier.size()));
    const auto& other = earlier[id].ranks;
    auto map = RankMap::all();
    if (random.below(3) != 0) {
      map = RankMap::fixed(other.at(static_cast<int>(random.below(static_cast<std::uint32_t>(other.size())))));
      bool contained = true;
      for (int i = 0; i < op.ranks.size(); ++i) contained = contained && other.index_of(op.ranks.at(i)) >= 0;
      if (contained && random.below(2) == 0) map = RankMap::same();
    }
    arrivals += map.kind == RankMap::Kind::all ? other.size() : 1;
    op.waits_for.push_back({static_cast<OpId>(id), map});
  }
  if (arrivals > 0 && random.below(4) == 0) {
    op.needed = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(arrivals + 1)));
  }
}

RandomProgram random_program(std::uint64_t seed) {
  Random random(seed);
  RandomProgram made;
  made.ranks = 2 + static_cast<int>(random.below(5));
  const auto count = 1 + random.below(25);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto op = random_op(random, made.ranks, static_cast<int>(i));
    add_dependencies(random, op, made.ops);
    made.ops.push_back(std::move(op));
  }
  if (random.below(2) == 0) {
    made.options.overlap_slowdown = 1.3;
    made.options.reduce_rate = BytesPerSecond(500);
    made.options.copy_rate = BytesPerSecond(1000);
    made.options.step_overhead = Seconds(0.01);
  }
  if (random.below(2) == 0) {
    for (int r = 0; r < made.ranks; ++r) made.options.compute_slowdown.push_back(1 + random.uniform());
  }
  return made;
}

void check_spans_are_serial_and_cover_compute(const RandomProgram& made, const JobResult& job) {
  for (int r = 0; r < made.ranks; ++r) {
    std::map<StreamId, std::vector<std::pair<double, double>>> by_stream;
    std::vector<std::pair<double, double>> computing;
    for (const auto& span : job.spans) {
      if (span.rank.value != r) continue;
      const auto& op = made.ops[static_cast<std::size_t>(span.op)];
      by_stream[op.stream].emplace_back(span.start.count(), span.end.count());
      if (op.kind == Op::Kind::compute) computing.emplace_back(span.start.count(), span.end.count());
    }
    for (auto& [stream, spans] : by_stream) {
      std::sort(spans.begin(), spans.end());
      for (std::size_t i = 1; i < spans.size(); ++i) RC_ASSERT(spans[i].first >= spans[i - 1].second);
    }
    std::sort(computing.begin(), computing.end());
    double covered = 0;
    double reached = 0;
    for (const auto& [begin, end] : computing) {
      covered += std::max(0.0, end - std::max(begin, reached));
      reached = std::max(reached, end);
    }
    RC_ASSERT(std::abs(covered - job.ranks[static_cast<std::size_t>(r)].compute.count()) <= 1e-9);
  }
}

// Nothing starts before what it waits for.
void check_dependencies(const RandomProgram& made, const JobResult& job) {
  std::map<std::pair<int, int>, std::pair<double, double>> at;
  for (const auto& span : job.spans) at[{span.op, span.rank.value}] = {span.start.count(), span.end.count()};
  for (std::size_t id = 0; id < made.ops.size(); ++id) {
    const auto& op = made.ops[id];
    for (int i = 0; i < op.ranks.size(); ++i) {
      const auto rank = op.ranks.at(i);
      std::vector<double> arrivals;
      for (const auto& dependency : op.waits_for) {
        const auto& other = made.ops[static_cast<std::size_t>(dependency.op)].ranks;
        if (dependency.from.kind == RankMap::Kind::all) {
          for (int j = 0; j < other.size(); ++j) arrivals.push_back(at.at({dependency.op, other.at(j).value}).second);
        } else {
          arrivals.push_back(at.at({dependency.op, dependency.from.of(rank).value}).second);
        }
      }
      std::sort(arrivals.begin(), arrivals.end());
      const auto needed = op.needed >= 0 ? static_cast<std::size_t>(op.needed) : arrivals.size();
      const double start = at.at({static_cast<int>(id), rank.value}).first;
      if (needed > 0) RC_ASSERT(start >= arrivals[needed - 1]);
    }
  }
}

RC_GTEST_PROP(RandomPrograms, CompleteAndAccountForEveryInstant, ()) {
  const auto made = random_program(*rc::gen::arbitrary<std::uint64_t>());
  StaticProgram program(made.ranks, kStreams, made.ops);
  const auto job = run_one(program, *slow_star(made.ranks), made.options).jobs[0];
  std::size_t runs = 0;
  for (const auto& op : made.ops) runs += static_cast<std::size_t>(op.ranks.size());
  RC_ASSERT(job.spans.size() == runs);
  for (const auto& parts : job.ranks) {
    RC_ASSERT(std::abs(parts.total().count() - job.makespan.count()) <= 1e-12 * job.makespan.count());
  }
  check_spans_are_serial_and_cover_compute(made, job);
  check_dependencies(made, job);
}

// The same programs, disturbed: groups are cancelled, ranks fail and new work is emitted at random dates. Such a run
// may have no answer, but what it says is never that Tandem is at fault, and where it completes every instant has a
// reason.
RC_GTEST_PROP(RandomPrograms, AreAccountedForUnderCancellationAndFailure, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  auto made = random_program(seed);
  Random random(seed ^ 0x5eed);
  ScriptedProgram program(made.ranks, kStreams);
  for (auto& op : made.ops) {
    op.cancel_group = static_cast<CancelGroup>(random.below(4)) - 1;
    op.notify = random.below(4) == 0;
  }
  const bool cancel_on_done = random.below(2) == 0;
  const auto ticks = 1 + random.below(4);
  std::vector<double> tick_dates;
  for (std::uint32_t t = 0; t < ticks; ++t) tick_dates.push_back(random.uniform() * 20);
  std::vector<Event> events;
  int failed = -1;
  if (random.below(2) == 0) {
    Event failure;
    failure.kind = Event::Kind::rank_failure;
    failed = static_cast<int>(random.below(static_cast<std::uint32_t>(made.ranks)));
    failure.rank = Rank{failed};
    failure.date = Seconds(random.uniform() * 20);
    events.push_back(failure);
  }
  program.at_start = [&](Emit& emit) {
    for (const auto& op : made.ops) emit.emit(op);
    for (std::size_t t = 0; t < tick_dates.size(); ++t) emit.tick(Seconds(tick_dates[t]), static_cast<std::int64_t>(t));
  };
  program.when_done = [&](OpId op, Rank, Emit& emit) {
    if (cancel_on_done) emit.cancel(op % 3);
  };
  program.at_event = [&](const Event& event, Emit& emit) {
    if (event.kind == Event::Kind::rank_failure) {
      for (int group = 0; group < 3; ++group) emit.cancel(group);
      return;
    }
    emit.cancel(static_cast<CancelGroup>(event.tag % 3));
    const int rank = failed == 0 ? 1 : 0;
    emit.emit(compute_op("more", only(rank), 0.5, kCompute));
    emit.emit(transfer_op("more", only(rank), from(rank), 50, kCopy));
  };
  bool completed = true;
  JobResult job;
  try {
    job = run_one(program, *slow_star(made.ranks), made.options, events).jobs[0];
  } catch (const Error& error) {
    completed = false;
    RC_LOG() << error.what() << "\n";
    RC_ASSERT(error.kind() == ErrorKind::model);
  }
  RC_CLASSIFY(completed, "completed");
  if (!completed) return;
  for (const auto& parts : job.ranks) {
    RC_ASSERT(std::abs(parts.total().count() - job.makespan.count()) <= 1e-12 * std::max(1.0, job.makespan.count()));
  }
}

}  // namespace
}  // namespace tandem
