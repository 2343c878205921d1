#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <numeric>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/kineto_profile.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/importer.hpp"
#include "traces/importers/device_timeline.hpp"

namespace tandem {
namespace {

using testing::Profile;
using testing::ProfileOptions;

Imported import_text(const std::string& text, const std::string& importer = "kineto") {
  return import_source({"profile.json", text}, importer);
}

std::string message_of(const std::string& text, const std::string& importer = "kineto") {
  try {
    (void)import_text(text, importer);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of a step, in the mean.
double layers_s(const Trace& trace) {
  double sum = 0;
  for (const auto& layer : trace.layers) {
    for (const auto& samples : layer.samples) sum += mean(samples.seconds);
  }
  return sum;
}
double outside_s(const Trace& trace, OutsideTime::Kind kind) {
  for (const auto& time : trace.outside) {
    if (time.kind == kind) return mean(time.samples.seconds);
  }
  return 0;
}
double all_outside_s(const Trace& trace) {
  double sum = 0;
  for (const auto& time : trace.outside) sum += mean(time.samples.seconds);
  return sum;
}
double gap_s(const Trace& trace) {
  return outside_s(trace, OutsideTime::Kind::launch_gap) + outside_s(trace, OutsideTime::Kind::input_wait);
}

double reported_s(const ImportReport& report, std::string_view part) {
  double sum = 0;
  for (const auto& entry : report.entries) {
    if (entry.what.find(part) != std::string::npos) sum += entry.time.count();
  }
  return sum;
}

bool mentions(const Trace& trace, std::string_view part) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

constexpr double kMicro = 1e-6;

// ---- a profile whose times are known ----

void expect_lenet(const Trace& trace, std::size_t steps) {
  EXPECT_EQ(trace.model, "lenet5");
  EXPECT_EQ(trace.batch, 2);
  const Trace model = build_model("lenet5", 2);
  ASSERT_EQ(trace.layers.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& layer = trace.layers[i];
    SCOPED_TRACE(layer.name);
    EXPECT_EQ(layer.name, model.layers[i].name);
    if (layer.kind == OpKind::flatten) continue;
    const auto expect = [&](Pass pass, double us) {
      const auto& samples = layer.samples[static_cast<std::size_t>(pass)].seconds;
      ASSERT_EQ(samples.size(), us > 0 ? steps : 0U) << to_text(pass);
      for (const double s : samples) EXPECT_NEAR(s, us * kMicro, 1e-12) << to_text(pass);
    };
    const bool parameters = !layer.parameters.empty();
    EXPECT_FALSE(layer.backward_is_joint);
    expect(Pass::forward, Profile::forward_us(i));
    expect(Pass::backward_data, layer.needs_input_gradient ? Profile::data_us(i) : 0);
    expect(Pass::backward_weight, parameters ? Profile::weight_us(i) : 0);
    expect(Pass::update, parameters ? 70.0 * static_cast<double>(layer.parameter_count()) / 431'080 : 0);
  }
}

TEST(Kineto, EveryKernelFindsItsLayerAndPass) {
  const auto imported = import_text(Profile({}).text());
  const Trace& trace = imported.trace;
  expect_lenet(trace, 2);
  EXPECT_EQ(trace.device, "Test GPU");
  // Nothing but compute and gaps; together they are the steps' wall time.
  EXPECT_NEAR(layers_s(trace) + all_outside_s(trace), Profile::kStep * kMicro, 1e-12);
  EXPECT_NEAR(gap_s(trace), all_outside_s(trace), 1e-15);
}

TEST(Kineto, OldAndNewCategoriesObjectsArraysAndTextAgree) {
  const auto plain = import_text(Profile({}).text());
  ProfileOptions old;
  old.old_categories = true;
  ProfileOptions text;
  text.text_numbers = true;
  for (const auto& options : {old, text}) {
    const auto other = import_text(Profile(options).text());
    EXPECT_TRUE(other.trace == plain.trace);
  }
  ProfileOptions bare;
  bare.bare_array = true;
  auto other = import_text(Profile(bare).text());
  EXPECT_EQ(other.trace.device, "unknown");
  other.trace.device = plain.trace.device;
  EXPECT_TRUE(other.trace == plain.trace);
}

TEST(Kineto, BackwardNodesAreFoundByNumberByFlowAndByOrder) {
  ProfileOptions flows;
  flows.sequence_numbers = false;
  flows.flows = true;
  expect_lenet(import_text(Profile(flows).text()).trace, 2);
  ProfileOptions order;
  order.sequence_numbers = false;
  expect_lenet(import_text(Profile(order).text()).trace, 2);
}

TEST(Kineto, WithoutStepAnnotationsTheFileIsOneStep) {
  ProfileOptions options;
  options.annotated = false;
  options.steps = 1;
  const auto trace = import_text(Profile(options).text()).trace;
  expect_lenet(trace, 1);
  EXPECT_TRUE(mentions(trace, "no ProfilerStep"));
}

TEST(Kineto, WithoutShapesTheBatchIsAskedFor) {
  ProfileOptions options;
  options.shapes = false;
  const auto text = Profile(options).text();
  EXPECT_NE(message_of(text).find("batch=N"), std::string::npos) << message_of(text);
  expect_lenet(import_text(text, "kineto:batch=2").trace, 2);
  EXPECT_NE(message_of(Profile({}).text(), "kineto:batch=3").find("batch of 2, not 3"), std::string::npos);
}

// Without kernels the operators' own durations count: forward 50, nodes 100, of which each product 5.
TEST(Kineto, WithoutADeviceTheHostIsIt) {
  ProfileOptions options;
  options.device = false;
  options.steps = 1;
  const auto trace = import_text(Profile(options).text()).trace;
  EXPECT_EQ(trace.model, "lenet5");
  EXPECT_EQ(trace.device, "unknown");
  for (const auto& layer : trace.layers) {
    SCOPED_TRACE(layer.name);
    if (layer.kind == OpKind::flatten) continue;
    EXPECT_NEAR(layer.time(Pass::forward).count(), 50 * kMicro, 1e-12);
    const double backward = (layer.time(Pass::backward_data) + layer.time(Pass::backward_weight)).count();
    EXPECT_NEAR(backward, (layer.parameters.empty() ? 100 : 120) * kMicro, 1e-12);
  }
  EXPECT_NEAR(trace.total(Pass::update).count(), 200 * kMicro, 1e-12);
  EXPECT_NEAR(layers_s(trace) + all_outside_s(trace), Profile::kStep * kMicro, 1e-12);
}

// ---- beside the layers ----

// In the step from 1,000,000 to 1,010,000: the first layer's kernel runs from 1,001,020 for 20 us.
TEST(Kineto, StreamsThatRunAtOnceCountOnce) {
  ProfileOptions options;
  options.steps = 1;
  Profile profile(options);
  const auto before = import_text(profile.text()).trace;
  // A copy over the last 15 us of that kernel and 25 us beyond: 25 us are its own.
  profile.copy(Profile::kMain, 1001005, 1001025, 40, 8);
  // A collective over 10 us of that copy, behind the kernel, and 30 us beyond: all 40 are its own, 15 stay the copy's.
  profile.op("nccl:all_reduce", Profile::kMain, 1000900, 10, "\"Input Dims\":[[250]],\"Input type\":[\"float\"]", true);
  profile.kernel("ncclKernel_AllReduce_RING_LL_Sum_float", Profile::kMain, 1000905, 1001055, 40, 9);
  // A kernel of nobody within the collective.
  profile.kernel("mystery", Profile::kMain, 1000990, 1001070, 5, 10);
  const auto imported = import_text(profile.text());
  const Trace& trace = imported.trace;
  EXPECT_NEAR(layers_s(trace), layers_s(before), 1e-12);
  EXPECT_NEAR(outside_s(trace, OutsideTime::Kind::copy), 15 * kMicro, 1e-12);
  EXPECT_NEAR(outside_s(trace, OutsideTime::Kind::communication), 35 * kMicro, 1e-12);
  EXPECT_NEAR(outside_s(trace, OutsideTime::Kind::unmatched), 5 * kMicro, 1e-12);
  EXPECT_NEAR(layers_s(trace) + all_outside_s(trace), Profile::kStep * kMicro, 1e-12);
  ASSERT_EQ(trace.collectives.size(), 1U);
  EXPECT_EQ(trace.collectives[0].operation, "all-reduce");
  EXPECT_EQ(trace.collectives[0].bytes, Bytes(1000));
  EXPECT_NEAR(trace.collectives[0].duration.count(), 40 * kMicro, 1e-12);
  EXPECT_NEAR(reported_s(imported.report, "overlap"), (15 + 10 + 5) * kMicro, 1e-12);
  EXPECT_NEAR(reported_s(imported.report, "kernels of collectives"), 40 * kMicro, 1e-12);
}

// The loader's 700 us, of which the device idles but for the 20 us of one copy.
TEST(Kineto, IdlingWhileTheLoaderLoadsIsAWaitForInput) {
  ProfileOptions options;
  options.steps = 1;
  Profile profile(options);
  profile.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Profile::kMain, 1000100, 700);
  profile.copy(Profile::kAutograd, 1000300, 1000400, 20);
  const auto trace = import_text(profile.text()).trace;
  EXPECT_NEAR(outside_s(trace, OutsideTime::Kind::input_wait), 680 * kMicro, 1e-12);
  EXPECT_NEAR(outside_s(trace, OutsideTime::Kind::copy), 20 * kMicro, 1e-12);
  EXPECT_NEAR(layers_s(trace) + all_outside_s(trace), Profile::kStep * kMicro, 1e-12);
}

TEST(Kineto, AStepThatRanOtherLayersIsLeftOut) {
  Profile profile({});
  profile.op("ProfilerStep#9", Profile::kMain, 1020000, 500, "", true);
  profile.op("aten::conv2d", Profile::kMain, 1020010, 50, "\"Input Dims\":[[2,1,28,28],[20,1,5,5],[20]]");
  profile.kernel("forward_kernel", Profile::kMain, 1020020, 1020030, 77);
  const auto imported = import_text(profile.text());
  expect_lenet(imported.trace, 2);
  EXPECT_TRUE(mentions(imported.trace, "2 of 3 steps used"));
  EXPECT_NEAR(reported_s(imported.report, "steps left out"), 77 * kMicro, 1e-12);
}

TEST(Kineto, SeveralDevicesNeedAChoice) {
  Profile profile({});
  profile.raw(
      R"({"ph":"X","cat":"kernel","name":"other","pid":1,"tid":7,"ts":1000000,"dur":5,"args":{"device":1,"stream":7}})");
  const auto text = profile.text();
  EXPECT_NE(message_of(text).find("several devices (0, 1)"), std::string::npos);
  expect_lenet(import_text(text, "kineto:device=0").trace, 2);
  EXPECT_NE(message_of(text, "kineto:device=5").find("there are: 0, 1"), std::string::npos);
}

TEST(Timeline, AnInstantCountsOnceForTheLowestPriority) {
  const auto timeline = timeline_of({{0, 10, 1, 0}, {5, 20, 0, 1}, {18, 30, 0, 2}, {40, 50, 3, 0}, {60, 60, 0, 2}}, 3);
  EXPECT_EQ(timeline.charged, (std::vector<std::int64_t>{5 + 10, 15, 10}));
  EXPECT_EQ(timeline.gaps, (std::vector<std::pair<std::int64_t, std::int64_t>>{{30, 40}}));
  EXPECT_TRUE(timeline_of({}, 1).gaps.empty());
}

// ---- measured profiles, where they are at hand ----
//
// The constants come from a separate sum over the files (Python's json and fractions): durations of all events of a
// category, and the union of their intervals.

const std::string kReference = TANDEM_SOURCE_DIR "/../shared/reference/traces/";

std::string reference(const char* name) {
  return kReference + name;
}
#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no reference at " << (path)

void expect_resnet50(const Trace& trace) {
  const Trace model = build_model("resnet50", 32);
  EXPECT_EQ(trace.model, "resnet50");
  EXPECT_EQ(trace.batch, 32);
  ASSERT_EQ(trace.layers.size(), model.layers.size());
  int convolutions = 0, products = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& layer = trace.layers[i];
    SCOPED_TRACE(layer.name);
    EXPECT_EQ(layer.name, model.layers[i].name);
    EXPECT_EQ(layer.inputs, model.layers[i].inputs);
    EXPECT_EQ(layer.input_shapes, model.layers[i].input_shapes);
    EXPECT_EQ(layer.parameters, model.layers[i].parameters);
    if (layer.kind == OpKind::flatten) continue;
    EXPECT_GT(layer.time(Pass::forward).count(), 0);
    if (layer.kind != OpKind::add) {
      EXPECT_GT((layer.time(Pass::backward_data) + layer.time(Pass::backward_weight)).count(), 0);
    }
    convolutions += layer.kind == OpKind::conv ? 1 : 0;
    products += layer.kind == OpKind::fc ? 1 : 0;
  }
  EXPECT_EQ(convolutions, 53);
  EXPECT_EQ(products, 1);
}

TEST(KinetoReference, ResNet50OnAV100) {
  const auto path = reference("kineto_resnet50_v100_bs32_steps18_19.json.gz");
  SKIP_WITHOUT(path);
  const auto imported = import_trace({path});
  const Trace& trace = imported.trace;
  expect_resnet50(trace);
  EXPECT_EQ(trace.device, "Tesla V100-DGXS-32GB");
  EXPECT_EQ(trace.iteration_forward.seconds.size(), 2U);
  for (const auto& layer : trace.layers) {
    const bool product = layer.kind == OpKind::conv || layer.kind == OpKind::fc;
    EXPECT_FALSE(product && layer.backward_is_joint) << layer.name;
  }
  const double busy = layers_s(trace) + all_outside_s(trace) - gap_s(trace);
  const double wall = layers_s(trace) + all_outside_s(trace);
  // Both steps: the device is busy 203,230 us of the 240,995 us from the first step's begin to the last one's end.
  EXPECT_NEAR(2 * busy, 203'230 * kMicro, 1e-9);
  EXPECT_NEAR(2 * wall, 240'995 * kMicro, 0.01 * 240'995 * kMicro);
  fmt::print("a step: layers {:.3f} ms, device busy {:.3f} ms (file {:.3f}), wall {:.3f} ms (file {:.3f})\n",
             layers_s(trace) * 1e3, busy * 1e3, 203.230 / 2, wall * 1e3, 240.995 / 2);
  EXPECT_NEAR(reported_s(imported.report, "kernels of"), 197'325 * kMicro, 1e-9);
  EXPECT_NEAR(reported_s(imported.report, "memory copies"), 5'709 * kMicro, 1e-9);
  EXPECT_NEAR(reported_s(imported.report, "memory fills"), 196 * kMicro, 1e-9);
}

// The old format says which operator computes which gradient; without that, kernel names and order must tell the same.
TEST(KinetoReference, KernelNamesTellTheGradientsApartAsOperatorsDo) {
  const auto path = reference("kineto_resnet50_v100_bs32_steps18_19.json.gz");
  SKIP_WITHOUT(path);
  auto source = read_source(path);
  const Trace told = import_source(source).trace;
  for (std::string_view word : {"cudnn_convolution_backward_input", "cudnn_convolution_backward_weight"}) {
    for (auto at = source.content.find(word); at != std::string::npos; at = source.content.find(word, at)) {
      source.content.replace(at, word.size(), std::string(word.size(), 'x'));
    }
  }
  const Trace guessed = import_source(source).trace;
  int joint = 0;
  for (std::size_t i = 0; i < told.layers.size(); ++i) {
    SCOPED_TRACE(told.layers[i].name);
    if (told.layers[i].kind == OpKind::bn || !guessed.layers[i].backward_is_joint) {
      for (const Pass pass : {Pass::backward_data, Pass::backward_weight}) {
        EXPECT_NEAR(guessed.layers[i].time(pass).count(), told.layers[i].time(pass).count(), 1e-12);
      }
    } else {
      ++joint;
    }
  }
  EXPECT_LE(joint, 3);
  fmt::print("{} of 53 convolutions stay joint without the operators' names\n", joint);
}

TEST(KinetoReference, ResNet50UnderDistributedDataParallel) {
  const auto path = reference("kineto_resnet50_ddp_v100_worldsize1_step104.json.gz");
  SKIP_WITHOUT(path);
  const auto imported = import_trace({path});
  const Trace& trace = imported.trace;
  expect_resnet50(trace);
  EXPECT_EQ(trace.device, "Tesla V100-SXM2-32GB");
  const double wall = layers_s(trace) + all_outside_s(trace);
  const double busy = wall - gap_s(trace);
  EXPECT_NEAR(busy, 94'463.489 * kMicro, 1e-9);
  EXPECT_NEAR(wall, 95'551.087 * kMicro, 0.01 * wall);
  fmt::print("a step: layers {:.3f} ms, device busy {:.3f} ms (file {:.3f}), wall {:.3f} ms (file {:.3f})\n",
             layers_s(trace) * 1e3, busy * 1e3, 94.463489, wall * 1e3, 95.551087);
  EXPECT_NEAR(reported_s(imported.report, "kernels of"), 93'606.214 * kMicro, 1e-9);
  EXPECT_NEAR(reported_s(imported.report, "memory copies"), 739.547 * kMicro, 1e-9);
  EXPECT_NEAR(reported_s(imported.report, "memory fills"), 117.728 * kMicro, 1e-9);
}

std::vector<std::int64_t> all_reduced(const Trace& trace) {
  std::vector<std::int64_t> bytes;
  for (const auto& collective : trace.collectives) {
    if (collective.operation == "all-reduce") bytes.push_back(collective.bytes.count());
  }
  return bytes;
}

// The buckets that another profile of the same network shows (the Chakra file), once as this file states them and once
// as the order of gradients and copies gives them.
TEST(KinetoReference, BucketsAreKeptInOrder) {
  const auto path = reference("kineto_resnet50_ddp_v100_worldsize1_step104.json.gz");
  SKIP_WITHOUT(path);
  const std::vector<std::int64_t> buckets{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160};
  auto source = read_source(path);
  EXPECT_EQ(all_reduced(import_source(source).trace), buckets);
  const std::string word = "In msg nelems";
  for (auto at = source.content.find(word); at != std::string::npos; at = source.content.find(word, at)) {
    source.content.replace(at, word.size(), "xx xxx nelems");
  }
  const Trace trace = import_source(source).trace;
  EXPECT_EQ(all_reduced(trace), buckets);
  EXPECT_TRUE(mentions(trace, "gradients accumulated"));
}

// ---- hostile files ----

TEST(Kineto, MistakesAreOneLine) {
  const auto event = [](const std::string& members) { return "{\"traceEvents\":[{" + members + "}]}"; };
  const std::string good = R"("ph":"X","cat":"cpu_op","name":"aten::conv2d","pid":1,"tid":1,)";
  const std::pair<std::string, const char*> cases[] = {
      {"{\"traceEvents\":[", "not JSON"},
      {"{\"traceEvents\":[]}", "no operators"},
      {"{\"other\":[]}", "no traceEvents"},
      {"7", "no traceEvents"},
      {event(good + "\"ts\":1,\"dur\":-1"), "event 1 ('aten::conv2d'): dur '-1'"},
      {event(good + "\"ts\":1,\"dur\":1e300"), "dur '1e300'"},
      {event(good + "\"ts\":1e18,\"dur\":1"), "ts '1e18'"},
      {event(good + "\"ts\":99999999999999999999,\"dur\":1"), "ts '"},
      {event(good + "\"ts\":\"soon\",\"dur\":1"), "ts 'soon'"},
      {event(good + "\"ts\":NaN,\"dur\":1"), "not JSON"},
      {event(good + "\"dur\":1"), "event 1 ('aten::conv2d'): no ts"},
      {event(good + "\"ts\":1,\"dur\":1"), "no operator has shapes"},
      {event(good + R"("ts":1,"dur":1,"args":{"Input Dims":[[1,-3,8,8],[4,3,3,3]]})"), "extent of -3"},
      {event(good + R"("ts":1,"dur":1,"args":{"Input Dims":[[99999999,99999999,8,8],[4,3,3,3]]})"), "elements"},
      {event(good + R"("ts":1,"dur":1,"args":{"Input Dims":[[1,3,8,8],[4]]})"), "a weight of 1"},
      {std::string(5000, '['), "nested deeper than 64"},
      {"{\"traceEvents\":" + std::string(5000, '['), "nested deeper than 64"},
  };
  for (const auto& [text, expected] : cases) {
    const auto message = message_of(text);
    EXPECT_NE(message.find(expected), std::string::npos) << message << " / " << expected;
  }
}

// Operators that contain each other a thousand times.
TEST(Kineto, DeeplyNestedOperatorsAreRefused) {
  Profile profile({});
  for (int i = 0; i < 1000; ++i) profile.op("deep", "300", 1000000 + i, 5000 - 2 * i);
  EXPECT_NE(message_of(profile.text()).find("nested deeper than 512"), std::string::npos);
}

// A valid trace or one clear line, wherever the file is cut and whatever is changed in it.
TEST(Kineto, CutAndGarbledFilesNeverCrash) {
  ProfileOptions options;
  options.steps = 1;
  const std::string whole = Profile(options).text();
  const auto survive = [](const std::string& text) {
    try {
      (void)import_text(text);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    }
  };
  for (std::size_t length = 1; length < whole.size(); length += 97) survive(whole.substr(0, length));
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 3; ++k) {
      text[random.below(static_cast<std::uint32_t>(text.size()))] = "0123456789-[]{},:\"e."[random.below(20)];
    }
    survive(text);
  }
}

TEST(Kineto, OtherJsonIsNobodys) {
  for (const auto* text :
       {R"({"schema":"1.0.1","nodes":[{"id":1,"name":"x","ctrl_deps":[]}]})", R"([{"id":1,"name":"ph"}])",
        R"({"irVersion":"7","graph":{"node":[]}})", R"({"name":"ts"})"}) {
    EXPECT_NE(message_of(text, "").find("no importer recognizes"), std::string::npos) << message_of(text, "");
  }
  EXPECT_EQ(import_text(Profile({}).text(), "").trace.model, "lenet5");
}

// A file of many events; a million where TANDEM_LARGE_PROFILE says so, or names a file that it is written to.
TEST(Kineto, LargeFilesAreReadAsAStream) {
  const char* large = std::getenv("TANDEM_LARGE_PROFILE");
  ProfileOptions options;
  options.steps = large != nullptr ? 250 : 5;
  options.filler = 4000;
  const std::string text = Profile(options).text();
  if (large != nullptr && std::string_view(large).find('/') != std::string_view::npos) {
    testing::write_bytes(large, text);
  }
  const auto trace = import_text(text).trace;
  expect_lenet(trace, static_cast<std::size_t>(options.steps));
}

}  // namespace
}  // namespace tandem
