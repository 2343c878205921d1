// Random failures against exact expectations of small networks and a table of values that others measured.
#include "platforms/random_failures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/platforms/oracle_table.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make(const std::string& text) {
  return make_topology(text, {});
}

// Within four standard errors of the mean over trials.
void expect_mean(const Spread& spread, double expected, int trials) {
  EXPECT_NEAR(spread.mean, expected, 4 * spread.deviation / std::sqrt(trials));
}

// All 2^6 sets of failed cables of a ring of six, each with its probability. What is left are paths; the mean length in
// a path of L devices is (L+1)/3, in the whole ring 9/5.
TEST(RandomFailures, RingOfSixEqualsTheSumOverAllSetsOfFailures) {
  constexpr double kShare = 0.2;
  double share = 0;
  double path = 0;
  double with_paths = 0;
  for (unsigned failed = 0; failed < 64; ++failed) {
    const int count = std::popcount(failed);
    const double probability = std::pow(kShare, count) * std::pow(1 - kShare, 6 - count);
    int largest = count == 0 ? 6 : 0;
    for (int first = 0; first < 6; ++first) {  // device first+1 begins a path where cable `first` failed
      int length = 0;
      while (count > 0 && (failed >> first & 1U) != 0 && length < 6) {
        ++length;
        if ((failed >> (first + length) % 6 & 1U) != 0) break;
      }
      largest = std::max(largest, length);
    }
    share += probability * largest / 6;
    if (largest < 2) continue;
    with_paths += probability;
    path += probability * (count == 0 ? 1.8 : (largest + 1) / 3.0);
  }
  const int trials = 4000;
  const auto impact = random_failures(*make("torus:dims=6"), {.links = kShare, .seed = 3, .trials = trials});
  EXPECT_DOUBLE_EQ(impact.healthy_path, 1.8);
  expect_mean(impact.failed_links, 6 * kShare, trials);
  expect_mean(impact.connected_share, share, trials);
  expect_mean(impact.mean_path, path / with_paths, trials);
  EXPECT_GT(impact.path_stretch.mean, 1.05);
}

TEST(RandomFailures, EachPlaneIsAFabricOfItsOwn) {
  // Only where both switches are gone, the devices stand alone.
  const int trials = 4000;
  const auto impact = random_failures(*make("star:devices=4,planes=2"), {.switches = 0.3, .seed = 1, .trials = trials});
  expect_mean(impact.failed_switches, 0.6, trials);
  expect_mean(impact.connected_share, 1 - 0.09 * 0.75, trials);
  EXPECT_DOUBLE_EQ(impact.mean_path.mean, 2);
  EXPECT_DOUBLE_EQ(impact.path_stretch.mean, 1);
}

TEST(RandomFailures, AllOrNothing) {
  const auto cube = make("mesh-rail-cube:m=8,n=8");
  const auto none = random_failures(*cube, {.trials = 3});
  EXPECT_EQ(none.connected_share.mean, 1);
  EXPECT_EQ(none.connected_share.deviation, 0);
  EXPECT_DOUBLE_EQ(none.path_stretch.mean, 1);
  EXPECT_NEAR(none.mean_path.mean, cube->characteristics().mean_path, 1e-12);
  // Modules without their rails: eight devices that are joined directly.
  const auto no_rails = random_failures(*cube, {.switches = 1, .trials = 3});
  EXPECT_EQ(no_rails.failed_switches.mean, 8);
  EXPECT_EQ(no_rails.connected_share.mean, 8.0 / 64);
  EXPECT_EQ(no_rails.mean_path.mean, 1);
  EXPECT_EQ(no_rails.path_stretch.mean, 1);
  const auto no_links = random_failures(*cube, {.links = 1, .trials = 3});
  EXPECT_EQ(no_links.failed_links.mean, 288);
  EXPECT_EQ(no_links.connected_share.mean, 1.0 / 64);
  EXPECT_TRUE(std::isnan(no_links.path_stretch.mean));
}

