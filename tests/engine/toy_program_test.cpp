// Programs as later features will write them, every date against a timeline worked out by hand.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "tests/engine/programs.hpp"

namespace tandem {
namespace {

using Role = StreamSpec::Role;
using Discipline = StreamSpec::Discipline;

enum : StreamId { kCompute, kComm, kServer };
const std::vector<StreamSpec> kStreams{{"compute", Role::compute, Discipline::in_order},
                                       {"comm", Role::communication, Discipline::by_arrival},
                                       {"server", Role::server, Discipline::by_arrival}};

Event rank_failure(double date, int rank) {
  Event event;
  event.kind = Event::Kind::rank_failure;
  event.date = Seconds(date);
  event.rank = Rank{rank};
  return event;
}

Event link_bandwidth(double date, LinkId link, double bandwidth) {
  Event event;
  event.kind = Event::Kind::link_bandwidth;
  event.date = Seconds(date);
  event.link = link;
  event.bandwidth = BytesPerSecond(bandwidth);
  return event;
}

// -------------------------------------------------------------------------------- asynchronous parameter server

// Workers 0..n-1 and the server n. A worker computes, pushes, waits for its own update and reply, and goes on; nobody
// waits for anybody else, and the server updates and replies in the order in which pushes arrive.
class AsyncServer : public Program {
 public:
  struct Worker {
    double compute;
    std::int64_t push;
  };
  AsyncServer(std::vector<Worker> workers, double update, int iterations)
      : workers_(std::move(workers)), update_(update), iterations_(iterations) {}

  [[nodiscard]] int ranks() const override { return static_cast<int>(workers_.size()) + 1; }
  [[nodiscard]] std::vector<StreamSpec> streams() const override { return kStreams; }
  void start(Emit& emit) override {
    for (int w = 0; w < server(); ++w) begin(w, 0, emit);
  }
  void on_done(OpId op, Rank, Seconds, Emit& emit) override {
    const auto [worker, iteration] = ends_.at(op);
    if (iteration + 1 < iterations_) begin(worker, iteration + 1, emit);
  }

 private:
  [[nodiscard]] int server() const { return static_cast<int>(workers_.size()); }
  void begin(int w, int iteration, Emit& emit) {
    const auto& worker = workers_[static_cast<std::size_t>(w)];
    const auto name = [&](const char* what) { return fmt::format("{} {}.{}", what, w, iteration); };
    const auto compute = emit.emit(compute_op(name("compute"), only(w), worker.compute, kCompute));
    const auto push = emit.emit(
        after(transfer_op(name("push"), only(w), from(server()), worker.push, kComm), {{compute, RankMap::same()}}));
    const auto update =
        emit.emit(after(compute_op(name("update"), only(server()), update_, kServer), {{push, from(w)}}));
    const auto reply = emit.emit(
        notifying(after(transfer_op(name("reply"), only(server()), from(w), 100, kComm), {{update, RankMap::same()}})));
    ends_[reply] = {w, iteration};
  }

