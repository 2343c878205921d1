#include "traces/models/models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

std::map<OpKind, int> kinds(const Trace& trace) {
  std::map<OpKind, int> counts;
  for (const auto& layer : trace.layers) ++counts[layer.kind];
  return counts;
}

const Layer& layer(const Trace& trace, const std::string& name) {
  const auto found = std::find_if(trace.layers.begin(), trace.layers.end(),
                                  [&](const Layer& candidate) { return candidate.name == name; });
  if (found == trace.layers.end()) throw internal_error("no layer " + name);
  return *found;
}

std::vector<std::string> input_names(const Trace& trace, const std::string& name) {
  std::vector<std::string> names;
  for (const LayerId id : layer(trace, name).inputs) names.push_back(trace.layers[id.index()].name);
  return names;
}

// Multiply-adds a sample of the convolutions and fully connected layers, in units of 10^9.
double giga_macs(const Trace& trace, Pass pass) {
  double flops = 0;
  for (const auto& l : trace.layers) {
    if (l.kind == OpKind::conv || l.kind == OpKind::fc) flops += l.flops[static_cast<std::size_t>(pass)].count();
  }
  return flops / 2e9 / static_cast<double>(trace.batch);
}

// PyTorch's steady state: every tensor in reverse order of declaration; a bucket closes once it has reached its cap.
std::vector<std::int64_t> ddp_buckets(const Trace& trace, std::int64_t first, std::int64_t then) {
  std::vector<std::int64_t> buckets;
  std::int64_t open = 0;
  for (auto l = trace.layers.rbegin(); l != trace.layers.rend(); ++l) {
    for (auto tensor = l->parameters.rbegin(); tensor != l->parameters.rend(); ++tensor) {
      open += 4 * tensor->count();
      if (open < (buckets.empty() ? first : then)) continue;
      buckets.push_back(open);
      open = 0;
    }
  }
  if (open > 0) buckets.push_back(open);
  return buckets;
}

