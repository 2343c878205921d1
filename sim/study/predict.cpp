#include "sim/study/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "partitioners/partitioner.hpp"
#include "sim/core/error.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/ir/folded_schedule.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/cost.hpp"
#include "sim/study/details.hpp"
#include "sim/study/explain.hpp"
#include "sim/study/machine.hpp"
#include "sim/study/provenance.hpp"
#include "sim/study/setup.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

// A trace, or a built-in model without times, which a named --device can give it.
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

std::int64_t replica_batch(const RunConfig& config, const Trace& trace) {
  const auto own = config.batch > 0 ? config.batch : trace.batch;
  if (config.scaling == Scaling::weak) return own;
  const auto global = config.global_batch > 0 ? config.global_batch : own * config.baseline_ranks;
  if (global < config.cluster.ranks) {
    throw usage_error(fmt::format("a global batch of {} cannot be shared by {} ranks", global, config.cluster.ranks));
  }
  return (global + config.cluster.ranks - 1) / config.cluster.ranks;
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

void check_memory(const RunConfig& config, const Plan& plan) {
  if (config.memory.count() == 0) return;
  for (const auto& use : plan.memory) {
    if (use.total() > config.memory) {
      throw model_error(fmt::format("a rank needs {} ({} of them activations), but --memory is {}",
                                    to_text(use.total()), to_text(use.activations), to_text(config.memory)));
    }
  }
}

// Those that run, without repetition: what `auto` picked, or what was asked for.
std::string picked_algorithms(const RunConfig& config, const Setup& setup) {
  std::set<std::string> picked;
  for (const auto& [bytes, choice] : setup.lowered.choices) picked.insert(choice.picked());
  return picked.empty() ? config.algorithm : fmt::format("{}", fmt::join(picked, ", "));
}

// The same run on another number of ranks, before anything failed.
RunConfig with_ranks(const RunConfig& config, int ranks) {
  auto other = config;
  other.cluster = without_failures(config.cluster);
  other.cluster.ranks = ranks;
  other.cluster.overrides_must_match = false;  // a smaller network may not have those links
  std::erase_if(other.noise.stragglers, [&](const auto& each) { return each.first >= ranks; });
  return other;
}

// Efficiency 1 is what undisturbed ranks reach.
RunConfig baseline_of(const RunConfig& config) {
  auto baseline = with_ranks(config, config.baseline_ranks);
  baseline.noise = {};
  return baseline;
}

// A run and its baseline are simulated at one level, the coarser of the two that fit them.
Fidelity level_for(const RunConfig& config, const Setup& setup) {
  if (config.fidelity != "auto" || config.baseline_ranks <= config.cluster.ranks) return setup.fidelity;
  return std::max(setup.fidelity,
                  with_context("the baseline", [&] { return make_setup(baseline_of(config)); })->fidelity);
}

// Samples per second of the baseline. One rank has nobody to wait for, so its iteration is the sum of its compute.
double baseline_throughput(const RunConfig& config) {
  const auto smaller = baseline_of(config);
  if (config.baseline_ranks > 1 || config.overheads) {
    const auto setup = with_context("the baseline", [&] { return make_setup(smaller); });
    const auto result = simulate(*setup, smaller, {});
    return static_cast<double>(samples_per_iteration(smaller, *setup)) / iteration_time(result, smaller).count();
  }
  const auto trace = load_trace_or_model(config);
  const ComputeModel compute(trace, compute_options(smaller, trace));
  Seconds time{};
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update}) {
    time += compute.total(pass);
  }
  return static_cast<double>(compute.batch()) / time.count();
}

// The iteration of all ranks on the whole network.
Seconds healthy_iteration(const RunConfig& config) {
  auto healthy = config;
  healthy.cluster = without_failures(config.cluster);
  const auto setup = make_setup(healthy);
  return iteration_time(simulate(*setup, healthy, {}), healthy);
}

Breakdown mean_of(const std::vector<Breakdown>& ranks, int workers, int iterations) {
  Breakdown sum;
  for (int r = 0; r < workers; ++r) {
    const auto& one = ranks[static_cast<std::size_t>(r)];
    sum.compute += one.compute;
    sum.exposed_comm += one.exposed_comm;
    sum.bubble += one.bubble;
    sum.idle += one.idle;
    sum.input += one.input;
  }
  const double parts = static_cast<double>(workers) * iterations;
  return {sum.compute / parts, sum.exposed_comm / parts, sum.bubble / parts, sum.idle / parts, sum.input / parts};
}

