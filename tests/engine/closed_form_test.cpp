// Simulated collectives against their closed forms, to 1e-9 relative, from 1 byte to 1 GB.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/engine/simulate.hpp"

namespace tandem {
namespace {

constexpr double kBandwidth = 12.5e9;
constexpr double kLatency = 1e-6;  // one link; a star's route has two
constexpr double kOverhead = 3e-6;
constexpr double kAlpha = 2 * kLatency + kOverhead;
const std::vector<std::int64_t> kSizes{1, 100, 4096, 1'000'003, 1'000'000'000};

class ClosedForm : public ::testing::TestWithParam<int> {};

double ceil_div(double n, double p) {
  return std::ceil(n / p);
}

double on_star(const std::string& algorithm, int p, std::int64_t n) {
  return all_reduce_time(fmt::format("star"), algorithm, p, Bytes(n), kBandwidth, kLatency, kOverhead);
}

double on_star(CollectiveOperation operation, const std::string& algorithm, int p, std::int64_t n,
               std::int64_t chunk = 0, int root = 0) {
  ExecutorOptions options;
  options.step_overhead = Seconds(kOverhead);
  return collective_time(*star(p, kBandwidth, kLatency), algorithm, {operation, {}, Bytes(n), 1, Bytes(chunk), root}, p,
                         options);
}

#define EXPECT_CLOSE(actual, expected) EXPECT_NEAR(actual, expected, 1e-9 * (expected)) << "p=" << p << " n=" << n

TEST_P(ClosedForm, Ring) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    EXPECT_CLOSE(on_star("ring", p, n), 2 * (p - 1) * (kAlpha + ceil_div(n, p) / kBandwidth));
  }
}

TEST_P(ClosedForm, Direct) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    EXPECT_CLOSE(on_star("direct", p, n), 2 * (kAlpha + (p - 1) * ceil_div(n, p) / kBandwidth));
  }
}

TEST_P(ClosedForm, RingOfOneHalf) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    const double expected = (p - 1) * (kAlpha + ceil_div(n, p) / kBandwidth);
    EXPECT_CLOSE(on_star(CollectiveOperation::reduce_scatter, "ring", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::all_gather, "ring", p, n), expected);
  }
}

TEST_P(ClosedForm, AllAtOnce) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    const double expected = kAlpha + (p - 1) * ceil_div(n, p) / kBandwidth;
    EXPECT_CLOSE(on_star(CollectiveOperation::reduce_scatter, "direct", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::all_gather, "direct", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::all_to_all, "direct", p, n), expected);
  }
}

TEST_P(ClosedForm, PairwiseAllToAll) {
  const int p = GetParam();
  // Multiples of p: rounds of unequal blocks run ahead of each other.
  for (const std::int64_t part : {1, 4096, 10'000'000}) {
    const auto n = p * part;
    EXPECT_CLOSE(on_star(CollectiveOperation::all_to_all, "pairwise", p, n),
                 (p - 1) * (kAlpha + static_cast<double>(part) / kBandwidth));
  }
}

TEST_P(ClosedForm, BinomialBroadcast) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    for (const int root : {0, p - 1}) {
      EXPECT_CLOSE(on_star(CollectiveOperation::broadcast, "tree", p, n, 0, root),
                   std::ceil(std::log2(p)) * (kAlpha + static_cast<double>(n) / kBandwidth));
    }
  }
}

TEST_P(ClosedForm, ChainBroadcast) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    EXPECT_CLOSE(on_star(CollectiveOperation::broadcast, "ring", p, n),
                 (p - 1) * (kAlpha + static_cast<double>(n) / kBandwidth));
  }
}

TEST_P(ClosedForm, PipelinedChainBroadcast) {
  const int p = GetParam();
  for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{10'000'000}}) {
    for (const int chunks : {2, 10, 100}) {
      const auto n = chunk * chunks;
      EXPECT_CLOSE(on_star(CollectiveOperation::broadcast, "ring", p, n, chunk, 1),
                   (p - 1 + chunks - 1) * (kAlpha + static_cast<double>(chunk) / kBandwidth));
    }
  }
}

TEST_P(ClosedForm, FlatGatherAndScatterAreBoundByTheRootsPort) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    const double expected = kAlpha + (static_cast<double>(n) - ceil_div(n, p)) / kBandwidth;  // the root keeps a part
    EXPECT_CLOSE(on_star(CollectiveOperation::gather, "direct", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::scatter, "direct", p, n), expected);
  }
}

class PowerOfTwoClosedForm : public ::testing::TestWithParam<int> {};

