// A partitioner's output: who holds which shard of which layer, what travels along the model's edges, and which
// gradients are summed over which ranks. Plain data.
#pragma once

#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

enum class ShardAxis { none, batch, height, output_channel, input_channel };

// One layer: its stage, and how its work is cut over the ranks of the stage.
struct LayerPlan {
  std::int32_t stage = 0;
  std::int32_t replicas = 1;         // copies that each take a share of the global batch
  ShardAxis axis = ShardAxis::none;  // cut within a replica
  std::int32_t parts = 1;
};

// Ranks that act together, in order.
struct RankGroup {
  std::vector<Rank> ranks;
};

// One parameter tensor's gradient is summed over a group after the layer's backward pass.
struct GradientReduction {
  LayerId layer;
  std::int32_t tensor = 0;  // index into Layer::parameters
  std::int32_t group = 0;   // index into Plan::groups
  Bytes bytes{};
};

// What an edge needs besides both ends being on one rank.
struct EdgeTransfer {
  enum class Kind { activation, halo, all_gather, reduce_scatter };
  Kind kind = Kind::activation;
  LayerId from, to;
  std::int32_t from_stage = 0, to_stage = 0;
  Bytes bytes{};  // one way, one replica, forward; the backward pass sends as much in the other direction
};

// Peak memory of a rank, by what it holds.
struct MemoryUse {
  Bytes parameters{};
  Bytes gradients{};
  Bytes optimizer_state{};
  Bytes activations{};
  [[nodiscard]] Bytes total() const { return parameters + gradients + optimizer_state + activations; }
};

struct Plan {
  std::int32_t ranks = 1;
  std::int32_t stages = 1;
  std::vector<LayerPlan> layers;  // a layer of the trace
  std::vector<RankGroup> groups;
  std::vector<GradientReduction> reductions;  // in the order of the trace's parameters
  std::vector<EdgeTransfer> transfers;
  std::vector<MemoryUse> memory;  // a rank, or one entry where all are equal
};

}  // namespace tandem
