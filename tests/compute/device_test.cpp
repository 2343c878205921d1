// The formula of a named device against sums worked out here, independently of its code.
#include "sim/compute/device.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "traces/layer_work.hpp"

namespace tandem {
namespace {

// 1 TFLOP/s and 100 GB/s; every filter reaches half of the peak, and half of the bandwidth.
DevicePreset plain() {
  DevicePreset device;
  device.peak = FlopsPerSecond(1e12);
  device.memory_bandwidth = BytesPerSecond(100e9);
  for (auto& pass : device.rates) pass.fill({Seconds(1e-6), 0.5, 0.5, 0, 0});
  device.memory_efficiency = 1;
  return device;
}

Layer conv(std::int64_t batch, std::int64_t in, std::int64_t out, int kernel, int stride) {
  Layer layer;
  layer.name = "conv";
  layer.kind = OpKind::conv;
  layer.kernel = {kernel, kernel};
  layer.stride = {stride, stride};
  layer.dilation = {1, 1};
  layer.pad_begin = layer.pad_end = {kernel / 2, kernel / 2};
  layer.input_shapes = {{batch, in, 32, 32}};
  layer.output_shape = {batch, out, 32 / stride, 32 / stride};
  layer.parameters = {{"weight", {out, in, kernel, kernel}}};
  set_flops(layer);
  return layer;
}

TEST(Device, ArithmeticBoundsAConvolution) {
  const auto layer = conv(32, 256, 256, 3, 1);
  const double flops = 2.0 * 32 * 32 * 32 * 256 * 256 * 9;
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight}) {
    EXPECT_DOUBLE_EQ(modelled_time(plain(), layer, pass, {}).count(), 1e-6 + flops / 0.5e12);
  }
}

TEST(Device, MemoryBoundsAThinConvolution) {
  const auto layer = conv(32, 1, 1, 1, 1);
  const double bytes = 4 * (2 * 32 * 32.0 * 32 + 1);
  EXPECT_DOUBLE_EQ(modelled_time(plain(), layer, Pass::forward, {}).count(), 1e-6 + bytes / 50e9);
}

TEST(Device, ShortSumsAndFewOfThemHalveTheRate) {
  auto device = plain();
  const auto layer = conv(32, 256, 256, 3, 1);
  const double direct = modelled_time(device, layer, Pass::forward, {}).count() - 1e-6;
  device.rates[0][2].sum_length_half = 256 * 9;  // the sum's own length
  EXPECT_NEAR(modelled_time(device, layer, Pass::forward, {}).count() - 1e-6, 2 * direct, 1e-12);
  device.rates[0][2].sums_half = 32.0 * 256 * 32 * 32;  // as many as there are
  EXPECT_NEAR(modelled_time(device, layer, Pass::forward, {}).count() - 1e-6, 4 * direct, 1e-12);
}

TEST(Device, EfficiencyFallsAtSmallBatch) {
  const auto device = Registry<DevicePreset>::instance().make("v100");
  double last = 0;
  for (const std::int64_t batch : {1, 4, 16, 64}) {
    const double per_sample =
        static_cast<double>(batch) / modelled_time(*device, conv(batch, 256, 256, 3, 1), Pass::forward, {}).count();
    EXPECT_GT(per_sample, 1.05 * last) << batch;
    last = per_sample;
  }
}

TEST(Device, FiltersAreSorted) {
  EXPECT_EQ(filter_class(conv(1, 8, 8, 1, 1)), FilterClass::pointwise);
  EXPECT_EQ(filter_class(conv(1, 8, 8, 1, 2)), FilterClass::pointwise_strided);
  EXPECT_EQ(filter_class(conv(1, 8, 8, 3, 1)), FilterClass::winograd);
  EXPECT_EQ(filter_class(conv(1, 8, 8, 3, 2)), FilterClass::other);
  EXPECT_EQ(filter_class(conv(1, 8, 8, 5, 1)), FilterClass::other);
  auto grouped = conv(1, 8, 8, 3, 1);
  grouped.groups = 8;
  EXPECT_EQ(filter_class(grouped), FilterClass::other);
}

// Half of the rows of a 3 x 3 filter on 32 rows: 16 rows of output, 18 of input.
TEST(Device, APartCostsItsHalo) {
  const auto layer = conv(32, 1, 1, 3, 1);
  Shard shard;
  shard.height = 0.5;
  const double bytes = 4 * (32 * 18.0 * 32 + 32 * 16.0 * 32 + 9);
  EXPECT_DOUBLE_EQ(modelled_time(plain(), layer, Pass::forward, shard).count(), 1e-6 + bytes / 50e9);
}

TEST(Device, AJointBackwardPassIsBoth) {
  auto layer = conv(32, 256, 256, 3, 1);
  const double both = modelled_time(plain(), layer, Pass::backward_data, {}).count() +
                      modelled_time(plain(), layer, Pass::backward_weight, {}).count();
  layer.backward_is_joint = true;
  EXPECT_EQ(modelled_time(plain(), layer, Pass::backward_data, {}).count(), 0);
  EXPECT_DOUBLE_EQ(modelled_time(plain(), layer, Pass::backward_weight, {}).count(), both);
}

}  // namespace
}  // namespace tandem
