// A collective alone: its sizes, and what its options reach.
#include "sim/study/collective_run.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

std::vector<std::int64_t> sizes(std::int64_t first, std::int64_t last, double factor) {
  std::vector<std::int64_t> counts;
  for (const auto size : size_range(Bytes(first), Bytes(last), factor)) counts.push_back(size.count());
  return counts;
}

using Sizes = std::vector<std::int64_t>;

TEST(SizeRange, GrowsByItsFactorUpToItsEnd) {
  EXPECT_EQ(sizes(8, 64, 2), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes(8, 63, 2), (Sizes{8, 16, 32}));
  EXPECT_EQ(sizes(1, 3, 1.2), (Sizes{1, 2, 3}));
  EXPECT_EQ(sizes(0, 64, 2), (Sizes{0}));
  EXPECT_EQ(sizes(5, 5, 2), (Sizes{5}));
  EXPECT_THROW((void)sizes(64, 8, 2), Error);
  EXPECT_THROW((void)sizes(8, 64, 1), Error);
}

// The size after the last one was once beyond 64 bits, and the range had no end.
TEST(SizeRange, EndsWhere64BitsDo) {
  EXPECT_EQ(sizes(std::int64_t{1} << 60, 9'000'000'000'000'000'000, 2).size(), 3U);
}

TEST(CollectiveBench, FactorsReachTheEstimateToo) {
  CollectiveBenchOptions options;
  options.cluster.ranks = 4;
  const auto plain = CollectiveBench(options).run(Bytes(4'000'000));
  EXPECT_NEAR(plain.alpha_beta / plain.time, 1, 1e-9);
  options.network.bandwidth_factor = 0.5;
  options.network.latency_factor = 10;
  const auto slow = CollectiveBench(options).run(Bytes(4'000'000));
  EXPECT_GT(slow.time, plain.time * 1.9);
  EXPECT_NEAR(slow.alpha_beta / slow.time, 1, 1e-9);
}

}  // namespace
}  // namespace tandem
