#include "sim/estimate/chunk_pipeline.hpp"

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

constexpr double kMostTasks = 30'000;
constexpr int kLeastChunks = 8;

}  // namespace

Seconds pipeline_time(const PipelinedCollective& collective) {
  int most = 0;
  double tasks = 0;  // of one chunk
  for (const auto& channel : collective.channels) {
    most = std::max(most, channel.chunks);
    tasks += static_cast<double>(channel.steps.size());
  }
  if (tasks == 0 || most == 0) return Seconds{};
  const int looked_at = std::min(most, std::max(kLeastChunks, static_cast<int>(kMostTasks / tasks)));
  StepNetwork network(collective.bandwidths);
  const auto id = network.add(collective, 0, looked_at);
  network.advance(std::numeric_limits<double>::infinity());
  if (looked_at == most) return Seconds(network.now());
  // Neither the first nor the last ones, which have the links to themselves.
  const int from = looked_at / 4;
  const int to = 3 * looked_at / 4;
  const double pace = (network.end_of_chunk(id, to) - network.end_of_chunk(id, from)) / (to - from);
  return Seconds(network.now() + pace * (most - looked_at));
}

}  // namespace tandem
