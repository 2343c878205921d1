#include "sim/ir/folded_schedule.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sim/core/random.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostLooks = 300'000;
constexpr int kMostSampled = 64;
constexpr double kMostCounted = 1e6;
constexpr int kLeastSampled = 8;
constexpr int kSampledLooks = 2'000'000;

bool alike(const std::vector<Send>& a, const std::vector<Send>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Send& x, const Send& y) {
    return x.to == y.to && x.reduce == y.reduce && x.cable == y.cable && std::abs(x.range.size() - y.range.size()) <= 1;
  });
}

class Comparison {
 public:
  explicit Comparison(const CollectiveSchedule& schedule) : schedule_(schedule) {}

  // Equal sends of all members are equal receives, too.
  [[nodiscard]] bool equal(int step, int other, const std::vector<int>& members) {
    if (schedule_.stage(step) != schedule_.stage(other)) return false;
    return std::all_of(members.begin(), members.end(), [&](int member) {
      schedule_.sends(step, member, first_);
      schedule_.sends(other, member, second_);
      return alike(first_, second_);
    });
  }

 private:
  const CollectiveSchedule& schedule_;
  std::vector<Send> first_, second_;
};

std::vector<int> all_members(const CollectiveSchedule& schedule) {
  std::vector<int> members(static_cast<std::size_t>(schedule.members()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// The ends of the group and some between, drawn with a fixed seed.
std::vector<int> some_members(const CollectiveSchedule& schedule) {
  std::set<int> members{0, 1, schedule.members() - 2, schedule.members() - 1};
  Random random(1);
  const int enough = std::clamp(kSampledLooks / std::max(1, schedule.steps()), kLeastSampled, kMostSampled);
  while (static_cast<int>(members.size()) < enough) {
    members.insert(static_cast<int>(random.below(static_cast<std::uint32_t>(schedule.members()))));
  }
  return {members.begin(), members.end()};
}

std::vector<int> every_step(const CollectiveSchedule& schedule) {
  std::vector<int> steps(static_cast<std::size_t>(schedule.steps()));
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

std::vector<int> starts_by(const CollectiveSchedule& schedule, const std::vector<int>& members) {
  Comparison comparison(schedule);
  std::vector<int> starts;
  for (int step = 0; step < schedule.steps(); ++step) {
    if (starts.empty() || !comparison.equal(starts.back(), step, members)) starts.push_back(step);
  }
  return starts;
}

bool confirmed(const CollectiveSchedule& schedule, const std::vector<int>& starts) {
  Comparison comparison(schedule);
  const auto members = all_members(schedule);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int end = i + 1 < starts.size() ? starts[i + 1] : schedule.steps();
    const int last = end - 1;
    const int middle = (starts[i] + end) / 2;
    if (last > starts[i] && !comparison.equal(starts[i], last, members)) return false;
    if (middle > starts[i] && middle < last && !comparison.equal(starts[i], middle, members)) return false;
  }
  return true;
}

class FoldedSchedule final : public CollectiveSchedule {
 public:
  FoldedSchedule(std::shared_ptr<const CollectiveSchedule> whole, std::vector<int> starts, int parts)
      : CollectiveSchedule(whole->members(), whole->bytes()),
        whole_(std::move(whole)),
        starts_(std::move(starts)),
        parts_(parts) {
    for (int fold = 0; fold < steps(); ++fold) sizes_.push_back(repetitions(fold) > 1 ? sizes_of(fold) : Sizes{});
  }

  [[nodiscard]] int steps() const override { return static_cast<int>(starts_.size()); }
  [[nodiscard]] int repetitions(int fold) const override {
    const auto next = static_cast<std::size_t>(fold) + 1;
    return (next < starts_.size() ? starts_[next] : whole_->steps()) - first(fold);
  }
  void sends(int fold, int member, std::vector<Send>& out) const override {
    whole_->sends(first(fold), member, out);
    const std::int64_t count = repetitions(fold);
    if (count == 1) return;
    const auto& sizes = sizes_[static_cast<std::size_t>(fold)];
    for (auto& send : out) {
      const auto size = send.range.size();
      const bool has_larger = std::binary_search(sizes.begin(), sizes.end(), size + 1);
      send.range = {0, count * (size + (has_larger ? 1 : 0))};
    }
  }
  [[nodiscard]] int receives(int fold, int member) const override { return whole_->receives(first(fold), member); }
  [[nodiscard]] std::int64_t extent() const override { return whole_->extent(); }
  [[nodiscard]] ByteRange own(int member) const override { return whole_->own(member); }
  [[nodiscard]] int stage(int fold) const override { return whole_->stage(first(fold)); }
  [[nodiscard]] int stages() const override { return whole_->stages(); }
  [[nodiscard]] bool contributes(int member) const override { return whole_->contributes(member); }
  [[nodiscard]] bool eager() const override { return whole_->eager(); }

  [[nodiscard]] const std::shared_ptr<const CollectiveSchedule>& whole() const { return whole_; }
  [[nodiscard]] int parts() const { return parts_; }

 private:
  using Sizes = std::vector<std::int64_t>;

  [[nodiscard]] int first(int fold) const { return starts_[static_cast<std::size_t>(fold)]; }

  [[nodiscard]] Sizes sizes_of(int fold) const {
    std::set<std::int64_t> sizes;
    std::vector<Send> out;
    for (int member = 0; member < members(); ++member) {
      whole_->sends(first(fold), member, out);
      for (const auto& send : out) sizes.insert(send.range.size());
    }
    return {sizes.begin(), sizes.end()};
  }

  std::shared_ptr<const CollectiveSchedule> whole_;
  std::vector<int> starts_;
  int parts_;
  std::vector<Sizes> sizes_;  // that occur, ascending, by fold
};

}  // namespace

std::vector<int> fold_starts(const CollectiveSchedule& schedule) {
  const auto looks = static_cast<std::int64_t>(schedule.steps()) * schedule.members();
  if (looks <= kMostLooks || schedule.members() <= kMostSampled) return starts_by(schedule, all_members(schedule));
  auto starts = starts_by(schedule, some_members(schedule));
  return confirmed(schedule, starts) ? starts : every_step(schedule);
}

namespace {

// Whether stages work on different chunks at once.
bool is_pipelined(const std::vector<CollectivePiece>& pieces) {
  std::set<std::int32_t> channels;
  return std::any_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
    return !channels.insert(piece.channel).second && piece.schedule->stages() > 1;
  });
}

// Stretches that repeat, each in up to so many parts.
std::vector<int> divided(const std::set<int>& starts, int steps, int parts) {
  std::vector<int> divided;
  for (auto start = starts.begin(); start != starts.end(); ++start) {
    const auto next = std::next(start);
    const int length = (next == starts.end() ? steps : *next) - *start;
    const int count = std::min(length, parts);
    for (int i = 0; i < count; ++i) {
      divided.push_back(*start + static_cast<int>(std::int64_t{length} * i / count));
    }
  }
  return divided;
}

}  // namespace

