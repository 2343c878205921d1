// Whole iterations against closed forms, and laws that hold whatever the numbers are. Buckets go one after another on a
// star, so the end of bucket b is max(ready_b, end_{b-1}) + ring(n_b): a recurrence that shares no code with the
// engine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>

#include "sim/core/error.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/setup.hpp"
#include "tests/traces/temporary_folder.hpp"

namespace tandem {
namespace {

constexpr double kBandwidth = 3.125e9;
constexpr double kLatency = 2e-6;
constexpr double kOverhead = 4e-6;

RunConfig base(const std::string& trace, int ranks) {
  RunConfig config;
  config.trace = trace;
  config.device = "v100";
  config.cluster.topology = "star";
  config.cluster.ranks = ranks;
  config.cluster.link_bandwidth = BytesPerSecond(kBandwidth);
  config.cluster.link_latency = Seconds(kLatency);
  config.step_overhead = Seconds(kOverhead);
  config.details = Details::none;
  return config;
}

// tests/mutation_test.py sets TANDEM_MUTATION and expects the tests below to turn red.
RunConfig mutated(RunConfig config) {
  const char* name = std::getenv("TANDEM_MUTATION");
  const std::string mutation = name == nullptr ? "" : name;
  if (mutation == "bandwidth") config.network.bandwidth_factor = 0.5;
  if (mutation == "latency") config.network.latency_factor = 10;
  if (mutation == "overlap") config.gradients = "after-backward:bucket=25MiB";
  return config;
}

double iteration(const RunConfig& config) {
  return number(predict(mutated(config)).row, "iteration_time_s");
}

double ring(int p, double n) {
  return 2 * (p - 1) * (2 * kLatency + kOverhead + std::ceil(n / p) / kBandwidth);
}

struct Expected {
  double iteration = 0;
  double exposed = 0;
  int buckets = 0;
};

// Compute is serial; its dates are sums of the modelled times.
Expected recurrence(const RunConfig& config) {
  const auto setup = make_setup(config);
  const auto& steps = setup->lowered.steps;
  double clock = 0;
  for (const auto& compute : steps.forward) clock += compute.duration.count();
  std::vector<double> done;
  for (const auto& compute : steps.backward) done.push_back(clock += compute.duration.count());
  double end = 0;
  for (std::size_t b = 0; b < steps.buckets.size(); ++b) {
    const double ready = done[static_cast<std::size_t>(steps.buckets[b].ready_after)];
    const auto bytes = static_cast<double>(setup->lowered.buckets[b].bytes.count());
    end = std::max(ready, end) + ring(config.cluster.ranks, bytes);
  }
  return {std::max(end, clock) + steps.update.count(), std::max(0.0, end - clock),
          static_cast<int>(steps.buckets.size())};
}

class Iteration : public ::testing::TestWithParam<std::string> {};

TEST_P(Iteration, IsTheRecurrenceOfItsBuckets) {
  for (const char* trace : {"lenet5", "resnet50", "vgg16"}) {
    for (const int ranks : {2, 4, 5, 16}) {
      auto config = base(trace, ranks);
      config.gradients = GetParam();
      const auto expected = recurrence(config);
      const auto row = predict(mutated(config)).row;
      // Where the parts of a ring are unequal, ranks end up to a byte a step apart in every bucket.
      const double unequal = ranks <= 4 ? 0 : 2.0 * ranks * expected.buckets / kBandwidth;
      const double tolerance = 1e-9 * expected.iteration + unequal;
      EXPECT_NEAR(number(row, "iteration_time_s"), expected.iteration, tolerance) << trace << ranks;
      EXPECT_NEAR(number(row, "exposed_comm_time_s"), expected.exposed, tolerance) << trace << ranks;
      EXPECT_EQ(number(row, "bubble_time_s") + number(row, "input_time_s"), 0);
      EXPECT_LE(number(row, "idle_time_s"), tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Overlap, Iteration, ::testing::Values("ddp", "per-layer", "per-tensor"));
INSTANTIATE_TEST_SUITE_P(NoOverlap, Iteration, ::testing::Values("after-backward"));

TEST(Iterations, SeveralTakeSeveralTimesOne) {
  auto config = base("lenet5", 4);
  const double one = iteration(config);
  config.iterations = 3;
  EXPECT_NEAR(iteration(config), one, 1e-9 * one);
}

// 3 s of compute, 0.5 s without a launch, 0.25 s without data, 0.125 s of copies, 1 s of communication.
TEST(Overheads, CountWhereTheyAreAskedFor) {
  Trace trace;
  trace.model = "toy";
  trace.batch = 8;
  Layer layer;
  layer.name = "layer";
  layer.kind = OpKind::other;
  layer.input_shapes = {{8, 3}};
  layer.output_shape = {8, 3};
  layer.samples = {Samples{{1}}, {}, Samples{{1.5}}, Samples{{0.5}}};
  trace.layers = {layer};
  using Kind = OutsideTime::Kind;
  trace.outside = {{Kind::launch_gap, Samples{{0.5}}},
                   {Kind::input_wait, Samples{{0.25}}},
                   {Kind::copy, Samples{{0.125}}},
                   {Kind::communication, Samples{{1}}}};
  const testing::TemporaryFolder folder;
  write_trace(trace, folder.file("toy.h5"));
  for (const int ranks : {1, 4}) {
    auto config = base(folder.file("toy.h5"), ranks);
    config.device = "recorded";
    config.iterations = 2;
    EXPECT_DOUBLE_EQ(number(predict(config).row, "iteration_time_s"), 3) << "nothing to ship, nothing else counted";
    config.overheads = true;
    const auto row = predict(config).row;
    EXPECT_DOUBLE_EQ(number(row, "iteration_time_s"), 3.875);
    EXPECT_DOUBLE_EQ(number(row, "compute_time_s"), 3.125);
    EXPECT_DOUBLE_EQ(number(row, "idle_time_s"), 0.5);
    EXPECT_DOUBLE_EQ(number(row, "launch_gap_time_s"), 0.5);
    EXPECT_DOUBLE_EQ(number(row, "input_time_s"), 0.25);
    EXPECT_DOUBLE_EQ(number(row, "scaling_efficiency"), 1) << "the baseline has them too";
  }
}

TEST(Baseline, OneRankOnlyComputes) {
  const auto row = predict(base("resnet50", 1)).row;
  EXPECT_NEAR(number(row, "iteration_time_s"), number(row, "compute_time_s"), 1e-12);
  EXPECT_NEAR(number(row, "scaling_efficiency"), 1, 1e-12);
  EXPECT_EQ(number(row, "simulated_flows"), 0);
}

TEST(Baseline, AlphaBetaIsComputePlusTheSumOfTheRings) {
  const auto config = base("resnet50", 8);
  const auto row = predict(mutated(config)).row;
  double expected = number(row, "compute_time_s");
  const auto setup = make_setup(config);
  for (const auto& bucket : setup->lowered.buckets) {
    expected += ring(8, static_cast<double>(bucket.bytes.count()));
  }
  EXPECT_NEAR(number(row, "alpha_beta_time_s"), expected, 1e-9 * expected);
}

TEST(Baseline, ParameterServersAreExtraDevices) {
  auto config = base("lenet5", 4);
  config.algorithm = "parameter-server:servers=2";
  config.gradients = "after-backward";
  config.step_overhead = Seconds(0);
  const auto row = predict(mutated(config)).row;
  // Each of 4 workers pushes half of n to each of 2 servers, which then send it to all 4.
  const double n = 431080 * 4.0;
  const double expected = number(row, "compute_time_s") + 2 * (2 * kLatency + 4 * n / 2 / kBandwidth);
  EXPECT_NEAR(number(row, "iteration_time_s"), expected, 1e-9 * expected);
}

// Laws. Data-parallel bsp on a star is free of contention, so they hold there (architecture.md, section 5).
TEST(Laws, HoldOnContentionFreeRoutes) {
  EXPECT_TRUE(rc::check("scaling laws of a bsp iteration on a star", [] {
    auto config = base(*rc::gen::element<std::string>("lenet5", "resnet18"), *rc::gen::inRange(2, 9));
    config.algorithm = *rc::gen::element<std::string>("ring", "halving-doubling", "direct");
    // The folded form for other numbers has contention: members without a partner start while the pairs still fold.
    if (config.algorithm == "halving-doubling") config.cluster.ranks = *rc::gen::element(2, 4, 8);
    config.gradients = *rc::gen::element<std::string>("ddp", "per-layer", "per-tensor", "after-backward");
    config.cluster.link_bandwidth = BytesPerSecond(*rc::gen::inRange(1, 1000) * 1e7);
    config.cluster.link_latency = Seconds(*rc::gen::inRange(0, 50) * 1e-6);
    const double time = iteration(config);

    auto faster = config;
    faster.cluster.link_bandwidth = config.cluster.link_bandwidth * 2;
    RC_ASSERT(iteration(faster) <= time * (1 + 1e-9));

    auto sooner = config;
    sooner.cluster.link_latency = config.cluster.link_latency / 2;
    RC_ASSERT(iteration(sooner) <= time * (1 + 1e-9));

    // Twice as slow in everything is twice as slow.
    auto slower = config;
    slower.device_scale = 0.5;
    slower.cluster.link_bandwidth = config.cluster.link_bandwidth / 2;
    slower.cluster.link_latency = config.cluster.link_latency * 2;
    slower.step_overhead = config.step_overhead * 2;
    RC_ASSERT(std::abs(iteration(slower) - 2 * time) <= 1e-9 * time);

    // A star has no better or worse place, and P planes of one rate are one plane of P times the rate.
    auto elsewhere = config;
    elsewhere.placement = "random:seed=7";
    RC_ASSERT(std::abs(iteration(elsewhere) - time) <= 1e-9 * time);
    auto planes = config;
    planes.cluster.topology = "star:planes=2";
    RC_ASSERT(std::abs(iteration(planes) - iteration(faster)) <= 1e-9 * time);

    // Compute bounds it below, no overlap bounds it above.
    const auto row = predict(config).row;
    RC_ASSERT(time >= number(row, "compute_time_s") * (1 - 1e-12));
    RC_ASSERT(time <= number(row, "alpha_beta_time_s") * (1 + 1e-9));
  }));
}

TEST(Breakdown, AddsUpOnRealTopologies) {
  for (const char* topology : {"fat-tree", "torus", "mesh-rail-cube"}) {
    auto config = base("resnet50", 16);
    config.cluster.topology = topology;
    config.overlap_slowdown = 1.1;
    const auto row = predict(config).row;
    const double sum = number(row, "compute_time_s") + number(row, "exposed_comm_time_s") +
                       number(row, "bubble_time_s") + number(row, "idle_time_s") + number(row, "input_time_s");
    EXPECT_NEAR(sum, number(row, "iteration_time_s"), 1e-12) << topology;
  }
}

TEST(Scaling, StrongScalingSharesTheGlobalBatch) {
  auto config = base("resnet50", 8);
  config.scaling = Scaling::strong;
  config.global_batch = 256;
  const auto row = predict(config).row;
  EXPECT_EQ(number(row, "batch_per_rank"), 32);
  EXPECT_EQ(number(row, "samples_per_iteration"), 256);
  EXPECT_LT(number(row, "scaling_efficiency"), 1);
  config.cluster.ranks = 257;
  EXPECT_THROW((void)predict(config), Error);
}

TEST(Limits, AMemoryThatIsTooSmallIsSaid) {
  auto config = base("vgg16", 2);
  config.memory = Bytes(1'000'000'000);
  EXPECT_THROW((void)predict(config), Error);
}

std::string level_of(const std::string& algorithm, int ranks) {
  auto config = base("lenet5", ranks);
  config.algorithm = algorithm;
  return to_text(make_setup(config)->fidelity);
}

TEST(AutoFidelity, TakesTheFinestLevelWhoseFlowsFit) {
  EXPECT_EQ(level_of("ring", 64), "flow");
  EXPECT_EQ(level_of("ring", 1024), "phase");
  EXPECT_EQ(level_of("ring", 4096), "phase");
  EXPECT_EQ(level_of("ring", 65536), "analytic");
  // A direct exchange has few flows, but all of them at once, which is what SimGrid is slow at.
  EXPECT_EQ(level_of("direct", 64), "flow");
  EXPECT_EQ(level_of("direct", 500), "analytic");
}

// The same iteration, and where its time goes, at all levels: nothing shares a link but a rank's own port.
TEST(Fidelity, LevelsAgreeWhereNothingIsShared) {
  auto config = base("vgg16", 16);
  config.fidelity = "flow";
  const auto flow = predict(config).row;
  for (const auto* level : {"phase", "analytic"}) {
    config.fidelity = level;
    const auto row = predict(config).row;
    for (const auto* name : {"iteration_time_s", "compute_time_s", "exposed_comm_time_s", "comm_time_s"}) {
      EXPECT_NEAR(number(row, name), number(flow, name), 1e-6 * number(flow, name)) << level << " " << name;
    }
    EXPECT_LT(number(row, "fidelity_error"), 1e-6);
  }
}

// Equal ranks are one class: asking for every rank's own row gives the same times without classes.
TEST(Fidelity, ClassesOfRanksChangeNothing) {
  for (const auto* level : {"phase", "analytic"}) {
    auto config = base("resnet50", 12);
    config.fidelity = level;
    config.noise.stragglers[5] = 1.5;  // two classes
    const auto classes = make_setup(config);
    // Where messages are simulated members end apart, and a class must be all ranks.
    EXPECT_EQ(classes->classes.first.size(), std::string(level) == "analytic" ? 2u : 0u);
    const auto in_classes = predict(config).row;
    config.details = Details::full;
    EXPECT_TRUE(make_setup(config)->classes.first.empty());
    const auto apart = predict(config).row;
    for (const auto* name : {"iteration_time_s", "compute_time_s", "exposed_comm_time_s", "idle_time_s"}) {
      EXPECT_NEAR(number(in_classes, name), number(apart, name), 1e-9) << level << " " << name;
    }
  }
}

TEST(Fidelity, OtherNetworkModelsHaveFlowOnly) {
  auto config = base("lenet5", 512);
  config.algorithm = "halving-doubling";
  config.network.model = NetworkModelOptions::Model::lv08;
  EXPECT_EQ(make_setup(config)->fidelity, Fidelity::flow);
  config.cluster.ranks = 4;
  for (const auto* level : {"phase", "analytic"}) {
    config.fidelity = level;
    EXPECT_THROW((void)predict(config), Error) << level;
  }
}

// The run that says how far a level is off has fewer ranks, and the lost one may not be among them.
TEST(Fidelity, ErrorIsKnownWhereARankIsLost) {
  auto config = base("lenet5", 300);
  config.cluster.lost_ranks = {299};
  config.cluster.ranks = 299;
  config.fidelity = "phase";
  EXPECT_LT(number(predict(config).row, "fidelity_error"), 1e-6);
}

// Remainders are what halving and doubling is slow at: the error is measured where there are some.
TEST(Fidelity, ErrorIsThatOfTheRunItselfWhereItIsSmall) {
  auto config = base("lenet5", 20);
  config.cluster.topology = "leaf-spine:down=4,oversubscription=4";
  config.cluster.link_bandwidth = BytesPerSecond(1.25e6);
  config.algorithm = "halving-doubling";
  config.fidelity = "flow";
  const double flow = number(predict(config).row, "iteration_time_s");
  config.fidelity = "analytic";
  const auto row = predict(config).row;
  EXPECT_NEAR(number(row, "fidelity_error"), std::abs(number(row, "iteration_time_s") / flow - 1), 1e-9);
}

// Means over ranks count every rank of a class.
TEST(Fidelity, LayersAreMeansOverRanksNotClasses) {
  auto config = base("lenet5", 64);
  config.details = Details::summary;
  config.noise.stragglers[0] = 3;
  const auto forward = [&](const char* level) {
    config.fidelity = level;
    const auto prediction = predict(config);
    for (const auto& table : prediction.details) {
      if (table.name != "layers") continue;
      for (const auto& column : table.columns) {
        if (column.name != "forward_time_s") continue;
        const auto& times = std::get<std::vector<double>>(column.values);
        return std::accumulate(times.begin(), times.end(), 0.0);
      }
    }
    return 0.0;
  };
  const double flow = forward("flow");
  EXPECT_GT(flow, 0);
  EXPECT_NEAR(forward("analytic"), flow, 1e-9 * flow);
}

TEST(Noise, TheBaselineHasNone) {
  auto config = base("vgg16", 2);
  config.noise.stragglers[0] = 2;
  EXPECT_LT(number(predict(config).row, "scaling_efficiency"), 0.6);  // of two ranks computing alone
  config.baseline_ranks = 2;
  const auto late = predict(config).row;
  config.noise = {};
  const auto even = predict(config).row;
  EXPECT_NEAR(number(late, "scaling_efficiency"), number(even, "iteration_time_s") / number(late, "iteration_time_s"),
              1e-9);
}

TEST(Noise, AStragglerHoldsUpAll) {
  auto config = base("vgg16", 4);
  const auto even = predict(config).row;
  config.noise.stragglers[2] = 2;
  const auto late = predict(config).row;
  EXPECT_NEAR(number(late, "compute_time_s_max"), 2 * number(even, "compute_time_s_max"), 1e-12);
  EXPECT_GT(number(late, "iteration_time_s"), number(late, "compute_time_s_max"));
  EXPECT_GT(number(late, "idle_time_s"), 0);
  EXPECT_NEAR(number(late, "load_imbalance"), 2 / 1.25, 1e-9);
  config.noise.stragglers.clear();
  config.noise.stragglers[4] = 2;
  EXPECT_THROW((void)predict(config), Error);
}

TEST(Noise, LognormalFactorsHaveMeanOneAndTheirSigma) {
  ComputeNoise noise;
  noise.jitter = "lognormal:sigma=0.05";
  const auto factors = compute_slowdown(noise, 100'000);
  double sum = 0;
  double squares = 0;
  for (const double factor : factors) {
    sum += factor;
    squares += std::log(factor) * std::log(factor);
  }
  EXPECT_NEAR(sum / 1e5, 1, 0.001);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 0.05, 0.001);
  EXPECT_EQ(compute_slowdown(noise, 10), std::vector<double>(factors.begin(), factors.begin() + 10));
  noise.seed = 2;
  EXPECT_NE(compute_slowdown(noise, 10), std::vector<double>(factors.begin(), factors.begin() + 10));
}

TEST(Explain, NamesTheBound) {
  auto config = base("vgg16", 8);
  config.explain = true;
  config.cluster.link_bandwidth = BytesPerSecond(1e8);
  const auto explanation = predict(config).explanation.at(0);
  EXPECT_NE(explanation.sentences.at(1).find("link bandwidth"), std::string::npos);
  EXPECT_LT(explanation.with_double_bandwidth, explanation.with_double_device_speed);
  config.cluster.link_bandwidth = BytesPerSecond(1e11);
  EXPECT_NE(predict(config).explanation.at(0).sentences.at(1).find("compute"), std::string::npos);
}

}  // namespace
}  // namespace tandem
