#include "sim/study/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "partitioners/partitioner.hpp"
#include "sim/core/error.hpp"
#include "sim/ir/folded_schedule.hpp"
#include "sim/study/machine.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

std::int64_t replica_batch(const RunConfig& config, const Trace& trace) {
  const auto own = config.batch > 0 ? config.batch : trace.batch;
  if (config.scaling == Scaling::weak) return own;
  const auto global = config.global_batch > 0 ? config.global_batch : own * config.baseline_ranks;
  if (global < config.cluster.ranks) {
    throw usage_error(fmt::format("a global batch of {} cannot be shared by {} ranks", global, config.cluster.ranks));
  }
  return (global + config.cluster.ranks - 1) / config.cluster.ranks;
}

void check_memory(const RunConfig& config, const Plan& plan) {
  if (config.memory.count() == 0) return;
  for (const auto& use : plan.memory) {
    if (use.total() > config.memory) {
      throw model_error(fmt::format("a rank needs {} ({} of them activations), but --memory is {}",
                                    to_text(use.total()), to_text(use.activations), to_text(config.memory)));
    }
  }
}

ExecutorOptions executor_options(const RunConfig& config) {
  ExecutorOptions options;
  options.step_overhead = config.step_overhead;
  options.reduce_rate = config.reduce_rate;
  options.copy_rate = config.copy_rate;
  options.overlap_slowdown = config.overlap_slowdown;
  return options;
}

// Of steps whose collectives are folded.
Efforts predicted_efforts(const TrainingSteps& steps) {
  Efforts efforts;
  Effort once;
  std::map<std::vector<std::shared_ptr<const CollectiveSchedule>>, Efforts> known;  // buckets of one size are alike
  for (const auto& bucket : steps.buckets) {
    std::vector<std::shared_ptr<const CollectiveSchedule>> key;
    for (const auto& piece : bucket.pieces) key.push_back(piece.schedule);
    const auto [entry, is_new] = known.try_emplace(std::move(key));
    if (is_new) {
      entry->second = efforts_of(bucket.pieces);
      once += entry->second.analytic;
    }
    efforts += entry->second;
  }
  efforts = efforts * steps.iterations;
  efforts.analytic = once;  // estimates are made once
  return efforts;
}

TrainingSteps with_folded_collectives(TrainingSteps steps) {
  std::map<std::vector<std::shared_ptr<const CollectiveSchedule>>, std::vector<CollectivePiece>> known;
  for (auto& bucket : steps.buckets) {
    std::vector<std::shared_ptr<const CollectiveSchedule>> key;
    for (const auto& piece : bucket.pieces) key.push_back(piece.schedule);
    const auto [entry, is_new] = known.try_emplace(std::move(key));
    if (is_new) entry->second = folded(bucket.pieces);
    bucket.pieces = entry->second;
  }
  return steps;
}

// One rank stands for all that are equal: not where every rank differs, where servers have a part of their own, and
// where what each rank does is asked for. Not at flow fidelity, where a rank may begin before the others; and where
// messages are simulated (phase) ranks end apart, so that a class must be all of them: then the last one's end is what
// all wait for next.
void use_classes(Setup& setup, const RunConfig& config, const TrainingSteps& steps) {
  if (setup.fidelity == Fidelity::flow || setup.lowered.steps.servers > 0 || config.details == Details::full) return;
  auto classes = rank_classes(setup.slowdown, config.cluster.ranks);
  if (2 * classes.first.size() > classes.of_rank.size()) return;
  if (setup.fidelity == Fidelity::phase && classes.first.size() > 1) return;
  setup.classes = std::move(classes);
  setup.lowered.program =
      class_program(config.sync, steps, static_cast<int>(setup.classes.first.size()), setup.group.devices);
}

std::vector<int> weights_of_classes(const Setup& setup) {
  std::vector<int> weights(setup.classes.first.size());
  for (const int each : setup.classes.of_rank) ++weights[static_cast<std::size_t>(each)];
  return weights;
}

std::vector<DeviceId> devices_of_classes(const Setup& setup) {
  std::vector<DeviceId> devices;
  for (const int rank : setup.classes.first) devices.push_back(setup.placement[static_cast<std::size_t>(rank)]);
  return devices;
}

}  // namespace

Trace load_trace_or_model(const RunConfig& config) {
  const auto models = model_names();
  if (std::find(models.begin(), models.end(), config.trace) == models.end()) return load_trace(config.trace);
  if (config.device == "recorded") {
    throw usage_error(
        fmt::format("'{}' is a built-in model without times: name a --device (tandem list device), or a "
                    "recorded trace (tandem trace list)",
                    config.trace));
  }
  return build_model(config.trace, config.batch > 0 ? config.batch : 32);
}

