#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include "sim/core/error.hpp"
#include "tests/traces/sample_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/hdf5_file.hpp"
#include "traces/models/models.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

using testing::full_trace;
using testing::read_bytes;
using testing::TemporaryFolder;

std::string input_message(auto&& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "no error";
}

TEST(Samples, QuantilesAreLinearBetweenOrderStatistics) {
  const Samples samples{{5, 1, 3, 2, 4, 6}};
  EXPECT_DOUBLE_EQ(samples.typical().count(), 2);  // position 0.2 * 5
  EXPECT_DOUBLE_EQ(samples.median().count(), 3.5);
  EXPECT_DOUBLE_EQ(samples.max().count(), 6);
  EXPECT_EQ(Samples{}.typical().count(), 0);
  EXPECT_DOUBLE_EQ((Samples{{7}}).typical().count(), 7);
}

TEST(TraceText, KindsPassesAndAxesHaveUniqueNames) {
  for (int i = 0; i <= static_cast<int>(OpKind::other); ++i) {
    const auto kind = static_cast<OpKind>(i);
    EXPECT_EQ(op_kind_from_text(to_text(kind)), kind);
  }
  EXPECT_EQ(op_kind_from_text("max_pool"), std::nullopt);
  EXPECT_EQ(to_text(Pass::backward_weight), "backward-weight");
  EXPECT_EQ(split_axis_from_text("input-channel"), SplitCurve::Axis::input_channel);
}

TEST(TraceFile, RoundTripKeepsEveryField) {
  const TemporaryFolder folder;
  const Trace trace = full_trace();
  write_trace(trace, folder.file("t.h5"));
  EXPECT_TRUE(read_trace(folder.file("t.h5")) == trace);
  EXPECT_EQ(folder.entries(), 1U);  // no temporary file is left
}

RC_GTEST_PROP(TraceFile, AnyValidTraceSurvivesAndItsBytesAreItsOwn, ()) {
  static const TemporaryFolder folder;
  const Trace trace = testing::random_trace();
  write_trace(trace, folder.file("a.h5"));
  const Trace read = read_trace(folder.file("a.h5"));
  RC_ASSERT(read == trace);
  write_trace(read, folder.file("another-name.h5"));
  RC_ASSERT(read_bytes(folder.file("a.h5")) == read_bytes(folder.file("another-name.h5")));
}

