#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/kineto_profile.hpp"
#include "tests/traces/sample_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/exporter.hpp"
#include "traces/importer.hpp"

namespace tandem {
namespace {

using testing::TemporaryFolder;

// ---- measured profiles, where they are at hand ----

const std::string kProfiles = TANDEM_SOURCE_DIR "/../shared/reference/layer_profiles/pipedream/";

struct Profile {
  const char* model;
  std::int64_t batch;
  double forward_ms, backward_ms, parameter_megabytes;
  int layers;  // nodes of the file without Input and Size
};

void PrintTo(const Profile& profile, std::ostream* out) {
  *out << profile.model;
}

class PipeDreamProfiles : public ::testing::TestWithParam<Profile> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(path())) GTEST_SKIP() << "no reference profiles at " << kProfiles;
  }
  [[nodiscard]] static std::string path() { return kProfiles + GetParam().model + ".graph.txt"; }
};

// The sums that the profiles' own description states, to its last digit.
TEST_P(PipeDreamProfiles, SumsAreThoseOfTheSource) {
  const Trace trace = import_trace({path()}).trace;
  EXPECT_EQ(trace.model, GetParam().model);
  EXPECT_EQ(trace.batch, GetParam().batch);
  EXPECT_EQ(static_cast<int>(trace.layers.size()), GetParam().layers);
  EXPECT_NEAR(trace.total(Pass::forward).count() * 1e3, GetParam().forward_ms, 0.051);
  EXPECT_NEAR(trace.total(Pass::backward_weight).count() * 1e3, GetParam().backward_ms, 0.051);
  EXPECT_EQ(trace.total(Pass::backward_data).count(), 0);
  EXPECT_NEAR(static_cast<double>(trace.parameter_count()) * 4e-6, GetParam().parameter_megabytes, 0.051);
  for (const auto& layer : trace.layers) {
    EXPECT_TRUE(layer.backward_is_joint);
    EXPECT_NE(layer.kind, OpKind::other) << layer.name;
    EXPECT_LE(layer.parameters.size(), 2U);
  }
}

// Every shape of these models follows from the layer texts and agrees with the measured sizes: no note about counts.
TEST_P(PipeDreamProfiles, EveryShapeIsDerived) {
  const Trace trace = import_trace({path()}).trace;
  for (const auto& note : trace.notes) EXPECT_EQ(note.find("element counts"), std::string::npos) << note;
  for (const auto& layer : trace.layers) EXPECT_EQ(layer.output_shape[0], trace.batch) << layer.name;
}

INSTANTIATE_TEST_SUITE_P(All, PipeDreamProfiles,
                         ::testing::Values(Profile{"vgg16", 128, 233.9, 438.6, 553.4, 39},
                                           Profile{"alexnet", 256, 44.8, 40.5, 244.4, 21},
                                           Profile{"resnet18", 256, 107.4, 152.3, 46.8, 69},
                                           Profile{"squeezenet1_0", 256, 113.2, 172.1, 5.0, 66},
                                           Profile{"resnext50", 128, 221.8, 369.0, 100.1, 175},
                                           Profile{"inception_v3", 128, 289.3, 399.8, 108.6, 323}),
                         [](const auto& instance) { return std::string(instance.param.model); });

TEST(PipeDream, ResNet18sGradientsFillPyTorchsBuckets) {
  const auto path = kProfiles + "resnet18.graph.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference profiles at " << kProfiles;
  const Trace trace = import_trace({path}).trace;
  EXPECT_EQ(trace.parameter_count(), 11'689'512);
  std::vector<std::int64_t> tensors;
  for (const auto& layer : trace.layers) {
    for (const auto& tensor : layer.parameters) tensors.push_back(4 * tensor.count());
  }
  std::vector<std::int64_t> buckets{0};
  for (auto bytes = tensors.rbegin(); bytes != tensors.rend(); ++bytes) {
    if (buckets.back() >= (buckets.size() == 1 ? 1 << 20 : 25 << 20)) buckets.push_back(0);
    buckets.back() += *bytes;
  }
  EXPECT_EQ(buckets, (std::vector<std::int64_t>{2'052'000, 28'852'224, 15'853'824}));
}

// ---- a profile small enough to check by hand; batch 2, images of 3 x 8 x 8 ----

std::string node(int id, const std::string& text, double forward, double backward, int activation, int parameters) {
  std::ostringstream line;
  line << "node" << id << " -- " << text << " -- forward_compute_time=" << forward
       << ", backward_compute_time=" << backward << ", activation_size=" << activation << ".000"
       << ", parameter_size=" << parameters << ".000\n";
  return line.str();
}

