#include "sim/compute/device.hpp"

#include <algorithm>

namespace tandem {
namespace {

constexpr double kElementBytes = 4;  // re-timed layers are single precision

bool all(const std::vector<int>& values, int wanted) {
  return std::all_of(values.begin(), values.end(), [&](int v) { return v == wanted; });
}

double product_from(const Shape& shape, std::size_t first) {
  double product = 1;
  for (std::size_t d = first; d < shape.size(); ++d) product *= static_cast<double>(shape[d]);
  return product;
}

// Rows of the input that a share of the output's rows reads, as a fraction of the input's: the halo counts.
double input_rows(const Layer& layer, double share) {
  if (share >= 1 || layer.kernel.empty() || layer.output_shape.size() < 3) return share;
  const double rows = static_cast<double>(layer.input_shapes[0][2]);
  const double out_rows = std::max(1.0, share * static_cast<double>(layer.output_shape[2]));
  const double read = (out_rows - 1) * layer.stride[0] + (layer.kernel[0] - 1) * layer.dilation[0] + 1;
  return std::min(1.0, read / rows);
}

// Elements that a shard of a layer touches.
struct Sizes {
  double in = 0, out = 0, weights = 0;
};

Sizes sizes_of(const Layer& layer, const Shard& shard) {
  Sizes sizes;
  for (const auto& shape : layer.input_shapes) sizes.in += static_cast<double>(elements(shape));
  // Only a layer with weights combines its input channels; others have as many of them as they put out.
  const double in_channels = layer.parameters.empty() ? shard.output_channel : shard.input_channel;
  sizes.in *= shard.batch * input_rows(layer, shard.height) * in_channels;
  sizes.out = static_cast<double>(elements(layer.output_shape)) * shard.batch * shard.height * shard.output_channel;
  sizes.weights = static_cast<double>(layer.parameter_count()) * shard.output_channel * shard.input_channel;
  return sizes;
}

// Bytes to and from memory of a layer that computes next to nothing: every operand read once, every result written
// once; batch normalization reads its input twice (statistics, then normalization).
double streamed_bytes(const Layer& layer, Pass pass, const Sizes& sizes) {
  const bool bn = layer.kind == OpKind::bn;
  switch (pass) {
    case Pass::forward:
      return kElementBytes * (sizes.in + sizes.out + (bn ? sizes.in : 0));
    case Pass::backward_data:
      return kElementBytes * (sizes.in + sizes.out + (bn || layer.kind == OpKind::relu ? sizes.out : 0));
    case Pass::backward_weight:
      return layer.parameters.empty() ? 0 : kElementBytes * (sizes.in + sizes.out);
    case Pass::update:
      return 0;
  }
  return 0;
}

Seconds filter_time(const DevicePreset& device, const Layer& layer, Pass pass, const Shard& shard) {
  const auto& rates = device.rates[static_cast<std::size_t>(pass)][static_cast<std::size_t>(filter_class(layer))];
  const auto sizes = sizes_of(layer, shard);
  const double work = layer.flops[0].count() * shard.batch * shard.height * shard.output_channel * shard.input_channel;
  const double filter = product_from(layer.parameters[0].shape, 2);
  const double in_channels = static_cast<double>(layer.parameters[0].shape[1]) * shard.input_channel;  // of a group
  const double out_channels = static_cast<double>(layer.parameters[0].shape[0]) * shard.output_channel / layer.groups;
  double steps = 1;  // of the window, between two outputs
  for (const int stride : layer.stride) steps *= stride;
  const double pixels = sizes.out / (out_channels * layer.groups);  // batch x output pixels
  double length = 1, sums = 1;
  switch (pass) {
    case Pass::forward:
      length = in_channels * filter;
      sums = sizes.out;
      break;
    case Pass::backward_data:
      length = out_channels * filter / steps;
      sums = sizes.in;
      break;
    default:
      length = pixels;
      sums = sizes.weights;
      break;
  }
  const double arithmetic = work / (device.peak.count() * rates.efficiency) * (1 + rates.sum_length_half / length) *
                            (1 + rates.sums_half / sums);
  const double memory = kElementBytes * (sizes.in + sizes.out + sizes.weights) /
                        (device.memory_bandwidth.count() * rates.memory_efficiency);
  return rates.overhead + Seconds(std::max(arithmetic, memory));
}

// Read weight, gradient and momentum, write weight and momentum.
Seconds update_time(const DevicePreset& device, const Sizes& sizes) {
  if (!(sizes.weights > 0)) return Seconds(0);
  return Seconds(5 * kElementBytes * sizes.weights / (device.memory_bandwidth.count() * device.memory_efficiency)) +
         device.launch_overhead;
}

Seconds one_pass(const DevicePreset& device, const Layer& layer, Pass pass, const Shard& shard) {
  const bool filter = (layer.kind == OpKind::conv || layer.kind == OpKind::fc) && !layer.parameters.empty() &&
                      layer.parameters[0].shape.size() >= 2 && layer.flops[0].count() > 0;
  if (filter) return filter_time(device, layer, pass, shard);
  const double bytes = streamed_bytes(layer, pass, sizes_of(layer, shard));
  if (bytes == 0) return Seconds(0);
  return Seconds(bytes / (device.memory_bandwidth.count() * device.memory_efficiency)) + device.launch_overhead;
}

}  // namespace

std::string_view to_text(FilterClass filter) {
  constexpr std::string_view texts[] = {"1x1", "1x1 strided", "3x3", "other"};
  return texts[static_cast<std::size_t>(filter)];
}

FilterClass filter_class(const Layer& layer) {
  if (layer.kind == OpKind::fc || all(layer.kernel, 1)) {
    return all(layer.stride, 1) ? FilterClass::pointwise : FilterClass::pointwise_strided;
  }
  const bool winograd = all(layer.kernel, 3) && all(layer.stride, 1) && all(layer.dilation, 1) && layer.groups == 1;
  return winograd ? FilterClass::winograd : FilterClass::other;
}

Seconds modelled_time(const DevicePreset& device, const Layer& layer, Pass pass, const Shard& shard) {
  if (layer.kind == OpKind::flatten) return Seconds(0);
  if (pass == Pass::update) return update_time(device, sizes_of(layer, shard));
  if (!layer.backward_is_joint || pass == Pass::forward) return one_pass(device, layer, pass, shard);
  if (pass == Pass::backward_data) return Seconds(0);
  const auto weight = one_pass(device, layer, Pass::backward_weight, shard);
  return layer.needs_input_gradient ? one_pass(device, layer, Pass::backward_data, shard) + weight : weight;
}

}  // namespace tandem
