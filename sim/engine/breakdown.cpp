#include "sim/engine/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

enum Reason { kComm, kBubble, kInput, kIdle, kReasons };

// The reasons found for one gap, clipped to it.
struct Gap {
  double begin = 0;
  double end = 0;
  std::array<std::vector<Interval>, kReasons> reasons;

  void add(Reason reason, double from, double to) {
    from = std::max(from, begin);
    to = std::min(to, end);
    if (to > from) reasons[reason].push_back({from, to});
  }
};

class RankAccount {
 public:
  RankAccount(const History& history, const std::vector<std::vector<std::pair<OpId, int>>>& by_rank, Rank rank)
      : history_(history), mine_(by_rank[rank.index()]), rank_(rank) {}

  Breakdown account() {
    double cursor = history_.start;
    for (const auto& [id, index] : compute_in_order()) {
      const auto& on = history_.ops[static_cast<std::size_t>(id)].on[static_cast<std::size_t>(index)];
      if (on.start > cursor) {
        fill_gap(cursor, on.start, id);
        cursor = on.start;
      }
      if (on.end > cursor) {
        result_.compute += Seconds(on.end - cursor);
        cursor = on.end;
      }
    }
    if (history_.end > cursor) fill_gap(cursor, history_.end, -1);
    return result_;
  }

 private:
  [[nodiscard]] const OpRecord& record(OpId id) const { return history_.ops[static_cast<std::size_t>(id)]; }

  [[nodiscard]] std::vector<std::pair<OpId, int>> compute_in_order() const {
    std::vector<std::pair<OpId, int>> list;
    for (const auto& [id, index] : mine_) {
      const auto& on = record(id).on[static_cast<std::size_t>(index)];
      if (record(id).op.kind == Op::Kind::compute && on.end > on.start) list.emplace_back(id, index);
    }
    std::sort(list.begin(), list.end(), [&](const auto& a, const auto& b) {
      const auto& first = record(a.first).on[static_cast<std::size_t>(a.second)];
      const auto& second = record(b.first).on[static_cast<std::size_t>(b.second)];
      return std::pair(first.start, a.first) < std::pair(second.start, b.first);
    });
    return list;
  }

  // `next` is the compute operation that ends the gap, or -1 at the end of the run.
  void fill_gap(double begin, double end, OpId next) {
    Gap gap{begin, end, {}};
    visited_.clear();
    if (next >= 0) {
      visit_what_it_waited_for(gap, next, rank_);
    } else {
      for (const auto& [id, index] : mine_) visit(gap, id, rank_);
      double last = begin;
      for (const auto& [id, index] : mine_) {
        const auto& on = record(id).on[static_cast<std::size_t>(index)];
        if (on.end > on.start) last = std::max(last, on.end);  // it ran: others are cancelled at any date
      }
      gap.add(kIdle, last, end);  // the others' work
    }
    // A work list and no recursion: a rank that never computes has its whole history in one gap.
    while (!pending_.empty()) {
      const auto [id, rank] = pending_.back();
      pending_.pop_back();
      look_at(gap, id, rank);
    }
    settle(gap);
  }

  void visit(Gap& gap, OpId id, Rank rank) {
    const auto& found = record(id);
    const auto index = found.op.ranks.index_of(rank);
    if (index < 0) return;
    const auto& on = found.on[static_cast<std::size_t>(index)];
    const bool ended = on.status == OpStatus::done || on.status == OpStatus::cancelled;
    if (!ended || on.end <= gap.begin || on.start > gap.end) return;
    if (!visited_.insert({id, rank.value}).second) return;
    pending_.emplace_back(id, rank);
  }

