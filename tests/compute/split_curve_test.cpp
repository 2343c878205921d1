// Times of parts of a layer: recorded points as they are, straight lines between them, stairs of whole channel blocks,
// and nothing beyond what was recorded without saying so. Expected values are worked out by hand.
#include "sim/compute/split_curve.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/compute/compute_model.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

using Axis = SplitCurve::Axis;

SplitCurve point(Axis axis, double fraction, double forward) {
  SplitCurve split;
  split.axis = axis;
  split.fraction = fraction;
  split.samples[0].seconds = {forward};
  return split;
}

// 64 -> 64 channels, 8 x 8 pixels, batch 8, 10 s forward in its place.
Layer conv(std::vector<SplitCurve> splits) {
  Layer layer;
  layer.name = "conv";
  layer.kind = OpKind::conv;
  layer.input_shapes = {{8, 64, 8, 8}};
  layer.output_shape = {8, 64, 8, 8};
  layer.parameters = {{"weight", {64, 64, 1, 1}}};
  layer.samples[0].seconds = {10};
  layer.splits = std::move(splits);
  return layer;
}

// Timed apart from its neighbours the whole takes 8 s, half 5, a quarter 3, an eighth 3: stairs of 16 channels.
Layer stairs() {
  return conv({point(Axis::output_channel, 1, 8), point(Axis::output_channel, 0.5, 5),
               point(Axis::output_channel, 0.25, 3), point(Axis::output_channel, 0.125, 3)});
}

TEST(SplitCurve, RecordedPointsStand) {
  for (const auto& [fraction, value] : {std::pair{1.0, 1.0}, {0.5, 5 / 8.0}, {0.25, 3 / 8.0}, {0.125, 3 / 8.0}}) {
    const auto ratio = split_ratio(stairs(), Pass::forward, Axis::output_channel, fraction, 16);
    EXPECT_DOUBLE_EQ(ratio.value, value) << fraction;
    EXPECT_EQ(ratio.origin, Origin::measured);
  }
}

TEST(SplitCurve, ChannelsCostWholeBlocks) {
  const auto at = [](double channels) {
    return split_ratio(stairs(), Pass::forward, Axis::output_channel, channels / 64, 16);
  };
  EXPECT_DOUBLE_EQ(at(33).value, at(48).value) << "33 channels cost three blocks";
  EXPECT_DOUBLE_EQ(at(40).value, (5 + 8) / 2.0 / 8) << "48 lies half-way between 32 and 64";
  EXPECT_DOUBLE_EQ(at(12).value, 3 / 8.0) << "one block, whatever is in it";
  EXPECT_DOUBLE_EQ(at(1).value, 3 / 8.0) << "below the smallest recorded point, but in its block";
  EXPECT_EQ(at(40).origin, Origin::interpolated);
  EXPECT_EQ(at(1).origin, Origin::extrapolated);
  const auto linear = split_ratio(stairs(), Pass::forward, Axis::output_channel, 40 / 64.0, 1);
  EXPECT_DOUBLE_EQ(linear.value, (5 + 0.25 * 3) / 8) << "no blocks known: a straight line";
}

TEST(SplitCurve, ChannelsAreNeverSilentlyProportional) {
  const auto ratio = split_ratio(conv({}), Pass::forward, Axis::input_channel, 8 / 64.0, 16);
  EXPECT_DOUBLE_EQ(ratio.value, 0.25) << "a block of 16 of 64";
  EXPECT_EQ(ratio.origin, Origin::extrapolated);
}

TEST(SplitCurve, HeightRunsInStraightLines) {
  const auto layer = conv({point(Axis::height, 1, 8), point(Axis::height, 0.5, 5), point(Axis::height, 0.25, 3)});
  const auto at = [&](double f) { return split_ratio(layer, Pass::forward, Axis::height, f, 16); };
  EXPECT_DOUBLE_EQ(at(0.375).value, 4 / 8.0);
  EXPECT_DOUBLE_EQ(at(0.125).value, 1.5 / 8);
  EXPECT_EQ(at(0.125).origin, Origin::extrapolated);
}

TEST(SplitCurve, ElementWiseLayersFollowTheirBatchCurve) {
  auto layer = conv({point(Axis::batch, 0.5, 6)});
  layer.kind = OpKind::relu;
  layer.parameters.clear();
  const auto ratio = split_ratio(layer, Pass::forward, Axis::output_channel, 0.5, 16);
  EXPECT_DOUBLE_EQ(ratio.value, 0.6);
  EXPECT_EQ(ratio.origin, Origin::measured);
}

TEST(SplitCurve, NeverLeavesTheRangeOfItsPoints) {
  EXPECT_TRUE(rc::check("between recorded points, between their times", [] {
    std::vector<SplitCurve> splits;
    double least = 1;
    for (const double f : {0.125, 0.25, 0.5}) {
      const double seconds = *rc::gen::inRange(1, 2000) * 0.01;
      splits.push_back(point(Axis::output_channel, f, seconds));
      least = std::min(least, seconds / 10);
    }
    const auto layer = conv(splits);
    double most = 1;
    for (const auto& split : splits) most = std::max(most, split.samples[0].seconds[0] / 10);
    const double fraction = *rc::gen::inRange(8, 65) / 64.0;
    const auto ratio = split_ratio(layer, Pass::forward, Axis::output_channel, fraction, 16);
    RC_ASSERT(ratio.value >= least - 1e-12 && ratio.value <= most + 1e-12);
    RC_ASSERT(ratio.origin != Origin::extrapolated);
  }));
}

TEST(Shards, CutsMultiplyAndScaleTheTimeInPlace) {
  Trace trace;
  trace.model = "toy";
  trace.framework = "oneDNN";
  trace.batch = 8;
  auto layer = stairs();
  layer.splits.push_back(point(Axis::batch, 0.5, 6));
  trace.layers = {layer};
  const ComputeModel model(trace, {});
  Shard shard;
  shard.output_channel = 0.5;
  EXPECT_DOUBLE_EQ(model.time(LayerId{0}, Pass::forward, shard).count(), 10 * 5 / 8.0) << "10 s in its place";
  shard.batch = 0.5;
  EXPECT_DOUBLE_EQ(model.time(LayerId{0}, Pass::forward, shard).count(), 6 * 5 / 8.0);
  EXPECT_TRUE(model.extrapolated(shard).empty());
  shard.height = 0.5;
  EXPECT_EQ(model.extrapolated(shard), std::vector<std::string>{"conv"}) << "no height was recorded";
}

}  // namespace
}  // namespace tandem
