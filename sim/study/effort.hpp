// What a simulation will cost, before it is begun, and the level of fidelity that fits it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simgrid_backend.hpp"
#include "sim/ir/fidelity.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

// Of one level.
struct Effort {
  double flows = 0;     // transfers in all
  double work = 0;      // flows x flows under way with them: SimGrid looks at all of those when one ends
  double messages = 0;  // of estimates, and what members cost there beside them
  Effort& operator+=(const Effort& other) {
    flows += other.flows;
    work += other.work;
    messages += other.messages;
    return *this;
  }
  Effort operator*(double times) const { return {flows * times, work * times, messages * times}; }
};

struct Efforts {
  Effort flow;
  Effort phase;
  Effort analytic{};
  Efforts& operator+=(const Efforts& other) {
    flow += other.flow;
    phase += other.phase;
    analytic += other.analytic;
    return *this;
  }
  Efforts operator*(double times) const { return {flow * times, phase * times, analytic * times}; }
};

[[nodiscard]] Efforts efforts_of(const std::vector<CollectivePiece>& pieces);

// What has to be done at a level: no flows at the analytic one.
[[nodiscard]] Effort effort_at(Fidelity fidelity, const Efforts& efforts);

// What an option's text asks for: a level, or nothing where it is `auto`.
[[nodiscard]] std::optional<Fidelity> asked_fidelity(const std::string& text);
// What was asked for, or else the finest level whose predicted flows fit a constant. Network models other than
// alpha-beta have flow only.
[[nodiscard]] Fidelity fidelity_for(std::optional<Fidelity> asked, const Efforts& efforts,
                                    const NetworkModelOptions& model);

// Usage error where SimGrid is configured and has nothing to do.
void check_configuration(Fidelity level, const NetworkModelOptions& model);

// Whether simulating takes no more than about a tenth of a second.
[[nodiscard]] bool is_small(const Effort& effort);

// How far a level is from flow, as a fraction: 0 at flow, not a number where no such run can be made.
struct FidelityError {
  double value = 0;
  std::int64_t ranks = 0;  // of the run that says so: the largest number, all or a fraction, whose flows take no time
};

// Processor seconds of one simulation: fitted by eye, flows to rings of 64 to 4,096 ranks and estimates to rings of up
// to 1,048,576 and a direct exchange of 4,096; good to a factor of 4. What a run is compared with is not in it.
[[nodiscard]] double run_time(const Effort& effort);
// "50 ms", "12 s", "20 min", "1.5 h": no more digits than a prediction of run_time deserves.
[[nodiscard]] std::string rough_text(double seconds);
// The longest that `auto` lets flows take, whichever level it picks; estimates have no such limit.
[[nodiscard]] double longest_auto_time();
// A line for the user where a level that was asked for, or that is the only one left, takes more than about half a
// minute: how large it is, and what is quicker. Empty otherwise.
[[nodiscard]] std::string long_run_warning(std::optional<Fidelity> asked, const Efforts& efforts,
                                           const NetworkModelOptions& model);

}  // namespace tandem
