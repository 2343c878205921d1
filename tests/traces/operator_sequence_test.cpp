#include "traces/importers/operator_sequence.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/error.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

// What a profiler sees of a model: operators in order of execution, without names or edges. Times are the layer's
// index, so that each can be told from the others.
std::vector<ObservedOperator> run_of(const Trace& model, bool shapes) {
  std::vector<ObservedOperator> operators;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& layer = model.layers[i];
    if (layer.kind == OpKind::flatten) continue;
    ObservedOperator op;
    op.name = "aten::op" + std::to_string(i);
    op.kind = layer.kind;
    op.forward = {static_cast<double>(i + 1)};
    op.backward_weight = {2 * static_cast<double>(i + 1)};
    op.backward_is_joint = true;
    op.bias = layer.parameters.size() > 1;
    if (shapes) {
      op.input_shapes = layer.input_shapes;
      if (!layer.parameters.empty() && layer.kind != OpKind::bn) op.weight = layer.parameters[0].shape;
    }
    operators.push_back(op);
  }
  return operators;
}

TEST(OperatorSequence, EveryBuiltInModelIsRecognizedByItsShapes) {
  for (const auto& name : model_names()) {
    SCOPED_TRACE(name);
    const Trace model = build_model(name, 8);
    const auto operators = run_of(model, true);
    const auto result = trace_of_operators(operators);
    EXPECT_TRUE(result.matched);
    EXPECT_EQ(result.trace.model, name);
    EXPECT_EQ(result.trace.batch, 8);
    ASSERT_EQ(result.trace.layers.size(), model.layers.size());
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const auto& layer = result.trace.layers[i];
      EXPECT_EQ(layer.name, model.layers[i].name);
      EXPECT_EQ(layer.inputs, model.layers[i].inputs);
      EXPECT_EQ(layer.parameters, model.layers[i].parameters);
      if (layer.kind == OpKind::flatten) continue;
      EXPECT_EQ(layer.time(Pass::forward).count(), static_cast<double>(i + 1)) << layer.name;
      EXPECT_EQ((layer.time(Pass::backward_data) + layer.time(Pass::backward_weight)).count(),
                2 * static_cast<double>(i + 1))
          << layer.name;
    }
  }
}

std::vector<LayerId> sorted(std::vector<LayerId> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

// One operator less, one of another width, another order: another model, which becomes a chain.
TEST(OperatorSequence, AnotherModelIsAChainOfWhatRan) {
  const Trace model = build_model("resnet18", 4);
  auto operators = run_of(model, true);
  operators.erase(operators.begin() + 3);  // the max pool: shapes no longer follow from each other
  auto result = trace_of_operators(operators);
  EXPECT_FALSE(result.matched);
  EXPECT_TRUE(result.trace.model.empty());

  // Half the width everywhere behind the first convolution is nobody's network; the shapes still tell its edges.
  operators = run_of(model, true);
  for (auto& op : operators) {
    for (auto& shape : op.input_shapes) {
      if (shape[1] != 3) shape[1] /= 2;
    }
    if (op.weight.empty()) continue;
    if (op.kind != OpKind::fc) op.weight[0] /= 2;
    if (op.weight[1] != 3) op.weight[1] /= 2;
  }
  operators.back().input_shapes[0][1] = 1000;
  result = trace_of_operators(operators);
  EXPECT_FALSE(result.matched);
  ASSERT_EQ(result.trace.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& expected = model.layers[i];
    const auto& layer = result.trace.layers[i];
    SCOPED_TRACE(expected.name);
    EXPECT_EQ(layer.kind, expected.kind);
    EXPECT_EQ(sorted(layer.inputs), sorted(expected.inputs));  // which summand comes first no shape tells
    if (expected.kind == OpKind::conv) {
      EXPECT_EQ(layer.kernel, expected.kernel);
      EXPECT_EQ(layer.stride, expected.stride);
      EXPECT_EQ(layer.pad_begin, expected.pad_begin);
      EXPECT_EQ(layer.output_shape[2], expected.output_shape[2]);
      EXPECT_EQ(layer.output_shape[1] * 2, expected.output_shape[1]);
    }
  }
}

// Elements that a kernel of whole blocks can cover pin the batch down.
TEST(OperatorSequence, WithoutShapesLaunchedKernelsTellTheBatch) {
  const Trace model = build_model("resnet50", 32);
  auto operators = run_of(model, false);
  EXPECT_THROW((void)trace_of_operators(operators), Error);
  EXPECT_EQ(trace_of_operators(operators, 32).trace.batch, 32);
  std::size_t k = 0;
  for (const auto& layer : model.layers) {
    if (layer.kind == OpKind::flatten) continue;
    auto& op = operators[k++];
    if (layer.kind != OpKind::relu) continue;
    op.most_elements = (elements(layer.output_shape) + 511) / 512 * 512;
    op.least_elements = op.most_elements - 511;
  }
  const auto result = trace_of_operators(operators);
  EXPECT_TRUE(result.matched);
  EXPECT_EQ(result.trace.model, "resnet50");
  EXPECT_EQ(result.trace.batch, 32);
  EXPECT_THROW((void)trace_of_operators(operators, 16), Error);
}

TEST(OperatorSequence, BackwardTimesStandWhereTheKindHasThem) {
  auto operators = run_of(build_model("lenet5", 2), true);
  for (auto& op : operators) {
    op.backward_data = {1};
    op.backward_weight = {2};
    op.backward_is_joint = false;
  }
  const auto trace = trace_of_operators(operators).trace;
  for (const auto& layer : trace.layers) {
    SCOPED_TRACE(layer.name);
    const auto data = layer.samples[1].seconds, weight = layer.samples[2].seconds;
    EXPECT_FALSE(layer.backward_is_joint);
    if (layer.kind == OpKind::flatten) {
      EXPECT_TRUE(data.empty() && weight.empty());
    } else if (!layer.needs_input_gradient) {
      EXPECT_TRUE(data.empty());
      EXPECT_EQ(weight, std::vector<double>{3});
    } else if (layer.parameters.empty()) {
      EXPECT_EQ(data, std::vector<double>{3});
      EXPECT_TRUE(weight.empty());
    } else {
      EXPECT_EQ(data, std::vector<double>{1});
      EXPECT_EQ(weight, std::vector<double>{2});
    }
  }
}

TEST(OperatorSequence, TheUpdateIsSpreadByParameters) {
  Trace trace = build_model("lenet5", 2);
  spread_update(trace, {1, 2});
  double sum = 0;
  for (const auto& layer : trace.layers) {
    const auto& update = layer.samples[3].seconds;
    EXPECT_EQ(update.size(), layer.parameters.empty() ? 0U : 2U);
    if (!update.empty()) sum += update[1];
  }
  EXPECT_NEAR(sum, 2, 1e-12);
}

TEST(OperatorSequence, NonsenseIsRefused) {
  EXPECT_THROW((void)trace_of_operators({}), Error);
  auto operators = run_of(build_model("lenet5", 2), true);
  EXPECT_THROW((void)trace_of_operators(operators, 3), Error);
  operators[0].input_shapes[0] = {2, -1, 28, 28};
  EXPECT_THROW((void)trace_of_operators(operators), Error);
  operators[0].input_shapes[0] = {2, 1 << 30, 1 << 30, 28};
  EXPECT_THROW((void)trace_of_operators(operators), Error);
  operators[0].input_shapes[0] = {2, 1, 2, 2};  // smaller than its window
  const auto small = trace_of_operators(operators).trace;
  EXPECT_FALSE(small.layers.empty());
}

}  // namespace
}  // namespace tandem
