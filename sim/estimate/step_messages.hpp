// What a step of a collective sends, with the links that it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

struct StepMessage {
  int channel = 0;
  int from = 0;  // members
  int to = 0;
  int place = 0;               // among the sender's messages of the step
  std::size_t path_begin = 0;  // in StepMessages::paths
  std::size_t path_end = 0;
  std::int64_t bytes = 0;  // of all repetitions
  int repetitions = 1;
  Seconds latency{};  // of all repetitions, with the overhead
  Seconds receive{};  // what its receiver does with it
  Seconds end{};
};

struct StepMessages {
  std::vector<StepMessage> messages;
  std::vector<LinkId> paths;
};

}  // namespace tandem
