// What a layer shard costs on a device, from a trace's samples: measured where its shape was recorded, interpolated
// between recorded shapes, and only where nothing was measured a model, marked as such. Measured times are never
// clamped to a roofline (3x3 convolutions beat the direct-FLOP peak by Winograd's algorithm).
#pragma once

#include <string>
#include <vector>

#include "sim/compute/device.hpp"
#include "sim/compute/split_curve.hpp"
#include "traces/trace.hpp"

namespace tandem {

struct ComputeOptions {
  std::int64_t batch = 0;           // per replica; 0: as recorded
  std::string device = "recorded";  // or a named device
  double device_scale = 1;          // 2: twice as fast
};

class ComputeModel {
 public:
  // Usage error for an unknown device; input error where the trace has no times, or no shapes to re-time from.
  // The trace must outlive the model.
  ComputeModel(const Trace& trace, const ComputeOptions& options);

  // Seconds that one device needs for the pass over its shard; the shard's batch is a fraction of batch(). A shard cut
  // along several axes costs the product of what each cut alone would leave.
  [[nodiscard]] Seconds time(LayerId layer, Pass pass, const Shard& shard = {}) const;
  [[nodiscard]] Origin origin(LayerId layer, Pass pass, const Shard& shard = {}) const;
  [[nodiscard]] Seconds total(Pass pass) const;
  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  // Layers of which a pass over such a shard lies outside of what was recorded.
  [[nodiscard]] std::vector<std::string> extrapolated(const Shard& shard = {}) const;
  // What was measured, interpolated, extrapolated or modelled: sentences for the output.
  [[nodiscard]] std::vector<std::string> assumptions() const;

 private:
  [[nodiscard]] double batch_fraction(const Shard& shard) const;
  [[nodiscard]] bool on_curve() const;
  [[nodiscard]] Ratio ratio(const Layer& layer, Pass pass, const Shard& shard) const;

  const Trace& trace_;
  ComputeOptions options_;
  std::int64_t batch_ = 1;
  bool modelled_ = false;
  DevicePreset device_;
};

}  // namespace tandem