  std::vector<Worker> workers_;
  double update_;
  int iterations_;
  std::map<OpId, std::pair<int, int>> ends_;
};

struct WorkerDates {
  int worker, iteration;
  double computed, pushed, update_began, updated, reply_began, replied;
};

void expect_timeline(const JobResult& job, int server, const std::vector<WorkerDates>& rows) {
  std::map<int, double> begin;  // a worker starts an iteration when the last reply is there
  for (const auto& row : rows) {
    const auto name = [&](const char* what) { return fmt::format("{} {}.{}", what, row.worker, row.iteration); };
    expect_dates(job, name("compute"), row.worker, begin[row.worker], row.computed);
    expect_dates(job, name("push"), row.worker, row.computed, row.pushed);
    expect_dates(job, name("update"), server, row.update_began, row.updated);
    expect_dates(job, name("reply"), server, row.reply_began, row.replied);
    begin[row.worker] = row.replied;
  }
}

TEST(AsyncParameterServer, FirstComeFirstServedWithoutContention) {
  // 100 B each way: a transfer takes 1 s of latency and 1 s of flow. An update takes 3 s, and the server sends one
  // reply at a time. No two flows overlap on the server's port; rows are in order of the server's work:
  //
  //   worker.it  compute  push   arrives  server free  update  reply
  //   0.0        0-3      3-5    5        0            5-8     8-10
  //   1.0        0-5      5-7    7        8            8-11    11-13     waits 1 s for the server
  //   2.0        0-9      9-11   11       11           11-14   14-16
  //   0.1        10-13    13-15  15       14           15-18   18-20
  //   1.1        13-18    18-20  20       18           20-23   23-25
  //   0.2        20-23    23-25  25       23           25-28   28-30
  //   2.1        16-25    25-27  27       28           28-31   31-33     waits 1 s
  //   1.2        25-30    30-32  32       31           32-35   35-37
  //   2.2        33-42    42-44  44       35           44-47   47-49
  AsyncServer program({{3, 100}, {5, 100}, {9, 100}}, 3, 3);
  const auto job = run_one(program, *slow_star(4)).jobs[0];
  expect_timeline(job, 3,
                  {{0, 0, 3, 5, 5, 8, 8, 10},
                   {1, 0, 5, 7, 8, 11, 11, 13},
                   {2, 0, 9, 11, 11, 14, 14, 16},
                   {0, 1, 13, 15, 15, 18, 18, 20},
                   {1, 1, 18, 20, 20, 23, 23, 25},
                   {0, 2, 23, 25, 25, 28, 28, 30},
                   {2, 1, 25, 27, 28, 31, 31, 33},
                   {1, 2, 30, 32, 32, 35, 35, 37},
                   {2, 2, 42, 44, 44, 47, 47, 49}});
  EXPECT_NEAR(job.makespan.count(), 49, 1e-9);
  expect_parts_fill_the_makespan(job);
  // The server computes 9 updates of 3 s.
  EXPECT_NEAR(job.ranks[3].compute.count(), 27, 1e-9);
}

TEST(AsyncParameterServer, PushesShareTheServersPort) {
  // Worker 0 pushes 300 B, the others 100 B; updates of 1 s. Flows begin 1 s after the compute ends.
  // Server's port, 100 B/s, iteration 0 (bytes left: w0, w1, w2):
  //   t=3    w0 alone                        300
  //   t=4    w1 joins: 50 B/s each           200  100
  //   t=5    w2 joins: 33 1/3 B/s each       150   50  100
  //   t=6.5  w1 has arrived; 50 B/s each     100    -   50
  //   t=7.5  w2 has arrived; 100 B/s          50    -    -
  //   t=8    w0 has arrived: emitted first, served last
  // Updates: w1 6.5-7.5, w2 7.5-8.5, w0 8.5-9.5. Replies, one at a time: w1 7.5-9.5, w2 9.5-11.5, w0 11.5-13.5.
  // Iteration 1: w1 computes 9.5-12.5, its flow is alone 13.5-14.5, update 14.5-15.5, reply 15.5-17.5.
  //   w2 computes 11.5-15.5, w0 13.5-15.5: both flows start at 16.5 with 50 B/s; w2 arrives at 18.5, when w0 has
  //   200 B left, which arrive at 20.5. Updates 18.5-19.5 and 20.5-21.5, replies 19.5-21.5 and 21.5-23.5.
  AsyncServer program({{2, 300}, {3, 100}, {4, 100}}, 1, 2);
  const auto job = run_one(program, *slow_star(4)).jobs[0];
  expect_timeline(job, 3,
                  {{1, 0, 3, 6.5, 6.5, 7.5, 7.5, 9.5},
                   {2, 0, 4, 7.5, 7.5, 8.5, 9.5, 11.5},
                   {0, 0, 2, 8, 8.5, 9.5, 11.5, 13.5},
                   {1, 1, 12.5, 14.5, 14.5, 15.5, 15.5, 17.5},
                   {2, 1, 15.5, 18.5, 18.5, 19.5, 19.5, 21.5},
                   {0, 1, 15.5, 20.5, 20.5, 21.5, 21.5, 23.5}});
  EXPECT_NEAR(job.makespan.count(), 23.5, 1e-9);
  expect_parts_fill_the_makespan(job);
}

// -------------------------------------------------------------------------------- backup workers

// Three workers and a server that goes on as soon as two gradients are there; the third is cancelled.
class BackupWorkers : public Program {
 public:
  struct Work {
    double compute[3];
    std::int64_t push[3];
  };
  explicit BackupWorkers(std::vector<Work> iterations) : iterations_(std::move(iterations)) {}
  [[nodiscard]] int ranks() const override { return 4; }
  [[nodiscard]] std::vector<StreamSpec> streams() const override { return kStreams; }
  void start(Emit& emit) override { begin(emit); }
  void on_done(OpId, Rank, Seconds, Emit& emit) override {
    emit.cancel(iteration_);
    if (++iteration_ < static_cast<int>(iterations_.size())) begin(emit);
  }

