// run(jobs, network, options) -> RunResult: the one entrance to the flow-level engine.
#pragma once

#include <memory>
#include <vector>

#include "platforms/network.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/simgrid_backend.hpp"
#include "sim/ir/program.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

struct Job {
  Program* program = nullptr;
  std::vector<DeviceId> placement;  // a rank
  Seconds start{};
  ExecutorOptions options;
  std::vector<Event> events;  // disturbances that the engine carries out and tells the program of
};

struct RunOptions {
  NetworkModelOptions network;
  bool keep_spans = false;
};

// Runs all jobs under one clock in a child process. Model error where a job does not complete.
[[nodiscard]] RunResult run(const std::vector<Job>& jobs, const Network& network, const RunOptions& options);

}  // namespace tandem
