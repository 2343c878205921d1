// The V100 preset beside measurements made by others (../shared/reference): printed to be looked at, and held only to
// the order of magnitude, which is all that "modelled" promises. Skipped where the reference data are not there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "sim/compute/compute_model.hpp"
#include "sim/core/text.hpp"
#include "traces/importer.hpp"
#include "traces/layer_work.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

std::filesystem::path reference(const std::string& name) {
  return std::filesystem::path(TANDEM_SOURCE_DIR).parent_path() / "shared/reference/layer_profiles" / name;
}

// Columns of a row of DeepBench's table.
enum Column { kName, kWidth, kHeight, kIn, kBatch, kOut, kKernelW, kKernelH, kPadW, kPadH, kStrideW, kStrideH, kTimes };

Trace convolution(const std::vector<std::string>& cells) {
  const auto number = [&](int column) { return std::stoi(cells.at(static_cast<std::size_t>(column))); };
  Layer layer;
  layer.name = "conv";
  layer.kind = OpKind::conv;
  layer.kernel = {number(kKernelH), number(kKernelW)};
  layer.stride = {number(kStrideH), number(kStrideW)};
  layer.pad_begin = layer.pad_end = {number(kPadH), number(kPadW)};
  layer.dilation = {1, 1};
  const std::int64_t batch = number(kBatch);
  layer.input_shapes = {{batch, number(kIn), number(kHeight), number(kWidth)}};
  layer.output_shape = {batch, number(kOut)};
  for (std::size_t d = 0; d < 2; ++d) {
    layer.output_shape.push_back(window_extent(layer.input_shapes[0][d + 2], layer.kernel[d], layer.stride[d],
                                               layer.pad_begin[d], layer.pad_end[d], 1));
  }
  layer.parameters = {{"weight", {number(kOut), number(kIn), number(kKernelH), number(kKernelW)}}};
  set_flops(layer);
  Trace trace;
  trace.model = "one convolution";
  trace.batch = batch;
  trace.layers = {layer};
  return trace;
}

TEST(DeviceSanity, V100BesideDeepBench) {
  const auto path = reference("deepbench_conv_v100_fp32.csv");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  double log_ratio[3]{};
  double log_square[3]{};
  int rows[3]{};
  while (std::getline(file, line)) {
    const auto cells = split(line, ',');
    const auto trace = convolution(cells);
    const ComputeModel model(trace, {0, "v100", 1});
    for (std::size_t pass = 0; pass < 3; ++pass) {
      if (kTimes + pass >= cells.size() || cells[kTimes + pass].empty()) continue;
      const double measured = std::stod(cells[kTimes + pass]) * 1e-3;
      const double ratio = std::log(model.time(LayerId{0}, static_cast<Pass>(pass)).count() / measured);
      log_ratio[pass] += ratio;
      log_square[pass] += ratio * ratio;
      ++rows[pass];
    }
  }
  for (std::size_t pass = 0; pass < 3; ++pass) {
    ASSERT_GT(rows[pass], 20);
    const double mean = log_ratio[pass] / rows[pass];
    const double spread = std::sqrt(log_square[pass] / rows[pass] - mean * mean);
    fmt::print(
        "{}: modelled / measured is {:.2f} (geometric mean of {} convolutions), x/{:.2f} one standard deviation\n",
        to_text(static_cast<Pass>(pass)), std::exp(mean), rows[pass], std::exp(spread));
    EXPECT_LT(std::abs(mean), std::log(3.0));
  }
}

// Per layer and with all there is: PipeDream's first convolution holds the copy of the input, probably, so the sums
// are compared with and without it. Its GPU is not named; the V100 is an inference.
struct Compared {
  const char* model;
  std::int64_t batch;
};

class V100BesidePipeDream : public ::testing::TestWithParam<Compared> {};

double first_forward(const Trace& trace, const ComputeModel& model) {
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    if (trace.layers[i].kind == OpKind::conv)
      return model.time(LayerId{static_cast<std::int32_t>(i)}, Pass::forward).count();
  }
  return 0;
}

double iteration(const ComputeModel& model) {
  return (model.total(Pass::forward) + model.total(Pass::backward_data) + model.total(Pass::backward_weight)).count();
}

TEST_P(V100BesidePipeDream, WithinThirtyPercent) {
  const auto [name, batch] = GetParam();
  const auto path = reference(fmt::format("pipedream/{}.graph.txt", name));
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto profile = import_trace({path.string()}, fmt::format("pipedream:batch={}", batch)).trace;
  const ComputeModel measured(profile, {});
  const auto trace = load_trace(fmt::format("{}-cpu", name));
  const ComputeModel modelled(trace, {batch, "v100", 1});
  const double there = iteration(measured);
  const double here = iteration(modelled);
  const double there_without = there - first_forward(profile, measured);
  const double here_without = here - first_forward(trace, modelled);
  fmt::print(
      "{} at batch {}: modelled / profiled {:.1f} / {:.1f} ms = {:.2f}; without the first convolution's forward "
      "time {:.1f} / {:.1f} ms = {:.2f}\n",
      name, batch, here * 1e3, there * 1e3, here / there, here_without * 1e3, there_without * 1e3,
      here_without / there_without);
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight}) {
    fmt::print("  {} {:.1f} / {:.1f} ms\n", to_text(pass), modelled.total(pass).count() * 1e3,
               measured.total(pass).count() * 1e3);
  }
  EXPECT_LT(std::abs(here_without / there_without - 1), 0.3);
  EXPECT_LT(std::abs(here / there - 1), 0.3);
}

INSTANTIATE_TEST_SUITE_P(Networks, V100BesidePipeDream,
                         ::testing::Values(Compared{"vgg16", 128}, Compared{"alexnet", 256}, Compared{"resnet18", 256}),
                         [](const auto& p) { return p.param.model; });

// A profile of a V100 that is named, kernel by kernel, of a network that is not among DeepBench's.
TEST(DeviceSanity, V100BesideAProfiledResNet50) {
  const auto path = reference("../traces/kineto_resnet50_v100_bs32_steps18_19.json.gz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto profile = import_trace({path.string()}).trace;
  const auto trace = load_trace("resnet50-cpu");
  const ComputeModel measured(profile, {});
  const ComputeModel modelled(trace, {32, "v100", 1});
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update}) {
    fmt::print("{}: modelled {:.1f} ms, profiled {:.1f} ms\n", to_text(pass), modelled.total(pass).count() * 1e3,
               measured.total(pass).count() * 1e3);
  }
  EXPECT_LT(std::abs(iteration(modelled) / iteration(measured) - 1), 0.3);
}

// The recorded processor's rates on networks that they were not fitted to.
TEST(DeviceSanity, EpycCoreBesideItsOwnRecordings) {
  for (const char* name : {"googlenet", "resnet18", "resnet101"}) {
    const auto trace = load_trace(fmt::format("{}-cpu", name));
    const double recorded = iteration(ComputeModel(trace, {}));
    const double modelled = iteration(ComputeModel(trace, {0, "epyc-core", 1}));
    fmt::print("{} at batch {}: modelled {:.0f} ms, recorded {:.0f} ms, ratio {:.2f}\n", name, trace.batch,
               modelled * 1e3, recorded * 1e3, modelled / recorded);
    EXPECT_LT(std::abs(modelled / recorded - 1), 0.3) << name;
  }
}

}  // namespace
}  // namespace tandem
