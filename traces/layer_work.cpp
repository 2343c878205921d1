#include "traces/layer_work.hpp"

#include <fmt/format.h>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

struct Work {
  double forward = 0, backward_data = 0, backward_weight = 0;
};

double window_size(const Layer& layer) {
  double size = 1;
  for (const int extent : layer.kernel) size *= extent;
  return size;
}

Work work_of(const Layer& layer) {
  const auto in = static_cast<double>(elements(layer.input_shapes.at(0)));
  const auto out = static_cast<double>(elements(layer.output_shape));
  const auto& input = layer.input_shapes[0];
  switch (layer.kind) {
    case OpKind::conv: {
      const double macs = out * static_cast<double>(input.at(1)) / layer.groups * window_size(layer);
      return {2 * macs, 2 * macs, 2 * macs};
    }
    case OpKind::fc: {
      const double macs = in * static_cast<double>(layer.output_shape.back());
      return {2 * macs, 2 * macs, 2 * macs};
    }
    // Forward: mean 1, variance 3, scale and shift 2. Backward: the sums of dy and of dy (x - mean) 4, dx 5.
    case OpKind::bn:
      return {6 * in, 5 * in, 4 * in};
    case OpKind::relu:
      return {in, in, 0};
    case OpKind::max_pool:
      return {out * window_size(layer), out, 0};
    case OpKind::avg_pool:
      return {out * window_size(layer), out * window_size(layer), 0};
    case OpKind::add:
      return {out * static_cast<double>(layer.input_shapes.size() - 1), 0, 0};
    case OpKind::dropout:
      return {in, in, 0};
    case OpKind::softmax_loss:
      return {5 * in, in, 0};  // max, subtract, exp, sum, divide; then p - 1 at the label
    default:
      return {};
  }
}

}  // namespace

std::int64_t window_extent(std::int64_t in, int kernel, int stride, int pad_begin, int pad_end, int dilation,
                           bool ceil_mode) {
  const std::int64_t room = in + pad_begin + pad_end - std::int64_t{dilation} * (kernel - 1) - 1;
  if (room < 0) {
    throw input_error(fmt::format("a window of {} (dilation {}) does not fit an extent of {} with pads {} and {}",
                                  kernel, dilation, in, pad_begin, pad_end));
  }
  std::int64_t out = room / stride + 1;
  if (ceil_mode && room % stride != 0 && out * stride < in + pad_begin) ++out;
  return out;
}

void set_flops(Layer& layer) {
  Work work = work_of(layer);
  if (!layer.needs_input_gradient) work.backward_data = 0;
  if (layer.backward_is_joint) {
    work.backward_weight += work.backward_data;
    work.backward_data = 0;
  }
  layer.flops = {Flops(work.forward), Flops(work.backward_data), Flops(work.backward_weight),
                 Flops(4 * static_cast<double>(layer.parameter_count()))};
}

}  // namespace tandem