double max_of(const std::vector<Breakdown>& ranks, int workers, int iterations, Seconds Breakdown::*part) {
  double most = 0;
  for (int r = 0; r < workers; ++r) most = std::max(most, (ranks[static_cast<std::size_t>(r)].*part).count());
  return most / iterations;
}

// The topology's end points are NICs where nodes hold several devices.
double cost_of(const Cluster& cluster) {
  const auto& options = cluster.options();
  return cost_per_device(cluster.topology(), Prices{}) * options.nics_per_node / options.devices_per_node;
}

void add_identity(Record& row, const RunConfig& config, const Setup& setup) {
  const auto text = [&](const char* name, const std::string& value) { row.push_back({name, "1", value}); };
  text("trace", config.trace);
  text("model", setup.trace.model);
  text("device", config.device == "recorded" ? setup.trace.device : config.device + " (modelled)");
  row.push_back({"ranks", "1", std::int64_t{config.cluster.ranks}});
  row.push_back({"batch_per_rank", "samples", setup.compute->batch()});
  row.push_back({"samples_per_iteration", "samples", samples_per_iteration(config, setup)});
  text("topology", config.cluster.topology);
  text("instance", setup.cluster->topology().instance());
  row.push_back({"devices_per_node", "1", std::int64_t{config.cluster.devices_per_node}});
  text("placement", config.placement);
  text("partitioner", config.partitioner);
  text("sync", config.sync);
  text("gradients", config.gradients);
  text("algorithm", config.algorithm);
  text("picked_algorithms", picked_algorithms(config, setup));
  row.push_back({"ports_per_device", "1", setup.cluster->ports_per_device()});
  row.push_back({"cost_per_device", "USD (assumed prices)", cost_of(*setup.cluster)});
  text("trace_hash", hash_text(trace_hash(setup.trace)));
  text("platform_hash", hash_text(platform_hash(*setup.cluster)));
}

AlphaBetaOptions alpha_beta_options(const RunConfig& config) {
  return {config.step_overhead, config.network.bandwidth_factor, config.network.latency_factor, {}, {}};
}

Seconds alpha_beta_iteration(const Setup& setup, const RunConfig& config) {
  const auto& steps = setup.lowered.steps;
  Seconds sum = steps.update;
  for (const auto& compute : steps.forward) sum += compute.duration;
  for (const auto& compute : steps.backward) sum += compute.duration;
  for (const auto& pause : steps.pauses) sum += pause.duration;
  const auto algorithm = Registry<CollectiveAlgorithm>::instance().make(config.algorithm);
  const auto group = collective_group(*algorithm, *setup.cluster, setup.placement, steps.workers);
  std::map<std::int64_t, Seconds> known;  // one evaluation a size
  for (const auto& bucket : steps.buckets) {
    // Chunks follow each other: in all, the channels' whole shares.
    Bytes bytes{};
    for (const auto& piece : bucket.pieces) bytes += piece.schedule->bytes();
    const auto [entry, is_new] = known.try_emplace(bytes.count());
    if (is_new) {
      const auto choice = setup.lowered.choices.find(bytes.count());
      const auto& name = choice == setup.lowered.choices.end() ? config.algorithm : choice->second.picked();
      const auto pieces = all_reduce_pieces(*Registry<CollectiveAlgorithm>::instance().make(name), group.shape, bytes,
                                            config.channels, Bytes(0));
      entry->second = alpha_beta_time(pieces, *setup.cluster, group.devices, alpha_beta_options(config));
    }
    sum += entry->second;
  }
  return sum;
}

