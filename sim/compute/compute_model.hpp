// What a layer shard costs on a device, from a trace's samples: measured where its shape was recorded, interpolated
// between recorded shapes, and only where nothing was measured a model, marked as such. Measured times are never
// clamped to a roofline (3x3 convolutions beat the direct-FLOP peak by Winograd's algorithm).
#pragma once

#include <string>
#include <vector>

#include "sim/core/registry.hpp"
#include "traces/trace.hpp"

namespace tandem {

// A named device: nominal rates and how much of them CNN layers reach. Times made from it are "modelled".
struct DevicePreset {
  static constexpr const char* plugin_kind = "device";
  static constexpr const char* plugin_help = "named devices that a trace can be re-timed for (times are modelled)";
  struct PluginContext {};

  std::string name;
  FlopsPerSecond peak{};              // single precision, nominal
  BytesPerSecond memory_bandwidth{};  // nominal
  Bytes memory{};
  double winograd_efficiency = 1;   // of peak, direct-convolution FLOPs, 3x3 stride 1
  double conv_efficiency = 0.6;     // of peak, other convolutions
  double gemm_efficiency = 0.7;     // of peak, fully connected layers
  double memory_efficiency = 0.75;  // of memory bandwidth
  Seconds launch_overhead{};        // a kernel
};

// Part of a layer that one rank computes, as fractions of the recorded shape.
struct Shard {
  double batch = 1;
};

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

  // Seconds that one device needs for the pass over its shard; the shard's batch is a fraction of batch().
  [[nodiscard]] Seconds time(LayerId layer, Pass pass, const Shard& shard = {}) const;
  [[nodiscard]] Seconds total(Pass pass) const;
  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  // What was measured, interpolated, extrapolated or modelled: sentences for the output.
  [[nodiscard]] std::vector<std::string> assumptions() const;

 private:
  [[nodiscard]] Seconds measured(const Layer& layer, Pass pass, double batch_fraction) const;
  [[nodiscard]] Seconds modelled(const Layer& layer, Pass pass, double batch_fraction) const;
  [[nodiscard]] bool within_curves() const;

  const Trace& trace_;
  ComputeOptions options_;
  std::int64_t batch_ = 1;
  bool modelled_ = false;
  DevicePreset device_;
};

}  // namespace tandem
