// The spreadsheet's answer against the textbook's formulas; no simulation.
#include "sim/estimate/alpha_beta.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "platforms/topology.hpp"
#include "sim/collectives/collective.hpp"

namespace tandem {
namespace {

constexpr double kBandwidth = 12.5e9;
constexpr double kLatency = 1e-6;  // one link
constexpr double kOverhead = 3e-6;

double estimate(const std::string& topology, const std::string& algorithm, int workers, std::int64_t bytes,
                AlphaBetaOptions options = {Seconds(kOverhead)}, int channels = 1) {
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make(algorithm);
  const int members = workers + plugin->servers(workers);
  const auto network = make_topology(topology, {members, BytesPerSecond(kBandwidth), Seconds(kLatency)});
  std::vector<DeviceId> devices;
  for (int d = 0; d < workers; ++d) devices.push_back(DeviceId{d});
  const auto shape = group_shape(*network, devices, 1);
  for (int d = workers; d < members; ++d) devices.push_back(DeviceId{d});
  return alpha_beta_time(all_reduce_pieces(*plugin, shape, Bytes(bytes), channels, Bytes(0)), *network, devices,
                         options)
      .count();
}

void expect_close(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-12 * expected);
}

TEST(AlphaBeta, IsTheTextbooksOnAStar) {
  const double alpha = 2 * kLatency + kOverhead;
  for (const int p : {2, 3, 8, 100}) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1'000'003}, std::int64_t{1'000'000'000}}) {
      const double part = std::ceil(static_cast<double>(n) / p);
      const auto whole = static_cast<double>(n);
      expect_close(estimate("star", "ring", p, n), 2 * (p - 1) * (alpha + part / kBandwidth));
      expect_close(estimate("star", "parameter-server", p, n), 2 * (alpha + p * whole / kBandwidth));
      EXPECT_NEAR(estimate("star", "direct", p, n), 2 * (alpha + (p - 1) * part / kBandwidth), p / kBandwidth);
    }
  }
  expect_close(estimate("star", "halving-doubling", 8, 64'000), 2 * 3 * alpha + 2 * 7.0 / 8 * 64'000 / kBandwidth);
}

TEST(AlphaBeta, OneRankAndNoBytes) {
  EXPECT_EQ(estimate("star", "ring", 1, 1000), 0);
  expect_close(estimate("star", "ring", 4, 0), 6 * (2 * kLatency + kOverhead));
}

TEST(AlphaBeta, FactorsActOnTheLinksOnly) {
  const double part = 1e6 / kBandwidth;
  expect_close(estimate("star", "ring", 4, 4'000'000, {Seconds(kOverhead), 0.5, 1}),
               6 * (2 * kLatency + kOverhead + 2 * part));
  expect_close(estimate("star", "ring", 4, 4'000'000, {Seconds(kOverhead), 1, 10}),
               6 * (20 * kLatency + kOverhead + part));
}

// Nothing is shared but ports: a tree with a quarter of the up links is as good as a full one.
TEST(AlphaBeta, KnowsNoContentionInside) {
  EXPECT_EQ(estimate("fat-tree:k=8", "direct", 64, 1 << 20),
            estimate("fat-tree:k=8,oversubscription=4", "direct", 64, 1 << 20));
}

TEST(AlphaBeta, ChannelsShareThePorts) {
  expect_close(estimate("star", "ring", 4, 8'000'000, {Seconds(kOverhead)}, 2),
               estimate("star", "ring", 4, 8'000'000, {Seconds(kOverhead)}, 1));
}

// The spreadsheet's chunks: the first takes all its steps, and each behind it what holds it up most.
TEST(AlphaBeta, ChunksFollowEachOther) {
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make("ring");
  const auto network = make_topology("star", {8, BytesPerSecond(kBandwidth), Seconds(kLatency)});
  std::vector<DeviceId> devices;
  for (int d = 0; d < 8; ++d) devices.push_back(DeviceId{d});
  const auto shape = group_shape(*network, devices, 1);
  const double alpha = 2 * kLatency + kOverhead;
  const double chunk = 1e6 / kBandwidth;
  const double half = 7 * (alpha + chunk / 8);
  expect_close(alpha_beta_time(all_reduce_pieces(*plugin, shape, Bytes(10'000'000), 1, Bytes(1'000'000)), *network,
                               devices, {Seconds(kOverhead)})
                   .count(),
               2 * half + 9 * std::max(half, 14 * chunk / 8));
}

}  // namespace
}  // namespace tandem
