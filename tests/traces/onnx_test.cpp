// Models are written here with the importer's own message classes (their field numbers are checked against files that
// PyTorch writes in onnx_torch_test.py) and compared with the built-in models and with shapes worked out by hand.
#include <gtest/gtest.h>

#include <importers/onnx.pb.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "traces/importer.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

// A model under construction. Weights get no values: none are needed.
class Net {
 public:
  explicit Net(const Shape& input, int elem_type = 1) {
    model.set_ir_version(8);
    model.set_producer_name("test");
    model.add_opset_import()->set_version(13);
    state(*model.mutable_graph()->add_input(), "x", input, elem_type);
  }

  static void state(onnx::ValueInfo& info, const std::string& name, const Shape& shape, int elem_type = 1) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(elem_type);
    for (const auto extent : shape) {
      auto* dim = tensor->mutable_shape()->add_dim();
      if (extent > 0) {
        dim->set_dim_value(extent);
      } else {
        dim->set_dim_param("N");
      }
    }
  }

  std::string weight(const std::string& name, const Shape& shape) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(1);
    for (const auto extent : shape) tensor->add_dims(extent);
    return name;
  }

  std::string numbers(const std::string& name, const std::vector<std::int64_t>& values, bool raw = false) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(7);
    tensor->add_dims(static_cast<std::int64_t>(values.size()));
    for (const auto value : values) {
      if (!raw) tensor->add_int64_data(value);
      for (int byte = 0; byte < 8 && raw; ++byte) {
        tensor->mutable_raw_data()->push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * byte)));
      }
    }
    return name;
  }

  using Lists = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

  // The node's (first) output is called like the node.
  std::string node(const std::string& op, const std::string& name, const Names& inputs, const Lists& lists = {},
                   const Lists& integers = {}) {
    auto* node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const auto& input : inputs) node->add_input(input);
    node->add_output(name);
    for (const auto& [key, values] : lists) {
      auto* attribute = node->add_attribute();
      attribute->set_name(key);
      for (const auto value : values) attribute->add_ints(value);
    }
    for (const auto& [key, values] : integers) {
      auto* attribute = node->add_attribute();
      attribute->set_name(key);
      attribute->set_i(values.at(0));
    }
    return name;
  }
  onnx::Node& last() { return *model.mutable_graph()->mutable_node(model.graph().node_size() - 1); }

  void text_attribute(const std::string& key, const std::string& value) {
    auto* attribute = last().add_attribute();
    attribute->set_name(key);
    attribute->set_s(value);
  }

  std::string conv(const std::string& name, const std::string& from, const Shape& weights, bool bias,
                   const Lists& lists = {}, const Lists& integers = {}) {
    Names inputs{from, weight(name + ".weight", weights)};
    if (bias) inputs.push_back(weight(name + ".bias", {weights[0]}));
    return node("Conv", name, inputs, lists, integers);
  }

  void output(const std::string& name) { model.mutable_graph()->add_output()->set_name(name); }
  void state(const std::string& name, const Shape& shape) {
    state(*model.mutable_graph()->add_value_info(), name, shape);
  }

  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
  [[nodiscard]] Trace import(const std::string& importer = "onnx") const {
    return import_source({"toy.onnx", bytes()}, importer).trace;
  }
  [[nodiscard]] std::string message(const std::string& importer = "onnx") const;

  onnx::Model model;
};

std::string message_of(const std::string& bytes, const std::string& importer = "onnx") {
  try {
    (void)import_source({"toy.onnx", bytes}, importer);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 1000U);
    return error.what();
  }
  return "no error";
}

std::string Net::message(const std::string& importer) const {
  return message_of(bytes(), importer);
}

bool mentions(const Trace& trace, const std::string& text) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

Shape shape_of(const Trace& trace, const std::string& name) {
  for (const auto& layer : trace.layers) {
    if (layer.name == name) return layer.output_shape;
  }
  return {};
}

