// Where a result comes from: hashes of what went in, versions of what computed it.
#pragma once

#include <cstdint>
#include <string>

#include "platforms/network.hpp"
#include "traces/trace.hpp"

namespace tandem {

// Over everything that can change a prediction: layers, shapes, edges, parameters, samples.
[[nodiscard]] std::uint64_t trace_hash(const Trace& trace);
// Over all links: ends, rates, latencies, kinds, widths.
[[nodiscard]] std::uint64_t platform_hash(const Network& network);
[[nodiscard]] std::string hash_text(std::uint64_t hash);  // 16 hexadecimal digits

}  // namespace tandem