 private:
  void begin(Emit& emit) {
    const auto& work = iterations_[static_cast<std::size_t>(iteration_)];
    std::vector<Dependency> pushes;
    for (int w = 0; w < 3; ++w) {
      const auto compute = emit.emit(in_group(
          compute_op(fmt::format("compute {}.{}", w, iteration_), only(w), work.compute[w], kCompute), iteration_));
      auto push = transfer_op(fmt::format("push {}.{}", w, iteration_), only(w), from(3), work.push[w], kComm);
      pushes.push_back(
          {emit.emit(in_group(after(std::move(push), {{compute, RankMap::same()}}), iteration_)), from(w)});
    }
    emit.emit(notifying(after(compute_op(fmt::format("update {}", iteration_), only(3), 1, kServer), pushes, 2)));
  }
  std::vector<Work> iterations_;
  int iteration_ = 0;
};

TEST(TwoOfThreeBackupWorkers, TheThirdIsCancelledAndDelaysNobody) {
  // Iteration 0: w0 computes 0-2, flow 3-4; w1 computes 0-3, flow 4-5; two of three: update 5-6. Worker 2 would
  //   compute until 10 and is cancelled at 6.
  // Iteration 1 starts at 6 on all three. w0 and w1 compute 6-8, flows from 9; w2 computes 6-9, flow of 400 B from 10.
  //   9-10: w0 and w1 at 50 B/s, 50 B left each; from 10 three flows at 33 1/3 B/s: both arrive at 11.5.
  //   Update 11.5-12.5. Worker 2 has 400 - 50 - 100 = 250 B left at 12.5, when it is cancelled.
  // Iteration 2 starts at 12.5: w0 and w1 compute until 13.5, flows from 14.5 at 50 B/s (were worker 2's old transfer
  //   still there, it would have 50 B left at 14.5 and take its third of the port): arrive at 16.5, update 16.5-17.5.
  BackupWorkers program({{{2, 3, 10}, {100, 100, 100}}, {{2, 2, 3}, {100, 100, 400}}, {{1, 1, 10}, {100, 100, 100}}});
  const auto network = slow_star(4);
  const auto result = run_one(program, *network);
  const auto& job = result.jobs[0];
  expect_dates(job, "push 0.0", 0, 2, 4);
  expect_dates(job, "push 1.0", 1, 3, 5);
  expect_dates(job, "update 0", 3, 5, 6);
  EXPECT_FALSE(was_done(job, "compute 2.0", 2));
  EXPECT_FALSE(was_done(job, "push 2.0", 2));
  for (int w = 0; w < 3; ++w) EXPECT_NEAR(dates(job, fmt::format("compute {}.1", w), w).first, 6, 1e-9);
  expect_dates(job, "push 0.1", 0, 8, 11.5);
  expect_dates(job, "push 1.1", 1, 8, 11.5);
  expect_dates(job, "update 1", 3, 11.5, 12.5);
  EXPECT_FALSE(was_done(job, "push 2.1", 2));
  expect_dates(job, "compute 0.2", 0, 12.5, 13.5);
  expect_dates(job, "push 0.2", 0, 13.5, 16.5);
  expect_dates(job, "push 1.2", 1, 13.5, 16.5);
  expect_dates(job, "update 2", 3, 16.5, 17.5);
  EXPECT_NEAR(job.makespan.count(), 17.5, 1e-9);
  expect_parts_fill_the_makespan(job);
  // Worker 2 computes 0-6, 6-9 and 12.5-17.5; its cancelled transfer is exposed from 9 to 12.5.
  EXPECT_NEAR(job.ranks[2].compute.count(), 14, 1e-9);
  EXPECT_NEAR(job.ranks[2].exposed_comm.count(), 3.5, 1e-9);
  // The server's incoming link is busy 3-5, 9-12.5 and 14.5-16.5.
  std::vector<LinkId> path;
  network->route(DeviceId{0}, DeviceId{3}, 0, path);
  const auto use = std::find_if(result.links.begin(), result.links.end(),
                                [&](const LinkUse& link) { return link.link == path.back(); });
  ASSERT_NE(use, result.links.end());
  EXPECT_NEAR(use->busy.count(), 2 + 3.5 + 2, 1e-9);
}

TEST(TwoOfThreeBackupWorkers, ThreeThatArriveTogether) {
  // All flows start at 2 and share: all arrive at 5, and the third is neither lost nor harmful.
  BackupWorkers program({{{1, 1, 1}, {100, 100, 100}}, {{1, 1, 1}, {100, 100, 100}}});
  const auto job = run_one(program, *slow_star(4)).jobs[0];
  expect_dates(job, "update 0", 3, 5, 6);
  expect_dates(job, "update 1", 3, 11, 12);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, OfATransferThatEndsAtTheSameDate) {
  // Both transfers end at 3; whichever is seen first cancels the group of the other, whose stream is then free.
  ScriptedProgram program(3, kStreams);
  program.at_start = [](Emit& emit) {
    emit.emit(notifying(in_group(transfer_op("first", only(0), from(2), 100, kComm), 0)));
    emit.emit(notifying(in_group(transfer_op("second", only(1), from(2), 100, kComm), 1)));
    emit.emit(transfer_op("next on 0", only(0), from(2), 100, kComm));
    emit.emit(transfer_op("next on 1", only(1), from(2), 100, kComm));
  };
  program.when_done = [](OpId op, Rank, Emit& emit) { emit.cancel(1 - op); };
  const auto job = run_one(program, *slow_star(3)).jobs[0];
  EXPECT_NE(was_done(job, "first", 0), was_done(job, "second", 1));
  expect_dates(job, "next on 0", 0, 3, 6);
  expect_dates(job, "next on 1", 1, 3, 6);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, OfTheHeadOfAStreamReleasesWhatIsBehindIt) {
  // 'head' waits for 10 s and blocks 'behind' on an in-order stream until it is cancelled at 3.
  ScriptedProgram program(2, kStreams);
  program.at_start = [](Emit& emit) {
    const auto late = emit.emit(delay_op("late", only(1), 10, kComm));
    emit.emit(in_group(after(compute_op("head", only(0), 1, kCompute), {{late, from(1)}}), 7));
    emit.emit(compute_op("behind", only(0), 2, kCompute));
    emit.tick(Seconds(3), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(7); };
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_FALSE(was_done(job, "head", 0));
  expect_dates(job, "behind", 0, 3, 5);
  EXPECT_NEAR(job.makespan.count(), 10, 1e-9);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, OfWhatIsQueuedBehindARunningOperation) {
  // 'head' is cancelled at 3, while 'running' (0-5) still holds the stream; 'behind' has waited for 'running'.
  ScriptedProgram program(2, kStreams);
  program.at_start = [](Emit& emit) {
    const auto late = emit.emit(delay_op("late", only(1), 10, kComm));
    emit.emit(delay_op("running", only(0), 5, kCompute));
    emit.emit(in_group(after(compute_op("head", only(0), 1, kCompute), {{late, from(1)}}), 7));
    emit.emit(compute_op("behind", only(0), 2, kCompute));
    emit.tick(Seconds(3), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(7); };
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  expect_dates(job, "behind", 0, 5, 7);
  EXPECT_NEAR(job.ranks[0].idle.count(), 8, 1e-9);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, OfWhatNeverRanMovesNoEnd) {
  // 'never' lacks a second arrival and is cancelled at 6; the last thing that ran ended at 4.
  ScriptedProgram program(2, kStreams);
  program.at_start = [](Emit& emit) {
    const auto late = emit.emit(delay_op("late", only(1), 4, kComm));
    emit.emit(compute_op("work", only(0), 2, kCompute));
    emit.emit(in_group(after(compute_op("never", only(0), 1, kCompute), {{late, from(1)}}, 2), 7));
    emit.tick(Seconds(6), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(7); };
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 4, 1e-9);
  EXPECT_NEAR(job.ranks[0].idle.count(), 2, 1e-9);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, AfterTheLastCompletionStillCountsInTheMakespan) {
  // Rank 1 computes from 0 and is stopped at 6, after the last completion at 4.
  ScriptedProgram program(2, kStreams);
  program.at_start = [](Emit& emit) {
    emit.emit(compute_op("short", only(0), 4, kCompute));
    emit.emit(in_group(compute_op("long", only(1), 10, kCompute), 0));
    emit.tick(Seconds(6), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(0); };
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  EXPECT_NEAR(job.makespan.count(), 6, 1e-9);
  EXPECT_NEAR(job.ranks[0].idle.count(), 2, 1e-9);
  EXPECT_NEAR(job.ranks[1].compute.count(), 6, 1e-9);
  expect_parts_fill_the_makespan(job);
}

TEST(Cancellation, OfACollectiveFreesItsStreamAndItsLinks) {
  // A ring of three, 300 B: 4 steps of 2 s from 0. Cancelled at 5; the next one runs 5-13 as if alone.
  ScriptedProgram program(3, kStreams);
  program.at_start = [](Emit& emit) {
    emit.emit(in_group(all_reduce_op("first", RankSet::range(0, 3), 300, kComm), 0));
    emit.emit(all_reduce_op("second", RankSet::range(0, 3), 300, kComm));
    emit.tick(Seconds(5), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(0); };
  const auto job = run_one(program, *slow_star(3)).jobs[0];
  for (int r = 0; r < 3; ++r) expect_dates(job, "second", r, 5, 13);
  expect_parts_fill_the_makespan(job);
}

// -------------------------------------------------------------------------------- jobs that share the network

TEST(TwoJobs, ShareOneLink) {
  // Job A (start 0) on devices 0 and 2: computes 0-1, its flow of 500 B to device 2 starts at 2.
  // Job B (start 3) on devices 1 and 2: computes 3-4, its flow of 100 B to device 2 starts at 5.
  // 2-5: A alone, 200 B left. 5-7: 50 B/s each, B arrives at 7. A has 100 B left and arrives at 8.
  const std::vector<StreamSpec> streams = kStreams;
  const auto make = [&](std::int64_t bytes) {
    return StaticProgram(2, streams,
                         {compute_op("compute", only(0), 1, kCompute),
                          after(transfer_op("send", only(0), from(1), bytes, kComm), {{0, RankMap::same()}})});
  };
  auto a = make(500);
  auto b = make(100);
  RunOptions options;
  options.keep_spans = true;
  const auto result =
      run({{&a, {DeviceId{0}, DeviceId{2}}, Seconds(0), {}, {}}, {&b, {DeviceId{1}, DeviceId{2}}, Seconds(3), {}, {}}},
          *slow_star(3), options);
  expect_dates(result.jobs[0], "send", 0, 1, 8);
  EXPECT_NEAR(result.jobs[0].makespan.count(), 8, 1e-9);
  expect_dates(result.jobs[1], "send", 0, 1, 4);  // dates of a job count from its start
  EXPECT_NEAR(result.jobs[1].makespan.count(), 4, 1e-9);
  EXPECT_NEAR(result.end.count(), 8, 1e-9);
  for (const auto& job : result.jobs) expect_parts_fill_the_makespan(job);
}

// -------------------------------------------------------------------------------- priorities

TEST(Priority, AnUrgentTransferOvertakesBetweenSlices) {
  // Slices of 100 B take 2 s each. The urgent one is ready at 2.5, while slice 2 (2-4) is on its way: no preemption,
  // 4-6; then slices 3 and 4.
  auto streams = kStreams;
  streams[kComm].discipline = Discipline::by_priority;
  std::vector<Op> ops;
  for (int s = 1; s <= 4; ++s) ops.push_back(transfer_op(fmt::format("slice {}", s), only(0), from(1), 100, kComm));
  ops.push_back(compute_op("compute", only(0), 2.5, kCompute));
  ops.push_back(with_priority(after(transfer_op("urgent", only(0), from(1), 100, kComm), {{4, RankMap::same()}}), 10));
  StaticProgram program(2, streams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  expect_dates(job, "slice 1", 0, 0, 2);
  expect_dates(job, "slice 2", 0, 2, 4);
  expect_dates(job, "urgent", 0, 4, 6);
  expect_dates(job, "slice 3", 0, 6, 8);
  expect_dates(job, "slice 4", 0, 8, 10);
  expect_parts_fill_the_makespan(job);
}

TEST(Priority, EqualOnesRunInOrderOfBecomingReady) {
  // Blocked until 1 by 'first' (priority 0); then 3 before 2 and 2b; 2b is ready at 0, 2 only at 0.5.
  auto streams = kStreams;
  streams[kServer].discipline = Discipline::by_priority;
  StaticProgram program(1, streams,
                        {compute_op("first", only(0), 1, kServer), compute_op("trigger", only(0), 0.5, kCompute),
                         with_priority(after(compute_op("two", only(0), 1, kServer), {{1, RankMap::same()}}), 2),
                         with_priority(compute_op("two b", only(0), 1, kServer), -2),
                         with_priority(after(compute_op("three", only(0), 1, kServer), {{1, RankMap::same()}}), 3),
                         with_priority(after(compute_op("two c", only(0), 1, kServer), {{1, RankMap::same()}}), 2)});
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  expect_dates(job, "first", 0, 0, 1);
  expect_dates(job, "three", 0, 1, 2);
  expect_dates(job, "two", 0, 2, 3);
  expect_dates(job, "two c", 0, 3, 4);
  expect_dates(job, "two b", 0, 4, 5);
}

// -------------------------------------------------------------------------------- failures, link changes, ticks

TEST(Failure, TheOthersCancelAndFinishWithoutTheRank) {
  // Three ranks compute 0-2 and enter a ring all-reduce of 300 B, which would take 4 steps of 2 s. Rank 2 fails at 5.
  // The others recover 5-6 and reduce on a ring of two: 2 steps of 1 + 150/100 = 2.5 s, 6-11.
  ScriptedProgram program(3, kStreams);
  program.at_start = [](Emit& emit) {
    const auto compute = emit.emit(in_group(compute_op("compute", RankSet::range(0, 3), 2, kCompute), 0));
    const auto reduce = emit.emit(in_group(
        after(all_reduce_op("all-reduce", RankSet::range(0, 3), 300, kComm), {{compute, RankMap::same()}}), 0));
    emit.emit(in_group(after(compute_op("step", RankSet::range(0, 3), 1, kCompute), {{reduce, RankMap::same()}}), 0));
  };
  program.at_event = [](const Event& event, Emit& emit) {
    if (event.kind != Event::Kind::rank_failure || event.rank != Rank{2}) throw internal_error("an unexpected event");
    emit.cancel(0);
    const auto recover = emit.emit(compute_op("recover", RankSet::range(0, 2), 1, kCompute));
    emit.emit(
        after(all_reduce_op("all-reduce of two", RankSet::range(0, 2), 300, kComm), {{recover, RankMap::same()}}));
  };
  const auto job = run_one(program, *slow_star(3), {}, {rank_failure(5, 2)}).jobs[0];
  for (int r = 0; r < 2; ++r) {
    expect_dates(job, "recover", r, 5, 6);
    expect_dates(job, "all-reduce of two", r, 6, 11);
    EXPECT_FALSE(was_done(job, "all-reduce", r));
    EXPECT_FALSE(was_done(job, "step", r));
  }
  EXPECT_NEAR(job.makespan.count(), 11, 1e-9);
  expect_parts_fill_the_makespan(job);
  EXPECT_NEAR(job.ranks[2].compute.count(), 2, 1e-9);
  EXPECT_NEAR(job.ranks[2].exposed_comm.count(), 3, 1e-9);
  EXPECT_NEAR(job.ranks[2].idle.count(), 6, 1e-9);  // after its failure
}

TEST(Failure, TransfersToAndFromTheRankAreGoneFromTheLinks) {
  // Ranks 0 and 2 send to 1 from 1 s on, 50 B/s each. Rank 2 fails at 3: rank 0 has 200 B left and ends at 5.
  StaticProgram program(3, kStreams, {transfer_op("send", RankSet::range(0, 2, 2), from(1), 300, kComm)});
  const auto job = run_one(program, *slow_star(3), {}, {rank_failure(3, 2)}).jobs[0];
  expect_dates(job, "send", 0, 0, 5);
  EXPECT_FALSE(was_done(job, "send", 2));
  expect_parts_fill_the_makespan(job);
}

TEST(Failure, ThatNobodyHandlesIsAModelError) {
  StaticProgram program(2, kStreams, {all_reduce_op("all-reduce", RankSet::range(0, 2), 200, kComm)});
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(2), {}, {rank_failure(1.5, 1)}); });
  EXPECT_EQ(kind, ErrorKind::model);
  EXPECT_NE(text.find("'all-reduce' on rank 0"), std::string::npos) << text;
}

TEST(LinkChange, HalvesARunningFlow) {
  // 500 B from 1 s on at 100 B/s; at 3 s 300 B are left, at 50 B/s: 9 s. Restored at 5 s, 200 B are left: 7 s.
  const auto network = slow_star(2);
  std::vector<LinkId> path;
  network->route(DeviceId{0}, DeviceId{1}, 0, path);
  StaticProgram program(2, kStreams, {transfer_op("send", only(0), from(1), 500, kComm)});
  for (const auto link : path) {
    const auto halved = run_one(program, *network, {}, {link_bandwidth(3, link, 50)}).jobs[0];
    expect_dates(halved, "send", 0, 0, 9);
    const auto restored =
        run_one(program, *network, {}, {link_bandwidth(3, link, 50), link_bandwidth(5, link, 100)}).jobs[0];
    expect_dates(restored, "send", 0, 0, 7);
  }
}

TEST(Events, ThatNameNothingAreRefused) {
  StaticProgram program(2, kStreams, {compute_op("compute", only(0), 1, kCompute)});
  const auto network = slow_star(2);
  for (const auto& event : {rank_failure(1, 2), rank_failure(1, -1), link_bandwidth(1, LinkId{99}, 10),
                            link_bandwidth(1, LinkId{0}, 0), link_bandwidth(1, LinkId{0}, -5)}) {
    const auto [kind, text] = error_of([&] { (void)run_one(program, *network, {}, {event}); });
    EXPECT_NE(text.find("event"), std::string::npos) << text;
  }
}

TEST(Ticks, ComeAtTheirDatesAndCarryTheirTags) {
  // Ticks at 1, 2.5 and (in the past, so at once) 2.5; the last is asked for at 2.5.
  ScriptedProgram program(1, kStreams);
  program.at_start = [](Emit& emit) {
    emit.tick(Seconds(2.5), 20);
    emit.tick(Seconds(1), 10);
  };
  program.at_event = [](const Event& event, Emit& emit) {
    if (event.kind != Event::Kind::tick) throw internal_error("not a tick");
    emit.emit(compute_op(fmt::format("tick {} at {}", event.tag, emit.now().count()), only(0), 0.25, kCompute));
    if (event.tag == 20) emit.tick(Seconds(1), 30);
  };
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  expect_dates(job, "tick 10 at 1", 0, 1, 1.25);
  expect_dates(job, "tick 20 at 2.5", 0, 2.5, 2.75);
  expect_dates(job, "tick 30 at 2.5", 0, 2.75, 3);
  expect_parts_fill_the_makespan(job);
  EXPECT_NEAR(job.ranks[0].idle.count(), 1 + 1.25, 1e-9);
}

// -------------------------------------------------------------------------------- runs that have no answer

TEST(Incomplete, WaitingForMoreThanThereIsNamesTheOperation) {
  StaticProgram program(3, kStreams,
                        {compute_op("work", RankSet::range(0, 3), 1, kCompute),
                         after(compute_op("quorum", only(0), 1, kCompute), {{0, RankMap::all()}}, 4)});
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(3)); });
  EXPECT_EQ(kind, ErrorKind::model);
  EXPECT_NE(text.find("'quorum' on rank 0"), std::string::npos) << text;
}

TEST(Incomplete, ACollectiveThatAMemberNeverEntersNamesIt) {
  // 'prepare' is done on rank 0 at 1 and is cancelled on rank 1 at 1.5: only rank 0 enters.
  ScriptedProgram program(2, kStreams);
  program.at_start = [](Emit& emit) {
    const auto prepare = emit.emit(in_group(compute_op("prepare", RankSet::range(0, 2), 1, kCompute), 0));
    emit.emit(after(all_reduce_op("all-reduce", RankSet::range(0, 2), 200, kComm), {{prepare, RankMap::same()}}));
    emit.tick(Seconds(1.5), 0);
  };
  program.at_event = [](const Event&, Emit& emit) { emit.cancel(0); };
  ExecutorOptions options;
  options.compute_slowdown = {1, 2};
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(2), options); });
  EXPECT_EQ(kind, ErrorKind::model);
  EXPECT_NE(text.find("'all-reduce' on rank 0 has begun and never ended"), std::string::npos) << text;
}