Net lenet5(std::int64_t batch) {
  Net net({batch, 1, 28, 28});
  const Net::Lists halved{{"kernel_shape", {2, 2}}, {"strides", {2, 2}}};
  auto x = net.conv("conv1", "x", {20, 1, 5, 5}, true, {{"kernel_shape", {5, 5}}});
  x = net.node("MaxPool", "pool1", {x}, halved);
  x = net.conv("conv2", x, {50, 20, 5, 5}, true);
  x = net.node("MaxPool", "pool2", {x}, halved);
  x = net.node("Flatten", "flatten", {x});
  x = net.node("Gemm", "ip1", {x, net.weight("w1", {500, 800}), net.weight("b1", {500})}, {}, {{"transB", {1}}});
  x = net.node("Relu", "relu1", {x});
  x = net.node("Gemm", "ip2", {x, net.weight("w2", {500, 10}), net.weight("b2", {10})});
  net.output(net.node("Softmax", "loss", {x}));
  return net;
}

// Every field of every layer but the times, in the built-in model's own words.
TEST(Onnx, LeNet5IsTheBuiltInOne) {
  const Trace trace = lenet5(32).import("");
  const Trace model = build_model("lenet5", 32);
  EXPECT_TRUE(trace.layers == model.layers);
  EXPECT_EQ(trace.parameter_count(), 431'080);
  EXPECT_EQ(trace.batch, 32);
  EXPECT_EQ(trace.model, "toy");
  EXPECT_EQ(trace.framework, "test");
  EXPECT_EQ(trace.total(Pass::forward).count(), 0);
  EXPECT_TRUE(mentions(trace, "no times"));
  const auto report = import_source({"toy.onnx", lenet5(32).bytes()}).report;
  ASSERT_EQ(report.entries.size(), 2U);
  EXPECT_EQ(report.entries[0].count, 9);  // nodes
  EXPECT_EQ(report.entries[1].count, 8);  // parameter tensors
}

TEST(Onnx, TheBatchIsTheInputsOrGiven) {
  EXPECT_NE(
      lenet5(0).message().find("input 'x': the batch, its first extent, is symbolic ('N'); give it as onnx:batch=N"),
      std::string::npos);
  EXPECT_TRUE(lenet5(0).import("onnx:batch=7").layers == build_model("lenet5", 7).layers);
  const Trace given = lenet5(32).import("onnx:batch=7");
  EXPECT_TRUE(given.layers == build_model("lenet5", 7).layers);
  EXPECT_TRUE(mentions(given, "batch 7 as given, where the file has 32"));
  Net net({4, 3, -1, 8});
  net.conv("conv", "x", {1, 3, 1, 1}, false);
  EXPECT_NE(net.message().find("its extent 2 is symbolic ('N')"), std::string::npos);
}

// A bottleneck with a shortcut, then two branches side by side: the edges of the graph, not the order of its nodes.
TEST(Onnx, BranchesKeepTheirEdges) {
  Net net({2, 3, 8, 8});
  net.conv("c1", "x", {4, 3, 3, 3}, false, {{"pads", {1, 1, 1, 1}}});
  net.node("BatchNormalization", "bn",
           {"c1", net.weight("s", {4}), net.weight("t", {4}), net.weight("m", {4}), net.weight("v", {4})});
  net.node("Relu", "r1", {"bn"});
  net.conv("c2", "r1", {4, 4, 1, 1}, true);
  net.node("Add", "sum", {"c2", "r1"});
  net.node("Relu", "r2", {"sum"});
  net.conv("left", "r2", {6, 2, 3, 3}, false, {{"pads", {2, 2, 2, 2}}, {"dilations", {2, 2}}}, {{"group", {2}}});
  net.node("MaxPool", "right", {"r2"}, {{"kernel_shape", {3, 3}}, {"pads", {1, 1, 1, 1}}});
  net.node("Concat", "both", {"left", "right", "r2"}, {}, {{"axis", {1}}});
  net.node("GlobalAveragePool", "gap", {"both"});
  net.output("gap");
  const Trace trace = net.import();
  const auto edges = [&](std::size_t i) {
    std::vector<std::string> names;
    for (const auto id : trace.layers[i].inputs) names.push_back(trace.layers[id.index()].name);
    return names;
  };
  ASSERT_EQ(trace.layers.size(), 10U);
  EXPECT_EQ(edges(0), Names{});
  EXPECT_EQ(edges(4), (Names{"c2", "r1"}));
  EXPECT_EQ(edges(8), (Names{"left", "right", "r2"}));
  EXPECT_FALSE(trace.layers[0].needs_input_gradient);
  EXPECT_TRUE(trace.layers[1].needs_input_gradient);
  EXPECT_TRUE(trace.layers[1].backward_is_joint);
  EXPECT_EQ(trace.layers[1].parameters, (std::vector<ParameterTensor>{{"weight", {4}}, {"bias", {4}}}));
  EXPECT_TRUE(trace.layers[2].in_place);
  EXPECT_EQ(trace.layers[4].kind, OpKind::add);
  EXPECT_EQ(trace.layers[6].groups, 2);
  EXPECT_EQ(trace.layers[6].dilation, (std::vector<int>{2, 2}));
  EXPECT_EQ(shape_of(trace, "left"), (Shape{2, 6, 8, 8}));
  EXPECT_EQ(trace.layers[8].kind, OpKind::concat);
  EXPECT_EQ(shape_of(trace, "both"), (Shape{2, 14, 8, 8}));
  EXPECT_EQ(trace.layers[9].kernel, (std::vector<int>{8, 8}));
  EXPECT_EQ(shape_of(trace, "gap"), (Shape{2, 14, 1, 1}));
  EXPECT_EQ(trace.parameter_count(), 4 * 27 + 8 + 4 * 4 + 4 + 6 * 2 * 9);
  EXPECT_TRUE(mentions(trace, "without a softmax"));
}

// A ReLU must not overwrite what somebody else still reads, as in pre-activation residual networks.
TEST(Onnx, ReluIsInPlaceOnlyWhereItsInputIsItsOwn) {
  Net net({2, 3, 8, 8});
  net.conv("c", "x", {3, 3, 1, 1}, false);
  net.node("Relu", "shared", {"c"});
  net.node("Add", "sum", {"shared", "c"});
  net.node("Relu", "own", {"sum"});
  const Trace trace = net.import();
  EXPECT_FALSE(trace.layers[1].in_place);
  EXPECT_GT(trace.layers[1].activation_bytes, Bytes(0));
  EXPECT_TRUE(trace.layers[3].in_place);
}

// Extents by the formulas of the ONNX operator documentation.
TEST(Onnx, WindowsFollowPadsAndRounding) {
  Net net({1, 1, 7, 10});
  const auto pool = [&](const std::string& name, const Net::Lists& lists, const std::string& pad = "",
                        bool ceil = false) {
    net.node("MaxPool", name, {"x"}, lists, {{"ceil_mode", {ceil ? 1 : 0}}});
    if (!pad.empty()) net.text_attribute("auto_pad", pad);
  };
  pool("floor", {{"kernel_shape", {2, 3}}, {"strides", {2, 3}}});
  pool("ceil", {{"kernel_shape", {2, 3}}, {"strides", {2, 3}}}, "", true);
  pool("valid", {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}, "VALID");
  pool("upper", {{"kernel_shape", {3, 2}}, {"strides", {2, 2}}}, "SAME_UPPER");
  pool("lower", {{"kernel_shape", {4, 4}}, {"strides", {3, 1}}}, "SAME_LOWER");
  pool("uneven", {{"kernel_shape", {3, 3}}, {"pads", {0, 1, 2, 0}}, {"dilations", {3, 1}}});
  const Trace trace = net.import();
  EXPECT_EQ(shape_of(trace, "floor"), (Shape{1, 1, 3, 3}));
  EXPECT_EQ(shape_of(trace, "ceil"), (Shape{1, 1, 4, 4}));
  EXPECT_EQ(shape_of(trace, "valid"), (Shape{1, 1, 3, 4}));
  EXPECT_EQ(shape_of(trace, "upper"), (Shape{1, 1, 4, 5}));
  EXPECT_EQ(shape_of(trace, "lower"), (Shape{1, 1, 3, 10}));
  EXPECT_EQ(shape_of(trace, "uneven"), (Shape{1, 1, 3, 9}));
  EXPECT_EQ(trace.layers[3].pad_begin, (std::vector<int>{1, 0}));  // (4-1)*2+3-7 = 2; (5-1)*2+2-10 = 0
  EXPECT_EQ(trace.layers[3].pad_end, (std::vector<int>{1, 0}));
  EXPECT_EQ(trace.layers[4].pad_begin, (std::vector<int>{2, 2}));  // (3-1)*3+4-7 = 3, the odd one in front
  EXPECT_EQ(trace.layers[4].pad_end, (std::vector<int>{1, 1}));
}

TEST(Onnx, SpatialRankIsOneToThree) {
  Net net({2, 3, 9});
  net.conv("c", "x", {5, 3, 3}, false);
  EXPECT_EQ(shape_of(net.import(), "c"), (Shape{2, 5, 7}));
  Net cube({2, 3, 9, 9, 9});
  cube.conv("c", "x", {5, 3, 3, 1, 2}, false);
  EXPECT_EQ(shape_of(cube.import(), "c"), (Shape{2, 5, 7, 9, 8}));
  Net four({2, 3, 9, 9, 9, 9});
  four.conv("c", "x", {5, 3, 3, 1, 2, 1}, false);
  EXPECT_NE(four.message().find("a window of 4 dimensions"), std::string::npos);
}

TEST(Onnx, AMatMulAndItsBiasAreOneLayer) {
  Net net({4, 8});
  net.node("MatMul", "product", {"x", net.weight("w", {8, 5})});
  net.node("Add", "biased", {net.weight("b", {5}), "product"});
  net.node("MatMul", "bare", {"biased", net.weight("w2", {5, 3})});
  net.output("bare");
  const Trace trace = net.import();
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.layers[0].kind, OpKind::fc);
  EXPECT_EQ(trace.layers[0].parameters, (std::vector<ParameterTensor>{{"weight", {5, 8}}, {"bias", {5}}}));
  EXPECT_DOUBLE_EQ(trace.layers[0].flops[3].count(), 4 * 45);
  EXPECT_EQ(trace.layers[1].parameters, (std::vector<ParameterTensor>{{"weight", {3, 5}}}));
  EXPECT_EQ(trace.layers[1].inputs, (std::vector<LayerId>{LayerId{0}}));
}