TEST_P(PowerOfTwoClosedForm, HalvingDoubling) {
  const int p = GetParam();
  for (const std::int64_t n : {std::int64_t{64}, std::int64_t{4096}, std::int64_t{64'000'000}, std::int64_t{1} << 30}) {
    const double steps = std::bit_width(static_cast<unsigned>(p)) - 1;
    EXPECT_CLOSE(on_star("halving-doubling", p, n), 2 * steps * kAlpha + 2.0 * (p - 1) / p * n / kBandwidth);
  }
}

TEST_P(PowerOfTwoClosedForm, LogarithmicRounds) {
  const int p = GetParam();
  const double steps = std::bit_width(static_cast<unsigned>(p)) - 1;
  for (const std::int64_t n : {std::int64_t{64}, std::int64_t{64'000'000}}) {
    const double expected = steps * kAlpha + static_cast<double>(p - 1) / p * n / kBandwidth;
    EXPECT_CLOSE(on_star(CollectiveOperation::reduce_scatter, "halving-doubling", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::all_gather, "halving-doubling", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::gather, "tree", p, n), expected);
    EXPECT_CLOSE(on_star(CollectiveOperation::scatter, "tree", p, n, 0, p - 1), expected);
  }
}

TEST_P(ClosedForm, ParameterServerOnItsOwnHost) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    EXPECT_CLOSE(on_star("parameter-server", p, n), 2 * (kAlpha + static_cast<double>(p) * n / kBandwidth));
  }
}

TEST_P(ClosedForm, ParameterServerOnAWorkersHost) {
  const int p = GetParam();
  for (const auto n : kSizes) {
    EXPECT_CLOSE(on_star("parameter-server:colocated=yes", p, n),
                 2 * (kAlpha + static_cast<double>(p - 1) * n / kBandwidth));
  }
}