void add_times(Record& row, const RunConfig& config, const Setup& setup, const RunResult& result) {
  const auto& job = result.jobs[0];
  const int workers = config.cluster.ranks;
  const auto mean = mean_of(job.ranks, workers, config.iterations);
  const auto seconds = [&](const char* name, double value) { row.push_back({name, "s", value}); };
  const auto time = iteration_time(result, config).count();
  seconds("iteration_time_s", time);
  seconds("healthy_iteration_time_s", has_failures(config.cluster) ? healthy_iteration(config).count() : time);
  seconds("compute_time_s", mean.compute.count());
  seconds("exposed_comm_time_s", mean.exposed_comm.count());
  seconds("bubble_time_s", mean.bubble.count());
  seconds("idle_time_s", mean.idle.count());
  seconds("input_time_s", mean.input.count());
  seconds("compute_time_s_max", max_of(job.ranks, workers, config.iterations, &Breakdown::compute));
  seconds("exposed_comm_time_s_max", max_of(job.ranks, workers, config.iterations, &Breakdown::exposed_comm));
  seconds("bubble_time_s_max", max_of(job.ranks, workers, config.iterations, &Breakdown::bubble));
  seconds("idle_time_s_max", max_of(job.ranks, workers, config.iterations, &Breakdown::idle));
  seconds("input_time_s_max", max_of(job.ranks, workers, config.iterations, &Breakdown::input));
  Seconds gaps{};  // a part of the idle time
  for (const auto& pause : setup.lowered.steps.pauses) {
    if (pause.kind == TrainingSteps::Pause::Kind::launch_gap) gaps += pause.duration;
  }
  seconds("launch_gap_time_s", gaps.count());
  seconds("comm_time_s", job.communication.count() / config.iterations);
  seconds("alpha_beta_time_s", alpha_beta_iteration(setup, config).count());
  const double samples = static_cast<double>(samples_per_iteration(config, setup));
  row.push_back({"throughput_samples_per_s", "samples/s", samples / time});
  const double ideal = baseline_throughput(config) * workers / config.baseline_ranks;
  row.push_back({"scaling_efficiency", "1", samples / time / ideal});
  const double most = max_of(job.ranks, workers, config.iterations, &Breakdown::compute);
  row.push_back({"load_imbalance", "1", mean.compute.count() > 0 ? most / mean.compute.count() : 1.0});
}

