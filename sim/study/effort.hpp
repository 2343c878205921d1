// What a simulation will cost, before it is begun, and the level of fidelity that fits it.
#pragma once

#include <cstdint>
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

// The finest level whose predicted flows fit a constant. `text` is an option's: auto, or a level that is meant. Network
// models other than alpha-beta have flow only.
[[nodiscard]] Fidelity fidelity_for(const std::string& text, const Efforts& efforts, const NetworkModelOptions& model);
// Whether simulating takes no more than about a tenth of a second.
[[nodiscard]] bool is_small(const Effort& effort);

}  // namespace tandem
