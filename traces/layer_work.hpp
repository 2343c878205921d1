// Shapes and floating-point work of a layer by formula, for builders of traces (models, importers, the recorder).
#pragma once

#include "traces/trace.hpp"

namespace tandem {

// The output extent of a sliding window: floor((in + pads - dilation (kernel - 1) - 1) / stride) + 1, rounded up
// instead with `ceil_mode`, where a last window must still start inside the input or its left pad (PyTorch's rule).
// Input error where the window is larger than the padded input.
[[nodiscard]] std::int64_t window_extent(std::int64_t in, int kernel, int stride, int pad_begin, int pad_end,
                                         int dilation, bool ceil_mode = false);

// Sets `flops` from kind, shapes and parameters. A multiply-add counts 2. Biases are left out, as in the counts of
// the literature (ResNet-50: 4.09 G multiply-adds a sample); element-wise layers count what a plain loop would do.
// Where the backward pass is joint its whole work stands under backward_weight, as its time does. An update is SGD
// with momentum, 4 a parameter. Kinds without a formula (other, concat, lrn) stay 0, unknown.
void set_flops(Layer& layer);

}  // namespace tandem
