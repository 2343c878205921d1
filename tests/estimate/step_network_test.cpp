// Collectives under way at once, by hand.
#include "sim/estimate/step_network.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

namespace tandem {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// One after another, each 1 s of latency and `messages` at once on link 0, of `bytes` each.
PipelinedCollective steps(int count, double messages, double bytes) {
  PipelinedChannel channel;
  for (int i = 0; i < count; ++i) {
    PipelineStep step;
    step.latency = Seconds(1);
    step.messages = {{bytes, {{0, messages * bytes}}}};
    if (i > 0) step.after = {i - 1};
    channel.steps.push_back(step);
  }
  return {{channel}, {}};
}

// Three messages of 4 bytes beside one of 4 on a link of 4 bytes/s: 1 byte/s each.
TEST(StepNetwork, EveryMessageHasTheSameShare) {
  StepNetwork network({4});
  const auto three = steps(1, 3, 4);
  const auto one = steps(1, 1, 4);
  const auto first = network.add(three);
  const auto second = network.add(one);
  EXPECT_EQ(network.next(), 1);
  EXPECT_EQ(network.advance(4.9), std::vector<StepNetwork::Id>{});
  EXPECT_EQ(network.advance(kForever), (std::vector<StepNetwork::Id>{first, second}));
  EXPECT_DOUBLE_EQ(network.now(), 5);
}

// Latency of one hides behind messages of the other: 1 + 2 s and 1 + 2 s a step, the second half a step later, meet
// for half of the time. First: 1-2.5 alone, 0.5 of 2 s left when the second comes at 2.5.
TEST(StepNetwork, LatencyLeavesTheLinkToOthers) {
  StepNetwork network({1});
  const auto two = steps(2, 1, 2);
  const auto first = network.add(two);
  EXPECT_EQ(network.advance(1.5).size(), 0u);
  const auto second = network.add(two);
  // 2.5: both move, the first has 0.5 left; 3.5: the first's step ends, the second has 1.5 left; 4.5: 0.5 left when the
  // first moves again; 5.5: the second's step ends, the first has 1.5 left; 6.5: 0.5 left when the second moves; 7.5.
  EXPECT_EQ(network.advance(7.4).size(), 0u);
  EXPECT_EQ(network.advance(7.5), std::vector<StepNetwork::Id>{first});
  // 2 - 0.5 left, alone.
  EXPECT_EQ(network.advance(kForever), std::vector<StepNetwork::Id>{second});
  EXPECT_DOUBLE_EQ(network.now(), 9);
}

// One that was alone before the others came is where it would be if it had been here from the start.
TEST(StepNetwork, OneThatIsAheadIsAsIfItHadBeenThere) {
  const auto two = steps(3, 1, 2);
  const auto other = steps(2, 2, 1);
  for (const double ahead : {0.0, 0.7, 1.0, 2.9, 3.0, 4.2, 8.9}) {
    StepNetwork whole({1});
    whole.add(two);
    whole.advance(ahead);
    whole.add(other);
    StepNetwork late({1});
    late.advance(5);
    late.add(two, ahead);
    late.add(other);
    EXPECT_EQ(whole.advance(kForever).size(), 2u);
    EXPECT_EQ(late.advance(kForever).size(), 2u);
    EXPECT_NEAR(late.now() - 5, whole.now() - ahead, 1e-9) << ahead;
  }
}

TEST(StepNetwork, OneThatIsRemovedLeavesItsShare) {
  StepNetwork network({1});
  const auto four = steps(1, 1, 4);
  const auto first = network.add(four);
  const auto second = network.add(four);
  network.advance(3);
  EXPECT_EQ(network.progress(first), 0);
  network.remove(first);
  EXPECT_EQ(network.advance(kForever), std::vector<StepNetwork::Id>{second});
  EXPECT_DOUBLE_EQ(network.now(), 6);  // 3 of 4 bytes were left
  EXPECT_EQ(network.progress(second), 1);
  network.remove(second);
  EXPECT_EQ(network.next(), kForever);
}

// A link of its own keeps one from being faster than that.
TEST(StepNetwork, ALinkOfItsOwn) {
  StepNetwork network({10});
  PipelinedCollective slow = steps(1, 1, 10);
  slow.channels[0].steps[0].messages[0].loads.push_back({network.add_link(1), 5});
  const auto fast = steps(1, 1, 10);
  const auto first = network.add(slow);
  const auto second = network.add(fast);
  // 2 bytes/s on the shared link are 1 byte/s on its own; the other has 8.
  EXPECT_EQ(network.advance(1 + 10.0 / 8), std::vector<StepNetwork::Id>{second});
  EXPECT_EQ(network.advance(kForever), std::vector<StepNetwork::Id>{first});
  EXPECT_DOUBLE_EQ(network.now(), 6);
}

}  // namespace
}  // namespace tandem
