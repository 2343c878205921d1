#include "sim/study/effort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/error.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

// Some seconds, either of them: a ring of 128 ranks over five buckets has 1.6e5 flows and 2e7 work, a direct exchange
// of 64 has 4e4 and 1.6e8.
constexpr double kMostFlows = 2e5;
constexpr double kMostWork = 5e8;
constexpr double kFewFlows = 1e4;
constexpr double kLittleWork = 1e7;

constexpr double kLongTime = 30;  // seconds

std::string spoken(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.2g} h", seconds / 3600);
}

bool fits(const Effort& effort) {
  return effort.flows <= kMostFlows && effort.work <= kMostWork;
}

}  // namespace

Efforts efforts_of(const std::vector<CollectivePiece>& pieces) {
  Efforts efforts;
  std::map<const CollectiveSchedule*, MessageCount> known;
  std::map<std::int32_t, double> at_once;  // the most flows of one step, a channel
  for (const auto& piece : folded(pieces)) {
    const auto [entry, is_new] = known.try_emplace(piece.schedule.get());
    if (is_new) entry->second = count_messages(*piece.schedule);
    efforts.flow.flows += entry->second.whole;
    efforts.phase.flows += entry->second.folded;
    at_once[piece.channel] = std::max(at_once[piece.channel], entry->second.widest);
  }
  double together = 0;
  for (const auto& [channel, flows] : at_once) together += flows;
  efforts.flow.work = efforts.flow.flows * together;
  efforts.phase.work = efforts.phase.flows * together;
  return efforts;
}

Effort effort_at(Fidelity fidelity, const Efforts& efforts) {
  return fidelity == Fidelity::flow ? efforts.flow : fidelity == Fidelity::phase ? efforts.phase : Effort{};
}

std::optional<Fidelity> asked_fidelity(const std::string& text) {
  for (const auto level : {Fidelity::flow, Fidelity::phase, Fidelity::analytic}) {
    if (text == to_text(level)) return level;
  }
  if (text != "auto") throw internal_error("'" + text + "' is no level of fidelity");
  return {};
}

Fidelity fidelity_for(std::optional<Fidelity> asked, const Efforts& efforts, const NetworkModelOptions& model) {
  if (asked) return *asked;
  if (model.model != NetworkModelOptions::Model::alpha_beta) return Fidelity::flow;
  return fits(efforts.flow) ? Fidelity::flow : fits(efforts.phase) ? Fidelity::phase : Fidelity::analytic;
}

bool is_small(const Effort& effort) {
  return effort.flows <= kFewFlows && effort.work <= kLittleWork;
}

double run_time(const Effort& effort) {
  constexpr double a_run = 0.05;
  constexpr double a_flow = 3.3e-6;
  constexpr double a_flow_beside_another = 4e-9;
  return a_run + a_flow * effort.flows + a_flow_beside_another * effort.work;
}

std::string long_run_warning(std::optional<Fidelity> asked, const Efforts& efforts, const NetworkModelOptions& model) {
  const bool has_levels = model.model == NetworkModelOptions::Model::alpha_beta;
  if (has_levels && !asked) return "";
  const auto level = fidelity_for(asked, efforts, model);
  const auto effort = effort_at(level, efforts);
  const auto time = run_time(effort);
  if (time <= kLongTime) return "";
  auto text = fmt::format("fidelity {}: {:.2g} flows, very roughly {}", to_text(level), effort.flows, spoken(time));
  if (!has_levels) return text;
  // Where hardly any steps are equal, phase has as many flows.
  const bool folds = level == Fidelity::flow && run_time(efforts.phase) < time / 2;
  return text +
         fmt::format("; --fidelity {} or auto is quicker", to_text(folds ? Fidelity::phase : Fidelity::analytic));
}

}  // namespace tandem
