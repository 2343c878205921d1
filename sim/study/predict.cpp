#include "sim/study/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "sim/core/error.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/comparison.hpp"
#include "sim/study/cost.hpp"
#include "sim/study/details.hpp"
#include "sim/study/explain.hpp"
#include "sim/study/machine.hpp"
#include "sim/study/provenance.hpp"
#include "sim/study/setup.hpp"

namespace tandem {
namespace {

// Those that run: what `auto` picked, or what was asked for.
std::set<std::string> picked_algorithms(const RunConfig& config, const Setup& setup) {
  std::set<std::string> picked;
  for (const auto& [bytes, choice] : setup.lowered.choices) picked.insert(choice.picked());
  if (picked.empty()) picked.insert(config.algorithm);
  return picked;
}

std::vector<std::string> notes_on_algorithms(const RunConfig& config, const Setup& setup) {
  std::vector<std::string> notes;
  for (const auto& name : picked_algorithms(config, setup)) {
    auto note = Registry<CollectiveAlgorithm>::instance().make(name)->note(setup.group.shape);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
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
  text("picked_algorithms", fmt::format("{}", fmt::join(picked_algorithms(config, setup), ", ")));
  row.push_back({"ports_per_device", "1", setup.cluster->ports_per_device()});
  row.push_back({"cost_per_device", "USD (assumed prices)", cost_of(*setup.cluster)});
  text("trace_hash", hash_text(trace_hash(setup.trace)));
  text("platform_hash", hash_text(platform_hash(*setup.cluster)));
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
  const auto error = fidelity_error(config, setup);
  row.push_back({"fidelity_error", "1", error.value});
  row.push_back({"fidelity_error_ranks", "1", error.ranks});
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
  for (const auto& note : notes_on_algorithms(config, setup)) sentences.push_back(note);
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

Prediction predict(const RunConfig& asked, const std::function<void(const Setup&)>& before_running) {
  const auto begin = std::chrono::steady_clock::now();
  auto config = asked;
  auto made = make_setup(config);
  config.fidelity = to_text(level_for(config, *made));  // for all that it is compared with, too
  if (config.fidelity != to_text(made->fidelity)) made = make_setup(config);
  const auto& setup = *made;
  if (before_running) before_running(setup);
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