TEST(TraceFile, EqualTracesAreByteIdenticalAcrossTime) {
  const TemporaryFolder folder;
  const Trace trace = build_model("resnet50", 32);
  write_trace(trace, folder.file("a.h5"));
  ::usleep(1'100'000);  // object times count whole seconds
  write_trace(trace, folder.file("b.h5"));
  EXPECT_EQ(read_bytes(folder.file("a.h5")), read_bytes(folder.file("b.h5")));
  EXPECT_LT(std::filesystem::file_size(folder.file("a.h5")), 200'000U);
}

TEST(TraceFile, ModelsRoundTrip) {
  const TemporaryFolder folder;
  for (const auto& name : model_names()) {
    const Trace trace = build_model(name, 16);
    write_trace(trace, folder.file("t.h5"));
    EXPECT_TRUE(read_trace(folder.file("t.h5")) == trace) << name;
  }
}

TEST(TraceFile, AReplacedFileIsReplacedWhole) {
  const TemporaryFolder folder;
  write_trace(build_model("vgg16", 1), folder.file("t.h5"));
  write_trace(full_trace(), folder.file("t.h5"));
  EXPECT_TRUE(read_trace(folder.file("t.h5")) == full_trace());
}

// ---- what a trace must not say ----

struct Flaw {
  const char* expected;
  void (*spoil)(Trace&);
};

TEST(Validate, NamesTheLayerAndTheFlaw) {
  const Flaw flaws[] = {
      {"no layers", [](Trace& t) { t.layers.clear(); }},
      {"batch is 0", [](Trace& t) { t.batch = 0; }},
      {"layer 'relu': reads layer 1", [](Trace& t) { t.layers[1].inputs = {LayerId{1}}; }},
      {"layer 'relu': reads layer -1", [](Trace& t) { t.layers[1].inputs = {LayerId{}}; }},
      {"layer 'relu': has 1 input shapes and 2 inputs",
       [](Trace& t) {
         t.layers[1].inputs = {LayerId{0}, LayerId{0}};
       }},
      {"layer 'conv': forward has a sample of -1 s", [](Trace& t) { t.layers[0].samples[0].seconds[1] = -1; }},
      {"layer 'conv': update has a sample of nan s", [](Trace& t) { t.layers[0].samples[3].seconds[0] = NAN; }},
      {"layer 'conv': parameter tensor 'bias' has an extent of 0",
       [](Trace& t) { t.layers[0].parameters[1].shape = {0}; }},
      {"layer 'conv': parameter tensor 'bias' has no elements", [](Trace& t) { t.layers[0].parameters[1].shape = {}; }},
      {"layer 'add': the output shape has an extent of -4", [](Trace& t) { t.layers[2].output_shape = {-4}; }},
      {"more elements than 64 bits",
       [](Trace& t) {
         t.layers[2].output_shape = {1LL << 40, 1LL << 40};
       }},
      {"layer 'add': the name is given twice", [](Trace& t) { t.layers[1].name = "add"; }},
      {"layer 1 has no name", [](Trace& t) { t.layers[1].name = ""; }},
      {"layer 'conv': stride has 1 values where kernel has 2", [](Trace& t) { t.layers[0].stride = {1}; }},
      {"layer 'conv': stride has a value of 0",
       [](Trace& t) {
         t.layers[0].stride = {1, 0};
       }},
      {"the whole backward pass has a sample of inf s", [](Trace& t) { t.iteration_backward.seconds = {INFINITY}; }},
      {"layer 'conv': a split's fraction", [](Trace& t) { t.layers[0].splits[0].fraction = 0; }},
  };
  EXPECT_NO_THROW(validate(full_trace()));
  const TemporaryFolder folder;
  for (const auto& [expected, spoil] : flaws) {
    Trace trace = full_trace();
    spoil(trace);
    const auto message = input_message([&] { validate(trace); });
    EXPECT_NE(message.find(expected), std::string::npos) << message << " / " << expected;
    EXPECT_THROW(write_trace(trace, folder.file("never.h5")), Error);
  }
  EXPECT_EQ(folder.entries(), 0U);
}

// ---- shipped traces ----

class ShippedTraces : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("TANDEM_TRACES", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("TANDEM_TRACES"); }
  TemporaryFolder folder_;
};

TEST_F(ShippedTraces, AreFoundByName) {
  write_trace(full_trace(), folder_.file("toy-cpu.h5"));
  write_trace(build_model("lenet5", 2), folder_.file("lenet5-cpu.h5"));
  testing::write_bytes(folder_.file("notes.txt"), "not a trace");
  EXPECT_EQ(shipped_traces(), (std::vector<std::string>{"lenet5-cpu", "toy-cpu"}));
  EXPECT_TRUE(load_trace("toy-cpu") == full_trace());
  EXPECT_TRUE(load_trace(folder_.file("toy-cpu.h5")) == full_trace());
}

// What was read is kept, but not beyond a change of the file.
TEST_F(ShippedTraces, AFileThatChangesIsReadAgain) {
  write_trace(full_trace(), folder_.file("toy-cpu.h5"));
  EXPECT_TRUE(load_trace("toy-cpu") == full_trace());
  write_trace(build_model("lenet5", 2), folder_.file("toy-cpu.h5"));
  EXPECT_TRUE(load_trace("toy-cpu") == build_model("lenet5", 2));
  testing::write_bytes(folder_.file("toy-cpu.h5"), "damaged");
  EXPECT_THROW((void)load_trace("toy-cpu"), Error);
  EXPECT_THROW((void)load_trace("toy-cpu"), Error);
}

TEST_F(ShippedTraces, UnknownNamesAreUsageErrors) {
  write_trace(full_trace(), folder_.file("toy-cpu.h5"));
  try {
    (void)load_trace("toy-cpi");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("did you mean 'toy-cpu'?"), std::string::npos);
  }
  EXPECT_NE(input_message([&] { return load_trace(folder_.file("none.h5")); }).find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace tandem
