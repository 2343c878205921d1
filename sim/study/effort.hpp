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
  double flows = 0;  // transfers in all
  double work = 0;   // flows x flows under way with them: SimGrid looks at all of those when one ends
  Effort& operator+=(const Effort& other) {
    flows += other.flows;
    work += other.work;
    return *this;
  }
  Effort operator*(double times) const { return {flows * times, work * times}; }
};

struct Efforts {
  Effort flow;
  Effort phase;
  Efforts& operator+=(const Efforts& other) {
    flow += other.flow;
    phase += other.phase;
    return *this;
  }
  Efforts operator*(double times) const { return {flow * times, phase * times}; }
};

[[nodiscard]] Efforts efforts_of(const std::vector<CollectivePiece>& pieces);

// What SimGrid has to do at a level: nothing at the analytic one.
[[nodiscard]] Effort effort_at(Fidelity fidelity, const Efforts& efforts);

// What an option's text asks for: a level, or nothing where it is `auto`.
[[nodiscard]] std::optional<Fidelity> asked_fidelity(const std::string& text);
// What was asked for, or else the finest level whose predicted flows fit a constant. Network models other than
// alpha-beta have flow only.
[[nodiscard]] Fidelity fidelity_for(std::optional<Fidelity> asked, const Efforts& efforts,
                                    const NetworkModelOptions& model);

// Whether simulating takes no more than about a tenth of a second.
[[nodiscard]] bool is_small(const Effort& effort);
// Processor seconds of one simulation: fitted by eye to rings of 64 to 4,096 ranks, good to a factor of 3.
[[nodiscard]] double run_time(const Effort& effort);
// A line for the user where a level that was asked for, or a network model that has no other, takes more than about
// half a minute: how large it is, and what is quicker. Empty otherwise.
[[nodiscard]] std::string long_run_warning(std::optional<Fidelity> asked, const Efforts& efforts,
                                           const NetworkModelOptions& model);

}  // namespace tandem