TEST(Incomplete, CollectivesThatRanksEnterInOppositeOrders) {
  // 'x' is done at 1 on rank 0 and at 2 on rank 1. Rank 0 is ready for a at 1 and for b at 2, rank 1 for b at 1 and
  // for a at 2; the stream takes them by arrival, so that each waits for the other in another collective.
  const auto swap = RankMap::map({Rank{1}, Rank{0}});
  StaticProgram program(2, kStreams,
                        {compute_op("x", RankSet::range(0, 2), 1, kCompute),
                         after(all_reduce_op("a", RankSet::range(0, 2), 200, kComm), {{0, RankMap::same()}}),
                         after(all_reduce_op("b", RankSet::range(0, 2), 200, kComm), {{0, swap}})});
  ExecutorOptions options;
  options.compute_slowdown = {1, 2};
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(2), options); });
  EXPECT_EQ(kind, ErrorKind::model);
  EXPECT_NE(text.find("'a' on rank 0 has begun and never ended"), std::string::npos) << text;
}

TEST(Errors, OfCallbacksComeBackAsTheyAre) {
  ScriptedProgram at_start(1, kStreams);
  at_start.at_start = [](Emit&) { throw input_error("bad data"); };
  EXPECT_EQ(error_of([&] { (void)run_one(at_start, *slow_star(2)); }),
            (std::pair{ErrorKind::input, std::string("bad data")}));

  ScriptedProgram when_done(1, kStreams);
  when_done.at_start = [](Emit& emit) { emit.emit(notifying(compute_op("work", only(0), 1, kCompute))); };
  when_done.when_done = [](OpId, Rank, Emit&) { throw std::runtime_error("surprise"); };
  const auto [kind, text] = error_of([&] { (void)run_one(when_done, *slow_star(2)); });
  EXPECT_EQ(kind, ErrorKind::internal);
  EXPECT_NE(text.find("surprise"), std::string::npos);

  ScriptedProgram at_arrival(2, kStreams);
  at_arrival.at_start = [](Emit& emit) { emit.emit(notifying(transfer_op("send", only(0), from(1), 100, kComm))); };
  at_arrival.when_done = [](OpId, Rank, Emit& emit) { emit.emit(compute_op("wrong", only(5), 1, kCompute)); };
  const auto [wrong_kind, wrong_text] = error_of([&] { (void)run_one(at_arrival, *slow_star(2)); });
  EXPECT_EQ(wrong_kind, ErrorKind::internal);
  EXPECT_NE(wrong_text.find("operation 'wrong': rank 5 does not exist"), std::string::npos) << wrong_text;
}

