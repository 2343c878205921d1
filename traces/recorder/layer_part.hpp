// The part of a convolution or fully connected layer that one of several ranks computes where the layer is split.
#pragma once

#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

// Whether such a layer can be split along the axis: height, output channels and input channels (features of a fully
// connected layer). Grouped convolutions only along the height: their channels belong together in groups.
[[nodiscard]] bool can_split(const Layer& layer, SplitCurve::Axis axis);

// What is left of the layer's shapes, pads and parameters where a rank has `fraction` of the extent along the axis,
// rounded up to whole rows or channels. Height means output rows; the input rows are those that their windows reach,
// halo included, and a side is padded only where it is the layer's border. The ranks' parts lie one after the other;
// the one stands for all that reads most rows, usually one away from the borders. Nothing where the layer cannot be
// split so, or where the part is the whole and the fraction is not 1.
[[nodiscard]] std::optional<Layer> part_of(const Layer& layer, SplitCurve::Axis axis, double fraction);

// Output rows, output or input channels.
[[nodiscard]] std::int64_t split_extent(const Layer& layer, SplitCurve::Axis axis);

// Smaller batches at these fractions of a batch, rounded down but at least 1, falling, none twice.
[[nodiscard]] std::vector<std::int64_t> split_batches(std::int64_t batch, const std::vector<double>& fractions);

}  // namespace tandem
