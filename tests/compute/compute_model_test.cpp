// What a layer costs: measured times as they are, recorded batch curves between their points, and models that say that
// they are models.
#include "sim/compute/compute_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/core/error.hpp"
#include "tests/traces/sample_trace.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

constexpr Pass kAll[]{Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update};

SplitCurve batch_point(double fraction, double forward, double backward_data) {
  SplitCurve split;
  split.fraction = fraction;
  split.samples[0].seconds = {forward};
  if (backward_data > 0) split.samples[1].seconds = {backward_data};
  return split;
}

// One layer at batch 8: 8, 10, 12 and 1 s; at a quarter and half of the batch it was recorded too.
Trace toy(bool with_curve = true) {
  Trace trace;
  trace.model = "toy";
  trace.batch = 8;
  Layer layer;
  layer.name = "layer";
  layer.input_shapes = {{8, 3, 4, 4}};
  layer.output_shape = {8, 5, 4, 4};
  layer.samples = {Samples{{8}}, Samples{{10}}, Samples{{12}}, Samples{{1}}};
  if (with_curve) {
    layer.splits = {batch_point(0.5, 5, 6), batch_point(0.25, 3, 0)};
    layer.splits.push_back(batch_point(0.75, 100, 100));
    layer.splits.back().axis = SplitCurve::Axis::height;  // says nothing of batches
  }
  trace.layers = {layer};
  return trace;
}

double seconds(const Trace& trace, Pass pass, std::int64_t batch = 0, double scale = 1, double shard = 1) {
  return ComputeModel(trace, {batch, "recorded", scale}).time(LayerId{0}, pass, {shard}).count();
}

std::string assumptions_of(const Trace& trace, const ComputeOptions& options) {
  return fmt::format("{}", fmt::join(ComputeModel(trace, options).assumptions(), "\n"));
}

ErrorKind kind_of(const Trace& trace, const ComputeOptions& options) {
  try {
    const ComputeModel model(trace, options);
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::internal;
}

TEST(Measured, TimesPassThroughUnchanged) {
  EXPECT_TRUE(rc::check("time() is the trace's own number, to the last bit", [] {
    const auto trace = testing::random_trace();
    RC_PRE(trace.total(Pass::forward).count() > 0);
    const ComputeModel model(trace, {});
    for (std::size_t i = 0; i < trace.layers.size(); ++i) {
      const auto& layer = trace.layers[i];
      for (const auto pass : kAll) {
        const bool absent = pass == Pass::backward_data && !layer.needs_input_gradient;
        RC_ASSERT(model.time(LayerId{static_cast<std::int32_t>(i)}, pass) == (absent ? Seconds(0) : layer.time(pass)));
      }
    }
  }));
}

// A convolution in a nanosecond is faster than any peak: it was measured, so it stands.
TEST(Measured, IsNeverClampedToARoofline) {
  auto trace = build_model("vgg16", 4);
  for (auto& layer : trace.layers) layer.samples[0].seconds = {1e-9};
  EXPECT_DOUBLE_EQ(ComputeModel(trace, {}).total(Pass::forward).count(), 1e-9 * trace.layers.size());
  EXPECT_NE(assumptions_of(trace, {}).find("measured"), std::string::npos);
}

TEST(Batch, IsProportionalWithoutACurve) {
  const auto trace = toy(false);
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 4), 4);
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::backward_weight, 16), 24);
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::update, 4), 1) << "the optimizer does not see the batch";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 0, 1, 0.5), 4) << "half of the batch on this rank";
  EXPECT_NE(assumptions_of(trace, {4}).find("extrapolated"), std::string::npos);
}

TEST(Batch, FollowsTheRecordedCurve) {
  const auto trace = toy();
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 8), 8);
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 6), 6.5) << "between 5 s and 8 s";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 4), 5) << "as recorded";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 3), 4);
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 1), 1.5) << "in proportion below the curve";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::forward, 16), 16) << "and above it";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::backward_data, 2), 3) << "its curve ends at half of the batch";
  EXPECT_DOUBLE_EQ(seconds(trace, Pass::backward_weight, 4), 6) << "it has no curve";
}

