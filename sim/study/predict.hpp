// One prediction: a trace on a cluster under chosen algorithms -> the iteration time, where it goes, and why.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/disturb/jitter.hpp"
#include "sim/engine/run.hpp"
#include "sim/ir/plan.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/results/record.hpp"

namespace tandem {

enum class Scaling { weak, strong };
enum class Details { none, summary, full };

// The options of `tandem run`, with their defaults (cli.md).
struct RunConfig {
  std::string trace = "resnet50-cpu";
  std::int64_t batch = 0;  // per replica; 0: as recorded
  std::string gradient_dtype = "float32";
  std::string activation_dtype = "float32";
  std::string optimizer = "momentum";

  ClusterOptions cluster;  // topology, ranks, nodes, bandwidths, latencies
  std::string placement = "packed";

  std::string device = "recorded";
  double device_scale = 1;
  bool overheads = false;  // count the trace's input wait, launch gaps, copies and unmatched work

  std::string partitioner = "data";
  std::string sync = "bsp";
  std::string gradients = "ddp";
  std::string algorithm = "ring";
  int channels = 1;
  Bytes chunk{};  // 0: not cut
  Seconds step_overhead{};
  BytesPerSecond reduce_rate{};  // 0: free
  BytesPerSecond copy_rate{};    // 0: free
  double overlap_slowdown = 1;

  Scaling scaling = Scaling::weak;
  std::int64_t global_batch = 0;  // strong scaling; 0: the recorded batch x baseline ranks
  int baseline_ranks = 1;
  int iterations = 1;
  bool first_iteration = false;
  Bytes memory{};  // of a device; 0: not checked

  NetworkModelOptions network;
  ComputeNoise noise;
  std::string fidelity = "auto";  // or flow, phase, analytic
  Details details = Details::summary;
  bool explain = false;

  // Every option as text after defaults, for `options` in the output. Filled by whoever parsed them.
  std::vector<std::pair<std::string, std::string>> options;
};

// What `--explain` adds.
struct Explanation {
  std::vector<std::string> sentences;  // what bounds the iteration
  Seconds with_double_bandwidth{};     // iteration time with every link twice as fast
  Seconds with_half_latency{};         // with half the latency (and step overhead)
  Seconds with_double_device_speed{};  // with compute twice as fast
};

struct Prediction {
  Record row;                  // all scalar results (JSON of `run`), without wall_time_s
  std::vector<Table> details;  // ranks, layers, links (and timeline for Details::full)
  std::vector<std::string> assumptions;
  std::map<std::int64_t, CollectiveChoice> choices;  // by the bytes of an all-reduce, where `auto` picked
  std::vector<Explanation> explanation;              // empty or one
  double wall_time_s = 0;                            // not part of the row: it differs between equal runs
};

struct Setup;
// Errors are of kind usage (impossible choices), input (bad trace) or model (no answer).
// `before_running` is told what is about to be simulated.
[[nodiscard]] Prediction predict(const RunConfig& config, const std::function<void(const Setup&)>& before_running = {});

// The value of a field of the row. Internal error where there is none.
[[nodiscard]] double number(const Record& row, const std::string& name);

// Hashes, versions and model settings for the result file, besides command and options.
[[nodiscard]] Provenance provenance(const std::string& command, const std::vector<RunConfig>& configs);

}  // namespace tandem
