#include "sim/lowering/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

// The backward pass of a layer is two operations, gradient of its input first, as autograd engines execute them; its
// parameters' gradients are there after the second.
void add_layer_steps(const ComputeModel& compute, TrainingSteps& steps, std::vector<std::int32_t>& gradient_ready) {
  const auto& layers = compute.trace().layers;
  const auto step = [&](std::size_t layer, Pass pass) {
    const LayerId id{static_cast<std::int32_t>(layer)};
    return TrainingSteps::Compute{fmt::format("{} {}", to_text(pass), layers[layer].name), compute.time(id, pass),
                                  id.value, static_cast<std::int32_t>(pass)};
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto forward = step(i, Pass::forward);
    if (forward.duration.count() > 0) steps.forward.push_back(std::move(forward));
    steps.update += compute.time(LayerId{static_cast<std::int32_t>(i)}, Pass::update);
  }
  gradient_ready.assign(layers.size(), -1);
  for (std::size_t i = layers.size(); i-- > 0;) {
    for (const auto pass : {Pass::backward_data, Pass::backward_weight}) {
      auto backward = step(i, pass);
      if (backward.duration.count() > 0) steps.backward.push_back(std::move(backward));
    }
    gradient_ready[i] = static_cast<std::int32_t>(steps.backward.size()) - 1;
  }
}

// A broadcast (of buffers) is none of the gradients' buckets.
std::vector<Bytes> recorded_buckets(const Trace& trace) {
  std::vector<Bytes> sizes;
  for (const auto& collective : trace.collectives) {
    if (collective.operation == "all-reduce") sizes.push_back(collective.bytes);
  }
  return sizes;
}

// What the recorded device did outside of layers. Launch gaps lie between kernels: each pass gets its share by its
// compute time. The recorded communication is left out: it is what a run simulates.
void add_pauses(const Trace& trace, TrainingSteps& steps) {
  using Pause = TrainingSteps::Pause;
  using Before = Pause::Before;
  Seconds forward{};
  Seconds backward{};
  for (const auto& compute : steps.forward) forward += compute.duration;
  for (const auto& compute : steps.backward) backward += compute.duration;
  const auto whole = forward + backward + steps.update;
  for (const auto& outside : trace.outside) {
    const auto time = outside.samples.typical();
    switch (outside.kind) {
      case OutsideTime::Kind::input_wait:
        steps.pauses.push_back({Pause::Kind::input, Before::forward, time});
        break;
      case OutsideTime::Kind::launch_gap:
        steps.pauses.push_back({Pause::Kind::launch_gap, Before::forward, time * (forward / whole)});
        steps.pauses.push_back({Pause::Kind::launch_gap, Before::backward, time * (backward / whole)});
        steps.pauses.push_back({Pause::Kind::launch_gap, Before::update, time * (steps.update / whole)});
        break;
      case OutsideTime::Kind::copy:
      case OutsideTime::Kind::unmatched:
        steps.pauses.push_back({Pause::Kind::other_work, Before::forward, time});
        break;
      case OutsideTime::Kind::communication:
        break;
    }
  }
}

// Buckets of one size share what was planned for it.
void add_buckets(LoweredProgram& lowered, const std::vector<std::int32_t>& gradient_ready,
                 const std::function<PlannedCollective(Bytes)>& plan) {
  std::map<std::int64_t, std::vector<CollectivePiece>> known;
  for (std::size_t b = 0; b < lowered.buckets.size(); ++b) {
    const auto& bucket = lowered.buckets[b];
    TrainingSteps::Bucket step;
    step.name = fmt::format("all-reduce bucket {}", b);
    step.ready_after =
        std::max(0, gradient_ready[lowered.arrival[static_cast<std::size_t>(bucket.ready_after)].layer.index()]);
    const auto [pieces, is_new] = known.try_emplace(bucket.bytes.count());
    if (is_new) {
      auto planned = plan(bucket.bytes);
      pieces->second = std::move(planned.pieces);
      if (planned.choice) lowered.choices.emplace(bucket.bytes.count(), std::move(*planned.choice));
    }
    step.pieces = pieces->second;
    lowered.steps.buckets.push_back(std::move(step));
  }
}

}  // namespace