TEST(Batch, SaysWhetherItWasInterpolated) {
  EXPECT_NE(assumptions_of(toy(), {4}).find("interpolated"), std::string::npos);
  EXPECT_NE(assumptions_of(toy(), {1}).find("extrapolated"), std::string::npos);
  EXPECT_NE(assumptions_of(toy(), {16}).find("extrapolated"), std::string::npos);
  EXPECT_EQ(assumptions_of(toy(), {8}).find("polated"), std::string::npos);
}

TEST(DeviceScale, DividesEveryTime) {
  const auto trace = toy();
  for (const auto pass : kAll) EXPECT_DOUBLE_EQ(seconds(trace, pass, 0, 4), seconds(trace, pass) / 4);
  EXPECT_NE(assumptions_of(trace, {0, "recorded", 4}).find("--device-scale 4"), std::string::npos);
  const auto model = build_model("lenet5", 64);
  const double one = ComputeModel(model, {0, "v100", 1}).total(Pass::forward).count();
  EXPECT_DOUBLE_EQ(ComputeModel(model, {0, "v100", 0.5}).total(Pass::forward).count(), 2 * one);
}

TEST(NamedDevice, EveryOneTimesEveryModelAndSaysThatItIsModelled) {
  for (const auto& device : Registry<DevicePreset>::instance().names()) {
    for (const auto& name : model_names()) {
      const auto trace = build_model(name, 8);
      const ComputeModel model(trace, {0, device, 1});
      for (const auto pass : kAll) EXPECT_GT(model.total(pass).count(), 0) << device << " " << name;
      EXPECT_NE(assumptions_of(trace, {0, device, 1}).find("modelled for '" + device + "', not measured"),
                std::string::npos);
      for (std::size_t i = 0; i < trace.layers.size(); ++i) {
        if (trace.layers[i].kind != OpKind::flatten) continue;
        EXPECT_EQ(model.time(LayerId{static_cast<std::int32_t>(i)}, Pass::forward).count(), 0);
      }
    }
  }
}

TEST(NamedDevice, IgnoresTheRecordedTimes) {
  auto trace = build_model("resnet18", 8);
  const double without = ComputeModel(trace, {0, "p100", 1}).total(Pass::forward).count();
  for (auto& layer : trace.layers) layer.samples[0].seconds = {7};
  EXPECT_EQ(ComputeModel(trace, {0, "p100", 1}).total(Pass::forward).count(), without);
}

TEST(NamedDevice, LaterOnesAreFaster) {
  const auto trace = build_model("resnet50", 32);
  double last = 1e9;
  for (const char* device : {"k80", "p100", "v100", "a100", "h100"}) {
    const double time = ComputeModel(trace, {0, device, 1}).total(Pass::forward).count();
    EXPECT_LT(time, last) << device;
    last = time;
  }
}

// Larger batches cost more, and less than in proportion: weights are read and kernels launched once.
TEST(NamedDevice, GrowsWithTheBatch) {
  const auto trace = build_model("vgg16", 32);
  const double one = ComputeModel(trace, {32, "v100", 1}).total(Pass::forward).count();
  const double two = ComputeModel(trace, {64, "v100", 1}).total(Pass::forward).count();
  EXPECT_GT(two, one);
  EXPECT_LE(two, 2 * one);
  EXPECT_EQ(ComputeModel(trace, {64, "v100", 1}).total(Pass::update),
            ComputeModel(trace, {32, "v100", 1}).total(Pass::update));
}

TEST(Errors, WhatCannotBeTimedIsRefused) {
  EXPECT_EQ(kind_of(build_model("lenet5", 8), {}), ErrorKind::input) << "no times";
  EXPECT_EQ(kind_of(toy(), {0, "v100", 1}), ErrorKind::input) << "no FLOP counts";
  EXPECT_EQ(kind_of(toy(), {0, "v101", 1}), ErrorKind::usage);
  EXPECT_EQ(kind_of(toy(), {0, "recorded", 0}), ErrorKind::usage);
  EXPECT_EQ(kind_of(toy(), {0, "recorded", -1}), ErrorKind::usage);
}

}  // namespace
}  // namespace tandem