// What `x.view(x.size(0), -1)` becomes in an export.
TEST(Onnx, ArithmeticOnShapesIsFoldedAway) {
  for (const bool raw : {false, true}) {
    Net net({6, 3, 4, 4});
    net.conv("c", "x", {3, 3, 1, 1}, false);
    net.node("Shape", "shape", {"c"});
    net.node("Gather", "size0", {"shape", net.numbers("zero", {0}, raw)});
    net.node("Concat", "target", {"size0", net.numbers("rest", {-1}, raw)}, {}, {{"axis", {0}}});
    net.node("Reshape", "view", {"c", "target"});
    net.node("Reshape", "back", {"view", net.numbers("fixed", {0, 3, 8, -1}, raw)});
    const Trace trace = net.import();
    EXPECT_EQ(trace.layers.size(), 3U);
    EXPECT_EQ(shape_of(trace, "view"), (Shape{6, 48}));
    EXPECT_EQ(shape_of(trace, "back"), (Shape{6, 3, 8, 2}));
    EXPECT_EQ(trace.layers[1].kind, OpKind::flatten);
    EXPECT_TRUE(trace.layers[1].in_place);
    EXPECT_EQ(shape_of(net.import("onnx:batch=2"), "view"), (Shape{2, 48}));
  }
}

