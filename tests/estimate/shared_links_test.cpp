// The analytic fidelity's estimate of a collective against closed forms; no simulation.
#include "sim/estimate/shared_links.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "platforms/topology.hpp"
#include "sim/collectives/collective.hpp"

namespace tandem {
namespace {

constexpr double kBandwidth = 12.5e9;
constexpr double kLatency = 1e-6;  // one link
constexpr double kOverhead = 3e-6;
constexpr double kAlpha = 2 * kLatency + kOverhead;  // of a star's route

CollectiveEstimate estimate(const std::string& topology, const std::string& algorithm, int workers,
                            const CollectiveRequest& described, AlphaBetaOptions options = {Seconds(kOverhead)}) {
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make(algorithm);
  const auto network = make_topology(topology, {workers, BytesPerSecond(kBandwidth), Seconds(kLatency)});
  std::vector<DeviceId> devices;
  for (int d = 0; d < workers; ++d) devices.push_back(DeviceId{d});
  auto request = described;
  request.shape = group_shape(*network, devices, 1);
  return collective_estimate(collective_pieces(*plugin, request), *network, devices, options);
}

CollectiveRequest of(CollectiveOperation operation, std::int64_t bytes, std::int64_t chunk = 0, int channels = 1) {
  return {operation, {}, Bytes(bytes), channels, Bytes(chunk), 0};
}

void expect_close(Seconds actual, double expected, double relative = 1e-9) {
  EXPECT_NEAR(actual.count(), expected, relative * expected);
}

// On a ring of seven every device sends one block each way over one, two and three hops, so that every link carries
// 1 + 2 + 3 blocks.
TEST(SharedLinks, LinksInsideTheNetworkToo) {
  const double block = 1e6 / kBandwidth;
  expect_close(estimate("torus:dims=7", "direct", 7, of(CollectiveOperation::all_to_all, 7'000'000)).time,
               3 * kLatency + kOverhead + 6 * block);
  // 28 blocks of each of four devices behind one up port.
  expect_close(
      estimate("fat-tree:k=8,oversubscription=4", "direct", 32, of(CollectiveOperation::all_to_all, 32'000'000)).time,
      6 * kLatency + kOverhead + 4 * 28 * block);
}

// A chain of 8: the first chunk takes seven hops, each of the nine behind it one more. A tree's root sends every chunk
// three times.
TEST(SharedLinks, ChunksOfABroadcast) {
  const double chunk = 1e6 / kBandwidth;
  const auto request = of(CollectiveOperation::broadcast, 10'000'000, 1'000'000);
  expect_close(estimate("star", "ring", 8, request).time, (7 + 9) * (kAlpha + chunk));
  expect_close(estimate("star", "tree", 8, request).time, 10 * 3 * (kAlpha + chunk));
}

// Reduce-scatter of one chunk beside the all-gather of the one before, in step: both use all ports, so that messages
// take twice as long. The first reduce-scatter and the last all-gather are alone.
TEST(SharedLinks, ChunksOfARing) {
  for (const int p : {4, 8, 30}) {
    for (const int chunks : {2, 10, 200}) {
      const double part = 1e6 / p / kBandwidth;
      const auto request = of(CollectiveOperation::all_reduce, std::int64_t{1'000'000} * chunks, 1'000'000);
      expect_close(estimate("star", "ring", p, request).time,
                   (p - 1) * (2 * (kAlpha + part) + (chunks - 1) * (kAlpha + 2 * part)), 2e-5);  // a byte a part
    }
  }
}

// More chunks than are looked at: what is not, follows at the same pace. (Of 8 channels, 16 parts of steps each.)
TEST(SharedLinks, ManyChunks) {
  const int p = 32;
  const int chunks = 2000;
  const double part = 320'000.0 / p / kBandwidth;
  const auto request = of(CollectiveOperation::all_reduce, std::int64_t{8} * 320'000 * chunks, 320'000, 8);
  expect_close(estimate("star", "ring", p, request).time,
               (p - 1) * (2 * (kAlpha + 8 * part) + (chunks - 1) * (kAlpha + 16 * part)), 1e-6);
}

TEST(SharedLinks, CountsWhatLinksCarry) {
  const auto result = estimate("star", "ring", 4, of(CollectiveOperation::all_reduce, 8'000'000, 4'000'000));
  EXPECT_EQ(result.bytes, 2 * 3 * 8'000'000);
  ASSERT_EQ(result.loads.size(), 8u);  // up and down links
  for (const auto& load : result.loads) {
    EXPECT_EQ(load.bytes, 2 * 3 * 2'000'000);
    EXPECT_EQ(load.messages, 2 * 2 * 3);  // chunks x halves x steps
  }
}

TEST(SharedLinks, NothingToDo) {
  EXPECT_EQ(collective_estimate({}, *make_topology("star", {2, BytesPerSecond(1), Seconds(0)}), {}, {}).time,
            Seconds(0));
  EXPECT_EQ(estimate("star", "ring", 1, of(CollectiveOperation::all_reduce, 1000)).time, Seconds(0));
  expect_close(estimate("star", "ring", 4, of(CollectiveOperation::all_reduce, 0)).time, 6 * kAlpha);
}

}  // namespace
}  // namespace tandem
