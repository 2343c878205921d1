#include "sim/collectives/side_by_side.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

struct Part {
  std::shared_ptr<const CollectiveSchedule> schedule;
  ByteRange range;
  std::vector<int> order;    // the whole's member, by the part's
  std::vector<int> inverse;  // the part's member, by the whole's
  std::vector<int> first;    // step, by stage

  [[nodiscard]] int inside(int member) const {
    return inverse.empty() ? member : inverse[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] int outside(int member) const {
    return order.empty() ? member : order[static_cast<std::size_t>(member)];
  }
};

class SideBySide final : public CollectiveSchedule {
 public:
  SideBySide(int members, Bytes bytes, std::vector<Part> parts)
      : CollectiveSchedule(members, bytes), parts_(std::move(parts)) {
    const int stages = parts_.front().schedule->stages();
    for (int stage = 0; stage < stages; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      int longest = 0;
      for (const auto& part : parts_) longest = std::max(longest, part.first[s + 1] - part.first[s]);
      first_.push_back(first_.back() + longest);
    }
  }

  [[nodiscard]] int steps() const override { return first_.back(); }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    std::vector<Send> of_part;
    for (const auto& part : parts_) {
      const int inner = step_of(part, step);
      if (inner < 0) continue;
      part.schedule->sends(inner, part.inside(member), of_part);
      for (auto send : of_part) {
        send.to = part.outside(send.to);
        send.range.begin += part.range.begin;
        send.range.end += part.range.begin;
        out.push_back(send);
      }
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    int sum = 0;
    for (const auto& part : parts_) {
      const int inner = step_of(part, step);
      if (inner >= 0) sum += part.schedule->receives(inner, part.inside(member));
    }
    return sum;
  }

  [[nodiscard]] int stage(int step) const override {
    return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), step) - first_.begin()) - 1;
  }
  [[nodiscard]] int stages() const override { return static_cast<int>(first_.size()) - 1; }

 private:
  // -1 where the part's stage is over before the longest one's.
  [[nodiscard]] int step_of(const Part& part, int step) const {
    const auto s = static_cast<std::size_t>(stage(step));
    const int inner = part.first[s] + step - first_[s];
    return inner < part.first[s + 1] ? inner : -1;
  }

  std::vector<Part> parts_;
  std::vector<int> first_{0};  // step, by stage
};

}  // namespace

std::vector<int> first_steps(const CollectiveSchedule& schedule) {
  std::vector<int> first(static_cast<std::size_t>(schedule.stages()) + 1, schedule.steps());
  for (int step = schedule.steps(); step-- > 0;) first[static_cast<std::size_t>(schedule.stage(step))] = step;
  for (std::size_t stage = first.size() - 1; stage-- > 0;) first[stage] = std::min(first[stage], first[stage + 1]);
  return first;
}

std::shared_ptr<const CollectiveSchedule> side_by_side(int members, Bytes bytes, int parts,
                                                       const std::function<SchedulePart(int, Bytes)>& make) {
  std::vector<Part> list;
  for (int index = 0; index < parts; ++index) {
    const auto range = part_of({0, bytes.count()}, parts, index);
    auto [schedule, order] = make(index, Bytes(range.size()));
    if (!list.empty() && schedule->stages() != list.front().schedule->stages()) {
      throw internal_error("parts of a collective that have different stages");
    }
    Part part{std::move(schedule), range, std::move(order), {}, {}};
    part.first = first_steps(*part.schedule);
    part.inverse.resize(part.order.size());
    for (std::size_t i = 0; i < part.order.size(); ++i) {
      part.inverse[static_cast<std::size_t>(part.order[i])] = static_cast<int>(i);
    }
    list.push_back(std::move(part));
  }
  if (list.size() == 1 && list.front().order.empty()) return list.front().schedule;
  return std::make_shared<SideBySide>(members, bytes, std::move(list));
}

}  // namespace tandem