TEST(Onnx, ABatchWrittenIntoAReshapeFollowsTheGivenOne) {
  Net net({6, 3, 4, 4});
  net.node("Reshape", "view", {"x", net.numbers("target", {6, -1})});
  EXPECT_EQ(shape_of(net.import("onnx:batch=5"), "view"), (Shape{5, 48}));
}

TEST(Onnx, OtherOperatorsHaveTheirShapes) {
  Net net({2, 4, 6, 5});
  net.node("Pad", "pad", {"x", net.numbers("pads", {0, 0, 1, 2, 0, 0, 0, 1})});
  net.node("Transpose", "transpose", {"pad"}, {{"perm", {0, 2, 3, 1}}});
  net.node("Mul", "scale", {"transpose", net.weight("k", {4})});
  net.node("Sigmoid", "sigmoid", {"scale"});
  net.node("Slice", "slice",
           {"sigmoid", net.numbers("starts", {-3}), net.numbers("ends", {1 << 30}), net.numbers("axes", {1})});
  net.node("ReduceMean", "mean", {"x"}, {{"axes", {2, 3}}}, {{"keepdims", {0}}});
  net.node("Unsqueeze", "more", {"mean", net.numbers("new", {2})});
  net.node("Squeeze", "less", {"more", net.numbers("old", {-1})});
  net.node("Split", "half", {"x"}, {}, {{"axis", {1}}});
  net.last().add_output("other half");
  net.node("Concat", "swapped", {"other half", "half"}, {}, {{"axis", {1}}});
  net.node("Identity", "alias", {"swapped"});
  net.node("LRN", "lrn", {"alias"});
  net.node("Dropout", "dropout", {"lrn"});
  net.last().add_output("mask");
  net.node("MatMul", "attention", {"slice", net.node("Transpose", "t2", {"slice"}, {{"perm", {0, 1, 3, 2}}})});
  const Trace trace = net.import();
  EXPECT_EQ(shape_of(trace, "pad"), (Shape{2, 4, 7, 8}));
  EXPECT_EQ(shape_of(trace, "scale"), (Shape{2, 7, 8, 4}));
  EXPECT_EQ(shape_of(trace, "slice"), (Shape{2, 3, 8, 4}));
  EXPECT_EQ(shape_of(trace, "mean"), (Shape{2, 4}));
  EXPECT_EQ(shape_of(trace, "more"), (Shape{2, 4, 1}));
  EXPECT_EQ(shape_of(trace, "less"), (Shape{2, 4}));
  EXPECT_EQ(shape_of(trace, "half"), (Shape{2, 2, 6, 5}));
  EXPECT_EQ(shape_of(trace, "swapped"), (Shape{2, 4, 6, 5}));
  EXPECT_EQ(shape_of(trace, "dropout"), (Shape{2, 4, 6, 5}));
  EXPECT_EQ(shape_of(trace, "attention"), (Shape{2, 3, 8, 8}));
  EXPECT_TRUE(mentions(trace, "1 floating-point constants of other operators"));
  EXPECT_EQ(trace.parameter_count(), 0);
}

