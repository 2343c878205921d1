#include "sim/study/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/core/error.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/study/machine.hpp"

namespace tandem {
namespace {

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

// What `auto` picked for all ranks is what is judged.
std::string as_picked(const RunConfig& config, const Setup& setup) {
  std::set<std::string> picked;
  for (const auto& [bytes, choice] : setup.lowered.choices) picked.insert(choice.picked());
  if (picked.empty()) return config.algorithm;
  return picked.size() == 1 ? *picked.begin() : fmt::format("auto:among={}", fmt::join(picked, "+"));
}

}  // namespace

Fidelity level_for(const RunConfig& config, const Setup& setup) {
  if (asked_fidelity(config.fidelity) || config.baseline_ranks <= config.cluster.ranks) return setup.fidelity;
  return std::max(setup.fidelity,
                  with_context("the baseline", [&] { return make_setup(baseline_of(config)); })->fidelity);
}

// One rank has nobody to wait for, so its iteration is the sum of its compute.
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

Seconds healthy_iteration(const RunConfig& config) {
  auto healthy = config;
  healthy.cluster = without_failures(config.cluster);
  const auto setup = make_setup(healthy);
  return iteration_time(simulate(*setup, healthy, {}), healthy);
}

Seconds alpha_beta_iteration(const Setup& setup, const RunConfig& config) {
  const auto& steps = setup.lowered.steps;
  Seconds sum = steps.update;
  for (const auto& compute : steps.forward) sum += compute.duration;
  for (const auto& compute : steps.backward) sum += compute.duration;
  for (const auto& pause : steps.pauses) sum += pause.duration;
  std::map<std::int64_t, Seconds> known;  // one evaluation a size
  for (const auto& bucket : steps.buckets) {
    // Chunks follow each other: in all, the channels' whole shares.
    Bytes bytes{};
    for (const auto& piece : bucket.pieces) bytes += piece.schedule->bytes();
    const auto [entry, is_new] = known.try_emplace(bytes.count());
    if (is_new) {
      const auto choice = setup.lowered.choices.find(bytes.count());
      const auto& name = choice == setup.lowered.choices.end() ? config.algorithm : choice->second.picked();
      const auto pieces = all_reduce_pieces(*Registry<CollectiveAlgorithm>::instance().make(name), setup.group.shape,
                                            bytes, config.channels, Bytes(0));
      entry->second = alpha_beta_time(pieces, *setup.cluster, setup.group.devices, alpha_beta_options(config));
    }
    sum += entry->second;
  }
  return sum;
}

FidelityError fidelity_error(const RunConfig& config, const Setup& setup) {
  if (setup.fidelity == Fidelity::flow || setup.lowered.steps.buckets.empty()) return {0, config.cluster.ranks};
  // Halves rounded down: powers of two have no remainders, which are what some algorithms are slow at.
  for (int ranks = config.cluster.ranks; ranks >= 2; ranks /= 2) {
    if (!is_small({ranks - 1.0, 0, 0})) continue;  // all but one send something: nothing to set up
    auto level = ranks == config.cluster.ranks ? config : with_ranks(config, ranks);
    level.algorithm = as_picked(config, setup);
    level.memory = Bytes(0);  // a fraction of the ranks may have more of the batch each
    auto finer = level;
    finer.fidelity = to_text(Fidelity::flow);
    std::unique_ptr<Setup> setup_level, setup_finer;
    try {
      setup_finer = make_setup(finer);
      if (!is_small(setup_finer->efforts.flow)) continue;
      setup_level = make_setup(level);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      continue;
    }
    const auto time_finer = iteration_time(simulate(*setup_finer, finer, {}), finer);
    const auto time = iteration_time(simulate(*setup_level, level, {}), level);
    return {time == time_finer ? 0 : std::abs(time / time_finer - 1), ranks};
  }
  return {std::numeric_limits<double>::quiet_NaN(), 0};
}

}  // namespace tandem
