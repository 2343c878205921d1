#include "traces/recorder/recorder.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sim/core/error.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/models/models.hpp"
#include "traces/trace.hpp"
#ifdef TANDEM_HAS_RECORDER
#include "traces/models/builder.hpp"
#include "traces/recorder/training_network.hpp"
#endif

namespace tandem {
namespace {

class Recorder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!recorder_available()) GTEST_SKIP() << "built without oneDNN";
  }
};

RecordOptions tiny() {
  RecordOptions options;
  options.model = "lenet5";
  options.batch = 8;
  options.repetitions = 5;
  options.warmup = 2;
  return options;
}

TEST_F(Recorder, RecordsEveryPassOfEveryLayer) {
  int calls = 0;
  auto options = tiny();
  options.progress = [&](int done, int total, const std::string& text) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 12);
    EXPECT_NE(text.find("lenet5 batch 8"), std::string::npos);
  };
  const Trace trace = record(options);
  EXPECT_EQ(calls, 12);
  EXPECT_EQ(trace.parameter_count(), 431'080);
  EXPECT_EQ(trace.framework, "oneDNN");
  EXPECT_EQ(trace.cache_mode, "in situ");
  EXPECT_EQ(trace.threads, 1);
  EXPECT_EQ(trace.date.size(), 10U);
  EXPECT_NE(trace.device, "");
  for (const auto* whole : {&trace.iteration_forward, &trace.iteration_backward, &trace.iteration_update}) {
    EXPECT_EQ(whole->seconds.size(), 5U);
  }
  for (const auto& layer : trace.layers) {
    SCOPED_TRACE(layer.name);
    const bool moves_nothing = layer.kind == OpKind::flatten;
    const std::size_t parameters = layer.parameters.empty() ? 0 : 5;
    EXPECT_EQ(layer.samples[0].seconds.size(), moves_nothing ? 0U : 5U);
    EXPECT_EQ(layer.samples[1].seconds.size(), moves_nothing || !layer.needs_input_gradient ? 0U : 5U);
    EXPECT_EQ(layer.samples[2].seconds.size(), parameters);
    EXPECT_EQ(layer.samples[3].seconds.size(), parameters);
  }
  const testing::TemporaryFolder folder;
  write_trace(trace, folder.file("t.h5"));
  EXPECT_TRUE(read_trace(folder.file("t.h5")) == trace);
}

std::vector<const SplitCurve*> rows(const Layer& layer, SplitCurve::Axis axis) {
  std::vector<const SplitCurve*> found;
  for (const auto& split : layer.splits) {
    if (split.axis == axis) found.push_back(&split);
  }
  return found;
}

std::vector<double> fractions(const Layer& layer, SplitCurve::Axis axis) {
  std::vector<double> found;
  for (const auto* row : rows(layer, axis)) found.push_back(row->fraction);
  return found;
}

RecordOptions tiny_with_splits() {
  auto options = tiny();
  options.repetitions = 1;
  options.splits.axes = {SplitCurve::Axis::input_channel, SplitCurve::Axis::batch, SplitCurve::Axis::height,
                         SplitCurve::Axis::output_channel};
  options.splits.repetitions = 2;
  return options;
}