TEST(Onnx, UnknownOperatorsNeedAStatedShape) {
  Net net({2, 3, 8, 8});
  net.node("Frobnicate", "what", {"x"});
  EXPECT_NE(net.message().find("node 'what' (Frobnicate): the importer does not know this operator"),
            std::string::npos);
  net.state("what", {2, 3, 4, 4});
  const Trace trace = net.import();
  EXPECT_EQ(trace.layers[0].kind, OpKind::other);
  EXPECT_EQ(trace.layers[0].output_shape, (Shape{2, 3, 4, 4}));
  EXPECT_EQ(shape_of(net.import("onnx:batch=9"), "what"), (Shape{9, 3, 4, 4}));
  EXPECT_TRUE(mentions(trace, "Frobnicate"));
  Net foreign({2, 3, 8, 8});
  foreign.node("Relu", "what", {"x"});
  foreign.last().set_domain("com.example");
  EXPECT_NE(foreign.message().find("does not know this operator"), std::string::npos);
}

TEST(Onnx, StatedShapesThatDifferAreSaid) {
  Net net({2, 3, 8, 8});
  net.conv("c", "x", {3, 3, 3, 3}, false);
  net.state("c", {2, 3, 8, 8});
  EXPECT_TRUE(mentions(net.import(), "c: its shape is 2x3x6x6, where the file states 2x3x8x8"));
}

