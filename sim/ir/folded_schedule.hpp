// Steps of a collective that repeat, taken as one: a ring's p-1 steps of its reduce-scatter send equal parts to the
// same neighbour. A folded step stands for `repetitions` steps: it carries their bytes in one message, and costs their
// latency.
//
// Repetition is found by looking at what members send, not by asking the algorithm: steps fold where every member
// sends to the same members, in the same order, parts that differ by no more than the byte by which parts of a buffer
// differ, and the receiver treats them alike. A part counts as the larger one, since the step is as slow as that.
#pragma once

#include <memory>
#include <vector>

#include "sim/ir/op.hpp"

namespace tandem {

// The first steps of the stretches that repeat, in order; {} where there are no steps.
//
// Looks at all members, or in large groups (above 3e5 looks in all) at some of them in every step, and then at all
// members of the first, middle and last step of each stretch; where that finds a difference, nothing is folded.
[[nodiscard]] std::vector<int> fold_starts(const CollectiveSchedule& schedule);

// Where chunks follow each other through several stages, the latency of one chunk's steps hides behind the messages of
// another's: there a repetition folds into up to this many steps and not into one.
inline constexpr int kPartsOfPipelined = 8;

// Pieces with their repeating steps folded; those that are all folded already stay as they are. Channels with equally
// many steps fold at the same steps.
[[nodiscard]] std::vector<CollectivePiece> folded(const std::vector<CollectivePiece>& pieces);

// Messages of the whole schedule; of a folded one, of what it folds too.
struct MessageCount {
  double whole = 0;   // messages that the schedule stands for
  double folded = 0;  // messages of its own
  double widest = 0;  // the most of its own in one step
};
// In steps of more than about a million messages, those of some members, evenly chosen, stand for all.
[[nodiscard]] MessageCount count_messages(const CollectiveSchedule& schedule);

}  // namespace tandem