TEST(Errors, ASimulationProcessThatDiesIsAnInternalError) {
  ScriptedProgram program(1, kStreams);
  program.at_start = [](Emit&) { std::abort(); };
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(2)); });
  EXPECT_EQ(kind, ErrorKind::internal);
  EXPECT_NE(text.find("signal 6"), std::string::npos) << text;
}

TEST(Errors, SimgridsOwnRefusalIsAnError) {
  StaticProgram program(1, kStreams, {compute_op("work", only(0), 1, kCompute)});
  RunOptions options;
  options.network.configuration = {"network/model:no-such-model"};
  const auto [kind, text] = error_of([&] { (void)run_one(program, *slow_star(2), {}, {}, options); });
  EXPECT_NE(text.find("no-such-model"), std::string::npos) << text;
  options.network.configuration = {"no/such-setting:1"};
  const auto [other_kind, other_text] = error_of([&] { (void)run_one(program, *slow_star(2), {}, {}, options); });
  EXPECT_NE(other_text.find("no/such-setting"), std::string::npos) << other_text;
}

// -------------------------------------------------------------------------------- dependencies

// 'work' takes 1, 2, 3, 4 s on ranks 0..3; 'probe' starts when its dependency on it is satisfied.
std::vector<double> probe_starts(const RankSet& ranks, const std::vector<Dependency>& dependencies, int needed = -1,
                                 double emitted_at = -1) {
  ScriptedProgram program(4, kStreams);
  const auto emit_probe = [&](Emit& emit) {
    emit.emit(after(delay_op("probe", ranks, 0, kServer), dependencies, needed));
  };
  program.at_start = [&](Emit& emit) {
    emit.emit(compute_op("work", RankSet::range(0, 4), 1, kCompute));
    if (emitted_at < 0) {
      emit_probe(emit);
    } else {
      emit.tick(Seconds(emitted_at), 0);
    }
  };
  program.at_event = [&](const Event&, Emit& emit) { emit_probe(emit); };
  ExecutorOptions options;
  options.compute_slowdown = {1, 2, 3, 4};
  const auto job = run_one(program, *slow_star(4), options).jobs[0];
  expect_parts_fill_the_makespan(job);
  std::vector<double> starts;
  for (int i = 0; i < ranks.size(); ++i) starts.push_back(dates(job, "probe", ranks.at(i).value).first);
  return starts;
}

