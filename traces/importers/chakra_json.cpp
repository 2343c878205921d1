// The JSON form of Chakra execution traces: {"workload_graph": [{"Id": 216, "Name": "...", "NodeType": 4,
// "ctrlDeps": [3], "data_deps": [], "runtime": 318, "is_cpu_op": true}, ...]}, runtime in microseconds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "traces/chakra_file.hpp"
#include "traces/importers/chakra_graph.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;

// The parser calls itself for every bracket it opens.
void check_depth(std::string_view text) {
  constexpr int most = 16;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        quoted = false;
      continue;
    }
    if (text[i] == '"') quoted = true;
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
    if (depth > most) throw input_error(fmt::format("byte {}: nested more than {} deep", i, most));
  }
}

Json parse(std::string_view text) {
  // Some twenty times as much memory as text.
  constexpr std::size_t most = std::size_t{32} << 20;
  if (text.size() > most)
    throw input_error(fmt::format("{} bytes of JSON; at most {} are accepted", text.size(), most));
  check_depth(text);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw input_error(fmt::format("not JSON: {}", std::string_view(error.what()).substr(0, 160)));
  }
  return json;
}

// Whole numbers from 0; a bool is none, a number with a fraction neither.
std::uint64_t number(const Json& json, const char* key) {
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  throw input_error(fmt::format("'{}' is {}; a whole number from 0 is expected", key, json.dump().substr(0, 40)));
}

std::optional<std::uint64_t> optional_number(const Json& node, const char* key) {
  const auto found = node.find(key);
  if (found == node.end()) return std::nullopt;
  return number(*found, key);
}

std::optional<std::int64_t> optional_size(const Json& node, const char* key) {
  const auto value = optional_number(node, key);
  if (!value) return std::nullopt;
  if (*value > std::uint64_t{1} << 62) throw input_error(fmt::format("'{}' is {}, which is absurd", key, *value));
  return static_cast<std::int64_t>(*value);
}

std::vector<std::uint64_t> numbers(const Json& node, const char* key) {
  std::vector<std::uint64_t> values;
  const auto found = node.find(key);
  if (found == node.end()) return values;
  if (!found->is_array()) throw input_error(fmt::format("'{}' is no list of ids", key));
  for (const auto& value : *found) values.push_back(number(value, key));
  return values;
}

ChakraGraphNode graph_node(const Json& from) {
  if (!from.is_object()) throw input_error("is no object");
  ChakraGraphNode node;
  const auto id = optional_number(from, "Id");
  if (!id) throw input_error("has no 'Id'");
  node.id = *id;
  const auto name = from.find("Name");
  if (name != from.end() && name->is_string()) node.name = name->get<std::string>();
  node.type = static_cast<int>(std::min<std::uint64_t>(optional_number(from, "NodeType").value_or(0), 1000));
  node.control = numbers(from, "ctrlDeps");
  node.data = numbers(from, "data_deps");
  node.micros = optional_number(from, "runtime").value_or(0);
  const auto host = from.find("is_cpu_op");
  if (host != from.end() && !host->is_boolean()) throw input_error("'is_cpu_op' is neither true nor false");
  node.on_host = host != from.end() && host->get<bool>();
  node.comm_type = optional_size(from, "comm_type");
  node.comm_size = optional_size(from, "comm_size");
  return node;
}

class ChakraJsonImporter : public Importer {
 public:
  explicit ChakraJsonImporter(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] bool recognizes(std::string_view head) const override {
    return head.find("\"workload_graph\"") != std::string_view::npos &&
           head.find("\"NodeType\"") != std::string_view::npos;
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    const Json json = parse(source.content);
    const auto found = json.is_object() ? json.find("workload_graph") : json.end();
    if (!json.is_object() || found == json.end() || !found->is_array()) {
      throw input_error("no list 'workload_graph', which Chakra's JSON form has");
    }
    if (found->size() > kMostChakraNodes) {
      throw input_error(fmt::format("{} nodes; at most {} are accepted", found->size(), kMostChakraNodes));
    }
    ChakraGraph graph;
    for (const auto& node : *found) {
      const auto where = fmt::format("workload_graph[{}]", graph.nodes.size());
      graph.nodes.push_back(with_context(where, [&] { return graph_node(node); }));
    }
    resolve(graph);
    return trace_of_graph(graph, batch_);
  }

 private:
  std::int64_t batch_;
};

std::unique_ptr<Importer> make_chakra_json(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<ChakraJsonImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 16) : 0);
}

TANDEM_REGISTER(Importer, chakra_json, "chakra-json", "JSON form of a Chakra execution trace", make_chakra_json,
                {{"batch", ParameterType::integer, "", "samples a mini-batch; by default from the kernels"}})

}  // namespace
}  // namespace tandem
