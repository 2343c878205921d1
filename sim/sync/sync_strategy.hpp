// The contract of a synchronization strategy: what workers compute and ship in one iteration -> a Program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/registry.hpp"
#include "sim/ir/program.hpp"

namespace tandem {

// One training iteration of one worker, lowered to plain pieces; equal for all workers.
struct TrainingSteps {
  struct Compute {
    std::string name;
    Seconds duration{};
    std::int32_t layer = -1;
    std::int32_t pass = -1;
  };
  struct Bucket {
    std::string name;
    std::int32_t ready_after = -1;  // index into `backward`: may be shipped once this is done
    std::vector<CollectivePiece> pieces;
    std::shared_ptr<const std::vector<DeviceId>> members;  // where a worker stands for several (Op::members)
  };
  // Time that no layer accounts for, as recorded: before the first layer, and before each pass.
  struct Pause {
    enum class Kind { input, launch_gap, other_work };
    enum class Before { forward, backward, update };
    Kind kind = Kind::input;
    Before before = Before::forward;
    Seconds duration{};
  };
  int workers = 1;
  int servers = 0;  // dedicated server ranks, numbered after the workers
  RankSet group;    // order of the collectives' members: workers, then servers
  int iterations = 1;
  std::vector<Compute> forward;
  std::vector<Compute> backward;
  std::vector<Bucket> buckets;  // in order of launch
  std::vector<Pause> pauses;    // in order
  Seconds update{};             // the optimizer's step over all parameters
};

class SyncStrategy {
 public:
  static constexpr const char* plugin_kind = "sync";
  static constexpr const char* plugin_help = "when workers wait for each other";
  struct PluginContext {};

  virtual ~SyncStrategy() = default;
  [[nodiscard]] virtual std::unique_ptr<Program> program(const TrainingSteps& steps) const = 0;
};

}  // namespace tandem
