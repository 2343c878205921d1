// The nodes of a Chakra execution trace, whichever form they came in: what the importers need of them, with
// dependencies that are known to be a graph without cycles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/importer.hpp"

namespace tandem {

struct ChakraGraphNode {
  std::uint64_t id = 0;
  std::string name;
  int type = 0;  // ChakraNodeType, or another of the schema's
  std::vector<std::uint64_t> control, data;
  std::uint64_t start_micros = 0;  // 0: not recorded
  std::uint64_t micros = 0;        // duration
  bool on_host = false;
  std::optional<std::int64_t> comm_type, comm_size;
  std::int64_t thread = 0;
  std::optional<std::int64_t> record;  // equal for the parts of one operator
  std::string operator_schema;         // "aten::mul.out(Tensor self, ...) -> Tensor(a!)"
  // Of the operator, or of the one that launched the kernel, as Python prints them.
  std::string values, shapes, types, output_shapes;

  [[nodiscard]] bool is_communication() const;
  [[nodiscard]] double seconds() const { return static_cast<double>(micros) * 1e-6; }
};

struct ChakraGraph {
  std::string schema;  // "1.0.1"
  std::string time;    // "2023-12-14 11:55:01"
  std::vector<ChakraGraphNode> nodes;
  // Where a data dependency stands in `nodes`, in the order of the file.
  std::vector<std::vector<std::uint32_t>> data;
  // The same of control dependencies; no entries where the file's cannot be trusted.
  std::vector<std::vector<std::uint32_t>> control;
  bool control_is_trusted = true;
  std::vector<std::uint32_t> order;  // places in `nodes`, each behind those it depends on
};

inline constexpr std::size_t kMostChakraNodes = std::size_t{1} << 20;

// Fills `data`, `control` and `order`. Input errors: an id given twice, a data dependency on a node that is not there,
// a cycle, a duration that no iteration has. Control dependencies are trusted only where each names another node of the
// file: a converter of 2023 left the numbers of an earlier pass there.
void resolve(ChakraGraph& graph);

// A trace of one iteration of PyTorch. `batch` 0: from the shapes.
[[nodiscard]] Imported trace_of_graph(const ChakraGraph& graph, std::int64_t batch);

}  // namespace tandem