  void look_at(Gap& gap, OpId id, Rank rank) {
    const auto& found = record(id);
    const auto& on = found.on[static_cast<std::size_t>(found.op.ranks.index_of(rank))];
    switch (found.op.kind) {
      case Op::Kind::compute:
        if (rank != rank_) {
          const auto role = history_.streams[static_cast<std::size_t>(found.op.stream)].role;
          gap.add(role == StreamSpec::Role::server ? kIdle : kBubble, on.start, on.end);
        }
        break;
      case Op::Kind::delay:
        gap.add(found.op.delay_kind == Op::DelayKind::input ? kInput : kIdle, on.start, on.end);
        break;
      case Op::Kind::transfer:
      case Op::Kind::collective:
        for (const auto& active : found.active) {
          gap.add(kComm, std::max(active.begin, on.start), std::min(active.end, on.end));
        }
        gap.add(kIdle, on.start, on.end);  // between activities: some member is not ready yet
        break;
    }
    // Cancelled before it ran: what is behind it has waited for that, whatever it waited for itself.
    if (on.status == OpStatus::cancelled && on.start == on.end) gap.add(kIdle, gap.begin, on.end);
    if (on.start > gap.begin) visit_what_it_waited_for(gap, id, rank);
  }

  void visit_what_it_waited_for(Gap& gap, OpId id, Rank rank) {
    const auto& found = record(id);
    for (const auto& dependency : found.op.waits_for) {
      if (dependency.from.kind == RankMap::Kind::all) {
        const auto& others = record(dependency.op).op.ranks;
        for (int i = 0; i < others.size(); ++i) visit(gap, dependency.op, others.at(i));
      } else {
        visit(gap, dependency.op, dependency.from.of(rank));
      }
    }
    const auto index = found.op.ranks.index_of(rank);
    const auto predecessor = found.on[static_cast<std::size_t>(index)].stream_predecessor;
    if (predecessor >= 0) visit(gap, predecessor, rank);
    if (found.cause >= 0) visit(gap, found.cause, found.cause_rank);
    if (found.caused_by_event || found.cause < 0) gap.add(kIdle, gap.begin, found.emitted);  // an event's date
  }

  // Each instant goes to the first reason, in order, that covers it.
  void settle(const Gap& gap) {
    std::set<double> cuts{gap.begin, gap.end};
    for (const auto& intervals : gap.reasons) {
      for (const auto& interval : intervals) {
        cuts.insert(interval.begin);
        cuts.insert(interval.end);
      }
    }
    std::vector<double> edges(cuts.begin(), cuts.end());
    std::vector<Reason> owner(edges.size() - 1, kReasons);
    for (int reason = kReasons - 1; reason >= 0; --reason) {
      for (const auto& interval : gap.reasons[static_cast<std::size_t>(reason)]) {
        const auto from = std::lower_bound(edges.begin(), edges.end(), interval.begin) - edges.begin();
        const auto to = std::lower_bound(edges.begin(), edges.end(), interval.end) - edges.begin();
        for (auto i = from; i < to; ++i) owner[static_cast<std::size_t>(i)] = static_cast<Reason>(reason);
      }
    }
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) charge(owner[i], edges[i], edges[i + 1]);
  }

  void charge(Reason reason, double begin, double end) {
    const Seconds length(end - begin);
    switch (reason) {
      case kComm:
        result_.exposed_comm += length;
        return;
      case kBubble:
        result_.bubble += length;
        return;
      case kInput:
        result_.input += length;
        return;
      case kIdle:
        result_.idle += length;
        return;
      case kReasons:
        break;
    }
    // Dates that should be equal may differ in the last place.
    if (length.count() <= 1e-12 * std::max(1.0, end)) {
      result_.idle += length;
      return;
    }
    throw internal_error(
        fmt::format("rank {} waits from {} s to {} s for no reason that the breakdown knows", rank_.value, begin, end));
  }

  const History& history_;
  const std::vector<std::pair<OpId, int>>& mine_;
  Rank rank_;
  Breakdown result_;
  std::set<std::pair<OpId, std::int32_t>> visited_;
  std::vector<std::pair<OpId, Rank>> pending_;
};

}  // namespace

std::vector<Breakdown> break_down(const History& history) {
  std::vector<std::vector<std::pair<OpId, int>>> by_rank(static_cast<std::size_t>(history.ranks));
  for (std::size_t id = 0; id < history.ops.size(); ++id) {
    const auto& ranks = history.ops[id].op.ranks;
    for (int i = 0; i < ranks.size(); ++i) by_rank[ranks.at(i).index()].emplace_back(static_cast<OpId>(id), i);
  }
  std::vector<Breakdown> result;
  for (int r = 0; r < history.ranks; ++r) result.push_back(RankAccount(history, by_rank, Rank{r}).account());
  return result;
}

}  // namespace tandem
