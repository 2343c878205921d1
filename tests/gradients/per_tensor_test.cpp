// One all-reduce a parameter tensor, as PyTorch has them: how many a network has follows from its published structure.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "sim/gradients/gradient_schedule.hpp"
#include "tests/gradients/arrival.hpp"
#include "traces/importer.hpp"
#include "traces/layer_guess.hpp"
#include "traces/source_file.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

using Sizes = std::vector<std::int64_t>;

std::vector<GradientBucket> buckets_of(const std::vector<GradientTensor>& arrival) {
  return Registry<GradientSchedule>::instance().make("per-tensor")->buckets(arrival);
}

Sizes sizes_of(const Trace& trace) {
  Sizes sizes;
  for (const auto& bucket : buckets_of(arrival_of(trace))) sizes.push_back(bucket.bytes.count());
  return sizes;
}

// A convolution of the residual networks and of GoogLeNet has a weight, and the batch norm behind it weight and bias.
constexpr std::size_t normalized(std::size_t convolutions) {
  return 3 * convolutions;
}
constexpr std::size_t biased(std::size_t layers) {
  return 2 * layers;
}

TEST(PerTensor, CountsFollowFromTheNetworks) {
  const std::pair<const char*, std::size_t> counts[] = {
      // The stem, the blocks' convolutions and the shortcuts where shapes change; then the classifier.
      {"resnet18-cpu", normalized(1 + 2 * (2 + 2 + 2 + 2) + 3) + biased(1)},    // 62
      {"resnet50-cpu", normalized(1 + 3 * (3 + 4 + 6 + 3) + 4) + biased(1)},    // 161
      {"resnet101-cpu", normalized(1 + 3 * (3 + 4 + 23 + 3) + 4) + biased(1)},  // 314
      // 3 in the stem, and in each of 9 inceptions 1 + 2 + 2 + 1; no auxiliary classifiers.
      {"googlenet-cpu", normalized(3 + 9 * 6) + biased(1)},  // 173
      {"vgg16-cpu", biased(13 + 3)},
      {"alexnet-cpu", biased(5 + 3)},
      {"lenet5-cpu", biased(2 + 2)},  // Caffe's form: two convolutions, two fully connected layers
  };
  for (const auto& [name, count] : counts) EXPECT_EQ(sizes_of(load_trace(name)).size(), count) << name;
  EXPECT_EQ(sizes_of(load_trace("resnet50-cpu")).size(), 161U);
}

TEST(PerTensor, ALayersBiasLeavesBeforeItsWeight) {
  EXPECT_EQ(sizes_of(load_trace("lenet5-cpu")),
            (Sizes{4 * 10, 4 * 5000, 4 * 500, 4 * 400'000, 4 * 50, 4 * 25'000, 4 * 20, 4 * 500}));
  const auto arrival = arrival_of(load_trace("resnet50-cpu"));
  const auto buckets = buckets_of(arrival);
  EXPECT_EQ(buckets[0].bytes, Bytes(4 * 1000)) << "fc.bias";
  EXPECT_EQ(buckets[1].bytes, Bytes(4 * 2048 * 1000)) << "fc.weight";
  EXPECT_EQ(buckets[160].bytes, Bytes(4 * 64 * 3 * 7 * 7)) << "conv1.weight";
  for (std::size_t b = 0; b < buckets.size(); ++b) EXPECT_EQ(buckets[b].ready_after, static_cast<int>(b));
}

// Tables typed by hand that give the number of a layer's parameters and not its tensors.
Trace imported(const std::string& rows) {
  const std::string head =
      "# batch = 2\nlayer,kind,input_shapes,output_shape,kernel,groups,parameters,forward_ms,backward_ms\n";
  return import_source({"table.csv", head + rows}, "csv").trace;
}

