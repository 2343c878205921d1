#include "sim/study/effort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

// Some seconds, either of them: a ring of 128 ranks over five buckets has 1.6e5 flows and 2e7 work, a direct exchange
// of 64 has 4e4 and 1.6e8.
constexpr double kMostFlows = 2e5;
constexpr double kMostWork = 5e8;
constexpr double kFewFlows = 1e4;
constexpr double kLittleWork = 1e7;

constexpr double kMessagesOfAMember = 8;  // what it costs beside its messages
constexpr double kLongTime = 30;          // seconds

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
    if (is_new) efforts.analytic.messages += entry->second.folded + kMessagesOfAMember * piece.schedule->members();
  }
  double together = 0;
  for (const auto& [channel, flows] : at_once) together += flows;
  efforts.flow.work = efforts.flow.flows * together;
  efforts.phase.work = efforts.phase.flows * together;
  return efforts;
}

Effort effort_at(Fidelity fidelity, const Efforts& efforts) {
  return fidelity == Fidelity::flow ? efforts.flow : fidelity == Fidelity::phase ? efforts.phase : efforts.analytic;
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

void check_configuration(Fidelity level, const NetworkModelOptions& model) {
  if (level != Fidelity::analytic || model.configuration.empty()) return;
  throw usage_error(
      "--cfg is for SimGrid, which the analytic level does without: leave it out, or ask for --fidelity "
      "phase or flow");
}

std::string rough_text(double seconds) {
  if (seconds < 1) return to_text(Seconds(seconds));
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  const auto hours = seconds / 3600;
  return hours < 10 ? fmt::format("{:.2g} h", hours) : fmt::format("{:.0f} h", hours);
}

bool is_small(const Effort& effort) {
  return effort.flows <= kFewFlows && effort.work <= kLittleWork;
}

double run_time(const Effort& effort) {
  constexpr double a_run = 0.05;
  constexpr double a_flow = 3.3e-6;
  constexpr double a_flow_beside_another = 4e-9;
  constexpr double a_message = 0.5e-6;
  return a_run + a_flow * effort.flows + a_flow_beside_another * effort.work + a_message * effort.messages;
}

double longest_auto_time() {
  return run_time({kMostFlows, kMostWork, 0});
}

std::string long_run_warning(std::optional<Fidelity> asked, const Efforts& efforts, const NetworkModelOptions& model) {
  const bool has_levels = model.model == NetworkModelOptions::Model::alpha_beta;
  const auto level = fidelity_for(asked, efforts, model);
  if (has_levels && !asked && level != Fidelity::analytic) return "";
  const auto effort = effort_at(level, efforts);
  const auto time = run_time(effort);
  if (time <= kLongTime) return "";
  if (level == Fidelity::analytic) {
    return fmt::format("fidelity analytic: estimates of {:.2g} messages, very roughly {}", effort.messages,
                       rough_text(time));
  }
  auto text = fmt::format("fidelity {}: {:.2g} flows, very roughly {}", to_text(level), effort.flows, rough_text(time));
  if (!has_levels) return text;
  // Where hardly any steps are equal, phase has as many flows.
  const bool folds = level == Fidelity::flow && run_time(efforts.phase) < time / 2;
  return text +
         fmt::format("; --fidelity {} or auto is quicker", to_text(folds ? Fidelity::phase : Fidelity::analytic));
}

}  // namespace tandem
