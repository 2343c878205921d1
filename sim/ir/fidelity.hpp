// How closely a Program is simulated. The same Program runs at every level.
#pragma once

#include <string>

namespace tandem {

enum class Fidelity {
  flow,      // every message of every step is a flow that shares links
  phase,     // equal steps of a collective that follow each other are one flow a message; all members start together
  analytic,  // a collective takes a time computed from the load on each link, without flows
};

[[nodiscard]] inline std::string to_text(Fidelity fidelity) {
  return fidelity == Fidelity::flow ? "flow" : fidelity == Fidelity::phase ? "phase" : "analytic";
}

}  // namespace tandem
