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

// Without one of its ranks a ring of eight is a ring of seven on the same devices.
TEST(Failures, ARankLeavesTheRing) {
  auto options = bench("star", 7);
  options.cluster.lost_ranks = {3};
  EXPECT_NEAR(time_of(options) / time_of(bench("star", 7)), 1, 1e-12);
  const auto machine = make_machine(options.cluster, "packed", 0);
  std::vector<int> devices;
  for (const auto device : machine.placement) devices.push_back(device.value);
  EXPECT_EQ(devices, (std::vector<int>{0, 1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(without_failures(options.cluster).ranks, 8);
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