std::vector<CollectivePiece> folded(const std::vector<CollectivePiece>& pieces) {
  const int parts = is_pipelined(pieces) ? kPartsOfPipelined : 1;
  std::map<const CollectiveSchedule*, std::shared_ptr<const CollectiveSchedule>> made;
  std::map<const CollectiveSchedule*, std::shared_ptr<const CollectiveSchedule>> wholes;
  std::map<int, std::set<int>> starts;  // by number of steps
  const bool all_are_folded = std::all_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
    const auto* fold = dynamic_cast<const FoldedSchedule*>(piece.schedule.get());
    return fold != nullptr && fold->parts() == parts;
  });
  if (all_are_folded) return pieces;
  for (const auto& piece : pieces) {
    if (!made.try_emplace(piece.schedule.get()).second) continue;
    auto whole = piece.schedule;
    if (const auto* fold = dynamic_cast<const FoldedSchedule*>(piece.schedule.get()); fold != nullptr) {
      whole = fold->whole();
    }
    auto& common = starts[whole->steps()];
    for (const int step : fold_starts(*whole)) common.insert(step);
    wholes.emplace(piece.schedule.get(), std::move(whole));
  }
  std::vector<CollectivePiece> result;
  for (const auto& piece : pieces) {
    auto& schedule = made[piece.schedule.get()];
    if (!schedule) {
      const auto& whole = wholes[piece.schedule.get()];
      schedule = std::make_shared<FoldedSchedule>(whole, divided(starts[whole->steps()], whole->steps(), parts), parts);
    }
    result.push_back({schedule, piece.channel});
  }
  return result;
}

MessageCount count_messages(const CollectiveSchedule& schedule) {
  MessageCount count;
  std::vector<Send> sends;
  for (int step = 0; step < schedule.steps(); ++step) {
    double messages = 0;
    schedule.sends(step, 0, sends);
    const double about = static_cast<double>(sends.size()) * schedule.members();
    const int stride = std::max(1, static_cast<int>(about / kMostCounted));
    int looked_at = 0;
    for (int member = 0; member < schedule.members(); member += stride, ++looked_at) {
      schedule.sends(step, member, sends);
      messages += static_cast<double>(sends.size());
    }
    messages *= static_cast<double>(schedule.members()) / looked_at;
    count.whole += messages * schedule.repetitions(step);
    count.folded += messages;
    count.widest = std::max(count.widest, messages);
  }
  return count;
}

}  // namespace tandem
