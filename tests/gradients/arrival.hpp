// The gradients of one data-parallel rank, in the order in which its backward pass makes them.
#pragma once

#include <vector>

#include "partitioners/partitioner.hpp"
#include "sim/gradients/gradient_schedule.hpp"
#include "traces/trace.hpp"

namespace tandem {

inline std::vector<GradientTensor> arrival_of(const Trace& trace) {
  const auto plan =
      Registry<Partitioner>::instance().make("data")->partition(trace, {4, 32, "float32", "float32", "sgd"});
  std::vector<GradientTensor> arrival;
  for (auto r = plan.reductions.rbegin(); r != plan.reductions.rend(); ++r) {
    arrival.push_back({r->layer, r->tensor, r->bytes});
  }
  return arrival;
}

}  // namespace tandem