TEST_F(Recorder, RecordsSplitCurvesAlongFourAxes) {
  using Axis = SplitCurve::Axis;
  using Fractions = std::vector<double>;
  auto options = tiny_with_splits();
  int calls = 0, all = 0;
  options.progress = [&](int done, int total, const std::string&) {
    EXPECT_EQ(done, ++calls);
    all = total;
  };
  const Trace trace = record(options);
  EXPECT_EQ(calls, all);
  EXPECT_EQ(all, 4 + 3 * 6 + 4 * 3);  // the network, three smaller batches, four layers with weights
  const Layer& conv2 = trace.layers[2];
  ASSERT_EQ(conv2.name, "conv2");
  EXPECT_EQ(fractions(conv2, Axis::batch), (Fractions{0.5, 0.25, 0.125}));
  EXPECT_EQ(fractions(conv2, Axis::height), (Fractions{1, 0.5, 0.25, 0.125}));
  EXPECT_EQ(fractions(conv2, Axis::output_channel), (Fractions{1, 0.5, 13.0 / 50, 7.0 / 50}));
  EXPECT_EQ(fractions(conv2, Axis::input_channel), (Fractions{1, 0.5, 0.25, 3.0 / 20}));
  EXPECT_EQ(rows(conv2, Axis::height)[2]->input_shape, (Shape{8, 20, 6, 12}));
  EXPECT_EQ(rows(conv2, Axis::height)[2]->output_shape, (Shape{8, 50, 2, 8}));
  EXPECT_EQ(rows(conv2, Axis::batch)[1]->input_shape, (Shape{2, 20, 12, 12}));
  for (const auto& split : conv2.splits) {
    for (std::size_t pass = 0; pass < 3; ++pass) EXPECT_EQ(split.samples[pass].seconds.size(), 2U);
    EXPECT_TRUE(split.samples[3].seconds.empty());
  }
  const Layer& conv1 = trace.layers[0];
  EXPECT_TRUE(rows(conv1, Axis::input_channel).empty());
  EXPECT_TRUE(rows(conv1, Axis::height)[0]->samples[1].seconds.empty());  // no gradient flows back to the input
  EXPECT_EQ(fractions(trace.layers[1], Axis::batch), (Fractions{0.5, 0.25, 0.125}));  // a pool
  EXPECT_TRUE(rows(trace.layers[1], Axis::height).empty());
  ASSERT_EQ(trace.other_batches.size(), 3U);
  EXPECT_EQ(trace.other_batches[0].batch, 1);
  EXPECT_EQ(trace.other_batches[2].batch, 4);
  EXPECT_EQ(trace.other_batches[2].update.seconds.size(), 2U);
  const testing::TemporaryFolder folder;
  write_trace(trace, folder.file("t.h5"));
  EXPECT_TRUE(read_trace(folder.file("t.h5")) == trace);
}

TEST_F(Recorder, LayersOfEqualShapesShareTheirCurves) {
  auto options = tiny_with_splits();
  options.model = "resnet18";
  options.batch = 1;
  options.repetitions = 0;
  options.warmup = 0;
  options.splits.axes = {SplitCurve::Axis::height};
  options.splits.fractions = {0.5};
  options.splits.repetitions = 1;
  options.splits.layers = {"layer1.0.conv1", "layer1.1.conv2", "layer2.0.conv2"};
  const Trace trace = record(options);
  std::map<std::string, const Layer*> with_curves;
  for (const auto& layer : trace.layers) {
    EXPECT_TRUE(layer.samples[0].seconds.empty());
    if (!layer.splits.empty()) with_curves[layer.name] = &layer;
  }
  ASSERT_EQ(with_curves.size(), 3U);
  EXPECT_TRUE(with_curves["layer1.0.conv1"]->splits == with_curves["layer1.1.conv2"]->splits);
  EXPECT_FALSE(with_curves["layer1.0.conv1"]->splits == with_curves["layer2.0.conv2"]->splits);
}

TEST_F(Recorder, RefusesWhatItCannotDo) {
  const auto refuses = [](auto&& change) {
    auto options = tiny();
    change(options);
    try {
      (void)record(options);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage;
    }
    return false;
  };
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.model = "lenet6"; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.batch = 0; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.repetitions = -1; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.repetitions = 0; }));  // and no splits
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.splits.axes = {SplitCurve::Axis::width}; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.splits.fractions = {1.5}; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.splits.layers = {"conv3"}; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.splits.repetitions = 0; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.warmup = -1; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) { o.threads = 100'000; }));
  EXPECT_TRUE(refuses([](RecordOptions& o) {
    o.model = "vgg16";
    o.batch = 65536;  // 8 TB of activations
  }));
}

