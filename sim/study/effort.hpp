// What a flow-level simulation will cost, before it is begun.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/op.hpp"

namespace tandem {

struct Effort {
  double flows = 0;  // transfers in all: exact for ring, direct and halving-doubling
  double work = 0;   // flows x flows under way with them: SimGrid looks at all of those when one ends
  Effort& operator+=(const Effort& other) {
    flows += other.flows;
    work += other.work;
    return *this;
  }
};

[[nodiscard]] Effort effort_of(const std::vector<CollectivePiece>& pieces);

// Usage error where `auto` would simulate for more than some minutes; `what` names the run, e.g. "64 ranks with
// 'ring'".
void check_effort(const Effort& effort, const std::string& what);

}  // namespace tandem