// As exported without values: the weights are inputs of the model.
TEST(Onnx, InputsInAWeightsPlaceAreWeights) {
  Net net = lenet5(2);
  auto* graph = net.model.mutable_graph();
  for (const auto& tensor : graph->initializer()) {
    Net::state(*graph->add_input(), tensor.name(), {tensor.dims().begin(), tensor.dims().end()});
  }
  EXPECT_TRUE(net.import().layers == build_model("lenet5", 2).layers);  // as old files list initializers
  graph->clear_initializer();
  const Trace trace = net.import();
  EXPECT_TRUE(trace.layers == build_model("lenet5", 2).layers);
  EXPECT_TRUE(mentions(trace, "8 inputs of the model stand only where weights do"));
}

TEST(Onnx, SharedWeightsCountOnce) {
  Net net({2, 3, 8, 8});
  net.conv("a", "x", {3, 3, 1, 1}, false);
  net.node("Conv", "b", {"a", "a.weight"});
  const Trace trace = net.import();
  EXPECT_EQ(trace.parameter_count(), 9);
  EXPECT_TRUE(mentions(trace, "b: shares its weight with a"));
}

TEST(Onnx, HalfPrecisionHalvesActivations) {
  Net net({2, 3, 8, 8}, 10);
  net.conv("c", "x", {3, 3, 1, 1}, false);
  const Trace trace = net.import();
  EXPECT_EQ(trace.dtype, "float16");
  EXPECT_EQ(trace.layers[0].activation_bytes, Bytes(2 * 2 * 3 * 64));
}

TEST(Onnx, NamesAreMadeUniqueAndPrintable) {
  Net net({2, 3, 8, 8});
  net.node("Relu", "r", {"x"});
  net.node("Relu", "s", {"r"});
  net.last().set_name("r");
  net.node("Relu", "t", {"s"});
  net.last().set_name(std::string("\0\xff\n", 3));
  net.node("Relu", "u", {"t"});
  net.last().clear_name();
  const Trace trace = net.import();
  Names names;
  for (const auto& layer : trace.layers) names.push_back(layer.name);
  EXPECT_EQ(names, (Names{"r", "r.2", "???", "u"}));
}

TEST(Onnx, GradientsStopWhereNothingAboveLearns) {
  Net net({2, 3, 8, 8});
  net.node("Mul", "normalize", {"x", net.weight("k", {1})});
  net.node("Relu", "r", {"normalize"});
  net.conv("c", "r", {3, 3, 1, 1}, false);
  net.node("Relu", "after", {"c"});
  const Trace trace = net.import();
  Names with;
  for (const auto& layer : trace.layers) {
    if (layer.needs_input_gradient) with.push_back(layer.name);
  }
  EXPECT_EQ(with, Names{"after"});
}

// ---- mistakes and malice ----

