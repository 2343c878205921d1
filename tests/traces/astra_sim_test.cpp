#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "traces/importer.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

const std::string kReference = TANDEM_SOURCE_DIR "/../shared/reference/simulated/astra_sim_Resnet50_DataParallel.txt";

Imported import_text(const std::string& text, const std::string& importer = "astra-sim:clock=1GHz") {
  return import_source({"toy.txt", text}, importer);
}

std::string message(const std::string& text, const std::string& importer = "astra-sim:clock=1GHz") {
  try {
    (void)import_text(text, importer);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

// Input gradients of ASTRA-sim's loops are for all layers but the first, the other numbers for all.
std::string two_layers(const std::string& loop) {
  return loop + "\t\t\n2\n" +
         "conv1\t-1\t100\tALLGATHER\t64\t200\tALLREDUCE\t128\t300\tALLREDUCE\t400\t10\n"
         "fc2 -1 1000 ALLGATHER 640 2000 REDUCESCATTER 1280 3000 ALLREDUCE 4000 0\r\n";
}

using Operations = std::vector<std::pair<std::string, std::int64_t>>;
Operations operations(const Trace& trace) {
  Operations all;
  for (const auto& collective : trace.collectives) all.emplace_back(collective.operation, collective.bytes.count());
  return all;
}

TEST(AstraSim, CyclesAreTimesAtTheGivenClock) {
  const auto imported = import_text(two_layers("DATA"), "astra-sim:clock=2GHz");
  const Trace& trace = imported.trace;
  EXPECT_EQ(trace.model, "toy");
  EXPECT_EQ(trace.batch, 1);
  EXPECT_DOUBLE_EQ(trace.clock_hz, 2e9);
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.layers[0].kind, OpKind::conv);
  EXPECT_EQ(trace.layers[1].kind, OpKind::fc);
  EXPECT_EQ(trace.layers[1].inputs, (std::vector<LayerId>{LayerId{0}}));
  EXPECT_DOUBLE_EQ(trace.total(Pass::forward).count(), 1100 / 2e9);
  EXPECT_DOUBLE_EQ(trace.total(Pass::backward_data).count(), 2000 / 2e9);  // none for the first layer
  EXPECT_DOUBLE_EQ(trace.total(Pass::backward_weight).count(), 3300 / 2e9);
  EXPECT_DOUBLE_EQ(trace.total(Pass::update).count(), 10 / 2e9);
  EXPECT_EQ(trace.parameter_count(), 100 + 1000);
  EXPECT_FALSE(trace.layers[0].needs_input_gradient);
}

TEST(AstraSim, NothingDisappearsUnsaid) {
  const auto imported = import_text(two_layers("DATA"));
  double used = 0;
  double dropped = 0;
  for (const auto& entry : imported.report.entries) {
    (entry.fate == ImportReport::Fate::dropped ? dropped : used) += entry.time.count();
  }
  EXPECT_NEAR(used + dropped, (100 + 200 + 300 + 10 + 1000 + 2000 + 3000) * 1e-9, 1e-15);
  EXPECT_NEAR(dropped, 200e-9, 1e-15);
  std::int64_t collectives = 0;  // six in the file: two of the loop, four that it does not issue
  for (const auto& entry : imported.report.entries) {
    if (entry.what.find("collectives") != std::string::npos) collectives += entry.count;
  }
  EXPECT_EQ(collectives, 6);
}

TEST(AstraSim, CollectivesAreThoseOfTheLoopInItsOrder) {
  EXPECT_EQ(operations(import_text(two_layers("DATA")).trace), (Operations{{"all-reduce", 4000}, {"all-reduce", 400}}));
  EXPECT_EQ(operations(import_text(two_layers("MODEL")).trace),
            (Operations{{"all-gather", 64}, {"all-gather", 640}, {"reduce-scatter", 1280}}));
  const Operations both{
      {"all-gather", 64}, {"all-gather", 640}, {"reduce-scatter", 1280}, {"all-reduce", 4000}, {"all-reduce", 400}};
  for (const char* loop : {"HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM 1", "HYBRID_DLRM_ENHANCED 0",
                           "HYBRID_TRANSFORMER\tmodel_parallel_NPU_group: 4",
                           "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 1 0"}) {
    EXPECT_EQ(operations(import_text(two_layers(loop)).trace), both) << loop;
  }
}

TEST(AstraSim, CustomizedRowsEndInALoopOfTheirOwn) {
  const std::string text = "HYBRID_CUSTOMIZED\n1\na -1 1 ALLTOALL 2 3 NONE 0 5 NONE 0 7 MODEL\n";
  EXPECT_EQ(operations(import_text(text).trace), (Operations{{"all-to-all", 2}}));
  EXPECT_NE(message("HYBRID_CUSTOMIZED\n1\na -1 1 ALLTOALL 2 3 NONE 0 5 NONE 0 7\n").find("12 words where"),
            std::string::npos);
}

TEST(AstraSim, TheClockAndTheBatchAreGivenNotGuessed) {
  const auto text = message(two_layers("DATA"), "");
  EXPECT_NE(text.find("--clock"), std::string::npos) << text;
  for (const char* bad : {"1", "GHz", "0GHz", "-1GHz", "infGHz", "nanHz", "1e400Hz", "1 GHz", "1ghz"}) {
    const auto refusal = message(two_layers("DATA"), std::string("astra-sim:clock=") + bad);
    EXPECT_NE(refusal.find("with its unit is expected"), std::string::npos) << refusal;
  }
  EXPECT_DOUBLE_EQ(import_source({"toy.txt", two_layers("DATA")}, "", "clock=4GHz").trace.clock_hz, 4e9);
  EXPECT_THROW((void)import_source({"toy.txt", two_layers("DATA")}, "pipedream", "clock=4GHz"), Error);
  const Trace trace = import_source({"toy.txt", two_layers("DATA")}, "astra-sim:batch=32", "clock=1GHz").trace;
  EXPECT_EQ(trace.batch, 32);
  EXPECT_EQ(trace.layers[0].output_shape[0], 32);
}

TEST(AstraSim, EqualNamesAreToldApart) {
  const std::string row = " -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n";
  const Trace trace = import_text("DATA\n4\na" + row + "a.2" + row + "a" + row + "a" + row).trace;
  std::vector<std::string> names;
  for (const auto& layer : trace.layers) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a.2", "a.3", "a.4"}));
}

TEST(AstraSim, MistakesAreOneLineWithALineNumber) {
  const std::string row = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4 0\n";
  const std::pair<std::string, const char*> cases[] = {
      {"DATE\n1\n" + row, "line 1 has 'DATE' as loop type; accepted are DATA, MODEL, HYBRID_DATA_MODEL"},
      {"MICRO\n1\n" + row, "microbenchmark"},
      {"DISTRIBUTED_INFERENCE\n1\n" + row, "no backward pass"},
      {"HYBRID_DLRM\n1\n" + row, "last bottom layer"},
      {"HYBRID_TRANSFORMER 4\n1\n" + row, "model_parallel_NPU_group"},
      {"DATA\n", "ends before the number of layers"},
      {"DATA\nx\n" + row, "line 2 has 'x' as number of layers"},
      {"DATA\n-1\n" + row, "line 2 has '-1' as number of layers"},
      {"DATA\n99999999999999999999\n" + row, "line 2 has '99999999999999999999'"},
      {"DATA\n1 2\n" + row, "line 2 has 2 words"},
      {"DATA\n2\n" + row, "line 2 says 2 layers, but 1 follow"},
      {"DATA\n1\n" + row + row, "line 4 is one more than the 1 layers of line 2"},
      {"DATA\n0\n", "the trace has no layers"},
      {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4\n", "line 3 has 11 words"},
      {"DATA\n1\na x 1 NONE 0 1 NONE 0 1 ALLREDUCE 4 0\n", "line 3 has 'x' where the reserved number"},
      {"DATA\n1\na -1 -1 NONE 0 1 NONE 0 1 ALLREDUCE 4 0\n", "line 3 has '-1' as forward cycles"},
      {"DATA\n1\na -1 nan NONE 0 1 NONE 0 1 ALLREDUCE 4 0\n", "line 3 has 'nan' as forward cycles"},
      {"DATA\n1\na -1 1 NONE 0 1e9 NONE 0 1 ALLREDUCE 4 0\n", "line 3 has '1e9' as input-gradient cycles"},
      {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUSE 4 0\n", "line 3 has 'ALLREDUSE' as collective; accepted are NONE"},
      {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 99999999999999999 0\n", "as bytes of the weight-gradient"},
      {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4 \x01\n", "line 3 has characters that no workload has"},
      {" \n\n", "no lines"},
  };
  for (const auto& [text, expected] : cases) {
    const auto seen = message(text);
    EXPECT_NE(seen.find(expected), std::string::npos) << seen << " / " << expected;
    EXPECT_LT(seen.size(), 400U);
  }
  EXPECT_NE(
      message("DATA\n1\na -1 1000000000000000 NONE 0 1 NONE 0 1 NONE 0 0\n", "astra-sim:clock=1Hz").find("sample"),
      std::string::npos);
  EXPECT_LT(message("DATA\n1\na -1 " + std::string(1 << 20, '9') + " NONE 0 1 NONE 0 1 NONE 0 0\n").size(), 400U);
}

// A valid trace or one clear line, wherever the file is cut and whatever is changed in it.
TEST(AstraSim, CutAndGarbledFilesNeverCrash) {
  const std::string whole = two_layers("DATA");
  const auto survive = [](const std::string& text) {
    try {
      validate(import_text(text).trace);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) survive(whole.substr(0, length));
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 4; ++k) {
      text[random.below(static_cast<std::uint32_t>(text.size()))] = static_cast<char>(
          random.below(4) == 0 ? random.below(256) : static_cast<unsigned>("0123456789- \tALNO"[random.below(17)]));
    }
    survive(text);
  }
}

TEST(AstraSim, RecognizesUnknownLoopsByTheShapeOfTheFile) {
  EXPECT_NE(message(two_layers("PIPELINE"), "").find("as loop type"), std::string::npos);
  EXPECT_NE(message("DATA\n54\nnothing of the kind\n", "").find("no importer recognizes"), std::string::npos);
}

// ---- the workload that ASTRA-sim ships ----

// Its gradients are the weights of ResNet-50's convolutions and of its fully connected layer, without bias and batch
// normalization, in fp32: the same multiset as the built-in model's.
TEST(AstraSim, ResNet50sGradientsAreTheModelsWeights) {
  if (!std::filesystem::exists(kReference)) GTEST_SKIP() << "no reference workload at " << kReference;
  const Trace trace = import_trace({kReference}, "astra-sim:clock=1GHz").trace;
  EXPECT_EQ(trace.model, "astra_sim_Resnet50_DataParallel");
  ASSERT_EQ(trace.layers.size(), 54U);
  std::map<std::int64_t, int> here;
  std::map<std::int64_t, int> there;
  for (const auto& layer : trace.layers) ++here[layer.parameter_count()];
  for (const auto& layer : build_model("resnet50", 32).layers) {
    if (layer.kind == OpKind::conv || layer.kind == OpKind::fc) ++there[layer.parameters[0].count()];
  }
  EXPECT_EQ(here, there);
  EXPECT_EQ(std::count_if(trace.layers.begin(), trace.layers.end(), [](auto& l) { return l.kind == OpKind::conv; }),
            53);
  EXPECT_EQ(trace.collectives.size(), 54U);
  EXPECT_EQ(trace.collectives.front().bytes, Bytes(8'192'000));  // fc1000 first
  EXPECT_EQ(trace.collectives.back().bytes, Bytes(37'632));
}

// Sums of the columns, taken with awk.
TEST(AstraSim, ResNet50sTimesAreTheFilesColumns) {
  if (!std::filesystem::exists(kReference)) GTEST_SKIP() << "no reference workload at " << kReference;
  const Trace trace = import_trace({kReference}, "astra-sim:clock=1GHz").trace;
  EXPECT_NEAR(trace.total(Pass::forward).count(), 380'038e-9, 1e-12);
  EXPECT_NEAR(trace.total(Pass::backward_data).count(), (377'463 - 12'864) * 1e-9, 1e-12);  // not the first layer's
  EXPECT_NEAR(trace.total(Pass::backward_weight).count(), 337'813e-9, 1e-12);
  EXPECT_NEAR(trace.total(Pass::update).count(), 33'789e-9, 1e-12);
}

}  // namespace
}  // namespace tandem