// How far the level is from flow, for the largest number of ranks, this one or a fraction of it, whose flows take no
// time to speak of. 0 at flow; not a number where no such run can be made.
double fidelity_error(const RunConfig& config, const Setup& setup) {
  if (setup.fidelity == Fidelity::flow || setup.lowered.steps.buckets.empty()) return 0;
  // Halves rounded down: powers of two have no remainders, which are what some algorithms are slow at.
  for (int ranks = config.cluster.ranks; ranks >= 2; ranks /= 2) {
    auto finer = with_ranks(config, ranks);
    finer.fidelity = to_text(Fidelity::flow);
    try {
      const auto setup_finer = make_setup(finer);
      if (!is_small(setup_finer->efforts.flow)) continue;
      const auto level = with_ranks(config, ranks);
      const auto time_finer = iteration_time(simulate(*setup_finer, finer, {}), finer);
      const auto time = iteration_time(simulate(*make_setup(level), level, {}), level);
      return std::abs(time / time_finer - 1);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void add_traffic(Record& row, const RunConfig& config, const Setup& setup, const RunResult& result) {
  Bytes memory{};
  for (const auto& use : setup.plan.memory) memory = std::max(memory, use.total());
  row.push_back({"bytes_injected", "bytes", result.bytes_injected});
  row.push_back({"peak_memory_bytes", "bytes", memory.count()});
  row.push_back({"staleness_mean", "iterations", 0.0});  // bulk-synchronous workers never see old parameters
  row.push_back({"staleness_max", "iterations", std::int64_t{0}});
  const auto busiest = busiest_link(config, setup, result);
  row.push_back({"bottleneck_link", "1", busiest.name});
  row.push_back({"bottleneck_utilization", "1", busiest.utilization});
  row.push_back({"fidelity", "1", config.fidelity});
  row.push_back({"fidelity_error", "1", fidelity_error(config, setup)});
  row.push_back({"simulated_flows", "1", result.flows});
}

std::string failures_of(const RunConfig& config) {
  std::vector<std::string> names;
  for (const auto& failure : config.cluster.failures) names.push_back(to_text(failure));
  for (const int rank : config.cluster.lost_ranks) names.push_back(fmt::format("rank:{}", rank));
  return fmt::format("failed before the iteration begins: {}; routes go round, {} of {} ranks work",
                     fmt::join(names, ", "), config.cluster.ranks, without_failures(config.cluster).ranks);
}

std::vector<std::string> assumptions_of(const RunConfig& config, const Setup& setup) {
  auto sentences = setup.compute->assumptions();
  sentences.push_back("the network is a flow model: no packet loss, incast collapse, ECN or PFC");
  if (setup.cluster->topology().planes() > 1) {
    sentences.push_back(
        fmt::format("every transfer is striped evenly over {} planes", setup.cluster->topology().planes()));
  }
  for (std::size_t i = 0; i < config.cluster.link_overrides.size(); ++i) {
    const auto& override = config.cluster.link_overrides[i];
    sentences.push_back(fmt::format("{} links that match '{}' have another {} than the topology says (--link-override)",
                                    setup.cluster->overridden_links()[i], override.pattern, to_text(override)));
  }
  if (has_failures(config.cluster)) sentences.push_back(failures_of(config));
  if (config.step_overhead.count() == 0) sentences.push_back("no software overhead a message (--step-overhead)");
  if (config.reduce_rate.count() == 0) sentences.push_back("adding received gradients costs nothing (--reduce-rate)");
  if (config.overlap_slowdown == 1) {
    sentences.push_back("computing and communicating do not slow each other down (--overlap-slowdown)");
  }
  if (Registry<CollectiveAlgorithm>::instance().make(config.algorithm)->in_switches()) {
    sentences.push_back(
        "switches can add and multicast, at line rate and with as much memory as it takes (in-network)");
  }
  for (const auto& [bytes, choice] : setup.lowered.choices) {
    sentences.push_back(fmt::format("'auto' picked {} for all-reduce of {}, by estimate: {}", choice.picked(),
                                    to_text(Bytes(bytes)), to_text(choice)));
  }
  for (const auto& outside : setup.trace.outside) {
    const bool simulated = outside.kind == OutsideTime::Kind::communication;
    sentences.push_back(fmt::format("recorded {} of {} an iteration {}", to_text(outside.kind),
                                    to_text(outside.samples.typical()),
                                    simulated          ? "is left out: communication is simulated"
                                    : config.overheads ? "is counted as it was recorded"
                                                       : "is left out (--overheads)"));
  }
  return sentences;
}

}  // namespace

namespace {

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
  std::map<std::vector<std::shared_ptr<const CollectiveSchedule>>, Efforts> known;  // buckets of one size are alike
  for (const auto& bucket : steps.buckets) {
    std::vector<std::shared_ptr<const CollectiveSchedule>> key;
    for (const auto& piece : bucket.pieces) key.push_back(piece.schedule);
    const auto [entry, is_new] = known.try_emplace(std::move(key));
    if (is_new) entry->second = efforts_of(bucket.pieces);
    efforts += entry->second;
  }
  return efforts * steps.iterations;
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
      class_program(config.sync, steps, static_cast<int>(setup.classes.first.size()), setup.lowered.members);
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
  setup.lowered = lower(*setup.compute, setup.plan, *setup.cluster, setup.placement, lowering);
  const auto folded_steps = with_folded_collectives(setup.lowered.steps);
  const bool folds = may_fold(executor_options(config));
  setup.efforts = predicted_efforts(folded_steps);
  if (!folds) setup.efforts.phase = setup.efforts.flow;
  setup.fidelity = fidelity_for(config.fidelity, setup.efforts, config.network);
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

Prediction predict(const RunConfig& asked) {
  const auto begin = std::chrono::steady_clock::now();
  auto config = asked;
  auto made = make_setup(config);
  config.fidelity = to_text(level_for(config, *made));  // for all that it is compared with, too
  if (config.fidelity != to_text(made->fidelity)) made = make_setup(config);
  const auto& setup = *made;
  Variation plain;
  plain.measure_saturation = config.details != Details::none || config.explain;
  plain.keep_spans = config.details == Details::full;
  const auto result = simulate(setup, config, plain);

  Prediction prediction;
  add_identity(prediction.row, config, setup);
  add_times(prediction.row, config, setup, result);
  add_traffic(prediction.row, config, setup, result);
  prediction.assumptions = assumptions_of(config, setup);
  prediction.choices = setup.lowered.choices;
  prediction.details = detail_tables(config, setup, result);
  if (config.explain) prediction.explanation.push_back(explain(config, setup, result, prediction.row));
  prediction.wall_time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return prediction;
}

double number(const Record& row, const std::string& name) {
  for (const auto& field : row) {
    if (field.name != name) continue;
    if (const auto* real = std::get_if<double>(&field.value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(&field.value)) return static_cast<double>(*whole);
  }
  throw internal_error(fmt::format("a result has no number '{}'", name));
}

}  // namespace tandem
