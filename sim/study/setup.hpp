// What a prediction is made of, built once: also the base of --explain's variations.
#pragma once

#include <memory>

#include "sim/disturb/jitter.hpp"
#include "sim/study/effort.hpp"
#include "sim/study/predict.hpp"
#include "traces/trace.hpp"

namespace tandem {

struct Setup {
  Trace trace;
  std::unique_ptr<ComputeModel> compute;  // refers to `trace`
  std::unique_ptr<Cluster> cluster;
  std::vector<DeviceId> placement;  // workers, then servers and switches (Machine)
  CollectiveGroup group;            // of its collectives
  Plan plan;
  LoweredProgram lowered;
  Efforts efforts;
  Fidelity fidelity = Fidelity::flow;
  std::vector<double> slowdown;  // by worker, of its compute; empty: all 1
  // Of equal workers, where one rank of the program stands for a class; otherwise without any.
  RankClasses classes;

  Setup() = default;
  Setup(const Setup&) = delete;  // ComputeModel refers to the trace
  Setup& operator=(const Setup&) = delete;
};

// A trace, or a built-in model without times, which a named --device can give it.
[[nodiscard]] Trace load_trace_or_model(const RunConfig& config);
[[nodiscard]] ComputeOptions compute_options(const RunConfig& config, const Trace& trace);
[[nodiscard]] AlphaBetaOptions alpha_beta_options(const RunConfig& config);

[[nodiscard]] std::unique_ptr<Setup> make_setup(const RunConfig& config);

[[nodiscard]] std::int64_t samples_per_iteration(const RunConfig& config, const Setup& setup);

// The same run with a part of the machine changed.
struct Variation {
  double bandwidth = 1;     // factor on every link's rate
  double latency = 1;       // factor on every latency and on the step overhead
  double device_speed = 1;  // factor on every device's speed
  bool measure_saturation = false;
  bool keep_spans = false;
};
[[nodiscard]] RunResult simulate(const Setup& setup, const RunConfig& config, const Variation& variation);

// Mean over the run's iterations.
[[nodiscard]] Seconds iteration_time(const RunResult& result, const RunConfig& config);

}  // namespace tandem
