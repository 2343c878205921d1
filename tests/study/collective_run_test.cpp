// A collective alone: its sizes, and what its options reach.
#include "sim/study/collective_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

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

TEST(CollectiveBench, BusBandwidthIsThatOfNcclTests) {
  // doc/PERFORMANCE.md of nccl-tests, its summary; src/gather.cu and src/scatter.cu for the last two.
  using enum CollectiveOperation;
  for (const auto& [operation, factor] :
       {std::pair{all_reduce, 1.5}, std::pair{reduce_scatter, 0.75}, std::pair{all_gather, 0.75},
        std::pair{all_to_all, 0.75}, std::pair{broadcast, 1.0}, std::pair{gather, 0.75}, std::pair{scatter, 0.75}}) {
    EXPECT_EQ(busbw_factor(operation, 4), factor) << to_text(operation);
  }
  EXPECT_EQ(busbw_factor(all_gather, 1), 0);
}

// A large flat operation on a star fills a port, so that its bus bandwidth is the port's.
TEST(CollectiveBench, BusBandwidthOfAFullPortIsThePorts) {
  for (const auto operation : collective_operations()) {
    CollectiveBenchOptions options;
    options.cluster.ranks = 8;
    options.operation = operation;
    options.algorithm = operation == CollectiveOperation::broadcast ? "ring" : "direct";
    options.chunk = Bytes(operation == CollectiveOperation::broadcast ? 1'000'000 : 0);
    const auto point = CollectiveBench(options).run(Bytes(8'000'000'000));
    EXPECT_NEAR(point.busbw.count(), 12.5e9, 0.03 * 12.5e9) << to_text(operation);
  }
}

TEST(CollectiveBench, TheRootIsARankWhateverTheOrderOfMembers) {
  // Ranks scattered over a ring of eight devices.
  CollectiveBenchOptions options;
  options.cluster.ranks = 8;
  options.cluster.topology = "torus:dims=8";
  options.operation = CollectiveOperation::broadcast;
  options.placement = "random:seed=5";
  options.algorithm = "auto:among=ring";
  for (const int root : {0, 3}) {
    options.root = root;
    // `auto` puts members in order of address: seven hops of one link.
    EXPECT_NEAR(CollectiveBench(options).run(Bytes(12'500'000)).time.count(), 7 * (500e-9 + 1e-3), 1e-12);
  }
  options.root = 8;
  EXPECT_THROW((void)CollectiveBench(options), Error);
}

// Of members that take part in the same steps, some meet messages of another step and some do not, which the analytic
// level does not tell apart.
CollectiveBenchOptions out_of_step() {
  CollectiveBenchOptions options;
  options.cluster.topology = "mesh-rail-cube";
  options.cluster.ranks = 24;
  options.algorithm = "halving-doubling";
  return options;
}

CollectiveBenchOptions ring_of(int ranks) {
  CollectiveBenchOptions options;
  options.cluster.topology = "leaf-spine:down=4,oversubscription=4";
  options.cluster.ranks = ranks;
  options.algorithm = "ring";
  options.fidelity = Fidelity::analytic;
  return options;
}

TEST(CollectiveBench, FidelityErrorIsTheDistanceToFlowWhereThatIsSmall) {
  auto options = out_of_step();
  options.fidelity = Fidelity::flow;
  const auto flow = CollectiveBench(options).run(Bytes(1'000'000));
  EXPECT_EQ(flow.fidelity_error.value, 0);
  options.fidelity = Fidelity::analytic;
  const auto point = CollectiveBench(options).run(Bytes(1'000'000));
  EXPECT_GT(point.fidelity_error.value, 0.01) << "the case tells nothing";
  EXPECT_NEAR(point.fidelity_error.value, std::abs(point.time / flow.time - 1), 1e-12);
}

// Its own flows are too many: the largest fraction whose flows are few is looked at, for every size.
TEST(CollectiveBench, FidelityErrorOfManyRanksIsThatOfAFraction) {
  CollectiveBench bench(ring_of(20 * 32 + 1));
  CollectiveBench few(ring_of(20 * 2));
  for (const std::int64_t size : {1'000'000, 4096}) {
    const auto error = bench.run(Bytes(size)).fidelity_error;
    EXPECT_EQ(error.ranks, 20 * 2) << "a ring of 80 has 12,640 flows";
    EXPECT_EQ(error.value, few.run(Bytes(size)).fidelity_error.value) << size;
  }
  EXPECT_GT(bench.run(Bytes(4096)).time, few.run(Bytes(4096)).time);
}

// The smaller machine is one before anything failed: the lost rank is not among its ranks.
TEST(CollectiveBench, FidelityErrorIsKnownWhereARankIsLost) {
  CollectiveBenchOptions options;
  options.cluster.ranks = 299;
  options.cluster.lost_ranks = {299};
  options.fidelity = Fidelity::phase;
  EXPECT_LT(CollectiveBench(options).run(Bytes(1'000'000)).fidelity_error.value, 1e-6);
}

std::string note_of(const std::string& algorithm, const std::string& topology, int ranks) {
  CollectiveBenchOptions options;
  options.cluster.topology = topology;
  options.cluster.ranks = ranks;
  options.algorithm = algorithm;
  const auto point = CollectiveBench(options).run(Bytes(1'000'000));
  // What a note says an algorithm is runs as that does.
  for (const auto& [text, plain] : {std::pair{"direct exchange", "direct"}, std::pair{"is a ring", "ring"},
                                    std::pair{"halving and doubling", "halving-doubling"}}) {
    if (!point.note.ends_with(text)) continue;
    options.algorithm = plain;
    EXPECT_NEAR(CollectiveBench(options).run(Bytes(1'000'000)).time / point.time, 1, 1e-9) << point.note;
  }
  return point.note;
}

TEST(Notes, AlgorithmsOfSeveralLevelsSayWhereTheyHaveOne) {
  EXPECT_EQ(note_of("hrr", "star", 8), "hrr has one level here, and is direct exchange");
  EXPECT_EQ(note_of("bml", "star", 8), "bml has one level here, and is direct exchange");
  EXPECT_EQ(note_of("blueconnect", "star", 8), "blueconnect has one level here, and is halving and doubling");
  EXPECT_EQ(note_of("blueconnect", "star", 6), "blueconnect has one level here, and is a ring");
  EXPECT_EQ(note_of("blueconnect", "full-mesh", 6), "blueconnect has one level here, and is direct exchange");
  EXPECT_EQ(note_of("hierarchical", "star", 8), "hierarchical has one level here, and is a ring");
  EXPECT_EQ(note_of("torus-ring", "star", 8), "torus-ring has one dimension here, and is a ring both ways");
  EXPECT_EQ(note_of("auto:among=hrr", "star", 8), "hrr has one level here, and is direct exchange");
}

TEST(Notes, NothingIsSaidWhereThereAreLevels) {
  EXPECT_EQ(note_of("hrr", "mesh-rail-cube:m=4,n=4", 16), "");
  EXPECT_EQ(note_of("blueconnect", "torus:dims=4x4", 16), "");
  EXPECT_EQ(note_of("bml", "torus:dims=4x4", 16), "");
  EXPECT_EQ(note_of("torus-ring", "torus:dims=4x4", 16), "");
  for (const auto* algorithm : {"ring", "direct", "hrr", "blueconnect"}) EXPECT_EQ(note_of(algorithm, "star", 1), "");
}

TEST(LongRuns, AreSaidWhereTheUserAskedForThem) {
  const NetworkModelOptions plain;
  const Efforts ring{{3.4e7, 1.4e11}, {16e3, 6.7e7}};
  const auto text = long_run_warning(Fidelity::flow, ring, plain);
  EXPECT_NE(text.find("3.4e+07 flows"), std::string::npos) << text;
  EXPECT_NE(text.find("11 min"), std::string::npos) << text;
  EXPECT_NE(text.find("--fidelity phase or auto"), std::string::npos) << text;
  const Efforts direct{{3.4e7, 1.4e11}, {3.4e7, 1.4e11}};
  EXPECT_NE(long_run_warning(Fidelity::flow, direct, plain).find("--fidelity analytic or auto"), std::string::npos);
  EXPECT_NE(long_run_warning(Fidelity::phase, direct, plain).find("--fidelity analytic or auto"), std::string::npos);
  EXPECT_EQ(long_run_warning(Fidelity::phase, ring, plain), "");
  EXPECT_EQ(long_run_warning(Fidelity::analytic, direct, plain), "");
  EXPECT_EQ(long_run_warning({}, direct, plain), "") << "auto takes what is quick";
  const Efforts estimates{{1e12, 1e14}, {1e12, 1e14}, {0, 0, 1e8}};
  EXPECT_NE(long_run_warning({}, estimates, plain).find("1e+08 messages, very roughly 50 s"), std::string::npos)
      << "or there is nothing quicker";
  NetworkModelOptions tcp;
  tcp.model = NetworkModelOptions::Model::lv08;
  const auto only = long_run_warning({}, ring, tcp);
  EXPECT_NE(only.find("11 min"), std::string::npos) << only;
  EXPECT_EQ(only.find("--fidelity"), std::string::npos) << "there is no other level";
}

struct AutoCase {
  const char* topology;
  int ranks;
  CollectiveOperation operation;
  std::int64_t bytes;
  std::int64_t chunk;
};

CollectiveBenchOptions options_of(const AutoCase& one, const std::string& algorithm) {
  CollectiveBenchOptions options;
  options.cluster.topology = one.topology;
  options.cluster.ranks = one.ranks;
  options.operation = one.operation;
  options.chunk = Bytes(one.chunk);
  options.algorithm = algorithm;
  return options;
}

// What `auto` picks by estimate is what simulating all candidates would have picked.
TEST(AutoAlgorithm, PicksTheFastestInSimulation) {
  using enum CollectiveOperation;
  const std::vector<AutoCase> cases{
      {"star", 12, all_reduce, 64'000'000, 0},
      {"fat-tree:k=8,oversubscription=4", 32, all_reduce, 4096, 0},
      {"fat-tree:k=8,oversubscription=4", 32, all_reduce, 64'000'000, 0},
      {"torus:dims=8x4", 32, all_reduce, 4096, 0},
      {"torus:dims=8x4", 32, all_gather, 64'000'000, 0},
      {"torus:dims=8x4", 32, all_to_all, 64'000'000, 0},
      {"mesh-rail-cube:m=4,n=8", 32, all_reduce, 64'000'000, 1'000'000},
      {"star", 16, broadcast, 4096, 0},
      {"star", 16, broadcast, 64'000'000, 1'000'000},
      {"star", 16, gather, 64'000'000, 0},
  };
  std::set<std::string> picked;
  for (const auto& one : cases) {
    const auto what = fmt::format("{} of {} on {}", to_text(one.operation), one.bytes, one.topology);
    const auto chosen = CollectiveBench(options_of(one, "auto")).run(Bytes(one.bytes));
    ASSERT_TRUE(chosen.choice) << what;
    picked.insert(chosen.choice->picked());
    int possible = 0;
    for (const auto& candidate : chosen.choice->candidates) {
      if (!candidate.refusal.empty()) continue;
      ++possible;
      const auto other = CollectiveBench(options_of(one, candidate.algorithm)).run(Bytes(one.bytes));
      EXPECT_LE(chosen.time.count(), 1.02 * other.time.count()) << what << ": " << candidate.algorithm << " is faster";
      EXPECT_NEAR(candidate.estimate / other.time, 1, 0.3) << what << ": estimate of " << candidate.algorithm;
      if (candidate.algorithm == chosen.choice->picked()) {
        EXPECT_EQ(chosen.time, other.time) << what;
      }
    }
    EXPECT_GE(possible, 2) << what << ": nothing to choose between";
  }
  EXPECT_GE(picked.size(), 4U) << "the cases do not tell algorithms apart";
}

TEST(AutoAlgorithm, SaysWhatItCouldNotUse) {
  // Seven of eight devices of a torus fill no rectangle; a server would need a device of its own.
  const AutoCase one{"torus:dims=4x2", 7, CollectiveOperation::all_reduce, 4096, 0};
  const auto choice = *CollectiveBench(options_of(one, "auto")).run(Bytes(one.bytes)).choice;
  std::map<std::string, std::string> refusals;
  for (const auto& candidate : choice.candidates) refusals[candidate.algorithm] = candidate.refusal;
  EXPECT_NE(refusals.at("blueconnect").find("rectangle"), std::string::npos);
  EXPECT_NE(refusals.at("parameter-server").find("servers"), std::string::npos);
  EXPECT_TRUE(refusals.at(choice.picked()).empty());
  EXPECT_FALSE(refusals.contains("tree")) << "knows no all-reduce";
}

TEST(AutoAlgorithm, ChoosesAmongThoseThatAreNamed) {
  AutoCase one{"torus:dims=4x4", 16, CollectiveOperation::all_reduce, 64'000'000, 0};
  const auto point = CollectiveBench(options_of(one, "auto:among=ring+blueconnect:rotate=yes")).run(Bytes(one.bytes));
  ASSERT_EQ(point.choice->candidates.size(), 2U);
  EXPECT_EQ(point.choice->picked(), "blueconnect:rotate=yes");
  EXPECT_THROW((void)CollectiveBench(options_of(one, "auto:among=auto")), Error);
  EXPECT_THROW((void)CollectiveBench(options_of(one, "auto:among=rong")), Error);
  one.operation = CollectiveOperation::all_to_all;
  EXPECT_THROW((void)CollectiveBench(options_of(one, "auto:among=ring")).run(Bytes(8)), Error);
}

}  // namespace
}  // namespace tandem
