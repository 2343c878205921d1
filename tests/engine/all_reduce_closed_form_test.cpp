// All-reduces on the networks that they were made for: simulated time against closed forms to 1e-6, and bytes on every
// link against the textbook's. alpha of a step is the latency of its route's links and the overhead of a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/engine/simulate.hpp"

namespace tandem {
namespace {

constexpr double kBandwidth = 12.5e9;
constexpr double kLatency = 1e-6;  // one link
constexpr double kOverhead = 3e-6;
constexpr double kDirect = kLatency + kOverhead;        // alpha over one cable
constexpr double kSwitched = 2 * kLatency + kOverhead;  // alpha over a switch
constexpr std::int64_t kBytes = std::int64_t{64} * 64 * 9 * 1000;

struct Case {
  const char* topology;
  const char* algorithm;
};

RunResult run_all_reduce(const Network& network, const std::string& algorithm, std::int64_t bytes, double overhead,
                         std::int64_t chunk = 0) {
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make(algorithm);
  const auto shape = group_shape(network, in_order(network.devices()), devices_per_node(network));
  Op op;
  op.kind = Op::Kind::collective;
  op.name = algorithm;
  op.ranks = RankSet::range(0, network.devices());
  op.pieces = all_reduce_pieces(*plugin, shape, Bytes(bytes), 1, Bytes(chunk));
  StaticProgram program(network.devices(),
                        {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  ExecutorOptions options;
  options.step_overhead = Seconds(overhead);
  return run({{&program, in_order(network.devices()), Seconds(0), options, {}}}, network, mutated_options());
}

std::unique_ptr<Topology> build(const std::string& topology, double latency = kLatency) {
  return make_topology(topology, {1, BytesPerSecond(kBandwidth), Seconds(latency)});
}

double simulated(const Case& c, std::int64_t bytes = kBytes) {
  return run_all_reduce(*build(c.topology), c.algorithm, bytes, kOverhead).jobs[0].makespan.count();
}

void expect_time(const Case& c, double expected, std::int64_t bytes = kBytes) {
  const double time = simulated(c, bytes);
  EXPECT_NEAR(time, expected, 1e-6 * expected) << c.algorithm << " on " << c.topology;
  std::printf("%s on %s: %.9g s, closed form %.9g s\n", c.algorithm, c.topology, time, expected);
}

// Bytes by (from, to), with a switch as -1.
std::map<std::pair<int, int>, std::int64_t> bytes_of(const Network& network, const RunResult& result) {
  std::map<std::pair<int, int>, std::int64_t> bytes;
  const auto end = [&](int vertex) { return vertex < network.devices() ? vertex : -1; };
  for (const auto& use : result.links) {
    const auto& link = network.link(use.link);
    bytes[{end(link.from), end(link.to)}] += use.bytes;
  }
  return bytes;
}

// -------------------------------------------------------------------------------- hrr

int sigma(const std::string& exchange, int n) {
  if (exchange == "ring") return n - 1;
  return exchange == "direct" ? 1 : static_cast<int>(std::lround(std::log2(n)));
}

struct Rails {
  double mu = 1;
  double rho = 0;
};

// topologies.md 4.1, equal radices.
Rails equal_radices(int n, int k) {
  Rails rails;
  for (int u = 1; u < k; ++u) rails.mu += std::pow(n, -u);
  rails.rho = 1 - std::pow(n, -k);
  return rails;
}

TEST(Hrr, OneChunkTakesMeshAndRailsOneAfterTheOther) {
  struct Cube {
    int m, n, k;
    const char* topology;
  };
  for (const auto& cube : {Cube{8, 8, 1, "mesh-rail-cube:m=8,n=8"}, Cube{8, 8, 2, "mesh-rail-cube:m=8,n=8x8"},
                           Cube{4, 4, 2, "mesh-rail-cube:m=4,n=4x4"}, Cube{6, 2, 3, "mesh-rail-cube:m=6,n=2x2x2"}}) {
    for (const char* exchange : {"ring", "halving", "direct"}) {
      const auto [mu, rho] = equal_radices(cube.n, cube.k);
      const double alpha = 2 * cube.k * (kDirect + sigma(exchange, cube.n) * kSwitched);
      const double whole = static_cast<double>(kBytes) / cube.m / kBandwidth;
      const auto algorithm = fmt::format("hrr:rails={}", exchange);
      expect_time({cube.topology, algorithm.c_str()}, alpha + 2 * whole * (mu + rho));
    }
  }
}

TEST(Hrr, LoadsEveryMeshLinkAndRailAlike) {
  for (const char* exchange : {"ring", "halving", "direct"}) {
    const auto network = build("mesh-rail-cube:m=4,n=4x4");
    const auto bytes =
        bytes_of(*network, run_all_reduce(*network, fmt::format("hrr:rails={}", exchange), kBytes, kOverhead));
    const std::int64_t segment = kBytes / 4;
    int links = 0;
    for (const auto& [ends, carried] : bytes) {
      const auto [from, to] = ends;
      if (from < 0 || to < 0) {
        EXPECT_EQ(carried, 2 * (segment - segment / 16)) << exchange << ": rail of " << from << ", " << to;
      } else {
        // The move after the first level, a quarter of the segment, goes to the next position, and comes back.
        const int apart = ((to - from) % 4 + 4) % 4;
        EXPECT_EQ(carried, 2 * segment + (apart == 2 ? 0 : segment / 4)) << exchange << ": " << from << " to " << to;
      }
      ++links;
    }
    EXPECT_EQ(links, 64 * 3 + 2 * 64);
  }
}

// The busiest rails of topologies.md 4.1: rho of level l is the sum over turns of (1 - 1/n_l) over the radices before.
TEST(Hrr, MixedRadicesLoadTheLevelsUnequally) {
  const auto network = build("mesh-rail-cube:m=4,n=8x2");
  const auto bytes = bytes_of(*network, run_all_reduce(*network, "hrr", kBytes, kOverhead));
  const double segment = static_cast<double>(kBytes) / 4;
  const double level_1 = (1 - 1.0 / 8) * (1 + 1.0 / 2);
  const double level_2 = (1 - 1.0 / 2) * (1 + 1.0 / 8);
  for (int device = 0; device < network->devices(); ++device) {
    const double expected = 2 * segment * (device % 2 == 0 ? level_1 : level_2);
    EXPECT_EQ((bytes.at({device, -1})), expected) << device;
    EXPECT_EQ((bytes.at({-1, device})), expected) << device;
  }
}

TEST(Hrr, RingModulesTakeTurnsAroundTheRing) {
  const double whole = static_cast<double>(kBytes) / 4 / kBandwidth;
  const auto [mu, rho] = equal_radices(4, 2);
  expect_time({"mesh-rail-cube:m=4,n=4x4,module=ring", "hrr"},
              2 * (3 * (kDirect + whole) + kDirect + (mu - 1) * whole + 2 * 2 * kSwitched + rho * whole));
}

TEST(Hrr, LevelsOfOneModuleAreSkipped) {
  // Odd positions have no rails: their segments go to the even ones beside them, whose rails take two in turn. On the
  // way out the move runs beside the rails' first turn, which is shorter; on the way back it stands between the two.
  const double whole = static_cast<double>(kBytes) / 8 / kBandwidth;
  const double rail = 3 * kSwitched + 7.0 / 8 * whole;
  expect_time({"mesh-rail-cube:m=8,n=8x1", "hrr"}, 4 * (kDirect + whole) + 3 * rail);
  expect_time({"mesh-rail-cube:m=8,n=1x1", "hrr"}, 2 * (kDirect + whole));
}

TEST(Hrr, MoreRailPortsTakeAShareEach) {
  // Two levels and two ports: no moves, half of the segment on either rail at any moment.
  const double whole = static_cast<double>(kBytes) / 4 / kBandwidth;
  expect_time({"mesh-rail-cube:m=4,n=4x4,t=2", "hrr"},
              2 * (kDirect + whole + 2 * 2 * kSwitched + (1 - 1.0 / 16) * whole / 2));
  // Three levels and two ports: moves as with one port.
  const double sixth = static_cast<double>(kBytes) / 6 / kBandwidth;
  const auto [mu, rho] = equal_radices(2, 3);
  expect_time({"mesh-rail-cube:m=6,n=2x2x2,t=2", "hrr"},
              2 * (3 * (kDirect + kSwitched) + mu * sixth + rho * sixth / 2));
}

// topologies.md 5.2: rails replaced by rings of neighbours.
TEST(Hrr, OnAMeshOfToriTakesNeighboursOnly) {
  const double whole = static_cast<double>(kBytes) / 4 / kBandwidth;
  const auto [mu, rho] = equal_radices(4, 2);
  expect_time({"mesh-torus:m=4,dims=4x4", "hrr"}, 2 * (2 + 2 * 3) * kDirect + 2 * whole * (mu + rho));
}

TEST(Hrr, MeshClosRailsAreAMeshRailCubeOfOneLevel) {
  for (const char* exchange : {"ring", "halving", "direct"}) {
    const auto algorithm = fmt::format("hrr:rails={}", exchange);
    const double cube = simulated({"mesh-rail-cube:m=8,n=8", algorithm.c_str()});
    EXPECT_NEAR(simulated({"mesh-clos-rails:m=8,n=8", algorithm.c_str()}), cube, 1e-6 * cube) << exchange;
  }
}

// At most 5 % above 2S/(mB) max(mu, rho), and never below what any all-reduce over m ports takes, 2S(N-1)/(N m B). With
// several levels the time is below the formula, because that counts the moves between levels twice: the link to the
// next position carries the segment both ways round, but what moves on only once (the way back is the other link's).
// The busiest link has 1 + mu segments, not 2 mu: 0.9 of the formula for (4;4,4).
TEST(Hrr, ChunksOverlapMeshAndRails) {
  struct Cube {
    int m, n, k;
    const char* topology;
  };
  for (const auto& cube : {Cube{8, 8, 1, "mesh-rail-cube:m=8,n=8"}, Cube{4, 4, 2, "mesh-rail-cube:m=4,n=4x4"}}) {
    for (const char* exchange : {"direct", "halving", "ring"}) {
      const auto network = build(cube.topology, 0);
      const auto [mu, rho] = equal_radices(cube.n, cube.k);
      const double devices = network->devices();
      const double segment = static_cast<double>(kBytes) / cube.m / kBandwidth;
      const double time = run_all_reduce(*network, fmt::format("hrr:rails={}", exchange), kBytes, 0, kBytes / 64)
                              .jobs[0]
                              .makespan.count();
      EXPECT_GE(time, 2 * segment * (devices - 1) / devices * (1 - 1e-9)) << cube.topology << " " << exchange;
      EXPECT_GE(time, std::max(1 + mu, 2 * rho) * segment * (1 - 1e-9)) << cube.topology << " " << exchange;
      EXPECT_LE(time, 1.05 * 2 * segment * std::max(mu, rho)) << cube.topology << " " << exchange;
      std::printf("hrr in 64 chunks on %s, %s: %.4f of 2S/(mB) max(mu, rho), %.4f of the busiest link\n", cube.topology,
                  exchange, time / (2 * segment * std::max(mu, rho)), time / segment / std::max(1 + mu, 2 * rho));
    }
  }
}

// -------------------------------------------------------------------------------- tori

TEST(TorusRing, UsesAllPortsOfATorus) {
  const double n = kBytes / kBandwidth;
  expect_time({"torus:dims=8", "torus-ring"}, 2 * 7 * (kDirect + n / 2 / 8));
  expect_time({"torus:dims=6x6", "torus-ring"}, 2 * 2 * 5 * kDirect + 2 * n / 4 * 35 / 36);
  expect_time({"torus:dims=4x4x4", "torus-ring"}, 2 * 3 * 3 * kDirect + 2 * n / 6 * 63 / 64);
}

TEST(TorusRing, LoadsEveryLinkAlike) {
  const auto network = build("torus:dims=4x4x4");
  const auto bytes = bytes_of(*network, run_all_reduce(*network, "torus-ring", kBytes, kOverhead));
  EXPECT_EQ(bytes.size(), 64u * 6);
  for (const auto& [ends, carried] : bytes) EXPECT_EQ(carried, 2 * (kBytes / 6 * 63 / 64));
}

TEST(TwoRing, UsesAllPortsOfAGrid) {
  const double n = kBytes / kBandwidth;
  for (const auto& [topology, devices] : {std::pair{"torus:dims=3x3", 9}, std::pair{"torus:dims=8x8", 64},
                                          std::pair{"torus:dims=4x8", 32}, std::pair{"torus:dims=8x4", 32}}) {
    expect_time({topology, "two-ring"}, 2 * (devices - 1) * (kDirect + n / 4 / devices));
    const auto network = build(topology);
    const auto bytes = bytes_of(*network, run_all_reduce(*network, "two-ring", kBytes, kOverhead));
    EXPECT_EQ(bytes.size(), 4u * devices);  // every link is used
    for (const auto& [ends, carried] : bytes) EXPECT_EQ(carried, 2 * (devices - 1) * (kBytes / 4 / devices));
  }
}

// Hoefler et al., SC 2022: a step waits for the neighbours on other boards, behind a switch. Every cable carries its
// ring's share; those of a board one wide are two cables in one bundle.
TEST(TwoRing, UsesAllPortsOfAHammingMesh) {
  const double n = kBytes / kBandwidth;
  for (const char* topology : {"hamming-mesh:a=2,b=2,x=4,y=4", "hamming-mesh:a=4,b=4,x=2,y=2",
                               "hamming-mesh:a=2,b=4,x=2,y=4", "hamming-mesh:a=1,b=1,x=8,y=8"}) {
    const auto network = build(topology);
    const double devices = network->devices();
    expect_time({topology, "two-ring"}, 2 * (devices - 1) * (kSwitched + n / 4 / devices));
    const auto result = run_all_reduce(*network, "two-ring", kBytes, kOverhead);
    EXPECT_EQ(result.links.size(), network->links().size()) << topology;
    for (const auto& use : result.links) {
      EXPECT_EQ(use.bytes, network->link(use.link).width * std::llround(2 * (devices - 1) * kBytes / 4 / devices));
    }
  }
}

// -------------------------------------------------------------------------------- BCube

// Wang et al., NeurIPS 2018: 2 (N-1)/N n/((k+1) B), every port busy all along; direct exchange takes k+1 steps each
// way, halving (k+1) log2 n, ring (k+1)(n-1).
TEST(Bml, UsesAllPortsOfABCube) {
  struct Cube {
    int n, levels;
    const char* topology;
  };
  for (const auto& cube : {Cube{8, 2, "bcube:n=8,k=1"}, Cube{4, 3, "bcube:n=4,k=2"}, Cube{3, 2, "bcube:n=3,k=1"}}) {
    for (const char* exchange : {"direct", "halving", "ring"}) {
      if (cube.n == 3 && std::string(exchange) == "halving") continue;
      const double devices = std::pow(cube.n, cube.levels);
      const double share = (devices - 1) / devices * kBytes / kBandwidth / cube.levels;
      const auto algorithm = fmt::format("bml:exchange={}", exchange);
      expect_time({cube.topology, algorithm.c_str()}, 2 * (cube.levels * sigma(exchange, cube.n) * kSwitched + share));
      const auto network = build(cube.topology);
      const auto result = run_all_reduce(*network, algorithm, kBytes, kOverhead);
      EXPECT_EQ(result.links.size(), static_cast<std::size_t>(2 * cube.levels * devices));
      for (const auto& use : result.links) {
        EXPECT_EQ(use.bytes, std::llround(2 * (devices - 1) / devices * kBytes / cube.levels)) << algorithm;
      }
    }
  }
}

// -------------------------------------------------------------------------------- trees

TEST(DoubleBinaryTree, IsBoundByTheBusiestPortAndAFewLatencies) {
  // Acceptance: at its best number of chunks between 2n/B and 1.1 * 2n/B + 4 log2(p) alpha. A member with two children
  // in one tree takes half of the buffer from each, and half of the result from its parent in either tree.
  constexpr std::int64_t kLarge = 256'000'000;
  for (const int p : {4, 5, 8, 16, 27, 64}) {
    const auto network = star(p, kBandwidth, kLatency);
    double best = 1e9;
    int best_chunks = 0;
    for (const int chunks : {64, 128}) {
      const double time =
          run_all_reduce(*network, "double-binary-tree", kLarge, kOverhead, kLarge / chunks).jobs[0].makespan.count();
      if (time < best) best_chunks = chunks;
      best = std::min(best, time);
    }
    const double wire = 2.0 * kLarge / kBandwidth;
    EXPECT_GE(best, wire * (1 - 1e-9)) << p;
    EXPECT_LE(best, 1.1 * wire + 4 * std::log2(p) * kSwitched) << p;
    std::printf("double-binary-tree, p=%d, %d chunks: %.4f of 2n/B\n", p, best_chunks, best / wire);
  }
}

// -------------------------------------------------------------------------------- switches that add

// d cables from a rank to the root of the tree, K chunks: (K + 2d - 1) (alpha + S/(KB)). A switch has no overhead, so
// that a rank's step is the slowest, and only the first chunk's steps among switches are shorter.
TEST(ClosedFormInNetwork, TakesTheBufferOnceAndAFewChunks) {
  constexpr std::int64_t kLarge = 64'000'000;
  struct Tree {
    const char* topology;
    int workers, depth;
  };
  for (const auto& [topology, workers, depth] :
       {Tree{"star", 2, 1}, Tree{"star", 8, 1}, Tree{"star", 100, 1}, Tree{"leaf-spine:leaves=4,down=4", 16, 2},
        Tree{"leaf-spine:leaves=8,down=8,up=2", 64, 2}, Tree{"fat-tree:k=4", 16, 3}, Tree{"fat-tree:k=8", 128, 3}}) {
    const auto network = make_topology(topology, {workers, BytesPerSecond(kBandwidth), Seconds(kLatency)});
    for (const int chunks : {1, 2, 64}) {
      const double part = static_cast<double>(kLarge) / chunks / kBandwidth;
      for (const double overhead : {0.0, kOverhead}) {
        ExecutorOptions options;
        options.step_overhead = Seconds(overhead);
        options.reduce_rate = BytesPerSecond(0);
        const double time =
            all_reduce_time(*network, "in-network", Bytes(kLarge), options, workers, Bytes(kLarge / chunks));
        const double expected = (chunks + 2 * depth - 1) * (kLatency + part) + chunks * overhead;
        EXPECT_NEAR(time, expected, 1e-9 * expected) << topology << ", " << chunks << " chunks, overhead " << overhead;
        if (chunks == 64 && overhead == 0) {
          std::printf("in-network on %s, %d ranks, 64 chunks: %.4f of S/B\n", topology, workers,
                      time / (kLarge / kBandwidth));
        }
      }
    }
  }
}

TEST(ClosedFormInNetwork, OtherOperations) {
  constexpr std::int64_t kLarge = 64'000'000;
  const auto network = star(8, kBandwidth, kLatency);
  const double whole = static_cast<double>(kLarge) / kBandwidth;
  const auto time = [&](CollectiveOperation operation) {
    return collective_time(*network, "in-network", {operation, {}, Bytes(kLarge), 1, Bytes(0), 3}, 8);
  };
  EXPECT_NEAR(time(CollectiveOperation::reduce_scatter), 2 * kLatency + whole + whole / 8, 1e-9 * whole);
  EXPECT_NEAR(time(CollectiveOperation::all_gather), 2 * kLatency + whole / 8 + whole * 7 / 8, 1e-9 * whole);
  EXPECT_NEAR(time(CollectiveOperation::broadcast), 2 * kLatency + 2 * whole, 1e-9 * whole);
}

// The buffer once up and once down on every cable of the tree, and nothing on any other: not the sum of what lies
// below.
TEST(InNetwork, LoadsEveryCableOfTheTreeAlike) {
  for (const auto& [topology, cables] : {std::pair{"star:devices=8", 8u}, std::pair{"fat-tree:k=4", 16u + 8 + 4},
                                         std::pair{"leaf-spine:leaves=8,down=8,up=2", 64u + 8}}) {
    const auto network = build(topology);
    const auto result = run_collective(*network, "in-network",
                                       {CollectiveOperation::all_reduce, {}, Bytes(kBytes), 1, Bytes(kBytes / 4), 0},
                                       network->devices());
    EXPECT_EQ(result.links.size(), 2 * cables) << topology;
    for (const auto& use : result.links) EXPECT_EQ(use.bytes, kBytes) << topology;
  }
}

// An oversubscribed network halves what a ring gets across; a tree takes one of a leaf's uplinks, at full rate.
TEST(InNetwork, NeedsOneUplinkALeaf) {
  const auto time = [](const char* topology) {
    const auto network = build(topology, 0);
    return all_reduce_time(*network, "in-network", Bytes(kBytes), {}, 16, Bytes(kBytes / 64));
  };
  EXPECT_EQ(time("leaf-spine:leaves=4,down=4,up=1"), time("leaf-spine:leaves=4,down=4,up=4"));
}

// Software that adds slowly is a worker's, not a switch's.
TEST(InNetwork, AddsAtLineRate) {
  ExecutorOptions slow;
  slow.reduce_rate = BytesPerSecond(1e6);
  const auto network = star(4, kBandwidth, kLatency);
  const double time = all_reduce_time(*network, "in-network", Bytes(kBytes), slow);
  EXPECT_NEAR(time, 2 * (kLatency + kBytes / kBandwidth), 1e-9);
}

TEST(DoubleBinaryTree, OfOneByteCostsTwoLatenciesALevel) {
  for (const auto& [p, depth] : {std::pair{2, 1}, std::pair{4, 2}, std::pair{8, 3}, std::pair{64, 6}}) {
    const double time =
        run_all_reduce(*star(p, kBandwidth, kLatency), "double-binary-tree", 0, kOverhead).jobs[0].makespan.count();
    EXPECT_NEAR(time, 2 * depth * kSwitched, 1e-12) << p;
  }
}

}  // namespace
}  // namespace tandem
