// How a layer's time shrinks when only a part of it is computed, from what was recorded of that layer.
#pragma once

#include "traces/trace.hpp"

namespace tandem {

// Where a time comes from; a larger value deserves less trust.
enum class Origin { measured, interpolated, extrapolated, modelled };

struct Ratio {
  double value = 1;  // time of the part / time of the whole
  Origin origin = Origin::measured;
};

// Channels that a library handles in one go: below one block nothing is gained by having fewer, so that times over
// channels are a staircase. oneDNN with AVX-512: 16. 1: no such blocks are known.
[[nodiscard]] int channel_block(const Trace& trace);

// The time of a `fraction` along the axis over the time of the whole, for one pass.
// Recorded fractions are taken as they are. Between them times are interpolated linearly over the extent; along
// channels over the extent rounded up to whole blocks, where recorded points of equal blocks are averaged. Below the
// smallest and above the largest recorded fraction they are in proportion to that extent, and extrapolated.
// Layers without sums over channels (normalization, activations, pools, dropout) cost what their elements cost, so that
// their batch curve serves for every axis.
[[nodiscard]] Ratio split_ratio(const Layer& layer, Pass pass, SplitCurve::Axis axis, double fraction, int block);

}  // namespace tandem
