#include "traces/recorder/layer_part.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "traces/layer_work.hpp"
#include "traces/models/builder.hpp"

namespace tandem {
namespace {

using Axis = SplitCurve::Axis;
constexpr LayerId kInput = ModelBuilder::kInput;

Layer conv(Shape input, std::int64_t channels, ModelBuilder::Window window) {
  ModelBuilder b("toy", std::move(input));
  b.conv("conv", kInput, channels, window, true);
  return b.finish().layers[0];
}

Layer fc(std::int64_t in, std::int64_t out) {
  ModelBuilder b("toy", {4, in});
  b.fc("fc", kInput, out);
  return b.finish().layers[0];
}

void expect_rows(const Layer& whole, double fraction, std::int64_t input_rows, std::int64_t rows, int pad_begin,
                 int pad_end) {
  const auto part = part_of(whole, Axis::height, fraction);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->input_shapes[0][2], input_rows);
  EXPECT_EQ(part->output_shape[2], rows);
  EXPECT_EQ(part->pad_begin[0], pad_begin);
  EXPECT_EQ(part->pad_end[0], pad_end);
  EXPECT_EQ(part->pad_begin[1], whole.pad_begin[1]);
  EXPECT_EQ(part->output_shape[3], whole.output_shape[3]);
  EXPECT_EQ(part->parameters, whole.parameters);
}

TEST(LayerPart, HeightHasHaloRowsInsideAndPadsAtTheBorder) {
  const Layer same = conv({2, 8, 56, 56}, 16, {3, 1, 1});
  expect_rows(same, 0.5, 29, 28, 1, 0);   // both halves touch a border: 28 rows and one of halo
  expect_rows(same, 0.25, 16, 14, 0, 0);  // a middle quarter: halo on both sides
  expect_rows(same, 0.125, 9, 7, 0, 0);
  const Layer first = conv({2, 3, 224, 224}, 16, {7, 2, 3});
  expect_rows(first, 0.125, 33, 14, 0, 0);                              // 13 strides of 2, and 7
  expect_rows(conv({2, 8, 56, 56}, 16, {1, 2, 0}), 0.5, 27, 14, 0, 0);  // no window reaches the 28th row
  expect_rows(conv({2, 8, 7, 7}, 16, {3, 1, 1}), 0.5, 5, 4, 1, 0);      // 7 rows are 4 and 3
  expect_rows(conv({2, 8, 7, 7}, 16, {3, 1, 1}), 0.125, 3, 1, 0, 0);
  expect_rows(conv({2, 8, 12, 12}, 16, {5, 1, 0}), 0.25, 6, 2, 0, 0);
}

TEST(LayerPart, ChannelsAreRoundedUp) {
  const Layer layer = conv({2, 20, 12, 12}, 50, {5, 1, 0});
  const auto output = part_of(layer, Axis::output_channel, 0.25);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->output_shape, (Shape{2, 13, 8, 8}));
  EXPECT_EQ(output->input_shapes[0], layer.input_shapes[0]);
  EXPECT_EQ(output->parameters[0].shape, (Shape{13, 20, 5, 5}));
  EXPECT_EQ(output->parameters[1].shape, (Shape{13}));
  EXPECT_DOUBLE_EQ(output->flops[0].count(), layer.flops[0].count() * 13 / 50);
  const auto input = part_of(layer, Axis::input_channel, 0.25);
  ASSERT_TRUE(input);
  EXPECT_EQ(input->output_shape, layer.output_shape);
  EXPECT_EQ(input->input_shapes[0], (Shape{2, 5, 12, 12}));
  EXPECT_EQ(input->parameters[0].shape, (Shape{50, 5, 5, 5}));
  EXPECT_EQ(input->parameters[1].shape, (Shape{50}));
}

TEST(LayerPart, FeaturesAreChannelsAndHaveNoHeight) {
  const Layer layer = fc(800, 500);
  EXPECT_EQ(part_of(layer, Axis::output_channel, 0.125)->parameters[0].shape, (Shape{63, 800}));
  EXPECT_EQ(part_of(layer, Axis::input_channel, 0.125)->parameters[0].shape, (Shape{500, 100}));
  EXPECT_FALSE(part_of(layer, Axis::height, 0.5));
}

TEST(LayerPart, WhatCannotBeSplitHasNoParts) {
  const Layer layer = conv({2, 1, 28, 28}, 20, {5, 1, 0});
  EXPECT_FALSE(part_of(layer, Axis::input_channel, 0.5));  // there is one
  EXPECT_FALSE(part_of(layer, Axis::output_channel, 0.99));
  EXPECT_TRUE(part_of(layer, Axis::output_channel, 1) == layer);
  for (const double fraction : {0.0, -0.5, 1.5}) EXPECT_FALSE(part_of(layer, Axis::height, fraction));
  EXPECT_FALSE(part_of(layer, Axis::batch, 0.5));
  EXPECT_FALSE(part_of(layer, Axis::width, 0.5));
  Layer grouped = layer;
  grouped.groups = 2;
  EXPECT_FALSE(can_split(grouped, Axis::output_channel));
  EXPECT_TRUE(can_split(grouped, Axis::height));
  Layer pool = layer;
  pool.kind = OpKind::max_pool;
  EXPECT_FALSE(can_split(pool, Axis::height));
}

// The rank with most output rows, and among those with most input rows, found by trying all ranks.
RC_GTEST_PROP(LayerPart, TheRankWithMostToDoStandsForAll, ()) {
  const int kernel = *rc::gen::inRange(1, 8);
  const int stride = *rc::gen::inRange(1, 4);
  const int pad = *rc::gen::inRange(0, kernel / 2 + 1);
  const std::int64_t height = *rc::gen::inRange(kernel, 80);
  const int ranks = *rc::gen::inRange(2, 9);
  const Layer whole = conv({1, 1, height, height}, 1, {kernel, stride, pad});
  const std::int64_t all = whole.output_shape[2];
  const std::int64_t rows = (all + ranks - 1) / ranks;
  const auto part = part_of(whole, Axis::height, 1.0 / ranks);
  RC_ASSERT(part.has_value() == (rows < all));
  if (!part) return;
  std::int64_t most = 0;
  for (std::int64_t begin = 0; begin + rows <= all; begin += rows) {
    std::int64_t low = height, high = -1;
    for (std::int64_t row = begin; row < begin + rows; ++row) {
      for (int k = 0; k < kernel; ++k) {
        const std::int64_t in = row * stride - pad + k;
        if (in < 0 || in >= height) continue;
        low = std::min(low, in);
        high = std::max(high, in);
      }
    }
    most = std::max(most, high - low + 1);
  }
  RC_ASSERT(part->output_shape[2] == rows);
  RC_ASSERT(part->input_shapes[0][2] == most);
  RC_ASSERT(window_extent(most, kernel, stride, part->pad_begin[0], part->pad_end[0], 1) == rows);
}

TEST(LayerPart, SmallerBatchesAreRoundedDownAndDifferent) {
  using Batches = std::vector<std::int64_t>;
  EXPECT_EQ(split_batches(32, {0.5, 0.25, 0.125}), (Batches{16, 8, 4}));
  EXPECT_EQ(split_batches(6, {0.125, 0.25, 0.5}), (Batches{3, 1}));
  EXPECT_EQ(split_batches(9, {1.0 / 3}), (Batches{3}));
  EXPECT_EQ(split_batches(1, {0.5}), Batches{});
  EXPECT_EQ(split_batches(8, {}), Batches{});
}

}  // namespace
}  // namespace tandem