TEST(PerTensor, CountsThatShapesExplainAreSplit) {
  EXPECT_EQ(sizes_of(imported("a,conv,2x8x9x9,2x16x9x9,3x3,1,1168,1,2\n")), (Sizes{4 * 16, 4 * 16 * 8 * 9}));
  EXPECT_EQ(sizes_of(imported("a,conv,2x8x9x9,2x16x9x9,3x3,4,304,1,2\n")), (Sizes{4 * 16, 4 * 16 * 2 * 9}));
  EXPECT_EQ(sizes_of(imported("a,conv,2x8x9x9,2x16x9x9,3x3,1,1152,1,2\n")), (Sizes{4 * 1152})) << "no bias";
  EXPECT_EQ(sizes_of(imported("a,fc,2x8,2x16,,1,144,1,2\n")), (Sizes{4 * 16, 4 * 128}));
  EXPECT_EQ(sizes_of(imported("a,bn,2x8x9x9,2x8x9x9,,1,16,1,2\n")), (Sizes{4 * 8, 4 * 8}));
}

TEST(PerTensor, CountsThatNothingExplainsStayOneTensor) {
  EXPECT_EQ(sizes_of(imported("a,conv,2x8x9x9,2x16x9x9,3x3,1,1169,1,2\n")), (Sizes{4 * 1169}));
  EXPECT_EQ(sizes_of(imported("a,fc,2x8,2x16,,1,145,1,2\n")), (Sizes{4 * 145}));
  EXPECT_EQ(sizes_of(imported("a,bn,2x8x9x9,2x8x9x9,,1,17,1,2\n")), (Sizes{4 * 17}));
  EXPECT_EQ(sizes_of(imported("a,other,2x8x9x9,2x8x9x9,,1,16,1,2\n")), (Sizes{4 * 16}));
  EXPECT_EQ(sizes_of(imported("a,conv,,,,1,1168,1,2\n")), (Sizes{4 * 1168})) << "no shapes";
}

// Layers of any kind, shapes and count: what counts are split into, and what is shipped of it, adds up.
TEST(PerTensor, SumsArePreserved) {
  EXPECT_TRUE(rc::check("tensors add up to their layers", [] {
    Trace trace;
    trace.batch = 2;
    const int layers = *rc::gen::inRange(1, 20);
    for (int i = 0; i < layers; ++i) {
      Layer layer;
      layer.name = fmt::format("layer {}", i);
      layer.kind = *rc::gen::element(OpKind::conv, OpKind::fc, OpKind::bn, OpKind::lrn, OpKind::other);
      layer.groups = *rc::gen::element(1, 2, 4);
      const std::int64_t in = 4 * *rc::gen::inRange(1, 40);
      const std::int64_t out = 4 * *rc::gen::inRange(1, 40);
      const bool is_vector = layer.kind == OpKind::fc;
      layer.input_shapes = {is_vector ? Shape{2, in} : Shape{2, in, 5, 5}};
      layer.output_shape = is_vector ? Shape{2, out} : Shape{2, out, 5, 5};
      const int side = *rc::gen::inRange(1, 6);
      if (layer.kind == OpKind::conv && *rc::gen::arbitrary<bool>()) layer.kernel = {side, side};
      // Mostly counts that mean something.
      const std::int64_t weights = layer.kind == OpKind::conv ? in / layer.groups * out * side * side : in * out;
      const Sizes counts{weights, weights + out, 2 * out, weights + 1, 1, 0};
      const auto count = *rc::gen::elementOf(counts);
      (void)set_parameters_from_count(layer, count);
      RC_ASSERT(layer.parameter_count() == count);
      trace.layers.push_back(std::move(layer));
    }
    const auto arrival = arrival_of(trace);
    const auto buckets = buckets_of(arrival);
    RC_ASSERT(buckets.size() == arrival.size());
    std::map<int, std::int64_t> shipped;
    for (const auto& bucket : buckets) {
      RC_ASSERT(bucket.tensors.size() == 1U);
      shipped[arrival[static_cast<std::size_t>(bucket.tensors[0])].layer.value] += bucket.bytes.count();
    }
    for (int i = 0; i < layers; ++i) {
      RC_ASSERT(shipped[i] == 4 * trace.layers[static_cast<std::size_t>(i)].parameter_count());
    }
  }));
}

}  // namespace
}  // namespace tandem