TEST(Dependencies, Maps) {
  using V = std::vector<double>;
  const auto all = RankSet::range(0, 4);
  const auto on_work = [](RankMap map) { return std::vector<Dependency>{{0, std::move(map)}}; };
  EXPECT_EQ(probe_starts(all, {}), (V{0, 0, 0, 0}));
  EXPECT_EQ(probe_starts(all, on_work(RankMap::same())), (V{1, 2, 3, 4}));
  EXPECT_EQ(probe_starts(RankSet::range(0, 3), on_work(RankMap::shift(1))), (V{2, 3, 4}));
  EXPECT_EQ(probe_starts(RankSet::range(2, 2), on_work(RankMap::shift(-2))), (V{1, 2}));
  EXPECT_EQ(probe_starts(all, on_work(RankMap::exchange(1))), (V{2, 1, 4, 3}));
  EXPECT_EQ(probe_starts(all, on_work(RankMap::exchange(2))), (V{3, 4, 1, 2}));
  EXPECT_EQ(probe_starts(all, on_work(from(2))), (V{3, 3, 3, 3}));
  EXPECT_EQ(probe_starts(all, on_work(RankMap::all())), (V{4, 4, 4, 4}));
  EXPECT_EQ(probe_starts(all, on_work(RankMap::map({Rank{3}, Rank{3}, Rank{0}, Rank{1}}))), (V{4, 4, 1, 2}));
  EXPECT_EQ(probe_starts(RankSet::range(1, 2, 2), on_work(RankMap::shift(-1))), (V{1, 3}));
  EXPECT_EQ(probe_starts(RankSet::list({Rank{3}, Rank{0}}), on_work(RankMap::same())), (V{4, 1}));
}

