// The time of chunks that follow each other through the steps of a collective, while the chunks under way share links.
//
// A step of one chunk is a task: it waits for other tasks, then for its latency, then its messages move, and then their
// receivers work on them. What moves at once shares links by max-min fairness among messages (Bertsekas and Gallager,
// Data Networks, 1992, section 6.5), where messages of one kind move at the speed of the slowest of them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

// A link, or a class of links that all steps load alike.
struct PipelineLoad {
  int link = 0;      // index into PipelinedCollective::bandwidths
  double bytes = 0;  // of the step's messages that take it
};

// Messages of one step that are alike: they begin together, and are as large and as fast as each other.
struct PipelineMessages {
  double bytes = 0;  // of one, the largest
  std::vector<PipelineLoad> loads;
};

struct PipelineStep {
  Seconds latency{};
  std::vector<PipelineMessages> messages;
  Seconds receive{};             // what its busiest receiver does then
  int receiver = 0;              // steps of one receiver are received one after another, as they come
  std::vector<int> after;        // steps of the same chunk, all before this one
  std::vector<int> after_sent;   // the same, of which only the messages must be through, not what receivers do
  std::vector<int> after_chunk;  // steps of the chunk before
  std::vector<int> after_chunk_sent;
};

struct PipelinedChannel {
  int chunks = 1;  // all alike
  std::vector<PipelineStep> steps;
};

struct PipelinedCollective {
  std::vector<PipelinedChannel> channels;
  std::vector<double> bandwidths;  // of links, in bytes/s
};

// Up to the end of the last chunk. Of many chunks only the first are looked at, some tens of thousands of tasks; the
// others follow at the pace of the middle ones of those.
[[nodiscard]] Seconds pipeline_time(const PipelinedCollective& collective);

}  // namespace tandem
