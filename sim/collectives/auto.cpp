// Picks another algorithm by estimate, for every operation and size anew: alpha-beta over the routes, channels and
// chunks as they will run, every link shared by its load (not by max-min over time, as the simulation does).
//
// Equal inputs give equal picks: candidates are tried in the order of their names, and the first of equal ones wins.
#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/collective.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/estimate/shared_links.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

constexpr const char* kName = "auto";

// An estimate looks at every message of steps that do not repeat: some seconds for as many.
constexpr std::int64_t kMostMessages = 4'000'000;

// Of one piece, folded, by its widest of some steps.
std::int64_t most_messages(const CollectiveSchedule& schedule) {
  std::vector<Send> sends;
  std::int64_t widest = 1;
  for (const int step : {0, schedule.steps() / 2, schedule.steps() - 1}) {
    if (step < 0 || step >= schedule.steps()) continue;
    schedule.sends(step, 0, sends);
    widest = std::max(widest, static_cast<std::int64_t>(sends.size()));
  }
  return widest * schedule.steps() * schedule.members();
}

class Auto final : public CollectiveAlgorithm {
 public:
  explicit Auto(std::vector<std::string> among) : among_(std::move(among)) {
    for (const auto& name : among_) {
      if (split_plugin_text(name).name == kName) throw usage_error("'auto' cannot pick itself: name others in 'among'");
      (void)Registry<CollectiveAlgorithm>::instance().make(name);
    }
  }

  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] bool supports(CollectiveOperation) const override { return true; }

  [[nodiscard]] std::optional<CollectiveChoice> choose(const CollectiveRequest& request,
                                                       const CollectiveSite& site) const override {
    CollectiveChoice choice;
    for (const auto& name : candidates()) {
      if (auto candidate = judge(name, request, site)) choice.candidates.push_back(std::move(*candidate));
    }
    std::stable_sort(choice.candidates.begin(), choice.candidates.end(), [](const auto& a, const auto& b) {
      if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
      return a.refusal.empty() && a.estimate < b.estimate;
    });
    if (choice.candidates.empty() || !choice.candidates.front().refusal.empty()) throw nothing_fits(request, choice);
    return choice;
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation, const GroupShape&, Bytes,
                                                                   int) const override {
    throw internal_error("'auto' was asked for steps without a network to choose on");
  }

 private:
  [[nodiscard]] std::vector<std::string> candidates() const {
    if (!among_.empty()) return among_;
    auto names = Registry<CollectiveAlgorithm>::instance().names();
    std::erase(names, kName);
    return names;
  }

  // Nothing where it does not know the operation.
  static std::optional<CollectiveChoice::Candidate> judge(const std::string& name, const CollectiveRequest& request,
                                                          const CollectiveSite& site) {
    const auto refused = [&](std::string why) { return CollectiveChoice::Candidate{name, {}, std::move(why)}; };
    try {
      const auto algorithm = Registry<CollectiveAlgorithm>::instance().make(name);
      if (!algorithm->supports(request.operation)) return {};
      if (algorithm->servers(request.shape.workers) > 0) return refused("needs ranks of its own for servers");
      if (algorithm->in_switches()) return refused("assumes switches that reduce, so it must be asked for by name");
      const auto pieces = collective_pieces(*algorithm, request);
      if (most_messages(*folded(pieces).front().schedule) * request.channels > kMostMessages) {
        return refused("too many messages to estimate");
      }
      return CollectiveChoice::Candidate{name, collective_estimate(pieces, site.network, site.devices, site.costs).time,
                                         ""};
    } catch (const Error& error) {
      // A model error: failures have left no way that the algorithm needs.
      if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::model) throw;
      return refused(error.what());
    }
  }

  static Error nothing_fits(const CollectiveRequest& request, const CollectiveChoice& choice) {
    auto text = fmt::format("'auto' knows no algorithm for {} by these {} ranks", to_text(request.operation),
                            request.shape.workers);
    for (const auto& candidate : choice.candidates) {
      text += fmt::format("; {}: {}", candidate.algorithm, candidate.refusal);
    }
    return choice.candidates.empty() ? usage_error(std::move(text)) : model_error(std::move(text));
  }

  std::vector<std::string> among_;  // empty: all there are
};

TANDEM_REGISTER(
    CollectiveAlgorithm, auto_pick, kName,
    "for every size the algorithm of the lowest estimate, every link shared by its load; ranks in order of address",
    [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
      return std::make_unique<Auto>(arguments.has("among") ? split(arguments.text("among"), '+')
                                                           : std::vector<std::string>{});
    },
    {{"among", ParameterType::text, "",
      "candidates joined with '+', with a parameter each if need be (ring+blueconnect:rotate=yes); "
      "unset: all, with their defaults"}})

}  // namespace
}  // namespace tandem
