// Results that depend on the links' rates as simulated, not as configured; provenance that sees every change.
#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/provenance.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

RunConfig small_run() {
  RunConfig config;
  config.trace = "vgg16";
  config.device = "v100";
  config.cluster.ranks = 4;
  return config;
}

TEST(Factors, AFactorOnBandwidthIsAnotherBandwidth) {
  auto by_factor = small_run();
  by_factor.network.bandwidth_factor = 0.25;
  by_factor.network.latency_factor = 3;
  auto by_links = small_run();
  by_links.cluster.link_bandwidth = by_links.cluster.link_bandwidth * 0.25;
  by_links.cluster.link_latency = by_links.cluster.link_latency * 3;
  const auto first = predict(by_factor).row;
  const auto second = predict(by_links).row;
  for (const char* name : {"iteration_time_s", "alpha_beta_time_s", "bottleneck_utilization", "exposed_comm_time_s"}) {
    EXPECT_NEAR(number(first, name), number(second, name), 1e-9 * number(second, name)) << name;
  }
}

TEST(AutoFidelity, IsOneLevelForARunAndItsBaseline) {
  auto config = small_run();
  config.baseline_ranks = 512;
  const auto row = predict(config).row;
  const auto fidelity =
      std::find_if(row.begin(), row.end(), [](const auto& field) { return field.name == "fidelity"; });
  ASSERT_NE(fidelity, row.end());
  EXPECT_EQ(std::get<std::string>(fidelity->value), "phase");
}

TEST(TraceHash, SeesEverythingThatChangesAPrediction) {
  const auto trace = build_model("lenet5", 8);
  const auto changed = [&](auto&& change) {
    auto other = trace;
    other.layers.front().splits.emplace_back();
    const auto before = trace_hash(other);
    change(other.layers.front());
    return trace_hash(other) != before;
  };
  EXPECT_FALSE(changed([](Layer&) {}));
  EXPECT_TRUE(changed([](Layer& layer) { layer.groups = 2; }));
  EXPECT_TRUE(changed([](Layer& layer) { layer.needs_input_gradient = !layer.needs_input_gradient; }));
  EXPECT_TRUE(changed([](Layer& layer) { layer.splits[0].axis = SplitCurve::Axis::height; }));
  EXPECT_TRUE(changed([](Layer& layer) { layer.samples[0].seconds = {1}; }));
  EXPECT_TRUE(changed([](Layer& layer) { layer.kind = OpKind::other; }));
}

}  // namespace
}  // namespace tandem