TEST(Models, ParameterCountsAreThePublishedOnes) {
  EXPECT_EQ(build_model("lenet5", 64).parameter_count(), 431'080);
  EXPECT_EQ(build_model("vgg16", 1).parameter_count(), 138'357'544);
  EXPECT_EQ(build_model("resnet18", 1).parameter_count(), 11'689'512);
  EXPECT_EQ(build_model("resnet50", 1).parameter_count(), 25'557'032);
}

TEST(Models, LayerCounts) {
  const auto resnet50 = kinds(build_model("resnet50", 2));
  EXPECT_EQ(resnet50.at(OpKind::conv), 53);
  EXPECT_EQ(resnet50.at(OpKind::bn), 53);
  EXPECT_EQ(resnet50.at(OpKind::relu), 49);
  EXPECT_EQ(resnet50.at(OpKind::add), 16);
  const auto resnet18 = kinds(build_model("resnet18", 2));
  EXPECT_EQ(resnet18.at(OpKind::conv), 20);
  EXPECT_EQ(resnet18.at(OpKind::add), 8);
  const auto vgg16 = kinds(build_model("vgg16", 2));
  EXPECT_EQ(vgg16.at(OpKind::conv), 13);
  EXPECT_EQ(vgg16.at(OpKind::fc), 3);
  EXPECT_EQ(vgg16.at(OpKind::max_pool), 5);
  EXPECT_EQ(vgg16.at(OpKind::dropout), 2);
  EXPECT_EQ(build_model("lenet5", 64).layers.size(), 9U);
}

// Published: ResNet-50 v1.5 4.09, ResNet-18 1.81, VGG-16 15.47 (torchvision's table of weights, GFLOPS counted as
// multiply-adds). LeNet by hand: 24^2 20 25 + 8^2 50 20 25 + 800 500 + 500 10 = 2,293,000.
TEST(Models, MultiplyAddsAreThePublishedOnes) {
  EXPECT_NEAR(giga_macs(build_model("resnet50", 1), Pass::forward), 4.09, 0.005);
  EXPECT_NEAR(giga_macs(build_model("resnet18", 1), Pass::forward), 1.81, 0.005);
  EXPECT_NEAR(giga_macs(build_model("vgg16", 1), Pass::forward), 15.47, 0.005);
  EXPECT_DOUBLE_EQ(giga_macs(build_model("lenet5", 64), Pass::forward), 2.293e-3);
}

TEST(Models, BackwardCostsTwiceForwardButForTheFirstLayersInputGradient) {
  const Trace trace = build_model("vgg16", 4);
  const auto& first = trace.layers.front();
  EXPECT_FALSE(first.needs_input_gradient);
  EXPECT_EQ(first.flops[1].count(), 0);
  const double first_macs = first.flops[0].count() / 2e9 / 4;
  EXPECT_DOUBLE_EQ(giga_macs(trace, Pass::backward_weight), giga_macs(trace, Pass::forward));
  EXPECT_NEAR(giga_macs(trace, Pass::backward_data), giga_macs(trace, Pass::forward) - first_macs, 1e-9);
}

TEST(Models, ResidualBlocksAreRealDags) {
  const Trace trace = build_model("resnet50", 8);
  using Names = std::vector<std::string>;
  EXPECT_EQ(input_names(trace, "conv1"), Names{});
  EXPECT_EQ(input_names(trace, "layer1.0.conv1"), Names{"maxpool"});
  EXPECT_EQ(input_names(trace, "layer1.0.downsample.0"), Names{"maxpool"});
  EXPECT_EQ(input_names(trace, "layer1.0.add"), (Names{"layer1.0.bn3", "layer1.0.downsample.1"}));
  EXPECT_EQ(input_names(trace, "layer1.1.add"), (Names{"layer1.1.bn3", "layer1.0.relu3"}));
  EXPECT_EQ(layer(trace, "layer2.0.conv1").stride, (std::vector<int>{1, 1}));  // v1.5
  EXPECT_EQ(layer(trace, "layer2.0.conv2").stride, (std::vector<int>{2, 2}));
  EXPECT_EQ(layer(trace, "layer4.2.add").output_shape, (Shape{8, 2048, 7, 7}));
  EXPECT_EQ(layer(trace, "conv1").activation_bytes, Bytes(8LL * 64 * 112 * 112 * 4));
  EXPECT_EQ(layer(trace, "relu").activation_bytes, Bytes(0));
  EXPECT_TRUE(layer(trace, "conv1").parameters.size() == 1 && layer(trace, "bn1").parameters.size() == 2);
}

// Seen by others in a real PyTorch DDP run of ResNet-50 (a Chakra trace), and PyTorch's documented rule.
TEST(Models, ReverseOrderGivesPyTorchsBuckets) {
  constexpr std::int64_t mib = 1 << 20;
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(ddp_buckets(build_model("resnet50", 1), mib, 25 * mib),
            (Sizes{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160}));
  EXPECT_EQ(ddp_buckets(build_model("resnet18", 1), mib, 25 * mib), (Sizes{2'052'000, 28'852'224, 15'853'824}));
  EXPECT_EQ(ddp_buckets(build_model("resnet18", 1), mib, 35 * mib), (Sizes{2'052'000, 38'297'600, 6'408'448}));
}

TEST(Models, EveryModelIsValidAndScalesWithItsBatch) {
  for (const auto& name : model_names()) {
    SCOPED_TRACE(name);
    const Trace one = build_model(name, 1);
    const Trace eight = build_model(name, 8);
    EXPECT_NO_THROW(validate(one));
    EXPECT_EQ(one.model, name);
    ASSERT_EQ(one.layers.size(), eight.layers.size());
    for (std::size_t i = 0; i < one.layers.size(); ++i) {
      EXPECT_EQ(eight.layers[i].activation_bytes, one.layers[i].activation_bytes * 8);
      EXPECT_EQ(eight.layers[i].parameter_count(), one.layers[i].parameter_count());
      EXPECT_DOUBLE_EQ(eight.layers[i].flops[0].count(), 8 * one.layers[i].flops[0].count());
    }
  }
}

TEST(Models, UnknownNamesAndBatchesAreUsageErrors) {
  try {
    (void)build_model("resnet5", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown model 'resnet5'; did you mean 'resnet50'?");
    EXPECT_EQ(error.kind(), ErrorKind::usage);
  }
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1'000'000'000}}) {
    EXPECT_THROW((void)build_model("vgg16", batch), Error) << batch;
  }
}

}  // namespace
}  // namespace tandem
