// A named device, for which a trace can be re-timed: nominal rates, and how much of them the layers of CNNs reach.
// Times made from it are "modelled".
//
// A convolution of F FLOPs (direct count, a multiply-add is 2) that reads and writes D bytes takes
//
//   overhead + max(F / (peak e) (1 + k_half / k) (1 + m_half / m), D / (bandwidth d))
//
// where k is the length of the sums (forward: channels x filter) and m the number of sums (forward: elements of the
// output). Short sums and few of them leave a processor idle: at k = k_half, or m = m_half, half of the rate is
// reached, which is why efficiency falls with the batch. e, k_half, m_half, d and the overhead are fitted by pass and
// sort of filter to measurements (scripts/studies/devices). e may exceed 1: Winograd's algorithm saves multiplications.
// Whatever else a CNN has is bound by memory traffic.
#pragma once

#include <array>
#include <string>

#include "sim/core/registry.hpp"
#include "traces/trace.hpp"

namespace tandem {

// Part of a layer that one rank computes, as fractions of the recorded shape.
struct Shard {
  double batch = 1;
  double height = 1;  // rows of the output; the input's are more by the halo
  double output_channel = 1;
  double input_channel = 1;
};

// Sorts of convolution filters that libraries treat alike. A fully connected layer is a 1 x 1 filter on one pixel.
enum class FilterClass { pointwise, pointwise_strided, winograd, other };
inline constexpr std::size_t kFilterClasses = 4;
[[nodiscard]] FilterClass filter_class(const Layer& layer);
[[nodiscard]] std::string_view to_text(FilterClass filter);

// What one sort of filter reaches in one pass.
struct Rates {
  Seconds overhead{};
  double efficiency = 1;         // of the device's peak
  double memory_efficiency = 1;  // of its memory bandwidth, at most 1
  double sum_length_half = 0;    // k_half
  double sums_half = 0;          // m_half
};
using RateTable = std::array<std::array<Rates, kFilterClasses>, 3>;  // by pass (forward, data, weight)

struct DevicePreset {
  static constexpr const char* plugin_kind = "device";
  static constexpr const char* plugin_help = "named devices that a trace can be re-timed for (times are modelled)";
  struct PluginContext {};

  std::string name;
  FlopsPerSecond peak{};              // single precision, nominal
  BytesPerSecond memory_bandwidth{};  // nominal
  Bytes memory{};
  RateTable rates{};
  std::string fitted_to;           // whose measurements the rates are
  double memory_efficiency = 0.8;  // of memory bandwidth, in layers that only move data
  Seconds launch_overhead{};       // of such a layer
};

// The tables that the presets share: fitted to cuDNN on a V100, and to oneDNN on this project's recorded processor.
[[nodiscard]] const RateTable& cudnn_rates();
[[nodiscard]] const RateTable& onednn_rates();

// Seconds of one pass over a shard of the layer, from its shapes; 0 where there is nothing to compute. Where the
// layer's backward pass is joint, all of it stands under backward_weight.
[[nodiscard]] Seconds modelled_time(const DevicePreset& device, const Layer& layer, Pass pass, const Shard& shard);

}  // namespace tandem
