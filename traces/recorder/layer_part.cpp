#include "traces/recorder/layer_part.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/core/error.hpp"
#include "traces/layer_work.hpp"

namespace tandem {
namespace {

using Axis = SplitCurve::Axis;
constexpr double kRounding = 1e-9;  // 1/3 of 9 is 3

// Input rows that the windows of output rows [first, first + rows) reach, the pads not yet cut off.
struct Reach {
  std::int64_t begin, end;
};

Reach reach_of(const Layer& layer, std::int64_t first, std::int64_t rows) {
  const std::int64_t window = std::int64_t{layer.dilation[0]} * (layer.kernel[0] - 1) + 1;
  const std::int64_t begin = first * layer.stride[0] - layer.pad_begin[0];
  return {begin, begin + (rows - 1) * layer.stride[0] + window};
}

void set_rows(Layer& part, std::int64_t rows) {
  const std::int64_t input = part.input_shapes[0][2];
  const auto inside = [&](const Reach& reach) {
    return std::min(reach.end, input) - std::max<std::int64_t>(reach.begin, 0);
  };
  Reach most = reach_of(part, 0, rows);
  for (std::int64_t first = rows; first + rows <= part.output_shape[2]; first += rows) {
    const Reach reach = reach_of(part, first, rows);
    if (inside(reach) > inside(most)) most = reach;
  }
  part.pad_begin[0] = static_cast<int>(std::max<std::int64_t>(-most.begin, 0));
  part.pad_end[0] = static_cast<int>(std::max<std::int64_t>(most.end - input, 0));
  part.input_shapes[0][2] = inside(most);
  part.output_shape[2] = rows;
}

void set_channels(Layer& part, Axis axis, std::int64_t channels) {
  const bool output = axis == Axis::output_channel;
  (output ? part.output_shape : part.input_shapes[0])[1] = channels;
  part.parameters[0].shape[output ? 0 : 1] = channels;
  if (output && part.parameters.size() > 1) part.parameters[1].shape[0] = channels;
}

}  // namespace

bool can_split(const Layer& layer, Axis axis) {
  const bool weighted = (layer.kind == OpKind::conv || layer.kind == OpKind::fc) && !layer.parameters.empty();
  if (!weighted) return false;
  if (axis == Axis::height) return layer.kind == OpKind::conv && layer.output_shape.size() == 4;
  return (axis == Axis::output_channel || axis == Axis::input_channel) && layer.groups == 1;
}

std::int64_t split_extent(const Layer& layer, Axis axis) {
  switch (axis) {
    case Axis::height:
      return layer.output_shape.at(2);
    case Axis::output_channel:
      return layer.output_shape.at(1);
    case Axis::input_channel:
      return layer.input_shapes.at(0).at(1);
    default:
      throw internal_error("a layer's parts have no such axis");
  }
}

std::optional<Layer> part_of(const Layer& layer, Axis axis, double fraction) {
  if (!can_split(layer, axis) || !(fraction > 0 && fraction <= 1)) return std::nullopt;
  if (fraction == 1) return layer;
  const std::int64_t all = split_extent(layer, axis);
  const auto extent = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(all) - kRounding));
  if (extent < 1 || extent >= all) return std::nullopt;
  Layer part = layer;
  if (axis == Axis::height) {
    set_rows(part, extent);
    if (part.input_shapes[0][2] < 1) return std::nullopt;  // windows within the pads
  } else {
    set_channels(part, axis, extent);
  }
  set_flops(part);
  return part;
}

std::vector<std::int64_t> split_batches(std::int64_t batch, const std::vector<double>& fractions) {
  std::vector<std::int64_t> batches;
  for (const double fraction : fractions) {
    const auto part = static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(batch) + kRounding));
    batches.push_back(std::clamp<std::int64_t>(part, 1, batch));
  }
  std::sort(batches.begin(), batches.end(), std::greater<>());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::erase(batches, batch);
  return batches;
}

}  // namespace tandem
