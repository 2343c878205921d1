// run(jobs, network, options) -> RunResult: the one entrance to the engine.
#pragma once

#include <memory>
#include <vector>

#include "platforms/network.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/simgrid_backend.hpp"
#include "sim/ir/fidelity.hpp"
#include "sim/ir/program.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

struct Job {
  Program* program = nullptr;
  std::vector<DeviceId> placement;  // a rank
  Seconds start{};
  ExecutorOptions options;
  std::vector<Event> events;        // disturbances that the engine carries out and tells the program of
  std::vector<int> rank_weights{};  // how many a rank stands for, in means over ranks; empty: one each
};

struct RunOptions {
  NetworkModelOptions network;
  bool keep_spans = false;
  Fidelity fidelity = Fidelity::flow;
};

// Whether phase fidelity folds steps. Not where receivers take time for what comes: a receiver works on one message
// while the next ones are on their way, which one long message for all does not do.
[[nodiscard]] bool may_fold(const ExecutorOptions& options);

// Runs all jobs under one clock: where SimGrid does, in a child process.
//
// phase: collectives whose members are not all ready wait for the last; equal steps are folded (folded_schedule.hpp)
// where may_fold. analytic: the same, and a collective takes what its estimate says (collective_estimate), those under
// way at once sharing links (analytic_network.hpp); transfers outside of collectives share nothing. A link counts as
// busy all the time of the collectives that use it, and saturation is not measured. No events. Both know alpha-beta
// only. Model error where a job does not complete.
[[nodiscard]] RunResult run(const std::vector<Job>& jobs, const Network& network, const RunOptions& options);

}  // namespace tandem