TEST(Dependencies, KOfN) {
  using V = std::vector<double>;
  const auto all = RankSet::range(0, 4);
  // Each rank's arrival counts: the second of 1, 2, 3, 4 is at 2.
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, 2), (V{2, 2, 2, 2}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, 4), (V{4, 4, 4, 4}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, 0), (V{0, 0, 0, 0}));
  // One's own (1, 2, 3, 4) or rank 1's (2).
  EXPECT_EQ(probe_starts(all, {{0, RankMap::same()}, {0, from(1)}}, 1), (V{1, 2, 2, 2}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::same()}, {0, from(1)}}, 2), (V{2, 2, 3, 4}));
}

TEST(Dependencies, OnWhatIsAlreadyDone) {
  using V = std::vector<double>;
  const auto all = RankSet::range(0, 4);
  // Emitted at 2.5, when ranks 0 and 1 are done.
  EXPECT_EQ(probe_starts(all, {{0, RankMap::same()}}, -1, 2.5), (V{2.5, 2.5, 3, 4}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, -1, 2.5), (V{4, 4, 4, 4}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, 2, 2.5), (V{2.5, 2.5, 2.5, 2.5}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, 3, 2.5), (V{3, 3, 3, 3}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::all()}}, -1, 4.5), (V{4.5, 4.5, 4.5, 4.5}));
  EXPECT_EQ(probe_starts(all, {{0, RankMap::exchange(3)}}, -1, 2.5), (V{4, 3, 2.5, 2.5}));
}