std::vector<GradientTensor> gradient_arrival(const Plan& plan) {
  std::vector<GradientTensor> arrival;
  for (auto reduction = plan.reductions.rbegin(); reduction != plan.reductions.rend(); ++reduction) {
    arrival.push_back({reduction->layer, reduction->tensor, reduction->bytes});
  }
  return arrival;
}

CollectiveGroup collective_group(const CollectiveAlgorithm& algorithm, const Cluster& cluster,
                                 const std::vector<DeviceId>& placement, int workers,
                                 std::shared_ptr<const SwitchTree> tree) {
  std::vector<Rank> order;
  for (int r = 0; r < workers; ++r) order.push_back(Rank{r});
  if (algorithm.by_address()) {
    std::sort(order.begin(), order.end(), [&](Rank a, Rank b) { return placement[a.index()] < placement[b.index()]; });
  }
  std::vector<DeviceId> devices;
  for (const auto rank : order) devices.push_back(placement[rank.index()]);
  CollectiveGroup group;
  group.shape = group_shape(cluster, devices, cluster.options().devices_per_node);
  group.shape.tree = std::move(tree);
  const int servers = static_cast<int>(placement.size()) - workers;
  if (!algorithm.by_address()) {
    group.ranks = RankSet::range(0, workers + servers);
  } else {
    for (int s = 0; s < servers; ++s) order.push_back(Rank{workers + s});
    group.ranks = RankSet::list(std::move(order));
  }
  for (int s = 0; s < servers; ++s) devices.push_back(placement[static_cast<std::size_t>(workers + s)]);
  group.devices = std::move(devices);
  return group;
}

std::unique_ptr<Program> class_program(const std::string& sync, TrainingSteps steps, int classes,
                                       std::vector<DeviceId> members) {
  if (steps.servers > 0) throw internal_error("classes of workers beside dedicated servers");
  const auto shared = std::make_shared<const std::vector<DeviceId>>(std::move(members));
  steps.workers = classes;
  steps.group = RankSet::range(0, classes);
  for (auto& bucket : steps.buckets) bucket.members = shared;
  return Registry<SyncStrategy>::instance().make(sync)->program(steps);
}

LoweredProgram lower(const ComputeModel& compute, const Plan& plan, const Cluster& cluster,
                     const CollectiveGroup& group, const LoweringOptions& options) {
  const auto schedule = Registry<GradientSchedule>::instance().make(
      options.gradients, {options.first_iteration, recorded_buckets(compute.trace())});
  const auto algorithm = Registry<CollectiveAlgorithm>::instance().make(options.algorithm);
  const auto sync = Registry<SyncStrategy>::instance().make(options.sync);

  LoweredProgram lowered;
  auto& steps = lowered.steps;
  steps.workers = plan.ranks;
  steps.servers = static_cast<int>(group.devices.size()) - plan.ranks;
  steps.group = group.ranks;
  steps.iterations = options.iterations;
  std::vector<std::int32_t> gradient_ready;
  add_layer_steps(compute, steps, gradient_ready);

  if (options.overheads) add_pauses(compute.trace(), steps);

  lowered.arrival = gradient_arrival(plan);
  lowered.buckets = schedule->buckets(lowered.arrival);
  add_buckets(lowered, gradient_ready, [&](Bytes bytes) {
    return plan_collective(*algorithm,
                           {CollectiveOperation::all_reduce, group.shape, bytes, options.channels, options.chunk, 0},
                           {cluster, group.devices, options.costs});
  });
  if (!steps.buckets.empty() && steps.backward.empty()) {
    throw input_error(fmt::format("the trace of {} has no backward times", compute.trace().model));
  }
  lowered.program = sync->program(steps);
  return lowered;
}

}  // namespace tandem