TEST_P(ClosedForm, HierarchicalIsTheSumOfItsPhases) {
  const int nodes = GetParam();
  // Multiples of all parts: unequal parts would make the four rings between nodes unequal.
  for (const std::int64_t n : {std::int64_t{4} * nodes, std::int64_t{4000} * nodes, std::int64_t{4'000'000} * nodes}) {
    // 4 devices a node, one 25 Gbit/s NIC shared by 4 parallel rings between nodes.
    ClusterOptions options;
    options.topology = "star";
    options.ranks = 4 * nodes;
    options.devices_per_node = 4;
    options.nics_per_node = 1;
    options.link_bandwidth = BytesPerSecond(3.125e9);
    options.link_latency = Seconds(kLatency);
    options.intra_bandwidth = BytesPerSecond(100e9);
    options.intra_latency = Seconds(2e-7);
    const Cluster cluster(options);
    const int p = nodes;
    const double intra_alpha = 2 * 2e-7 + kOverhead;
    const double inter_alpha = 2 * 2e-7 + 2 * kLatency + kOverhead;
    const double intra = 2 * 3 * (intra_alpha + n / 4.0 / 100e9);
    const double inter = 2 * (nodes - 1) * (inter_alpha + 4.0 * n / 4 / nodes / 3.125e9);
    EXPECT_CLOSE(all_reduce_time(cluster, "hierarchical", Bytes(n), kOverhead), intra + inter);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ClosedForm, ::testing::Values(2, 3, 5, 8, 16, 64));
INSTANTIATE_TEST_SUITE_P(Ranks, PowerOfTwoClosedForm, ::testing::Values(2, 8, 16, 64));

TEST(ClosedFormBlueConnect, OnATorusIsTheSumOfItsRings) {
  const double n = 48e6;
  const int p = 12;
  const double time = all_reduce_time("torus:dims=4x3", "blueconnect:exchange=ring", p, Bytes(48'000'000), kBandwidth,
                                      kLatency, kOverhead);
  const double alpha = kLatency + kOverhead;
  EXPECT_CLOSE(time, 2 * 3 * (alpha + n / 4 / kBandwidth) + 2 * 2 * (alpha + n / 4 / 3 / kBandwidth));
}

TEST(ClosedFormBlueConnect, RotatedOverSixChannelsUsesAllPortsOfATorus) {
  const std::int64_t n = 64 * 6 * 100'000;
  const auto torus = make_topology("torus:dims=4x4x4", {64, BytesPerSecond(kBandwidth), Seconds(kLatency)});
  const double time = all_reduce_time(*torus, "blueconnect:rotate=yes", Bytes(n), ExecutorOptions{}, 64, Bytes(0), 6);
  // Every channel has links of its own at every moment: a sixth of the data, three rings of four each way.
  const double part = n / 6.0;
  double expected = 0;
  for (const double share : {4.0, 16.0, 64.0}) expected += 2 * 3 * (kLatency + part / share / kBandwidth);
  EXPECT_NEAR(time, expected, 1e-9 * expected);
}

TEST(ClosedFormBlueConnect, OnMeshRailCubeIsMeshPlusRail) {
  const double n = 64e6;
  const int p = 64;
  const double time =
      all_reduce_time("mesh-rail-cube:m=8,n=8", "blueconnect", p, Bytes(64'000'000), kBandwidth, kLatency, kOverhead);
  // One direct exchange over the mesh (S/8 a link), three halving steps on the rail ((1-1/8) S/8), and back.
  const double mesh = kLatency + kOverhead + n / 8 / kBandwidth;
  const double rail = 3 * kAlpha + 7.0 / 8 * n / 8 / kBandwidth;
  EXPECT_CLOSE(time, 2 * (mesh + rail));
}

TEST(ClosedFormBlueConnect, HalvesOnATorusAreHalves) {
  const double n = 48e6;
  const int p = 12;
  const auto torus = make_topology("torus:dims=4x3", {p, BytesPerSecond(kBandwidth), Seconds(kLatency)});
  for (const auto operation : {CollectiveOperation::reduce_scatter, CollectiveOperation::all_gather}) {
    const double time =
        collective_time(*torus, "blueconnect:exchange=ring", {operation, {}, Bytes(48'000'000), 1, Bytes(0), 0}, p);
    EXPECT_CLOSE(time, 3 * (kLatency + n / 4 / kBandwidth) + 2 * (kLatency + n / 4 / 3 / kBandwidth));
  }
}

TEST(ClosedFormPlanes, PParallelFabricsDivideTheBandwidthTerm) {
  const double n = 64e6;
  const int p = 8;
  const double time = all_reduce_time("star:planes=4", "ring", p, Bytes(64'000'000), kBandwidth, kLatency, 0);
  EXPECT_CLOSE(time, 2 * 7 * (2 * kLatency + n / 8 / (4 * kBandwidth)));
}

TEST(ClosedFormRates, ReducingAndCopyingAreChargedToTheReceiver) {
  const double n = 8e6;
  const int p = 8;
  ExecutorOptions options;
  options.reduce_rate = BytesPerSecond(5e9);
  options.copy_rate = BytesPerSecond(20e9);
  const auto cluster = star(p, kBandwidth, kLatency);
  const double time = all_reduce_time(*cluster, "ring", Bytes(8'000'000), options);
  const double part = n / p;
  EXPECT_CLOSE(
      time, 7 * (2 * kLatency + part / kBandwidth + part / 5e9) + 7 * (2 * kLatency + part / kBandwidth + part / 20e9));
}

// A parameter server adds pushes one after another: the last of p equal pushes that arrive together waits for p adds.
TEST(ClosedFormRates, ParameterServerIsAFifoServer) {
  const double n = 1e6;
  const int p = 5;
  ExecutorOptions options;
  options.reduce_rate = BytesPerSecond(1e9);
  const auto cluster = star(p + 1, kBandwidth, kLatency);
  const double time = all_reduce_time(*cluster, "parameter-server", Bytes(1'000'000), options, p);
  EXPECT_CLOSE(time, 2 * (2 * kLatency + p * n / kBandwidth) + p * n / 1e9);
}

TEST(ClosedFormChunks, PipeliningOverlapsThePhasesOfABlueConnect) {
  // alpha = 0, C chunks: mesh RS, rail RS, rail AG, mesh AG are four stages; each pair shares its links.
  const std::int64_t n = 64'000'000;
  const double whole = all_reduce_time("mesh-rail-cube:m=8,n=8", "blueconnect", 64, Bytes(n), kBandwidth, 0, 0);
  const double mesh = static_cast<double>(n) / 8 / kBandwidth;
  const double rail = 7.0 / 8 * mesh;
  EXPECT_NEAR(whole, 2 * (mesh + rail), 1e-9 * whole);
  const double piped =
      all_reduce_time("mesh-rail-cube:m=8,n=8", "blueconnect", 64, Bytes(n), kBandwidth, 0, 0, Bytes(n / 64));
  EXPECT_GE(piped, 2 * mesh * (1 - 1e-9));  // the mesh links must carry 2 S/m each
  EXPECT_LT(piped, 2 * mesh * 1.10);
}

TEST(ClosedFormEdges, OneRankAndNoBytes) {
  for (const auto& name : Registry<CollectiveAlgorithm>::instance().names()) {
    const auto algorithm = Registry<CollectiveAlgorithm>::instance().make(name);
    for (const auto operation : collective_operations()) {
      if (!algorithm->supports(operation) || algorithm->servers(1) > 0) continue;
      EXPECT_EQ(on_star(operation, name, 1, 1000), 0) << to_text(operation) << " " << name;
      if (name == "two-ring") continue;  // takes grids only
      EXPECT_GT(on_star(operation, name, 4, 0), 0) << to_text(operation) << " " << name << ": alpha is paid";
    }
  }
}

}  // namespace
}  // namespace tandem
