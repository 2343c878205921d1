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

}  // namespace

Effort effort_of(const std::vector<CollectivePiece>& pieces) {
  Effort effort;
  std::map<std::int32_t, double> at_once;  // the most flows of one step, a channel
  std::vector<Send> sends;
  for (const auto& piece : pieces) {
    const auto& schedule = *piece.schedule;
    double widest = schedule.steps() > 0 ? 1 : 0;
    for (const int step : {0, schedule.steps() / 2, schedule.steps() - 1}) {
      if (step < 0 || step >= schedule.steps()) continue;
      schedule.sends(step, 0, sends);
      widest = std::max(widest, static_cast<double>(sends.size()));
    }
    widest *= schedule.members();
    effort.flows += schedule.steps() * widest;
    at_once[piece.channel] = std::max(at_once[piece.channel], widest);
  }
  double together = 0;
  for (const auto& [channel, flows] : at_once) together += flows;
  effort.work = effort.flows * together;
  return effort;
}

void check_effort(const Effort& effort, const std::string& what) {
  if (effort.flows <= kMostFlows && effort.work <= kMostWork) return;
  throw usage_error(
      fmt::format("{} need about {:.2g} flows, {:.2g} of them at once, more than 'auto' simulates; take fewer ranks or "
                  "another --algorithm, or ask for --fidelity flow and wait",
                  what, effort.flows, effort.work / effort.flows));
}

}  // namespace tandem
