#include "sim/study/effort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

// Minutes, either of them: a ring of 1,024 ranks over five buckets (1e7 flows, 1e10 work) is below, a direct exchange
// of 300 (2e5 flows, 2e10 work) is the limit.
constexpr double kMostFlows = 2e7;
constexpr double kMostWork = 2e10;

// Messages of a schedule, and the most of one step.
struct Messages {
  double all = 0;
  double widest = 0;
};

// By member 0 in three steps: right where all members do alike.
Messages sampled(const CollectiveSchedule& schedule) {
  std::vector<Send> sends;
  double widest = schedule.steps() > 0 ? 1 : 0;
  for (const int step : {0, schedule.steps() / 2, schedule.steps() - 1}) {
    if (step < 0 || step >= schedule.steps()) continue;
    schedule.sends(step, 0, sends);
    widest = std::max(widest, static_cast<double>(sends.size()));
  }
  widest *= schedule.members();
  return {schedule.steps() * widest, widest};
}

// Trees and chains have members that do little: before a run is refused for them, their messages are counted, if that
// takes less than about a second.
Messages counted(const CollectiveSchedule& schedule) {
  constexpr double kMostLooks = 1e8;
  Messages messages;
  double looks = 0;
  std::vector<Send> sends;
  for (int step = 0; step < schedule.steps(); ++step) {
    double now = 0;
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends);
      now += static_cast<double>(sends.size());
      looks += 1 + static_cast<double>(sends.size());
      if (looks > kMostLooks) return sampled(schedule);
    }
    messages.all += now;
    messages.widest = std::max(messages.widest, now);
  }
  return messages;
}

template <class Look>
Effort add_up(const std::vector<CollectivePiece>& pieces, const Look& look) {
  Effort effort;
  std::map<const CollectiveSchedule*, Messages> known;
  std::map<std::int32_t, double> at_once;  // the most flows of one step, a channel
  for (const auto& piece : pieces) {
    const auto [entry, is_new] = known.try_emplace(piece.schedule.get());
    if (is_new) entry->second = look(*piece.schedule);
    effort.flows += entry->second.all;
    at_once[piece.channel] = std::max(at_once[piece.channel], entry->second.widest);
  }
  double together = 0;
  for (const auto& [channel, flows] : at_once) together += flows;
  effort.work = effort.flows * together;
  return effort;
}

bool is_too_much(const Effort& effort) {
  return effort.flows > kMostFlows || effort.work > kMostWork;
}

}  // namespace

Effort effort_of(const std::vector<CollectivePiece>& pieces) {
  const auto effort = add_up(pieces, sampled);
  return is_too_much(effort) ? add_up(pieces, counted) : effort;
}

void check_effort(const Effort& effort, const std::string& what) {
  if (!is_too_much(effort)) return;
  throw usage_error(
      fmt::format("{} need about {:.2g} flows, {:.2g} of them at once, more than 'auto' simulates; take fewer ranks or "
                  "another --algorithm, or ask for --fidelity flow and wait",
                  what, effort.flows, effort.work / effort.flows));
}

}  // namespace tandem
