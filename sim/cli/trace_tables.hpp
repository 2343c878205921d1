// A trace as people look at it: its facts, its layers, and what deserves doubt.
#pragma once

#include <string>
#include <vector>

#include "sim/results/record.hpp"
#include "traces/trace.hpp"

namespace tandem {

// Where it comes from, its size, and the sum of its layers against the measured whole iteration (NaN without one).
[[nodiscard]] Record trace_facts(const Trace& trace);

// One record a layer; `top` > 0 keeps the costliest ones, costliest first.
[[nodiscard]] std::vector<Record> layer_records(const Trace& trace, std::size_t top = 0);

// Sum of layers far from the whole iteration, unsteady timings, notes: one line each, with a heading; "" where none.
[[nodiscard]] std::string trace_remarks(const Trace& trace);
[[nodiscard]] std::vector<std::string> remarks_of(const Trace& trace);

}  // namespace tandem
