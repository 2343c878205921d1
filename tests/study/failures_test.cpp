// Failures in simulation, by closed forms.
#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/study/collective_run.hpp"
#include "sim/study/machine.hpp"

namespace tandem {
namespace {

constexpr double kRate = 12.5e9;
constexpr double kAlpha = 500e-9;  // a link
constexpr std::int64_t kBytes = 4'000'000;

CollectiveBenchOptions bench(const std::string& topology, int ranks) {
  CollectiveBenchOptions options;
  options.cluster.topology = topology;
  options.cluster.ranks = ranks;
  return options;
}

double time_of(const CollectiveBenchOptions& options) {
  return CollectiveBench(options).run(Bytes(kBytes)).time.count();
}

// One cable of a ring of four is cut: one of the four neighbours is three links away, the other way round. Nothing
// shares a link with it, for the others all go forward; but each of the 2(p-1) steps waits for it.
TEST(Failures, ARingGoesTheOtherWayRound) {
  auto options = bench("torus:dims=4", 4);
  const double share = static_cast<double>(kBytes) / 4 / kRate;
  EXPECT_NEAR(time_of(options) / (6 * (kAlpha + share)), 1, 1e-9);
  options.cluster.failures = parse_failures("link:device 1 (1) -> device 2 (2)");
  EXPECT_NEAR(time_of(options) / (6 * (3 * kAlpha + share)), 1, 1e-9);
}

// On a cube of eight, the direct exchange of a module without the cable between 0 and 1 sends that pair's part over two
// other cables, which then carry two parts: the step takes twice as long.
TEST(Failures, ADetourSharesTheCablesOfOthers) {
  auto options = bench("mesh-rail-cube:m=8,n=1", 8);
  options.algorithm = "direct";
  const double part = static_cast<double>(kBytes) / 8 / kRate;
  EXPECT_NEAR(time_of(options) / (2 * (kAlpha + part)), 1, 1e-9);
  options.cluster.failures = parse_failures("link:0");
  const double degraded = time_of(options);
  EXPECT_GT(degraded, 2 * (kAlpha + 2 * part) * (1 - 1e-9));
  EXPECT_LT(degraded, 2 * (2 * kAlpha + 2 * part) * (1 + 1e-9));
}

// The healthy time is that of all ranks; roots keep their devices.
TEST(Failures, TheHealthyTimeStandsBeside) {
  auto options = bench("torus:dims=4", 4);
  const auto healthy = CollectiveBench(options).run(Bytes(kBytes));
  EXPECT_EQ(healthy.healthy, healthy.time);
  options.cluster.failures = parse_failures("link:device 1 (1) -> device 2 (2)");
  const auto degraded = CollectiveBench(options).run(Bytes(kBytes));
  EXPECT_EQ(degraded.healthy, healthy.time);
  EXPECT_GT(degraded.time, healthy.time);

  // A chain of eight from its root on: the root's place among the ranks changes, its place in the ring does not.
  auto chain = bench("torus:dims=8", 8);
  chain.operation = CollectiveOperation::broadcast;
  chain.root = 5;
  const double all = time_of(chain);
  chain.cluster.ranks = 7;
  chain.cluster.lost_ranks = {2};
  chain.root = 4;
  EXPECT_EQ(CollectiveBench(chain).run(Bytes(kBytes)).healthy.count(), all);
}

// Without one of its ranks a ring of eight is a ring of seven on the same devices.
TEST(Failures, ARankLeavesTheRing) {
  auto options = bench("star", 7);
  options.cluster.lost_ranks = {3};
  EXPECT_NEAR(time_of(options) / time_of(bench("star", 7)), 1, 1e-12);
  const auto machine = make_machine(options.cluster, "packed", *Registry<CollectiveAlgorithm>::instance().make("ring"));
  std::vector<int> devices;
  for (const auto device : machine.placement) devices.push_back(device.value);
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(without_failures(options.cluster).ranks, 8);
}

// hrr on one level, ring exchange on n rails: 2 (alpha + S/(hB)) within the module, where h of m positions hold the
// buffer, and 2 (n-1) (2 alpha + S/(n h B)) on the rails.
double hrr_time(int n, int holders) {
  const double segment = static_cast<double>(kBytes) / holders / kRate;
  return 2 * (kAlpha + segment) + 2 * (n - 1) * (2 * kAlpha + segment / n);
}

// topologies.md, faults: the segment of a failed rail goes to the other rails, which takes m/(m-1) times as long.
TEST(Failures, TheSegmentOfARailGoesToTheOthers) {
  auto options = bench("mesh-rail-cube:m=5,n=4", 20);
  options.algorithm = "hrr:rails=ring";
  const double healthy = time_of(options);
  EXPECT_NEAR(healthy / hrr_time(4, 5), 1, 1e-9);
  for (const char* failure : {"switch:rail switch (*;2)", "link:device 7 (1;2) -> rail switch (*;2)"}) {
    options.cluster.failures = parse_failures(failure);
    EXPECT_NEAR(time_of(options) / hrr_time(4, 4), 1, 1e-9) << failure;
  }
  options.cluster.failures = parse_failures("switch:rail switch (*;2),switch:rail switch (*;0)");
  EXPECT_NEAR(time_of(options) / hrr_time(4, 3), 1, 1e-5);  // bytes are no multiple of three
}

TEST(Failures, ALostRankLeavesItsSegmentToOtherPositions) {
  auto options = bench("mesh-rail-cube:m=5,n=4", 19);
  options.algorithm = "hrr:rails=ring";
  options.cluster.lost_ranks = {7};
  EXPECT_NEAR(time_of(options) / hrr_time(4, 4), 1, 1e-9);
}

// topologies.md, faults: m-2 detours of two cables for a cut one. Each takes its part of the segment in a step before
// the exchange, and hands it on in a step behind.
TEST(Failures, ACutMeshCableIsSharedOutAmongTheOthers) {
  auto options = bench("mesh-rail-cube:m=5,n=4", 20);
  options.algorithm = "hrr:rails=ring";
  options.cluster.failures = parse_failures("link:device 0 (0;0) -> device 1 (0;1)");
  const double segment = static_cast<double>(kBytes) / 5 / kRate;
  EXPECT_NEAR(time_of(options) / (hrr_time(4, 5) + 2 * (kAlpha + segment / 3)), 1, 1e-6);  // whole bytes
  options.cluster.failures = parse_failures("link:device 0 (0;0) -> device 1 (0;1),switch:rail switch (*;4)");
  const double fourth = static_cast<double>(kBytes) / 4 / kRate;
  EXPECT_NEAR(time_of(options) / (hrr_time(4, 4) + 2 * (kAlpha + fourth / 3)), 1, 1e-6);
}

// Routes go round: over another position's cables or rail, which then carry more.
TEST(Failures, RotatingRailsGoRoundWhatTheyCannotLeaveOut) {
  for (const auto& [topology, ranks] :
       {std::pair{"mesh-rail-cube:m=5,n=4", 20}, std::pair{"mesh-rail-cube:m=4,n=4x4", 64}}) {
    for (const char* algorithm : {"hrr", "hrr:rails=ring", "hrr:rails=direct"}) {
      auto options = bench(topology, ranks);
      options.algorithm = algorithm;
      const double healthy = time_of(options);
      for (const char* failure : {"link:0", "link:1"}) {
        options.cluster.failures = parse_failures(failure);
        const double degraded = time_of(options);
        EXPECT_GT(degraded, healthy) << topology << " " << algorithm;
        EXPECT_LT(degraded, 3 * healthy) << topology << " " << algorithm;
        std::printf("%s on %s without %s: %.4f of the healthy time\n", algorithm, topology, failure,
                    degraded / healthy);
      }
    }
  }
  auto options = bench("mesh-rail-cube:m=4,n=4x4", 64);
  options.algorithm = "hrr";
  const double healthy = time_of(options);
  options.cluster.failures = parse_failures("switch:rail switch (0,*;0)");
  const double degraded = time_of(options);
  EXPECT_GT(degraded, healthy);
  std::printf("hrr on two levels without a rail switch: %.4f of the healthy time\n", degraded / healthy);
}

TEST(Failures, ATreeOfSwitchesIsLaidAroundThem) {
  auto options = bench("leaf-spine:leaves=4,down=4,spines=4,up=4", 16);
  options.algorithm = "in-network";
  const double healthy = time_of(options);
  EXPECT_NEAR(healthy / (4 * (kAlpha + kBytes / kRate)), 1, 1e-9);
  options.cluster.failures = parse_failures("switch:spine 0,link:leaf 2 -> spine 1");
  EXPECT_NEAR(time_of(options) / healthy, 1, 1e-9);
  options.cluster.failures = parse_failures("switch:leaf 3");
  EXPECT_THROW((void)time_of(options), Error);
}

TEST(Failures, AreSaidWhereNoWayIsLeft) {
  auto options = bench("star", 4);
  options.cluster.failures = parse_failures("switch:switch");
  try {
    (void)time_of(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
    EXPECT_NE(std::string(error.what()).find("there is no way from device 0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tandem