TEST(Onnx, MistakesNameTheNode) {
  const auto conv = [](const Shape& weights, const Net::Lists& lists = {}, const Net::Lists& integers = {}) {
    Net net({2, 4, 8, 8});
    net.conv("c", "x", weights, false, lists, integers);
    return net.message();
  };
  const auto one = [](const std::string& op, const Net::Lists& lists = {}, const Net::Lists& integers = {},
                      const Names& inputs = {"x"}) {
    Net net({2, 4, 8, 8});
    net.numbers("huge", {std::int64_t{1} << 62, 4, 1});
    net.numbers("negative", {-5, 3});
    net.numbers("axes", {99});
    net.node(op, "n", inputs, lists, integers);
    return net.message();
  };
  const std::pair<std::string, const char*> cases[] = {
      {conv({3, 3, 1, 1}), "node 'c' (Conv): weights of shape 3x3x1x1 in 1 groups on 4 channels"},
      {conv({3, 4, 1}), "weights of shape 3x4x1 on an input of shape 2x4x8x8"},
      {conv({3, 4, 0, 1}), "impossible shape 3x4x0x1"},
      {conv({3, 4, -1, 1}), "tensor 'c.weight' has the impossible shape 3x4x-1x1"},
      {conv({std::int64_t{1} << 60, 4, 1, 1}), "tensor 'c.weight' has the impossible shape"},
      {conv({std::int64_t{1} << 40, 1 << 20, 1 << 20, 4}), "tensor 'c.weight' has the impossible shape"},
      {conv({3, 4, 9, 1}), "a window of 9 (dilation 1) does not fit an extent of 8"},
      {conv({3, 4, 3, 3}, {{"kernel_shape", {5, 5}}}), "kernel_shape differs"},
      {conv({3, 4, 1, 1}, {{"strides", {0, 1}}}), "'strides' has a value of 0"},
      {conv({3, 4, 1, 1}, {{"strides", {1}}}), "'strides' has 1 values where 2 are expected"},
      {conv({3, 4, 1, 1}, {{"pads", {-1, 0, 0, 0}}}), "'pads' has a value of -1"},
      {conv({3, 4, 1, 1}, {{"dilations", {std::int64_t{1} << 40, 1}}}), "'dilations' has a value of"},
      {conv({3, 4, 1, 1}, {}, {{"group", {0}}}), "in 0 groups"},
      {conv({3, std::int64_t{1} << 40, 1, 1}, {}, {{"group", {1 << 20}}}), "in 1048576 groups"},
      {one("Conv"), "it has no weights"},
      {one("Conv", {}, {}, {"x", "x"}), "its weights are computed in the model"},
      {one("MaxPool"), "no kernel_shape"},
      {one("Add", {}, {}, {"x", "nobody"}), "it reads 'nobody', which nothing before it produces"},
      {one("Add", {}, {}, {"x", "n"}), "it reads 'n', which nothing before it produces"},
      {one("Reshape", {}, {}, {"x", "huge"}), "the new shape 4611686018427387904x4x1 is impossible"},
      {one("Reshape", {{"shape", {}}}, {}, {"x", "axes"}), "512 elements do not fill 99"},
      {one("Reshape", {}, {}, {"x", "negative"}), "the new shape -5x3 is impossible"},
      {one("Unsqueeze", {}, {}, {"x", "axes"}), "axis 99 does not exist in 5 dimensions"},
      {one("Squeeze", {{"axes", {1}}}), "axis 1 of 2x4x8x8 has an extent other than 1"},
      {one("Squeeze", {{"axes", {1, 1}}}), "an axis is given twice"},
      {one("Transpose", {{"perm", {0, 1}}}), "the permutation has another number"},
      {one("Pad", {{"pads", {0, 0, INT64_MAX, 0, 0, 0, 0, 0}}}), "a pad is too large"},
      {one("Pad", {{"pads", {0, 0, -8, 0, 0, 0, 0, 0}}}), "the impossible shape 2x4x0x8"},
      {one("Slice", {{"starts", {5}}, {"ends", {5}}}), "the impossible shape 0x4x8x8"},
      {one("Slice", {{"starts", {0}}, {"ends", {5}}, {"axes", {1}}, {"steps", {0}}}), "a step of 0"},
      {one("Split", {{"split", {INT64_MAX}}}), "its parts do not make up the 2 of axis 0"},
      {one("Concat", {}, {{"axis", {INT64_MIN}}}), "axis -9223372036854775808 does not exist"},
      {one("Gemm", {}, {}, {"x", "huge"}), "weights of shape 3 on an input of shape 2x4x8x8"},
      {one("Shape"), "nothing in the model depends on its input"},
  };
  for (const auto& [seen, expected] : cases) {
    EXPECT_NE(seen.find(expected), std::string::npos) << seen << " / " << expected;
  }
}

TEST(Onnx, CyclesAndDoubleDefinitionsAreRefused) {
  Net cycle({2, 4});
  cycle.node("Add", "a", {"x", "b"});
  cycle.node("Relu", "b", {"a"});
  EXPECT_NE(cycle.message().find("not in topological order, or form a cycle"), std::string::npos);
  Net twice({2, 4});
  twice.node("Relu", "a", {"x"});
  twice.node("Relu", "a", {"x"});
  EXPECT_NE(twice.message().find("tensor 'a' is defined twice"), std::string::npos);
  Net none({2, 4});
  EXPECT_NE(none.message().find("the model has no nodes"), std::string::npos);
  Net no_input({2, 4});
  no_input.model.mutable_graph()->clear_input();
  no_input.node("Conv", "c", {"", no_input.weight("w", {1, 1, 1, 1})});
  EXPECT_NE(no_input.message().find("no input besides its weights"), std::string::npos);
  Net mask({2, 4});
  mask.node("Dropout", "d", {"x"});
  mask.last().add_output("m");
  mask.node("Relu", "r", {"m"});
  EXPECT_NE(mask.message().find("the shape of its input 0 is not known"), std::string::npos);
}

