// The contract of a gradient schedule: how the gradients of a backward pass are grouped and shipped. One file each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/registry.hpp"
#include "sim/core/units.hpp"

namespace tandem {

struct GradientTensor {
  LayerId layer;
  std::int32_t tensor = 0;  // index into Layer::parameters
  Bytes bytes{};
};

// Gradients that travel in one collective, which may start once tensor `ready_after` has its gradient.
struct GradientBucket {
  std::vector<std::int32_t> tensors;  // indices into the order of arrival
  Bytes bytes{};
  std::int32_t ready_after = 0;
};

class GradientSchedule {
 public:
  static constexpr const char* plugin_kind = "gradients";
  static constexpr const char* plugin_help = "how gradients are grouped and shipped during the backward pass";
  struct PluginContext {
    bool first_iteration = false;   // the layout before a framework has seen the order of arrival
    std::vector<Bytes> recorded{};  // sizes of the all-reduces that the trace saw, in order; may be empty
  };

  virtual ~GradientSchedule() = default;
  // `arrival`: tensors in the order in which the backward pass produces their gradients. The buckets cover each
  // tensor exactly once, in the order in which their collectives are launched.
  [[nodiscard]] virtual std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const = 0;
};

// Groups tensors in the given order; a bucket closes when it reaches its cap, and a tensor is never split. The first
// bucket has a cap of its own. Caps of 0 close after every tensor.
[[nodiscard]] std::vector<GradientBucket> fill_buckets(const std::vector<GradientTensor>& arrival,
                                                       const std::vector<std::int32_t>& order, Bytes first_cap,
                                                       Bytes cap);

}  // namespace tandem
