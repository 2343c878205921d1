// Chakra execution traces (MLCommons), schema 1.0.x: ".et" files as the converter from PyTorch writes them, one rank's
// iteration each. Those that Tandem exported come back as they were.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/chakra_fields.hpp"
#include "traces/importers/chakra_graph.hpp"

namespace tandem {
namespace {

// ---- traces that Tandem exported ----

class OwnTrace {
 public:
  OwnTrace(Trace trace, std::int64_t nodes) : trace_(std::move(trace)), expected_(nodes) {}

  void add(const chakra::Node& node) {
    const auto& attributes = node.attributes();
    if (find_attribute(attributes, "tandem_operation") != nullptr) {
      trace_.collectives.push_back(get_collective(attributes));
      add_to(collectives_, trace_.collectives.back().duration);
      return;
    }
    if (find_attribute(attributes, kChakraLayer) == nullptr) {
      ++foreign_;
      return;
    }
    auto pass = get_pass(attributes);
    if (pass.pass == Pass::forward) add_layer(pass.layer, attributes);
    if (pass.layer < 0 || std::cmp_greater_equal(pass.layer, trace_.layers.size())) {
      throw input_error(fmt::format("is of layer {}, whose forward pass is not in the file yet", pass.layer));
    }
    auto& samples = trace_.layers[static_cast<std::size_t>(pass.layer)].samples[static_cast<std::size_t>(pass.pass)];
    if (!samples.seconds.empty()) throw input_error(fmt::format("is the second {} of its layer", to_text(pass.pass)));
    samples = std::move(pass.samples);
    add_to(passes_, samples.typical());
  }

  Imported finish() {
    if (const auto found = passes_.count + collectives_.count; found != expected_) {
      throw input_error(fmt::format("{} of the {} nodes that were written: the file is cut off", found, expected_));
    }
    ImportReport report;
    report.entries = {passes_};
    if (collectives_.count > 0) report.entries.push_back(collectives_);
    if (foreign_ > 0) {
      report.entries.push_back(
          {"nodes that Tandem did not write", foreign_, {}, ImportReport::Fate::dropped, "no tandem_ attributes"});
    }
    return {std::move(trace_), std::move(report)};
  }

 private:
  static void add_to(ImportReport::Entry& entry, Seconds time) {
    ++entry.count;
    entry.time += time;
  }

  void add_layer(std::int64_t id, const ChakraAttributes& attributes) {
    if (std::cmp_not_equal(id, trace_.layers.size())) {
      throw input_error(fmt::format("is of layer {} where {} is next", id, trace_.layers.size()));
    }
    trace_.layers.push_back(get_layer(attributes));
  }

  Trace trace_;
  std::int64_t expected_;
  ImportReport::Entry passes_{"passes of layers, as Tandem exported them", 0, {}, ImportReport::Fate::used, ""};
  ImportReport::Entry collectives_{"collectives", 0, {}, ImportReport::Fate::apart, ""};
  std::int64_t foreign_ = 0;
};

Imported read_own(const chakra::Metadata& metadata, ChakraReader& reader) {
  auto trace = with_context("metadata", [&] {
    const auto nodes = whole_number(find_attribute(metadata.attributes(), kChakraNodes));
    if (!nodes) throw input_error(fmt::format("attribute '{}' is missing", kChakraNodes));
    return OwnTrace(get_trace(metadata.attributes()), *nodes);
  });
  while (!reader.done()) {
    const auto at = reader.position();
    const auto bytes = reader.next();
    const auto node = with_context(fmt::format("byte {}", at), [&] { return parse_chakra_node(bytes); });
    with_context(fmt::format("node {}", node.id()), [&] { trace.add(node); });
  }
  return trace.finish();
}

// ---- traces of PyTorch ----

std::optional<std::int64_t> size_of(const ChakraAttributes& attributes) {
  const auto size = whole_number(find_attribute(attributes, "comm_size"));
  if (size && *size < 0) throw input_error(fmt::format("comm_size is {}; bytes are expected", *size));
  return size;
}

ChakraGraphNode graph_node(const chakra::Node& from) {
  ChakraGraphNode node;
  node.id = from.id();
  node.name = from.name();
  node.type = from.type();
  node.control.assign(from.control().begin(), from.control().end());
  node.data.assign(from.data().begin(), from.data().end());
  node.start_micros = from.start_micros();
  node.micros = from.duration_micros();
  const auto& attributes = from.attributes();
  node.on_host = whole_number(find_attribute(attributes, "is_cpu_op")).value_or(0) != 0;
  node.comm_type = whole_number(find_attribute(attributes, "comm_type"));
  node.comm_size = size_of(attributes);
  node.thread = whole_number(find_attribute(attributes, "tid")).value_or(0);
  node.record = whole_number(find_attribute(attributes, "rf_id"));
  if (const auto* schema = find_attribute(attributes, "op_schema")) node.operator_schema = schema->text();
  node.values = from.inputs().values();
  node.shapes = from.inputs().shapes();
  node.types = from.inputs().types();
  node.output_shapes = from.outputs().shapes();
  return node;
}

std::string text_of(const ChakraAttributes& attributes, std::string_view name) {
  const auto* attribute = find_attribute(attributes, name);
  return attribute == nullptr ? std::string() : attribute->text();
}

ChakraGraph read_graph(const chakra::Metadata& metadata, ChakraReader& reader) {
  ChakraGraph graph;
  graph.schema = text_of(metadata.attributes(), "schema");
  if (graph.schema.empty()) graph.schema = metadata.version();
  graph.time = text_of(metadata.attributes(), "time");
  while (!reader.done()) {
    if (graph.nodes.size() == kMostChakraNodes) {
      throw input_error(fmt::format("more than {} nodes, which are more than one iteration has", kMostChakraNodes));
    }
    const auto at = reader.position();
    const auto bytes = reader.next();
    const auto node = with_context(fmt::format("byte {}", at), [&] { return parse_chakra_node(bytes); });
    graph.nodes.push_back(with_context(fmt::format("node {}", node.id()), [&] { return graph_node(node); }));
  }
  resolve(graph);
  return graph;
}

class ChakraImporter : public Importer {
 public:
  explicit ChakraImporter(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] bool recognizes(std::string_view head) const override { return looks_like_chakra(head); }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    ChakraReader reader(source.content);
    const auto metadata = parse_chakra_metadata(reader.next());
    if (find_attribute(metadata.attributes(), kChakraFormat) != nullptr) return read_own(metadata, reader);
    return trace_of_graph(read_graph(metadata, reader), batch_);
  }

 private:
  std::int64_t batch_;
};

std::unique_ptr<Importer> make_chakra(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<ChakraImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 16) : 0);
}

TANDEM_REGISTER(Importer, chakra, "chakra", "execution trace of MLCommons Chakra (.et), one iteration of PyTorch",
                make_chakra,
                {{"batch", ParameterType::integer, "", "samples a mini-batch; by default from the shapes"}})

}  // namespace
}  // namespace tandem
