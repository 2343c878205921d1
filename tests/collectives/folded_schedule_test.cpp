// Steps that repeat are found by what members send, and folding keeps what is sent.
#include "sim/ir/folded_schedule.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "platforms/topology.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

std::shared_ptr<const CollectiveSchedule> schedule_of(const std::string& algorithm, int members, Bytes bytes,
                                                      CollectiveOperation operation = CollectiveOperation::all_reduce) {
  const auto network = make_topology("star", {members, BytesPerSecond(1e9), Seconds(1e-6)});
  std::vector<DeviceId> devices;
  for (int d = 0; d < members; ++d) devices.push_back(DeviceId{d});
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make(algorithm);
  return collective_pieces(*plugin, {operation, group_shape(*network, devices, 1), bytes, 1, Bytes(0), 0})
      .front()
      .schedule;
}

TEST(FoldedSchedule, ARingIsItsTwoHalves) {
  EXPECT_EQ(fold_starts(*schedule_of("ring", 7, Bytes(1000))), (std::vector<int>{0, 6}));
  // Large enough for members to be sampled.
  EXPECT_EQ(fold_starts(*schedule_of("ring", 3000, Bytes(1'000'000))), (std::vector<int>{0, 2999}));
}

TEST(FoldedSchedule, StepsToOtherDistancesDoNotRepeat) {
  const auto schedule = schedule_of("halving-doubling", 16, Bytes(1600));
  std::vector<int> all(static_cast<std::size_t>(schedule->steps()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(fold_starts(*schedule), all);
}

// Most members of a chain do nothing in most steps: samples of them look equal and are not.
TEST(FoldedSchedule, ALongChainIsNotMistakenForARepetition) {
  const auto schedule = schedule_of("ring", 3000, Bytes(100), CollectiveOperation::broadcast);
  EXPECT_EQ(static_cast<int>(fold_starts(*schedule).size()), schedule->steps());
}

TEST(FoldedSchedule, AFoldedStepCarriesTheLargestPartAsOftenAsItRepeats) {
  const auto folds = folded({{schedule_of("ring", 4, Bytes(10)), 0}});  // parts of 3, 3, 2 and 2 bytes
  const auto& ring = *folds.front().schedule;
  ASSERT_EQ(ring.steps(), 2);
  EXPECT_EQ(ring.repetitions(0), 3);
  EXPECT_EQ(ring.repetitions(1), 3);
  std::vector<Send> sends;
  for (int member = 0; member < 4; ++member) {
    ring.sends(1, member, sends);
    ASSERT_EQ(sends.size(), 1u);
    EXPECT_EQ(sends.front().range.size(), 9);
    EXPECT_FALSE(sends.front().reduce);
    EXPECT_EQ(sends.front().to, (member + 1) % 4);
  }
}

// Where chunks follow each other through stages, a repetition is several steps; and one again where they do not.
TEST(FoldedSchedule, PipelinedRepetitionsFoldInParts) {
  const auto schedule = schedule_of("ring", 20, Bytes(20'000));
  const auto folds = folded({{schedule, 0}, {schedule, 0}});
  ASSERT_EQ(folds[0].schedule->steps(), 2 * kPartsOfPipelined);
  int repetitions = 0;
  for (int step = 0; step < kPartsOfPipelined; ++step) {
    EXPECT_EQ(folds[0].schedule->stage(step), 0);
    EXPECT_NEAR(folds[0].schedule->repetitions(step), 19.0 / kPartsOfPipelined, 1);
    repetitions += folds[0].schedule->repetitions(step);
  }
  EXPECT_EQ(repetitions, 19);
  EXPECT_EQ(count_messages(*folds[0].schedule).whole, count_messages(*schedule).whole);
  EXPECT_EQ(folded({folds.front()}).front().schedule->steps(), 2);
  EXPECT_EQ(
      folded({{schedule_of("ring", 4, Bytes(100)), 0}, {schedule_of("ring", 4, Bytes(100)), 1}})[0].schedule->steps(),
      2);
}

// Every algorithm, every size of group: neither messages nor bytes get lost, and a message grows by a byte at most.
TEST(FoldedSchedule, KeepsWhatIsSent) {
  int looked_at = 0;
  for (const auto& name : Registry<CollectiveAlgorithm>::instance().names()) {
    for (const int members : {1, 2, 3, 5, 8, 12, 27, 64}) {
      std::shared_ptr<const CollectiveSchedule> whole;
      try {
        if (Registry<CollectiveAlgorithm>::instance().make(name)->servers(members) > 0) continue;
        whole = schedule_of(name, members, Bytes(64 * 27 * 5 + 13));
      } catch (const Error&) {
        continue;  // not on a star, or not for so many
      }
      ++looked_at;
      const auto pieces = folded({{whole, 0}});
      const auto& fold = *pieces.front().schedule;
      EXPECT_EQ(count_messages(fold).whole, count_messages(*whole).whole) << name << " " << members;
      const auto starts = fold_starts(*whole);
      std::vector<Send> sends;
      const auto bytes_from = [&](const CollectiveSchedule& schedule, int step, int member) {
        schedule.sends(step, member, sends);
        return std::accumulate(sends.begin(), sends.end(), std::int64_t{0},
                               [](std::int64_t sum, const Send& send) { return sum + send.range.size(); });
      };
      int step = 0;
      for (int f = 0; f < fold.steps(); ++f) {
        for (int member = 0; member < members; ++member) {
          const auto in_fold = bytes_from(fold, f, member);
          const auto messages = static_cast<std::int64_t>(sends.size()) * fold.repetitions(f);
          std::int64_t one_by_one = 0;
          for (int i = 0; i < fold.repetitions(f); ++i) one_by_one += bytes_from(*whole, step + i, member);
          EXPECT_GE(in_fold, one_by_one) << name << " " << members;
          EXPECT_LE(in_fold, one_by_one + messages) << name << " " << members;
        }
        step += fold.repetitions(f);
      }
      EXPECT_EQ(step, whole->steps());
      EXPECT_EQ(static_cast<int>(starts.size()), fold.steps());
    }
  }
  EXPECT_GT(looked_at, 50);
}

}  // namespace
}  // namespace tandem
