#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/sample_trace.hpp"
#include "traces/chakra_fields.hpp"
#include "traces/exporter.hpp"
#include "traces/importer.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

const std::string kReference = TANDEM_SOURCE_DIR "/../shared/reference/traces/";

Imported import_text(const std::string& content, const std::string& importer = "chakra") {
  return import_source({"trace.et", content}, importer);
}

std::string error_of(const std::string& content, const std::string& importer = "chakra") {
  try {
    (void)import_text(content, importer);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& content, const std::string& part, const std::string& importer = "chakra") {
  const auto message = error_of(content, importer);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

void survive(const std::string& content, const std::string& importer = "chakra") {
  try {
    (void)import_text(content, importer);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
  }
}

// With `changes` bytes replaced.
std::string garbled(std::string text, Random& random, int changes) {
  for (int k = 0; k < changes && !text.empty(); ++k) {
    const auto at = random.below(static_cast<std::uint32_t>(text.size()));
    text[at] = static_cast<char>(random.below(256));
  }
  return text;
}

const ImportReport::Entry& entry(const ImportReport& report, const std::string& what) {
  for (const auto& one : report.entries) {
    if (one.what.starts_with(what)) return one;
  }
  static const ImportReport::Entry none;
  ADD_FAILURE() << "no entry '" << what << "'";
  return none;
}

bool has_note(const Trace& trace, const std::string& part) {
  for (const auto& note : trace.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

double sum(const Trace& trace) {
  double seconds = 0;
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update}) {
    seconds += trace.total(pass).count();
  }
  for (const auto& outside : trace.outside) seconds += outside.samples.typical().count();
  return seconds;
}

// ---- a recorded file, where it is at hand ----

class RecordedChakra : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path())) GTEST_SKIP() << "no reference trace " << path();
  }
  [[nodiscard]] static std::string path() { return kReference + "chakra_resnet50_ddp_rank0.et.gz"; }
};

// What the description of the file says of it.
TEST_F(RecordedChakra, CountsAndTimesAreThoseOfTheSource) {
  const auto [trace, report] = import_trace({path()});
  std::int64_t nodes = 0, device = 0;
  double device_time = 0;
  for (const auto& one : report.entries) {
    nodes += one.count;
    if (one.fate == ImportReport::Fate::dropped) continue;
    device += one.count;
    device_time += one.time.count();
  }
  EXPECT_EQ(nodes, 3664);
  EXPECT_EQ(entry(report, "kernels of communication").count + entry(report, "collectives as the host").count, 21);
  EXPECT_EQ(device, 1216);
  EXPECT_NEAR(device_time, 329.543e-3, 1e-9);
  EXPECT_NEAR(sum(trace), 329.543e-3, 1e-9);  // layers, copies and communication: nothing is lost, nothing twice
}

TEST_F(RecordedChakra, LayersAreResNet50s) {
  const auto [trace, report] = import_trace({path()});
  Trace expected = build_model("resnet50", 32);
  EXPECT_EQ(trace.model, "resnet50");
  EXPECT_EQ(trace.batch, 32);
  EXPECT_EQ(trace.date, "2023-12-14");
  EXPECT_EQ(trace.dtype, "float32");
  ASSERT_EQ(trace.layers.size(), expected.layers.size());
  std::map<OpKind, int> timed;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const auto& layer = trace.layers[i];
    EXPECT_EQ(layer.name, expected.layers[i].name);
    EXPECT_EQ(layer.output_shape, expected.layers[i].output_shape) << layer.name;
    if (layer.time(Pass::forward) > Seconds(0)) ++timed[layer.kind];
    // Gradients of input and weights are told apart but for the batch normalizations, which compute both at once.
    EXPECT_EQ(layer.backward_is_joint, layer.kind == OpKind::bn) << layer.name;
    if (layer.kind != OpKind::conv) continue;
    EXPECT_GT(layer.time(Pass::backward_weight).count(), 0) << layer.name;
    EXPECT_EQ(layer.time(Pass::backward_data).count() > 0, layer.needs_input_gradient) << layer.name;
  }
  EXPECT_EQ(timed[OpKind::conv], 53);
  EXPECT_EQ(timed[OpKind::bn], 53);
  EXPECT_EQ(timed[OpKind::relu], 49);
  EXPECT_EQ(timed[OpKind::add], 16);
  EXPECT_EQ(timed[OpKind::fc], 1);
  // Kernels of one layer, added up by hand: offsets 2 us, convolution 1,629 us; the weights' gradient alone 3,195 us.
  EXPECT_NEAR(trace.layers[0].time(Pass::forward).count(), 1631e-6, 1e-12);
  EXPECT_NEAR(trace.layers[0].time(Pass::backward_weight).count(), 3195e-6, 1e-12);
  // The optimizer's nine kernels, 1,009 and 2,938 us.
  EXPECT_NEAR(trace.total(Pass::update).count(), 3947e-6, 1e-9);
}

