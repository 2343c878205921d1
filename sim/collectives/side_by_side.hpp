// Several schedules at once, each on a part of the buffer of its own: how rings of several directions, rotated orders
// of digits and pairs of trees keep all ports busy.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/ir/collective_schedule.hpp"

namespace tandem {

struct SchedulePart {
  std::shared_ptr<const CollectiveSchedule> schedule;
  std::vector<int> order;  // the whole's member, by the part's; empty: the same
};

// `make(index, share)` gives the schedule of part `index`, of `share` bytes. All parts have equally many stages, which
// begin together: a stage has as many steps as its longest part.
[[nodiscard]] std::shared_ptr<const CollectiveSchedule> side_by_side(
    int members, Bytes bytes, int parts, const std::function<SchedulePart(int, Bytes)>& make);

// First step of every stage, and behind them the number of steps. Stages must follow each other without a gap.
[[nodiscard]] std::vector<int> first_steps(const CollectiveSchedule& schedule);

}  // namespace tandem
