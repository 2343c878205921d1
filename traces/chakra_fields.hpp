// What a Tandem trace has and the Chakra schema has no place for: attributes whose names begin with "tandem_", in both
// directions. With them a trace comes back from a Chakra file as it went in, although a node's duration is one whole
// number of microseconds.
#pragma once

#include "traces/chakra_file.hpp"
#include "traces/trace.hpp"

namespace tandem {

inline constexpr std::string_view kChakraFormat = "tandem_format_version";  // of the metadata of Tandem's own files
inline constexpr std::string_view kChakraNodes = "tandem_nodes";  // of the same: how many nodes such a file has
inline constexpr std::string_view kChakraLayer = "tandem_layer";  // of the nodes of layers: the layer's id
inline constexpr std::string_view kChakraPass = "tandem_pass";    // of the same: "forward"

// All of the trace but its layers and collectives.
void put_trace(const Trace& trace, ChakraAttributes& attributes);
[[nodiscard]] Trace get_trace(const ChakraAttributes& attributes);

// All of a layer but its samples; they stand at the nodes of its passes.
void put_layer(const Layer& layer, ChakraAttributes& attributes);
[[nodiscard]] Layer get_layer(const ChakraAttributes& attributes);

// Which pass of which layer a node is, and its samples.
struct ChakraPassNode {
  std::int64_t layer = 0;
  Pass pass = Pass::forward;
  Samples samples;
};
void put_pass(const ChakraPassNode& node, ChakraAttributes& attributes);
[[nodiscard]] ChakraPassNode get_pass(const ChakraAttributes& attributes);

void put_collective(const RecordedCollective& collective, ChakraAttributes& attributes);
[[nodiscard]] RecordedCollective get_collective(const ChakraAttributes& attributes);

// Attributes that other tools read.
void put_number(ChakraAttributes& attributes, std::string_view name, std::int64_t value);
void put_flag(ChakraAttributes& attributes, std::string_view name, bool value);
void put_text(ChakraAttributes& attributes, std::string_view name, std::string_view value);

}  // namespace tandem