std::string edge(int from, int to) {
  return "\tnode" + std::to_string(from) + " -- node" + std::to_string(to) + "\n";
}

// Out of order on purpose: the numbers, not the lines, are the order of execution.
std::string small_profile() {
  return edge(4, 9) + node(9, "Add(inplace)", 0.5, 0.25, 4 * 2 * 4 * 64, 0) +
         node(1, "Input", 999, 0, 4 * 2 * 3 * 64, 0) +
         node(10, "Linear(in_features=256, out_features=10, bias=True)", 3, 6, 4 * 2 * 10, 4 * (2560 + 10)) +
         node(4, "ReLU(inplace)", 0, 0, 4 * 2 * 4 * 64, 0) +
         node(2, "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)", 1.5, 2.5,
              4 * 2 * 4 * 64, 4 * 108) +
         node(5, "Conv2d(4, 4, kernel_size=(1, 1), stride=(1, 1), groups=2)", 1, 1, 4 * 2 * 4 * 64, 4 * 12) +
         node(7, "Size(0)", 0, 0, 4, 0) + node(8, "View(-1)", 0, 0, 4 * 2 * 256, 0) + edge(1, 2) + edge(2, 4) +
         edge(2, 5) + edge(5, 9) + edge(9, 7) + edge(9, 8) + edge(7, 8) + edge(8, 10);
}

Trace import_text(const std::string& text, const std::string& importer = "") {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("toy.graph.txt"), text);
  return import_trace({folder.file("toy.graph.txt")}, importer).trace;
}

