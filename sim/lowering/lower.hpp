// Plan + gradient schedule + synchronization strategy + collective algorithm -> Program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/compute/compute_model.hpp"
#include "sim/gradients/gradient_schedule.hpp"
#include "sim/ir/plan.hpp"
#include "sim/sync/sync_strategy.hpp"

namespace tandem {

struct LoweringOptions {
  std::string gradients = "ddp";
  std::string algorithm = "ring";
  std::string sync = "bsp";
  bool first_iteration = false;
  int iterations = 1;
  int channels = 1;
  Bytes chunk{};           // 0: not cut
  bool overheads = false;  // the trace's time outside of layers counts too
  AlphaBetaOptions costs;  // of the network, for algorithms that choose by it
};

struct LoweredProgram {
  std::unique_ptr<Program> program;
  std::vector<GradientBucket> buckets;
  std::vector<GradientTensor> arrival;
  TrainingSteps steps;
  // By the bytes of a bucket, where the algorithm leaves the work to another.
  std::map<std::int64_t, CollectiveChoice> choices;
};

// The order in which a backward pass over the layers produces gradients: layers, and tensors within a layer, in
// reverse order of declaration.
[[nodiscard]] std::vector<GradientTensor> gradient_arrival(const Plan& plan);

// The members of a collective over all workers in the order that the algorithm wants, servers and switches last, and
// its shape.
struct CollectiveGroup {
  RankSet ranks;
  GroupShape shape;
  std::vector<DeviceId> devices;  // of the members
};

// `placement[r]` is the device of rank r, dedicated servers and switches that are members after the workers; `tree` is
// that of the switches.
[[nodiscard]] CollectiveGroup collective_group(const CollectiveAlgorithm& algorithm, const Cluster& cluster,
                                               const std::vector<DeviceId>& placement, int workers,
                                               std::shared_ptr<const SwitchTree> tree = nullptr);

[[nodiscard]] LoweredProgram lower(const ComputeModel& compute, const Plan& plan, const Cluster& cluster,
                                   const CollectiveGroup& group, const LoweringOptions& options);

// The program of the same steps in which each class of equal workers is one rank: `classes` of them, and collectives
// among all `members` devices. For groups without dedicated servers.
[[nodiscard]] std::unique_ptr<Program> class_program(const std::string& sync, TrainingSteps steps, int classes,
                                                     std::vector<DeviceId> members);

}  // namespace tandem