TEST(Streams, TheHeadOfAnInOrderStreamBlocksWhatIsBehindIt) {
  // 'blocked' waits until 4 and takes 1 s; 'ready' (2 s) could start at 0.
  const std::vector<Op> ops{delay_op("late", only(1), 4, kServer),
                            after(compute_op("blocked", only(0), 1, kCompute), {{0, from(1)}}),
                            compute_op("ready", only(0), 2, kCompute)};
  StaticProgram program(2, kStreams, ops);
  const auto job = run_one(program, *slow_star(2)).jobs[0];
  expect_dates(job, "blocked", 0, 4, 5);
  expect_dates(job, "ready", 0, 5, 7);
  auto streams = kStreams;
  streams[kCompute].discipline = Discipline::by_arrival;
  StaticProgram by_arrival(2, streams, ops);
  const auto overtaken = run_one(by_arrival, *slow_star(2)).jobs[0];
  expect_dates(overtaken, "ready", 0, 0, 2);
  expect_dates(overtaken, "blocked", 0, 4, 5);
}

// -------------------------------------------------------------------------------- long chains

TEST(LongChains, OfZeroDurationAtTheStart) {
  constexpr int kLength = 100'000;
  std::vector<Op> ops;
  for (int i = 0; i < kLength; ++i) {
    ops.push_back(compute_op("link", only(i % 2), 0, kCompute));
    if (i > 0) ops.back().waits_for = {{i - 1, from((i - 1) % 2)}};
  }
  ops.push_back(after(compute_op("end", only(0), 2, kCompute), {{kLength - 1, from((kLength - 1) % 2)}}));
  StaticProgram program(2, kStreams, ops);
  EXPECT_EQ(run_one(program, *slow_star(2)).jobs[0].makespan.count(), 2);
}

TEST(LongChains, InsideOneGap) {
  // 1 s of waiting, then 100,000 operations that take no time or a hair: the whole chain lies in rank 0's first gap.
  constexpr int kLength = 100'000;
  for (const double each : {0.0, 0x1p-20}) {
    std::vector<Op> ops{delay_op("wait", only(1), 1, kServer)};
    for (int i = 0; i < kLength; ++i) {
      ops.push_back(after(delay_op("link", only(1), each, kServer), {{i, RankMap::same()}}));
    }
    ops.push_back(after(compute_op("end", only(0), 2, kCompute), {{kLength, from(1)}}));
    StaticProgram program(2, kStreams, ops);
    const auto job = run_one(program, *slow_star(2)).jobs[0];
    EXPECT_NEAR(job.makespan.count(), 3 + kLength * each, 1e-9);
    EXPECT_NEAR(job.ranks[0].idle.count(), 1 + kLength * each, 1e-9);
    expect_parts_fill_the_makespan(job);
  }
}

// -------------------------------------------------------------------------------- compute that is slowed down

TEST(Slowdown, ComputeThatOverlapsCommunicationForAPart) {
  // 4 s of work from 0. The transfer of 200 B is under way 1-4 (latency 1, flow 2): work done is 1 s by 1 and, at half
  // speed, 2.5 s by 4; the other 1.5 s end at 5.5.
  const std::vector<Op> ops{compute_op("compute", only(0), 4, kCompute), delay_op("wait", only(0), 1, kServer),
                            after(transfer_op("send", only(0), from(1), 200, kComm), {{1, RankMap::same()}})};
  StaticProgram program(2, kStreams, ops);
  ExecutorOptions options;
  options.overlap_slowdown = 2;
  const auto job = run_one(program, *slow_star(2), options).jobs[0];
  expect_dates(job, "compute", 0, 0, 5.5);
  expect_dates(job, "send", 0, 1, 4);
  // A slow rank besides (x3): 12 s of work, 1 + 1.5 by 4, the other 9.5 end at 13.5.
  options.compute_slowdown = {3, 1};
  expect_dates(run_one(program, *slow_star(2), options).jobs[0], "compute", 0, 0, 13.5);
  options.overlap_slowdown = 1;
  expect_dates(run_one(program, *slow_star(2), options).jobs[0], "compute", 0, 0, 12);
}

TEST(Slowdown, ComputeThatBeginsAndEndsDuringACollective) {
  // Ring of two, 200 B: 2 steps of 2 s, 0-4. Two computes of 1.5 s: 0-3, then 3-4 (0.5 s of work at half speed) and the
  // other second at full speed: 5.
  StaticProgram program(2, kStreams,
                        {all_reduce_op("all-reduce", RankSet::range(0, 2), 200, kComm),
                         compute_op("first", only(0), 1.5, kCompute), compute_op("second", only(0), 1.5, kCompute)});
  ExecutorOptions options;
  options.overlap_slowdown = 2;
  const auto job = run_one(program, *slow_star(2), options).jobs[0];
  expect_dates(job, "all-reduce", 0, 0, 4);
  expect_dates(job, "first", 0, 0, 3);
  expect_dates(job, "second", 0, 3, 5);
}

}  // namespace
}  // namespace tandem