TEST(RandomFailures, TheSeedIsTheResult) {
  const auto tree = make("fat-tree:k=8");
  const FailureShares shares{.links = 0.05, .switches = 0.02, .seed = 7, .trials = 5};
  const auto once = random_failures(*tree, shares);
  const auto again = random_failures(*tree, shares);
  EXPECT_EQ(once.mean_path.mean, again.mean_path.mean);
  EXPECT_EQ(once.connected_share.mean, again.connected_share.mean);
  auto other = shares;
  other.seed = 8;
  EXPECT_NE(once.mean_path.mean, random_failures(*tree, other).mean_path.mean);
}

// One rail switch a position: between modules, equal positions are 2 links apart over their own rail and 4 over another
// one; different positions 3 over either of theirs, and 4 over a third. Summed over all sets of dead switches.
TEST(RandomFailures, DeadRailSwitchesEqualTheSumOverAllSets) {
  constexpr double kShare = 0.3;
  double path = 0;
  double share = 0;
  for (unsigned dead = 0; dead < 256; ++dead) {
    const int count = std::popcount(dead);
    const double probability = std::pow(kShare, count) * std::pow(1 - kShare, 8 - count);
    share += probability * (count == 8 ? 1.0 / 64 : 1);
    double sum = 0;  // from one device of each position to the others
    for (unsigned i = 0; i < 8; ++i) {
      for (unsigned j = 0; j < 8; ++j) {
        const bool i_dead = (dead >> i & 1U) != 0;
        const bool j_dead = (dead >> j & 1U) != 0;
        sum += 63 * (i == j ? (i_dead ? 4 : 2) : (i_dead && j_dead ? 4 : 3)) + (i == j ? 0 : 1);
      }
    }
    path += probability * (count == 8 ? 1 : sum / (8 * 511));
  }
  const int trials = 400;
  const auto impact = random_failures(*make("mesh-rail-cube:m=8,n=64"), {.switches = kShare, .trials = trials}, 64);
  EXPECT_NEAR(impact.connected_share.mean, share, 0.003);  // all eight dead: once in 15,000 trials
  expect_mean(impact.mean_path, path, trials);
}

// The table's paths are means over sampled pairs: one of them lies 0.005 below the healthy network's, which no failure
// can do where all devices stay connected. Accepted are 0.02 for that and four standard errors of its ten seeds.
TEST(RandomFailures, EqualTheMeasuredTable) {
  const auto rows = testing::oracle_rows("failure_oracles.csv");
  ASSERT_GE(rows.size(), 11U);
  for (const auto& row : rows) {
    for (const std::size_t column : {1U, 3U}) {
      if (row.size() <= column || row[column].empty()) continue;
      SCOPED_TRACE(row[0] + (column == 1 ? ", links" : ", switches"));
      FailureShares shares{.seed = 1, .trials = 20};
      (column == 1 ? shares.links : shares.switches) = 0.05;
      const auto impact = random_failures(*make(row[0]), shares);
      const double error = 4 * std::sqrt(1.0 / 10 + 1.0 / 20);
      EXPECT_NEAR(impact.connected_share.mean, std::stod(row[column]),
                  0.0001 + error * impact.connected_share.deviation);
      EXPECT_NEAR(impact.mean_path.mean, std::stod(row[column + 1]), 0.02 + error * impact.mean_path.deviation);
      EXPECT_GE(impact.path_stretch.mean, 1);
    }
  }
}

// A device of a fat-tree hangs on one cable: a share p of them is lost, and hardly ever an edge switch with all of its
// up ports (p^6).
TEST(RandomFailures, FatTreeLosesTheDevicesWhoseCableFails) {
  const int trials = 100;
  const auto impact = random_failures(*make("fat-tree:k=12"), {.links = 0.05, .trials = trials}, 16);
  expect_mean(impact.connected_share, 0.95, trials);
  EXPECT_NEAR(impact.connected_share.deviation, std::sqrt(0.05 * 0.95 / 432), 0.3 * std::sqrt(0.05 * 0.95 / 432));
}

}  // namespace
}  // namespace tandem