TEST_F(RecordedChakra, BucketsComeInTheirOrder) {
  const Trace trace = import_trace({path()}).trace;
  std::vector<std::int64_t> buckets;
  double duration = 0;
  for (const auto& collective : trace.collectives) {
    if (collective.operation == "all-reduce") buckets.push_back(collective.bytes.count());
    duration += collective.duration.count();
  }
  EXPECT_EQ(trace.collectives.size(), 7U);
  EXPECT_EQ(trace.collectives[0], (RecordedCollective{"broadcast", Bytes(212480), Seconds(28e-6)}));
  EXPECT_EQ(buckets, (std::vector<std::int64_t>{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160}));
  for (const auto& outside : trace.outside) {
    EXPECT_NE(outside.kind, OutsideTime::Kind::unmatched);
    if (outside.kind == OutsideTime::Kind::communication) {
      EXPECT_DOUBLE_EQ(outside.samples.typical().count(), duration);
    }
  }
  EXPECT_TRUE(has_note(trace, "5 all-reduces carry 102228128 bytes, which are the gradients of the 25557032"));
  EXPECT_TRUE(has_note(trace, "no start times"));
}

TEST_F(RecordedChakra, GarbledCopiesNeverCrash) {
  const auto whole = read_source(path()).content;
  Random random(11);
  for (int i = 0; i < 12; ++i) survive(garbled(whole, random, 1 + i * i));
  for (int i = 0; i < 12; ++i) survive(whole.substr(0, random.below(static_cast<std::uint32_t>(whole.size()))));
  // Short ones reach the mapping more often.
  const auto start = whole.substr(0, 200'000);
  for (int i = 0; i < 60; ++i) survive(garbled(start, random, 4));
}

TEST(RecordedChakraJson, TheFirstNodesHaveNoForwardPass) {
  const auto path = kReference + "chakra_small.0.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference trace " << path;
  const auto content = read_source(path).content;
  expect_error(content, "none of the 7 nodes (2 of the device, 32 us, 1 of them communication) belongs to", "");
  // Kept as it is where one insists: a kernel of 4 us, and a broadcast of 28 us.
  const Trace trace = import_text(content, "chakra-json:batch=32").trace;
  ASSERT_EQ(trace.layers.size(), 1U);
  EXPECT_EQ(trace.layers[0].kind, OpKind::other);
  EXPECT_NEAR(trace.layers[0].time(Pass::forward).count(), 4e-6, 1e-15);
  ASSERT_EQ(trace.outside.size(), 1U);
  EXPECT_NEAR(trace.outside[0].samples.typical().count(), 28e-6, 1e-15);
  Random random(12);
  for (int i = 0; i < 2000; ++i) survive(garbled(content, random, 3), "chakra-json:batch=32");
}

// ---- small files by hand ----

class File {
 public:
  File() {
    chakra::Metadata metadata;
    put_text(*metadata.mutable_attributes(), "schema", "1.0.1");
    append_chakra(text_, metadata);
  }

  void add(const chakra::Node& node) { append_chakra(text_, node); }

  // An operator of the host that launches one kernel, 10 us for the host; the kernel's id is the operator's plus one.
  File& operator_(std::uint64_t id, const std::string& name, const std::string& shapes, const std::string& output,
                  std::uint64_t micros, const std::string& values = "") {
    chakra::Node host = node(id, name, 10, true);
    host.mutable_inputs()->set_shapes(shapes);
    host.mutable_inputs()->set_values(values);
    host.mutable_inputs()->set_types("['Tensor(float)']");
    host.mutable_outputs()->set_shapes(output);
    add(host);
    chakra::Node kernel = node(id + 1, "a kernel of " + name, micros, false);
    kernel.add_data(id);
    add(kernel);
    return *this;
  }

  static chakra::Node node(std::uint64_t id, const std::string& name, std::uint64_t micros, bool host, int type = 4) {
    chakra::Node made;
    made.set_id(id);
    made.set_name(name);
    made.set_type(type);
    made.set_duration_micros(micros);
    put_flag(*made.mutable_attributes(), "is_cpu_op", host);
    return made;
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Convolution, ReLU, fully connected, loss; every kernel takes a different power of two, so that sums tell them apart.
File small_file() {
  File file;
  const std::string conv = "[[], [], '<None>', [1, 1], [1, 1], [1, 1], 1]";
  file.operator_(10, "aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [[], []]]", "[[2, 4, 8, 8]]", 1, conv);
  file.operator_(20, "aten::relu_", "[[2, 4, 8, 8]]", "[[2, 4, 8, 8]]", 2);
  file.operator_(30, "aten::linear", "[[2, 256], [10, 256], [10]]", "[[2, 10]]", 4);
  file.operator_(40, "aten::cross_entropy_loss", "[[2, 10], [2], []]", "[[]]", 8);
  file.operator_(50, "aten::_log_softmax_backward_data", "[[2, 10], [2, 10]]", "[[2, 10]]", 16);
  file.operator_(60, "aten::mm", "[[2, 10], [10, 256]]", "[[2, 256]]", 32);
  file.operator_(70, "aten::mm", "[[10, 2], [2, 256]]", "[[10, 256]]", 64);
  file.operator_(80, "aten::sum", "[[2, 10], [[]], [], []]", "[[1, 10]]", 128);
  file.operator_(90, "aten::threshold_backward", "[[2, 4, 8, 8], [2, 4, 8, 8], []]", "[[2, 4, 8, 8]]", 256);
  file.operator_(100, "aten::convolution_backward",
                 "[[2, 4, 8, 8], [2, 3, 8, 8], [4, 3, 3, 3], [[]], [[], []], [[], []], [[], []], [], [[], []], [], "
                 "[[], [], []]]",
                 "[[], [4, 3, 3, 3], []]", 512,
                 "[[], [], [], [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]]");
  file.operator_(110, "aten::_foreach_add_", "[[[4, 3, 3, 3]]]", "[]", 2670 * 1024);
  file.operator_(120, "aten::copy_", "[[4], [4], []]", "[[4]]", 2048);
  file.operator_(130, "aten::mystery_backward", "[[4]]", "[[4]]", 4096);
  chakra::Node reduce = File::node(140, "ncclKernel", 8192, false, 7);
  put_number(*reduce.mutable_attributes(), "comm_type", 0);
  put_number(*reduce.mutable_attributes(), "comm_size", 4 * 2678);
  file.add(reduce);
  return file;
}

TEST(Chakra, EveryKernelGoesWhereItsOperatorBelongs) {
  const auto [trace, report] = import_text(small_file().text(), "");
  ASSERT_EQ(trace.layers.size(), 5U);
  const auto& conv = trace.layers[0];
  const auto& relu = trace.layers[1];
  const auto& fc = trace.layers[3];
  const auto& loss = trace.layers[4];
  EXPECT_EQ(trace.batch, 2);
  EXPECT_EQ(conv.kind, OpKind::conv);
  EXPECT_EQ(conv.kernel, (std::vector<int>{3, 3}));
  EXPECT_EQ(conv.pad_begin, (std::vector<int>{1, 1}));
  EXPECT_EQ(conv.parameter_count(), 108);
  EXPECT_EQ(relu.kind, OpKind::relu);
  EXPECT_EQ(trace.layers[2].kind, OpKind::flatten);
  EXPECT_EQ(fc.kind, OpKind::fc);
  EXPECT_EQ(fc.parameter_count(), 2570);
  const auto micros = [](const Layer& layer, Pass pass) { return std::llround(layer.time(pass).count() * 1e6); };
  EXPECT_EQ(micros(conv, Pass::forward), 1);
  EXPECT_EQ(micros(relu, Pass::forward), 2);
  EXPECT_EQ(micros(fc, Pass::forward), 4);
  EXPECT_EQ(micros(loss, Pass::forward), 8);
  EXPECT_EQ(micros(loss, Pass::backward_data), 16);
  EXPECT_EQ(micros(fc, Pass::backward_data), 32);
  EXPECT_EQ(micros(fc, Pass::backward_weight), 64 + 128);
  EXPECT_EQ(micros(relu, Pass::backward_data), 256);
  EXPECT_EQ(micros(conv, Pass::backward_weight), 512);
  // The optimizer's by the number of parameters.
  EXPECT_NEAR(conv.time(Pass::update).count() / fc.time(Pass::update).count(), 108.0 / 2570, 1e-12);
  EXPECT_EQ(std::llround(trace.total(Pass::update).count() * 1e6), 2670 * 1024);
  for (const auto& outside : trace.outside) {
    const auto expected = outside.kind == OutsideTime::Kind::copy            ? 2048
                          : outside.kind == OutsideTime::Kind::communication ? 8192
                                                                             : 4096;
    EXPECT_EQ(std::llround(outside.samples.typical().count() * 1e6), expected) << to_text(outside.kind);
  }
  EXPECT_EQ(trace.outside.size(), 3U);
  EXPECT_EQ(trace.collectives, (std::vector{RecordedCollective{"all-reduce", Bytes(4 * 2678), Seconds(8192e-6)}}));
  EXPECT_TRUE(has_note(trace, "1 all-reduces carry 10712 bytes, which are the gradients of the 2678 parameters"));
  EXPECT_EQ(entry(report, "operators of the host").count, 13);
  EXPECT_EQ(entry(report, "kernels of layers").count, 10);
}

// Newer converters keep whole call chains: what autograd calls is backward by that, and the outermost operator counts.
TEST(Chakra, CallersTellTheLayerAndThePass) {
  File file;
  const auto called = [&](std::uint64_t id, const std::string& name, std::uint64_t by, const std::string& shapes = "",
                          const std::string& output = "") {
    auto node = File::node(id, name, 10, true);
    node.mutable_inputs()->set_shapes(shapes);
    node.mutable_outputs()->set_shapes(output);
    if (by != 0) node.add_control(by);
    file.add(node);
  };
  const auto kernel = [&](std::uint64_t id, const std::string& name, std::uint64_t by, std::uint64_t micros) {
    auto node = File::node(id, name, micros, false);
    node.add_control(by);
    file.add(node);
  };
  const std::string shapes = "[[2, 3, 8, 8], [4, 3, 3, 3], []]";
  called(1, "aten::conv2d", 0, shapes, "[[2, 4, 8, 8]]");
  called(2, "aten::convolution", 1, shapes, "[[2, 4, 8, 8]]");
  called(3, "aten::cudnn_convolution", 2, shapes, "[[2, 4, 8, 8]]");
  kernel(4, "implicit_gemm", 3, 7);
  called(5, "aten::conv2d", 0, "[[2, 4, 8, 8], [4, 4, 3, 3], []]", "[[2, 4, 8, 8]]");
  kernel(6, "implicit_gemm", 5, 11);
  called(7, "autograd::engine::evaluate_function: ConvolutionBackward0", 0);
  called(8, "ConvolutionBackward0", 7);
  called(9, "aten::convolution_backward", 8, "[[2, 4, 8, 8], [2, 4, 8, 8], [4, 4, 3, 3]]");
  kernel(10, "cudnn_dgrad", 9, 13);
  kernel(11, "cudnn_wgrad", 9, 17);
  called(12, "Optimizer.step#SGD.step", 0);
  called(13, "aten::add_", 12, "[[4, 3, 3, 3], [4, 3, 3, 3], []]");
  kernel(14, "elementwise", 13, 19);
  const Trace trace = import_text(file.text()).trace;
  ASSERT_EQ(trace.layers.size(), 2U);
  const auto micros = [&](std::size_t layer, Pass pass) {
    return std::llround(trace.layers[layer].time(pass).count() * 1e6);
  };
  EXPECT_EQ(micros(0, Pass::forward), 7);
  EXPECT_EQ(micros(1, Pass::forward), 11);
  EXPECT_EQ(micros(1, Pass::backward_data), 13);
  EXPECT_EQ(micros(1, Pass::backward_weight), 17);
  EXPECT_EQ(std::llround(trace.total(Pass::update).count() * 1e6), 19);
  EXPECT_TRUE(trace.outside.empty());
}

// Nothing gets lost where operators and layers do not fit together: a product that is no layer, and more additions of
// gradients than the forward pass has sums.
TEST(Chakra, WhatFitsNoLayerStandsApart) {
  File file;
  const std::string shape = "[[2, 4, 8, 8]]";
  file.operator_(10, "aten::relu_", shape, shape, 1);
  file.operator_(20, "aten::mul", shape, shape, 2);
  file.operator_(30, "aten::relu_", shape, shape, 4);
  file.operator_(40, "aten::max_pool2d_with_indices", shape, "[[2, 4, 4, 4]]", 8, "[[], [2, 2], [2, 2], [0, 0]]");
  file.operator_(50, "aten::threshold_backward", "[[2, 4, 8, 8], [2, 4, 8, 8], []]", shape, 16);
  file.operator_(60, "aten::add_", "[[2, 4, 8, 8], [2, 4, 8, 8], []]", shape, 32);
  file.operator_(70, "aten::threshold_backward", "[[2, 4, 8, 8], [2, 4, 8, 8], []]", shape, 64);
  file.operator_(80, "aten::_foreach_add_", "[[[4]]]", "[]", 128);
  file.operator_(5, "aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], []]", shape, 256);
  const auto [trace, report] = import_text(file.text());
  EXPECT_EQ(std::llround(sum(trace) * 1e6), 511);
  EXPECT_EQ(entry(report, "kernels of layers").count, 6);
  EXPECT_EQ(std::llround(entry(report, "kernels of layers").time.count() * 1e6), 256 + 1 + 4 + 8 + 16 + 64);
  EXPECT_EQ(entry(report, "kernels of no known layer").count, 2);
  EXPECT_EQ(std::llround(entry(report, "kernels of no known layer").time.count() * 1e6), 2 + 32);
}

TEST(Chakra, NodesWithoutOperatorsAreKeptWhereTheBatchIsGiven) {
  File file;
  for (std::uint64_t id = 1; id <= 3; ++id) file.add(File::node(id, "layer" + std::to_string(id), id * 100, false));
  expect_error(file.text(), "none of the 3 nodes (3 of the device, 600 us, 0 of them communication) belongs to");
  const Trace trace = import_text(file.text(), "chakra:batch=4").trace;
  ASSERT_EQ(trace.layers.size(), 3U);
  EXPECT_EQ(trace.layers[2].name, "3.layer3");
  EXPECT_EQ(trace.layers[2].inputs, (std::vector{LayerId{1}}));
  EXPECT_NEAR(trace.total(Pass::forward).count(), 600e-6, 1e-12);
  expect_error(File().text(), "no nodes");
}

TEST(Chakra, WhatIsWrongWithTheGraphIsSaid) {
  const auto with = [](auto&& change) {
    File file = small_file();
    chakra::Node node = File::node(200, "x", 1, false);
    change(node);
    file.add(node);
    return file.text();
  };
  expect_error(with([](auto& node) { node.set_id(30); }), "node 30 is given twice");
  expect_error(with([](auto& node) { node.add_data(77); }), "node 200: depends on the data of node 77, which is not");
  expect_error(with([](auto& node) { node.add_data(200); }), "the dependencies of node 200 run in a cycle");
  expect_error(with([](auto& node) { node.set_duration_micros(~0ULL); }),
               "node 200: a duration of 18446744073709551615");
  expect_error(with([](auto& node) { put_number(*node.mutable_attributes(), "comm_size", -1); }), "comm_size is -1");
  expect_error(with([](auto& node) {
                 node.set_type(7);
                 put_number(*node.mutable_attributes(), "comm_size", 1LL << 60);
               }),
               "a recorded collective is");
  EXPECT_EQ(error_of(with([](auto& node) { node.set_id(~0ULL); })), "no error");
  EXPECT_EQ(error_of(with([](auto& node) { node.add_control(77); })), "no error");  // as a converter left them

  File file;
  for (const auto& [id, on] : std::map<std::uint64_t, std::uint64_t>{{1, 2}, {2, 3}, {3, 1}}) {
    auto node = File::node(id, "n", 1, false);
    node.add_data(on);
    file.add(node);
  }
  expect_error(file.text(), "the dependencies of node 1 run in a cycle");
}

TEST(Chakra, LengthsAreChecked) {
  const std::string whole = small_file().text();
  expect_error(whole + '\x80', "the length of a message is cut off");
  expect_error(whole + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "the length of a message is cut off");
  expect_error(whole + "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "it is cut off");
  expect_error(whole + "\x05\x08", "a message of 5 bytes, where the file has 1 more");
  expect_error(whole + std::string("\x02\x08\x80", 3), "no node of a Chakra trace");
  const std::string big(kMostChakraMessage + 1, ' ');
  expect_error(whole + "\x81\x80\x80\x08" + big, "at most 16777216 are accepted");
  for (std::size_t length = 1; length < whole.size(); ++length) survive(whole.substr(0, length));
  Random random(5);
  for (int i = 0; i < 1000; ++i) survive(garbled(whole, random, 3));
}

TEST(Chakra, ManyNodesTakeNoLongerThanTheirNumber) {
  File file;
  for (std::uint64_t id = 1; id <= 20000; ++id) {
    auto node = File::node(id << 40, "n", 1, id % 2 == 0);
    if (id > 1) node.add_data((id - 1) << 40), node.add_control((id - 1) << 40);
    file.add(node);
  }
  expect_error(file.text(), "none of the 20000 nodes");
}

TEST(ChakraJson, MistakesAreSaid) {
  const auto node = [](const std::string& fields) { return "{\"workload_graph\": [{" + fields + "}]}"; };
  const std::string importer = "chakra-json:batch=2";
  const auto expect = [&](const std::string& text, const std::string& part) { expect_error(text, part, importer); };
  expect("{", "not JSON");
  expect("[]", "no list 'workload_graph'");
  expect("{\"workload_graph\": 3}", "no list 'workload_graph'");
  expect(node("\"Name\": \"x\""), "workload_graph[0]: has no 'Id'");
  expect(node("\"Id\": -1"), "'Id' is -1");
  expect(node("\"Id\": 1, \"runtime\": -5"), "'runtime' is -5");
  expect(node("\"Id\": 1, \"runtime\": 1e300"), "'runtime' is 1e+300");
  expect(node("\"Id\": 1, \"runtime\": NaN"), "not JSON");
  expect(node("\"Id\": 1, \"data_deps\": [1]"), "in a cycle");
  expect(node("\"Id\": 1, \"data_deps\": [2]"), "which is not in the file");
  expect(node("\"Id\": 1, \"is_cpu_op\": 1"), "'is_cpu_op' is neither");
  expect(std::string(1 << 20, '['), "nested more than");
  expect(node("\"Id\": 1, \"x\": " + std::string(100, '[') + std::string(100, ']')), "nested more than");
}

// ---- what Tandem writes ----

std::string exported(const Trace& trace) {
  return Registry<Exporter>::instance().make("chakra")->write(trace);
}

void expect_round_trip(const Trace& trace) {
  const auto exporter = Registry<Exporter>::instance().make("chakra");
  EXPECT_TRUE(exporter->cannot_carry(trace).empty());
  const Trace back = import_text(exporter->write(trace), "").trace;  // by content
  EXPECT_TRUE(back == trace);
}

Trace with_surroundings(Trace trace) {
  trace.other_batches = {{trace.batch + 1, {{0.1, 0.2}}, {{0.3}}, {}}, {trace.batch + 7, {}, {}, {{1e-9}}}};
  trace.outside = {{OutsideTime::Kind::copy, {{1.0 / 3}}}, {OutsideTime::Kind::input_wait, {}}};
  trace.collectives = {{"all-reduce", Bytes(12), Seconds(1e-6 / 3)}, {"something new", Bytes(0), Seconds(0)}};
  return trace;
}

TEST(ChakraExport, EveryFieldComesBack) {
  expect_round_trip(testing::full_trace());
  expect_round_trip(with_surroundings(testing::full_trace()));
  for (const auto& name : model_names()) expect_round_trip(build_model(name, 3));
  for (const auto& name : shipped_traces()) expect_round_trip(load_trace(name));
}

RC_GTEST_PROP(ChakraExport, RandomTracesComeBack, ()) {
  Trace trace = testing::random_trace();
  if (trace.model.empty()) trace.model = "m";  // a nameless model is called after its file
  if (*rc::gen::arbitrary<bool>()) trace = with_surroundings(std::move(trace));
  RC_ASSERT(import_text(exported(trace), "").trace == trace);
}

TEST(ChakraExport, CutAndGarbledFilesNeverCrash) {
  const auto whole = exported(with_surroundings(testing::full_trace()));
  // A file that ends behind a node looks whole but for the number of nodes.
  for (std::size_t length = 1; length < whole.size(); ++length) {
    EXPECT_NE(error_of(whole.substr(0, length)), "no error") << length;
  }
  Random random(3);
  for (int i = 0; i < 3000; ++i) survive(garbled(whole, random, 2));
  Trace bad = testing::full_trace();
  bad.layers[0].samples[0].seconds = {std::numeric_limits<double>::quiet_NaN()};
  expect_error(exported(bad), "finite");
  bad = testing::full_trace();
  bad.notes = {"\xff"};
  EXPECT_THROW((void)exported(bad), Error);
}

struct Graph {
  std::map<std::string, chakra::Node> by_name;
  std::map<std::uint64_t, std::string> names;
  [[nodiscard]] std::vector<std::string> data(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto id : by_name.at(name).data()) found.push_back(names.at(id));
    return found;
  }
};

Graph graph_of(const std::string& file) {
  ChakraReader reader(file);
  (void)parse_chakra_metadata(reader.next());
  Graph graph;
  while (!reader.done()) {
    const auto node = parse_chakra_node(reader.next());
    graph.by_name[node.name()] = node;
    EXPECT_TRUE(graph.names.emplace(node.id(), node.name()).second);
  }
  return graph;
}

TEST(ChakraExport, DependenciesFollowTheModel) {
  using Names = std::vector<std::string>;
  Trace trace = build_model("resnet50", 32);
  for (const std::int64_t bytes : {8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160}) {
    trace.collectives.push_back({"all-reduce", Bytes(bytes), Seconds(1e-3)});
  }
  const auto graph = graph_of(exported(trace));
  EXPECT_EQ(graph.data("conv1/forward"), Names{});
  EXPECT_EQ(graph.data("layer1.0.add/forward"), (Names{"layer1.0.bn3/forward", "layer1.0.downsample.1/forward"}));
  // Backward against the edges: the first block's input is read by two convolutions.
  EXPECT_EQ(graph.data("maxpool/backward-data"),
            (Names{"maxpool/forward", "layer1.0.downsample.0/backward-data", "layer1.0.conv1/backward-data"}));
  EXPECT_EQ(graph.data("conv1/update"), (Names{"conv1/backward-weight", "all-reduce 4"}));
  // The first bucket has the classifier's gradients, and the last ends with the first convolution's.
  EXPECT_EQ(graph.data("all-reduce 0"), (Names{"fc/backward-weight"}));
  EXPECT_EQ(graph.data("all-reduce 1").front(), "layer4.2.bn3/backward-weight");
  EXPECT_EQ(graph.data("all-reduce 4").back(), "conv1/backward-weight");
  const auto& reduce = graph.by_name.at("all-reduce 1");
  EXPECT_EQ(reduce.type(), 7);
  EXPECT_EQ(reduce.duration_micros(), 1000U);
  EXPECT_EQ(whole_number(find_attribute(reduce.attributes(), "comm_type")), 0);
  EXPECT_EQ(whole_number(find_attribute(reduce.attributes(), "comm_size")), 31'502'336);
  EXPECT_EQ(whole_number(find_attribute(reduce.attributes(), "is_cpu_op")), 0);
  EXPECT_EQ(graph.names.at(reduce.control(0)), "all-reduce 0");
  EXPECT_EQ(graph.by_name.at("conv1/forward").inputs().shapes(), "[[32, 3, 224, 224]]");
  // Sizes that are no sums of gradients tell nothing.
  trace.collectives[0].bytes = Bytes(1000);
  EXPECT_EQ(graph_of(exported(trace)).data("all-reduce 1"), Names{});
}

// ---- recognition ----

TEST(Chakra, OtherFormatsAreNotTakenForIt) {
  const auto recognizes = [](std::string_view head) {
    return Registry<Importer>::instance().make("chakra")->recognizes(head);
  };
  const auto own = exported(testing::full_trace());
  const auto recorded = small_file().text();
  EXPECT_TRUE(recognizes(own));
  EXPECT_TRUE(recognizes(recorded));
  EXPECT_TRUE(recognizes(std::string_view(own).substr(0, 200)));  // the head may end within the metadata
  EXPECT_FALSE(recognizes(""));
  EXPECT_FALSE(recognizes("{\"traceEvents\": []}"));
  EXPECT_FALSE(recognizes("node1 -- Input -- forward_compute_time=1"));
  // ONNX: a version, then a producer and a graph, in one message without a length in front.
  EXPECT_FALSE(
      recognizes(std::string("\x08\x07\x12\x07pytorch\x1a\x03"
                             "1.9\x3a\x02\x0a\x00",
                             20)));
  EXPECT_FALSE(
      recognizes(std::string("\x08\x0a\x12\x06"
                             "1.13.0:\x00",
                             12)));
  EXPECT_FALSE(recognizes(std::string("\x89HDF\r\n\x1a\n\0\0\0\0", 12)));
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string noise(64, ' ');
    for (auto& c : noise) c = static_cast<char>(random.below(256));
    EXPECT_FALSE(recognizes(noise));
  }
}

}  // namespace
}  // namespace tandem
