#include "traces/models/models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/core/error.hpp"
#include "traces/models/builder.hpp"

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
  EXPECT_EQ(build_model("resnet101", 1).parameter_count(), 44'549'160);
  EXPECT_EQ(build_model("alexnet", 1).parameter_count(), 61'100'840);
  EXPECT_EQ(build_model("googlenet", 1).parameter_count(), 6'624'904);
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
  const auto resnet101 = kinds(build_model("resnet101", 2));
  EXPECT_EQ(resnet101.at(OpKind::conv), 104);  // 1 + 3 (3 + 4 + 23 + 3) + 4 shortcuts
  EXPECT_EQ(resnet101.at(OpKind::add), 33);
  const auto alexnet = kinds(build_model("alexnet", 2));
  EXPECT_EQ(alexnet.at(OpKind::conv), 5);
  EXPECT_EQ(alexnet.at(OpKind::fc), 3);
  EXPECT_EQ(alexnet.count(OpKind::lrn), 0U);
  const auto googlenet = kinds(build_model("googlenet", 2));  // 3 + 6 in each of 9 inceptions
  EXPECT_EQ(googlenet.at(OpKind::conv), 57);
  EXPECT_EQ(googlenet.at(OpKind::bn), 57);
  EXPECT_EQ(googlenet.at(OpKind::relu), 57);
  EXPECT_EQ(googlenet.at(OpKind::concat), 9);
  EXPECT_EQ(googlenet.at(OpKind::max_pool), 13);
  EXPECT_EQ(googlenet.at(OpKind::fc), 1);
}

// Published: ResNet-50 v1.5 4.09, ResNet-18 1.81, ResNet-101 7.80, VGG-16 15.47, AlexNet 0.71, GoogLeNet 1.50
// (torchvision's table of weights, GFLOPS counted as multiply-adds). By hand: LeNet 24^2 20 25 + 8^2 50 20 25 +
// 800 500 + 500 10 = 2,293,000; AlexNet 55^2 64 363 + 27^2 192 1600 + 13^2 (384 1728 + 256 3456 + 256 2304) +
// 9216 4096 + 4096^2 + 4096 1000 = 714,188,480.
TEST(Models, MultiplyAddsAreThePublishedOnes) {
  EXPECT_NEAR(giga_macs(build_model("resnet50", 1), Pass::forward), 4.09, 0.005);
  EXPECT_NEAR(giga_macs(build_model("resnet18", 1), Pass::forward), 1.81, 0.005);
  EXPECT_NEAR(giga_macs(build_model("resnet101", 1), Pass::forward), 7.80, 0.005);
  EXPECT_NEAR(giga_macs(build_model("vgg16", 1), Pass::forward), 15.47, 0.005);
  EXPECT_NEAR(giga_macs(build_model("googlenet", 1), Pass::forward), 1.50, 0.005);
  EXPECT_DOUBLE_EQ(giga_macs(build_model("alexnet", 2), Pass::forward), 0.71418848);
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

TEST(Models, AlexNetIsTheOneColumnForm) {
  const Trace trace = build_model("alexnet", 8);
  using Names = std::vector<std::string>;
  EXPECT_EQ(layer(trace, "features.0").output_shape, (Shape{8, 64, 55, 55}));
  EXPECT_EQ(layer(trace, "features.2").output_shape, (Shape{8, 64, 27, 27}));
  EXPECT_EQ(layer(trace, "features.5").output_shape, (Shape{8, 192, 13, 13}));
  EXPECT_EQ(layer(trace, "features.12").output_shape, (Shape{8, 256, 6, 6}));
  EXPECT_EQ(input_names(trace, "classifier.0"), Names{"flatten"});
  EXPECT_EQ(layer(trace, "classifier.1").parameters[0].shape, (Shape{4096, 9216}));
  for (const auto& l : trace.layers) EXPECT_EQ(l.groups, 1) << l.name;
}

// Table 1 of the paper has these output sizes; the pools round up (112 -> 56 -> 28 -> 14 -> 7 without pads).
TEST(Models, GoogLeNetJoinsFourBranches) {
  const Trace trace = build_model("googlenet", 4);
  using Names = std::vector<std::string>;
  EXPECT_EQ(layer(trace, "maxpool1").output_shape, (Shape{4, 64, 56, 56}));
  EXPECT_EQ(layer(trace, "maxpool1").pad_begin, (std::vector<int>{0, 0}));
  EXPECT_EQ(layer(trace, "maxpool1").pad_end, (std::vector<int>{1, 1}));  // 55 strides of 2 and 3 elements: 113
  EXPECT_EQ(layer(trace, "maxpool4").pad_end, (std::vector<int>{0, 0}));
  EXPECT_EQ(layer(trace, "inception3a.branch4.0").pad_end, (std::vector<int>{1, 1}));
  const std::pair<const char*, Shape> outputs[] = {
      {"maxpool2", {4, 192, 28, 28}},        {"inception3a.cat", {4, 256, 28, 28}},
      {"inception3b.cat", {4, 480, 28, 28}}, {"maxpool3", {4, 480, 14, 14}},
      {"inception4a.cat", {4, 512, 14, 14}}, {"inception4b.cat", {4, 512, 14, 14}},
      {"inception4c.cat", {4, 512, 14, 14}}, {"inception4d.cat", {4, 528, 14, 14}},
      {"inception4e.cat", {4, 832, 14, 14}}, {"maxpool4", {4, 832, 7, 7}},
      {"inception5a.cat", {4, 832, 7, 7}},   {"inception5b.cat", {4, 1024, 7, 7}}};
  for (const auto& [name, shape] : outputs) EXPECT_EQ(layer(trace, name).output_shape, shape) << name;
  EXPECT_EQ(input_names(trace, "inception3a.cat"), (Names{"inception3a.branch1.relu", "inception3a.branch2.1.relu",
                                                          "inception3a.branch3.1.relu", "inception3a.branch4.1.relu"}));
  for (const auto* reader : {"branch1.conv", "branch2.0.conv", "branch3.0.conv", "branch4.0"}) {
    EXPECT_EQ(input_names(trace, std::string("inception4a.") + reader), Names{"maxpool3"}) << reader;
  }
  EXPECT_EQ(layer(trace, "inception3a.branch3.1.conv").kernel, (std::vector<int>{3, 3}));  // the paper's is 5 x 5
}

TEST(Models, LocalResponseNormalizationKeepsTheShape) {
  ModelBuilder b("toy", {2, 3, 8, 8});
  b.lrn("norm", b.conv("conv", ModelBuilder::kInput, 6, {3, 1, 1}, false));
  const Trace trace = b.finish();
  EXPECT_EQ(layer(trace, "norm").output_shape, (Shape{2, 6, 8, 8}));
  EXPECT_EQ(layer(trace, "norm").parameter_count(), 0);
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