ComputeOptions compute_options(const RunConfig& config, const Trace& trace) {
  ComputeOptions options;
  options.batch = replica_batch(config, trace);
  options.device = config.device;
  options.device_scale = config.device_scale;
  return options;
}

std::int64_t samples_per_iteration(const RunConfig& config, const Setup& setup) {
  if (config.scaling == Scaling::weak) return setup.compute->batch() * config.cluster.ranks;
  if (config.global_batch > 0) return config.global_batch;
  const auto own = config.batch > 0 ? config.batch : setup.trace.batch;
  return own * config.baseline_ranks;
}

AlphaBetaOptions alpha_beta_options(const RunConfig& config) {
  return {config.step_overhead, config.network.bandwidth_factor, config.network.latency_factor, {}, {}};
}

std::unique_ptr<Setup> make_setup(const RunConfig& config) {
  auto made = std::make_unique<Setup>();
  auto& setup = *made;
  setup.trace = load_trace_or_model(config);
  setup.compute = with_context(
      config.trace, [&] { return std::make_unique<ComputeModel>(setup.trace, compute_options(config, setup.trace)); });

  const auto algorithm = Registry<CollectiveAlgorithm>::instance().make(config.algorithm);
  auto machine = make_machine(config.cluster, config.placement, *algorithm);
  setup.cluster = std::move(machine.cluster);
  setup.placement = std::move(machine.placement);
  setup.group = std::move(machine.group);

  PartitionOptions partition;
  partition.ranks = config.cluster.ranks;
  partition.batch = setup.compute->batch();
  partition.gradient_dtype = config.gradient_dtype;
  partition.activation_dtype = config.activation_dtype;
  partition.optimizer = config.optimizer;
  setup.plan = Registry<Partitioner>::instance().make(config.partitioner)->partition(setup.trace, partition);
  check_memory(config, setup.plan);

  LoweringOptions lowering;
  lowering.gradients = config.gradients;
  lowering.algorithm = config.algorithm;
  lowering.sync = config.sync;
  lowering.first_iteration = config.first_iteration;
  lowering.iterations = config.iterations;
  lowering.channels = config.channels;
  lowering.chunk = config.chunk;
  lowering.overheads = config.overheads;
  lowering.costs = alpha_beta_options(config);
  setup.lowered = lower(*setup.compute, setup.plan, *setup.cluster, setup.group, lowering);
  const auto folded_steps = with_folded_collectives(setup.lowered.steps);
  const bool folds = may_fold(executor_options(config));
  setup.efforts = predicted_efforts(folded_steps);
  if (!folds) setup.efforts.phase = setup.efforts.flow;
  setup.fidelity = fidelity_for(asked_fidelity(config.fidelity), setup.efforts, config.network);
  check_configuration(setup.fidelity, config.network);
  setup.slowdown = compute_slowdown(config.noise, config.cluster.ranks);
  use_classes(setup, config, folds || setup.fidelity == Fidelity::analytic ? folded_steps : setup.lowered.steps);
  return made;
}

RunResult simulate(const Setup& setup, const RunConfig& config, const Variation& variation) {
  Job job;
  job.program = setup.lowered.program.get();
  job.placement = setup.classes.first.empty() ? setup.placement : devices_of_classes(setup);
  job.rank_weights = weights_of_classes(setup);
  job.options = executor_options(config);
  job.options.step_overhead = config.step_overhead * variation.latency;
  job.options.compute_slowdown.assign(job.placement.size(), 1 / variation.device_speed);
  for (std::size_t i = 0; i < job.placement.size() && !setup.slowdown.empty(); ++i) {
    const auto rank = setup.classes.first.empty() ? i : static_cast<std::size_t>(setup.classes.first[i]);
    if (rank < setup.slowdown.size()) job.options.compute_slowdown[i] *= setup.slowdown[rank];
  }
  RunOptions options;
  options.network = config.network;
  options.network.bandwidth_factor *= variation.bandwidth;
  options.network.latency_factor *= variation.latency;
  options.network.measure_saturation = variation.measure_saturation;
  options.keep_spans = variation.keep_spans;
  options.fidelity = setup.fidelity;
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  auto result = run(jobs, *setup.cluster, options);
  if (!setup.classes.first.empty()) {
    const auto of_class = std::move(result.jobs[0].ranks);
    result.jobs[0].ranks.clear();
    for (const int each : setup.classes.of_rank)
      result.jobs[0].ranks.push_back(of_class[static_cast<std::size_t>(each)]);
  }
  return result;
}

Seconds iteration_time(const RunResult& result, const RunConfig& config) {
  return result.jobs[0].makespan / static_cast<double>(config.iterations);
}

}  // namespace tandem