std::string import_message(const std::string& text, const std::string& importer = "pipedream") {
  try {
    (void)import_text(text, importer);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> all;
  for (const auto& layer : trace.layers) all.push_back(layer.name);
  return all;
}

TEST(PipeDream, ReadsASmallProfile) {
  const Trace trace = import_text(small_profile());
  EXPECT_EQ(trace.model, "toy");
  EXPECT_EQ(trace.batch, 2);
  EXPECT_EQ(names(trace), (std::vector<std::string>{"node2.Conv2d", "node4.ReLU", "node5.Conv2d", "node9.Add",
                                                    "node8.View", "node10.Linear"}));
  EXPECT_DOUBLE_EQ(trace.total(Pass::forward).count(), 6e-3);
  EXPECT_DOUBLE_EQ(trace.total(Pass::backward_weight).count(), 9.75e-3);

  const Layer& conv = trace.layers[0];
  EXPECT_TRUE(conv.inputs.empty());
  EXPECT_FALSE(conv.needs_input_gradient);
  EXPECT_EQ(conv.input_shapes, (std::vector<Shape>{{2, 3, 8, 8}}));
  EXPECT_EQ(conv.output_shape, (Shape{2, 4, 8, 8}));
  EXPECT_EQ(conv.parameters, (std::vector<ParameterTensor>{{"weight", {4, 3, 3, 3}}}));
  EXPECT_EQ(conv.activation_bytes, Bytes(2048));
  EXPECT_DOUBLE_EQ(conv.flops[0].count(), 2.0 * 512 * 27);

  EXPECT_TRUE(trace.layers[1].in_place);
  EXPECT_EQ(trace.layers[1].activation_bytes, Bytes(0));
  EXPECT_EQ(trace.layers[2].groups, 2);
  EXPECT_EQ(trace.layers[2].parameters, (std::vector<ParameterTensor>{{"weight", {4, 2, 1, 1}}, {"bias", {4}}}));
  EXPECT_EQ(trace.layers[3].inputs, (std::vector<LayerId>{LayerId{1}, LayerId{2}}));
  EXPECT_EQ(trace.layers[4].kind, OpKind::flatten);
  EXPECT_EQ(trace.layers[4].inputs, (std::vector<LayerId>{LayerId{3}}));  // not the Size
  EXPECT_EQ(trace.layers[5].output_shape, (Shape{2, 10}));
}

TEST(PipeDream, SaysWhatItLeftOut) {
  const Trace trace = import_text(small_profile());
  const auto mentions = [&](const char* text) {
    return std::any_of(trace.notes.begin(), trace.notes.end(),
                       [&](const std::string& note) { return note.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(mentions("999 ms are data loading"));
  EXPECT_TRUE(mentions("2 is node8's output by its 256 features") || mentions("2 is node10's output by its 10"));
}

TEST(PipeDream, BatchIsGivenDerivedOrAskedFor) {
  const auto conv = "Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)";
  const auto imagenet =
      node(1, "Input", 1, 0, 4 * 6 * 3 * 224 * 224, 0) + node(2, conv, 1, 1, 4 * 6 * 4 * 224 * 224, 48) + edge(1, 2);
  EXPECT_EQ(import_text(imagenet).batch, 6);
  EXPECT_EQ(import_text(imagenet, "pipedream:batch=3").batch, 3);
  const auto odd = node(1, "Input", 1, 0, 4 * 6 * 3 * 64, 0) + node(2, conv, 1, 1, 4 * 6 * 4 * 64, 48) + edge(1, 2);
  EXPECT_NE(import_message(odd).find("batch=N"), std::string::npos);
  const Trace given = import_text(odd, "pipedream:batch=6");
  EXPECT_EQ(given.layers[0].output_shape, (Shape{6, 4, 8, 8}));
  EXPECT_THROW((void)import_text(odd, "pipedream:batch=0"), Error);
}

TEST(PipeDream, WhatTheTextDoesNotExplainIsKeptAndNoted) {
  const Trace trace =
      import_text(node(1, "Mystery(3)", 1, 2, 40, 16) + node(2, "Conv2d(1, 1, kernel_size=(", 1, 1, 40, 8) + edge(1, 2),
                  "pipedream:batch=5");
  EXPECT_EQ(trace.layers[0].kind, OpKind::other);
  EXPECT_EQ(trace.layers[0].output_shape, (Shape{5, 2}));
  EXPECT_EQ(trace.layers[0].parameters, (std::vector<ParameterTensor>{{"weight", {4}}}));
  EXPECT_EQ(trace.layers[1].parameters, (std::vector<ParameterTensor>{{"weight", {2}}}));
}

TEST(PipeDream, MistakesAreOneLineWithALineNumber) {
  const std::string good = node(1, "Input", 1, 0, 80, 0) +
                           node(2, "Linear(in_features=10, out_features=10)", 1, 1, 80, 440) +
                           node(3, "ReLU()", 1, 1, 80, 0) + edge(1, 2);
  const std::pair<std::string, const char*> cases[] = {
      {good + edge(2, 3) + edge(3, 2), "line 5 closes a cycle through node"},
      {good + edge(2, 2), "line 5 feeds node2 to itself"},
      {good + edge(2, 7), "line 5 is an edge of node7, which is not in the file"},
      {good + edge(1, 2), "line 5 gives the edge node1 -- node2 again"},
      {good + node(2, "ReLU()", 1, 1, 80, 0), "line 5 gives node2 again (first on line 2)"},
      {good, "line 3: no edges connect node3 with node1: was the file cut short?"},
      {good + node(4, "Input", 1, 0, 80, 0) + edge(4, 2), "line 3: no edges connect node3 with node1"},
      {good + edge(3, 2), "line 3: nothing feeds node3"},
      {good + "node4 -- ReLU()", "line 5 is neither a node"},
      {good + "\tnode2", "line 5 is neither a node nor an edge"},
      {good + "\tnode2 -- ", "line 5 has '' where a node is expected"},
      {good + "\tnode2 -- node3x", "line 5 has 'node3x'"},
      {good + "node4 -- ReLU() -- forward_compute_time=1", "line 5 has no backward_compute_time"},
      {"node1 -- ReLU() -- forward_compute_time=-1, backward_compute_time=1, activation_size=4, parameter_size=0",
       "line 1 has forward_compute_time='-1'"},
      {"node1 -- ReLU() -- forward_compute_time=nan, backward_compute_time=1, activation_size=4, parameter_size=0",
       "line 1 has forward_compute_time='nan'"},
      {"node1 -- ReLU() -- forward_compute_time=1, backward_compute_time=inf, activation_size=4, parameter_size=0",
       "line 1 has backward_compute_time='inf'"},
      {"node1 -- ReLU() -- forward_compute_time=1, backward_compute_time=1, activation_size=5, parameter_size=0",
       "line 1 has activation_size='5'"},
      {"node1 -- ReLU() -- forward_compute_time=1, backward_compute_time=1, activation_size=4, parameter_size=1e99",
       "line 1 has parameter_size='1e99'"},
      {"node1 --  -- forward_compute_time=1, backward_compute_time=1, activation_size=4, parameter_size=0",
       "line 1 has no layer text"},
      {std::string("node1 -- Re\0LU()\n", 17), "line 1 has characters"},
      {"", "the file is empty"},
      {"hello\n", "line 1 is neither a node"},
  };
  for (const auto& [text, expected] : cases) {
    const auto message = import_message(text);
    EXPECT_NE(message.find(expected), std::string::npos) << message << " / " << expected;
    EXPECT_NE(message.find("toy.graph.txt: "), std::string::npos) << message;
  }
}

// A valid trace or one clear line, wherever the file is cut and whatever is changed in it.
TEST(PipeDream, CutAndGarbledFilesNeverCrash) {
  const std::string whole = small_profile();
  const auto survive = [](const std::string& text) {
    try {
      validate(import_text(text, "pipedream"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  };
  for (std::size_t length = 0; length < whole.size(); length += 3) survive(whole.substr(0, length));
  Random random(7);
  for (int i = 0; i < 500; ++i) {
    std::string text = whole;
    for (int k = 0; k < 4; ++k) {
      text[random.below(static_cast<std::uint32_t>(text.size()))] = "0123456789-(),= \t\nnode."[random.below(23)];
    }
    survive(text);
  }
}

// Found by fuzzing: a name in the file that holds a line break, quoted in the message.
TEST(Importers, MessagesStayOneLineWhateverTheFileHolds) {
  try {
    (void)import_source({"toy.csv", "# batch = 4\nlayer,kind,forward_ms\na,\"max\npool\",1\n"}, "csv");
    FAIL() << "a kind that there is not";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("max?pool"), std::string::npos) << error.what();
  }
}

TEST(Importers, ContentDecidesWhoReads) {
  EXPECT_EQ(import_text(small_profile()).recorder, "pipedream profiler");
  const auto unknown = import_message("<html>", "");
  EXPECT_NE(unknown.find("no importer recognizes this file; there are: "), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("pipedream"), std::string::npos) << unknown;
  EXPECT_NE(import_message("", "").find("the file is empty"), std::string::npos);
  EXPECT_THROW((void)import_trace({"/nonexistent/file"}), Error);
  EXPECT_THROW((void)import_trace({"/"}), Error);
  EXPECT_THROW((void)import_text(small_profile(), "pipedreem"), Error);
}

// The contract of every importer: its output is valid and survives a write/read round trip, and its files are taken for
// nobody else's. A new importer adds its smallest sample here; one without a sample fails.
struct Sample {
  std::string importer;  // with the parameters that the format needs
  std::string content;
};

std::map<std::string, Sample> samples() {
  return {
      {"astra-sim", {"astra-sim:clock=1GHz", "DATA\n1\nconv1 -1 9 NONE 0 8 NONE 0 7 ALLREDUCE 64 5\n"}},
      {"caffe", {"caffe", "layer,output_shape_NCHW,fwd_ms,bwd_ms\nconv1,2x3x4x4,1,2\n"}},
      {"chakra", {"chakra", Registry<Exporter>::instance().make("chakra")->write(testing::full_trace())}},
      {"chakra-json",
       {"chakra-json:batch=2", R"({"workload_graph": [{"Id": 1, "Name": "kernel", "NodeType": 4, "runtime": 5}]})"}},
      {"csv", {"csv", "# batch = 2\nlayer,forward_ms\nconv1,1\n"}},
      {"kineto", {"kineto", testing::Profile({}).text()}},
      // IR version 8, then a graph: one Relu of the input x (2x3).
      {"onnx",
       {"onnx", std::string("\010\010:#"
                            "\012\014\012\001x\022\001y\042\004ReluZ\023\012\001x\022\016\012\014\010\001\022\010\012"
                            "\002\010\002\012\002\010\003",
                            39)}},
      {"pipedream", {"pipedream", small_profile()}},
  };
}

TEST(Importers, EveryImportersOutputSurvivesARoundTrip) {
  const auto all = samples();
  for (const auto& name : Registry<Importer>::instance().names()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(all.count(name) == 1) << "add a sample of this format";
    const auto& [importer, content] = all.at(name);
    const TemporaryFolder folder;
    testing::write_bytes(folder.file("sample.txt"), content);
    const Trace trace = import_trace({folder.file("sample.txt")}, importer).trace;
    if (importer == name) {
      EXPECT_TRUE(trace == import_trace({folder.file("sample.txt")}).trace);  // by content
    }
    write_trace(trace, folder.file("t.h5"));
    EXPECT_TRUE(read_trace(folder.file("t.h5")) == trace);
  }
}

TEST(Importers, NobodyElseRecognizesASample) {
  for (const auto& [name, sample] : samples()) {
    for (const auto& other : Registry<Importer>::instance().names()) {
      EXPECT_EQ(Registry<Importer>::instance().make(other)->recognizes(sample.content), other == name)
          << other << " on the sample of " << name;
    }
  }
}

}  // namespace
}  // namespace tandem