TEST(UnsteadyLayers, AreThoseAboveTheRatio) {
  Trace trace = build_model("lenet5", 1);
  EXPECT_TRUE(unsteady_layers(trace).empty());
  trace.layers[0].samples[0].seconds = {1, 1, 1.5};
  EXPECT_TRUE(unsteady_layers(trace).empty());
  trace.layers[0].samples[0].seconds = {1, 1, 1.6};
  trace.layers[1].samples[1].seconds = {2, 2, 4};
  EXPECT_EQ(unsteady_layers(trace),
            (std::vector<std::string>{"layer 'pool1': backward-data took up to 4 s where its median is 2 s",
                                      "layer 'conv1': forward took up to 1.6 s where its median is 1 s"}));
}

#ifdef TANDEM_HAS_RECORDER
double forward_loss(TrainingNetwork& network, std::size_t layers) {
  for (std::size_t l = 0; l < layers; ++l) network.run(l, Pass::forward);
  return network.loss();
}

// Forward and backward, from the state that every network of these layers starts in; its loss.
double first_half(TrainingNetwork& network, std::size_t layers) {
  const double loss = forward_loss(network, layers);
  for (std::size_t l = layers; l-- > 0;) {
    network.run(l, Pass::backward_data);
    network.run(l, Pass::backward_weight);
  }
  return loss;
}

// Every kind that the recorder knows: forks with and without a convolution on the shortcut, pools, dropout, branches
// joined at whole blocks of channels (16 and 32) and inside of one (20 and 12), normalized ones among them.
Trace every_kind() {
  ModelBuilder b("every-kind", {4, 3, 16, 16});
  auto x = b.conv("conv1", ModelBuilder::kInput, 20, {3, 1, 1}, true);
  x = b.max_pool("pool", b.relu("relu1", b.bn("bn1", x)), {3, 2, 1});
  const auto fork = x;
  x = b.bn("bn2", b.conv("conv2", x, 32, {3, 2, 1}, false));
  x = b.relu("relu2", b.add("add1", x, b.conv("shortcut", fork, 32, {1, 2, 0}, false)));
  x = b.relu("relu3", b.add("add2", b.conv("conv3", x, 32, {3, 1, 1}, true), x));
  const auto left = b.conv("left", x, 16, {1, 1, 0}, false);
  x = b.concat("cat1", {left, b.lrn("lrn1", b.conv("right", x, 32, {3, 1, 1}, false))});
  const auto odd = b.lrn("lrn2", b.conv("odd", x, 20, {1, 1, 0}, false));
  x = b.concat("cat2", {odd, x, b.relu("relu5", b.conv("even", x, 12, {1, 1, 0}, true))});
  x = b.flatten("flatten", b.global_avg_pool("avgpool", x));
  x = b.dropout("dropout", b.relu("relu4", b.fc("fc1", x, 24)));
  b.softmax_loss("loss", b.fc("fc2", x, 10));
  return b.finish();
}

// The directional derivative is the oracle: moving one layer's parameters along their own gradient g, a step of rate r
// changes the loss by -r |g|^2, to first order. A kernel wired up wrongly, a branch dropped or counted twice above
// that layer, or an update that mixes up elements, gives a g that is not the gradient, and another change.
TEST_F(Recorder, TheGradientIsTheGradient) {
  constexpr double wanted = 1e-3;  // change of a loss of 2 to 5: far above its rounding, far below its curvature
  for (Trace trace : {every_kind(), build_model("lenet5", 16)}) {
    const auto layers = trace.layers.size();
    TrainingNetwork probe(trace);
    (void)first_half(probe, layers);
    for (std::size_t l = 0; l < layers; ++l) {
      if (trace.layers[l].parameters.empty()) continue;
      SCOPED_TRACE(trace.model + " " + trace.layers[l].name);
      TrainingNetwork network(trace, static_cast<float>(wanted / probe.gradient_square(l)));
      const double before = first_half(network, layers);
      network.run(l, Pass::update);
      EXPECT_NEAR((before - forward_loss(network, layers)) / wanted, 1, 0.02);
    }
  }
}
#endif

}  // namespace
}  // namespace tandem
