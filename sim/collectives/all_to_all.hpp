// All-to-all (personalized exchange): member i sends part j of its buffer to member j.
#pragma once

#include "sim/ir/collective_schedule.hpp"

namespace tandem {

class AllToAllSchedule : public CollectiveSchedule {
 public:
  using CollectiveSchedule::CollectiveSchedule;
  [[nodiscard]] std::int64_t extent() const override { return members() * bytes().count(); }

 protected:
  [[nodiscard]] ByteRange block(int from, int to) const {
    const auto n = bytes().count();
    return part_of({from * n, (from + 1) * n}, members(), to);
  }
};

}  // namespace tandem