// Sizes whose products leave 64 bits, step by step.
TEST(Onnx, GrowingShapesEndInAnError) {
  Net net({2, 4, 8, 8});
  std::string x = "x";
  for (int i = 0; i < 70; ++i) x = net.node("Concat", "c" + std::to_string(i), {x, x}, {}, {{"axis", {1}}});
  EXPECT_NE(net.message().find("impossible shape"), std::string::npos);
  Net outer({1 << 20, 1 << 20});
  outer.node("MatMul", "m", {"x", outer.weight("w", {1 << 20, std::int64_t{1} << 36})});
  EXPECT_NE(outer.message(), "no error");
}

TEST(Onnx, CutAndGarbledFilesNeverCrash) {
  Net net = lenet5(2);
  net.node("Shape", "s", {"loss"});
  net.node("Reshape", "v", {"loss", net.node("Concat", "t", {"s", net.numbers("one", {1})}, {}, {{"axis", {0}}})});
  net.state("v", {2, 10, 1});
  const std::string whole = net.bytes();
  const auto survive = [](const std::string& bytes) {
    try {
      validate(import_source({"toy.onnx", bytes}, "onnx").trace);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(message_of(whole.substr(0, length)), "") << length;
  }
  Random random(17);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = whole;
    for (std::uint32_t k = 0; k <= random.below(4); ++k) {
      bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<char>(random.below(256));
    }
    survive(bytes);
  }
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random.below(400), '\0');
    for (auto& c : bytes) c = static_cast<char>(random.below(256));
    survive(bytes);
  }
}

std::string field(int number, const std::string& payload) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (std::size_t size = payload.size();; size >>= 7) {
    bytes += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
    if (size <= 0x7f) break;
  }
  return bytes + payload;
}

TEST(Onnx, FilesMadeToExhaustAreRefusedAtOnce) {
  // Five million nodes of two bytes.
  std::string nodes;
  for (int i = 0; i < 5'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  EXPECT_NE(message_of("\x08\x08" + field(7, nodes)).find("more than 4000000 nodes"), std::string::npos);
  // Subgraphs in subgraphs: attribute g (6) of a node's attribute (5) of a graph's node (1). They are not read.
  std::string graph;
  for (int depth = 0; depth < 2000; ++depth) graph = field(1, field(4, "If") + field(5, field(6, graph)));
  EXPECT_NE(message_of("\x08\x08" + field(7, graph)), "no error");
  // Ends before its length, lengths beyond the file.
  EXPECT_NE(message_of(std::string("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12)).find("cut off"),
            std::string::npos);
  EXPECT_NE(message_of(std::string(1 << 20, '\xff')).find("damaged"), std::string::npos);
}

// ---- whose file it is ----

TEST(Onnx, RecognizesItsOwnOnly) {
  const auto recognizes = [](const std::string& content) {
    return Registry<Importer>::instance().make("onnx")->recognizes(std::string_view(content).substr(0, 64 << 10));
  };
  EXPECT_TRUE(recognizes(lenet5(2).bytes()));
  Net large = lenet5(2);  // the head ends inside the first weights
  large.model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->resize(1 << 20);
  EXPECT_TRUE(recognizes(large.bytes()));
  for (const std::string& other : {std::string("DATA\n1\n"), std::string("{\"traceEvents\": []}"),
                                   std::string("name,kind\n"), std::string("\x08\x08"),
                                   std::string("\x0a\x05"
                                               "1.0.1"
                                               "\x07\x08\x01\x12\x03"
                                               "abc"),
                                   std::string(100, '\0'), std::string("\x89HDF\r\n")}) {
    EXPECT_FALSE(recognizes(other)) << other;
  }
  const std::string folder = TANDEM_SOURCE_DIR "/../shared/reference/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no reference files at " << folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".xlsx") {
      EXPECT_FALSE(recognizes(read_source(entry.path().string()).content)) << entry.path();
    }
  }
}

}  // namespace
}  // namespace tandem
