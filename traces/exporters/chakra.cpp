// The trace as a Chakra execution trace: a compute node for every pass of every layer, with data dependencies along
// the edges of the model (backward against them), and a collective for every recorded one. What the schema has no place
// for stands in attributes (traces/chakra_fields.hpp), so that the chakra importer gives the same trace back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/core/error.hpp"
#include "traces/chakra_fields.hpp"
#include "traces/exporter.hpp"

namespace tandem {
namespace {

constexpr std::string_view kVersion = "0.0.4";
constexpr std::string_view kSchema = "1.0.2-chakra.0.0.4";  // as the converter from PyTorch writes it

using Ids = std::vector<std::uint64_t>;

std::uint64_t micros(Seconds time) {
  return static_cast<std::uint64_t>(std::llround(time.count() * 1e6));
}

// Floating-point work as the schema counts operations; what does not fit 64 bits is the most that does.
std::int64_t whole(Flops work) {
  constexpr double most = 9e18;
  return work.count() < most ? std::llround(work.count()) : std::numeric_limits<std::int64_t>::max();
}

std::int64_t element_bytes(const Trace& trace) {
  static const std::map<std::string_view, std::int64_t> widths = {
      {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"int8", 1}};
  const auto found = widths.find(trace.dtype);
  return found == widths.end() ? 4 : found->second;
}

// "[[32, 64, 56, 56], [32, 64, 56, 56]]", as Python prints it.
std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text = "[";
  for (const auto& shape : shapes) {
    text += text.size() > 1 ? ", [" : "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", shape[i]);
    text += "]";
  }
  return text + "]";
}

// For each all-reduce the layer whose gradients it ends with. PyTorch and Horovod fill buckets with gradients as they
// become ready, the last parameter's first; empty where the sizes do not come out even with tensors walked so.
std::vector<std::vector<std::size_t>> layers_of_buckets(const Trace& trace) {
  const std::int64_t width = element_bytes(trace);
  std::vector<std::pair<std::size_t, std::int64_t>> gradients;  // layer and bytes, in the order of becoming ready
  for (std::size_t id = trace.layers.size(); id-- > 0;) {
    const auto& tensors = trace.layers[id].parameters;
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      gradients.emplace_back(id, tensor->count() * width);
    }
  }
  std::vector<std::vector<std::size_t>> buckets;
  std::size_t next = 0;
  for (const auto& collective : trace.collectives) {
    auto& layers = buckets.emplace_back();
    if (collective.operation != "all-reduce") continue;
    std::int64_t left = collective.bytes.count();
    while (left > 0 && next < gradients.size()) {
      const auto& [layer, bytes] = gradients[next++];
      left -= bytes;
      if (layers.empty() || layers.back() != layer) layers.push_back(layer);
    }
    if (left != 0) return {};
  }
  return next == gradients.size() ? buckets : std::vector<std::vector<std::size_t>>();
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace), consumers_(trace.layers.size()), backward_(trace.layers.size()) {
    for (std::size_t id = 0; id < trace.layers.size(); ++id) {
      for (const LayerId input : trace.layers[id].inputs) {
        auto& consumers = consumers_[input.index()];
        if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
      }
    }
  }

  std::string write() {
    for (std::size_t id = 0; id < trace_.layers.size(); ++id) add_forward(id);
    for (std::size_t id = trace_.layers.size(); id-- > 0;) add_backward(id);
    add_collectives();
    for (std::size_t id = 0; id < trace_.layers.size(); ++id) add_update(id);
    chakra::Metadata metadata;
    metadata.set_version(std::string(kVersion));
    put_text(*metadata.mutable_attributes(), "schema", kSchema);
    put_number(*metadata.mutable_attributes(), kChakraNodes, static_cast<std::int64_t>(next_id_));
    put_trace(trace_, *metadata.mutable_attributes());
    std::string file;
    append_chakra(file, metadata);
    return file + nodes_;
  }

 private:
  [[nodiscard]] const Layer& layer(std::size_t id) const { return trace_.layers[id]; }
  // Forward passes come first, so a layer's node has the layer's id.
  static std::uint64_t forward_of(std::size_t id) { return id; }

  [[nodiscard]] chakra::Node pass_node(std::size_t id, Pass pass) {
    chakra::Node node;
    node.set_id(next_id_++);
    node.set_name(fmt::format("{}/{}", layer(id).name, to_text(pass)));
    node.set_type(static_cast<int>(ChakraNodeType::compute));
    node.set_duration_micros(micros(layer(id).time(pass)));
    auto& attributes = *node.mutable_attributes();
    put_flag(attributes, "is_cpu_op", false);
    put_number(attributes, "num_ops", whole(layer(id).flops[static_cast<std::size_t>(pass)]));
    put_pass({static_cast<std::int64_t>(id), pass, layer(id).samples[static_cast<std::size_t>(pass)]}, attributes);
    return node;
  }

  void add(const chakra::Node& node) { append_chakra(nodes_, node); }

  void add_forward(std::size_t id) {
    auto node = pass_node(id, Pass::forward);
    Ids reads;
    for (const LayerId input : layer(id).inputs) reads.push_back(forward_of(input.index()));
    depend(node, std::move(reads));
    node.mutable_inputs()->set_shapes(shapes_text(layer(id).input_shapes));
    node.mutable_outputs()->set_shapes(shapes_text({layer(id).output_shape}));
    put_number(*node.mutable_attributes(), "tensor_size", layer(id).activation_bytes.count());
    put_layer(layer(id), *node.mutable_attributes());
    add(node);
  }

  // A layer's backward nodes read its input (kept by the forward pass) and the gradient of its output, which its
  // consumers compute.
  void add_backward(std::size_t id) {
    const auto& own = layer(id);
    Ids reads = {forward_of(id)};
    for (const auto consumer : consumers_[id]) {
      if (const auto node = backward_[consumer].gradient; node != 0) reads.push_back(node);
    }
    const bool has_weights = own.parameter_count() > 0;
    const auto measured = [&](Pass pass) { return !own.samples[static_cast<std::size_t>(pass)].seconds.empty(); };
    if (measured(Pass::backward_data) || (own.needs_input_gradient && !own.backward_is_joint)) {
      backward_[id].gradient = add_backward_node(id, Pass::backward_data, reads);
    }
    if (measured(Pass::backward_weight) || has_weights || own.backward_is_joint) {
      backward_[id].weights = add_backward_node(id, Pass::backward_weight, reads);
      if (backward_[id].gradient == 0) backward_[id].gradient = backward_[id].weights;
    }
  }

  std::uint64_t add_backward_node(std::size_t id, Pass pass, const Ids& reads) {
    auto node = pass_node(id, pass);
    depend(node, reads);
    add(node);
    return node.id();
  }

  // In their order, each behind the one before it, and behind the gradients that it carries where the sizes tell.
  void add_collectives() {
    const auto buckets = layers_of_buckets(trace_);
    for (std::size_t i = 0; i < trace_.collectives.size(); ++i) {
      const auto& collective = trace_.collectives[i];
      chakra::Node node;
      node.set_id(next_id_++);
      node.set_name(fmt::format("{} {}", collective.operation, i));
      node.set_type(static_cast<int>(ChakraNodeType::collective));
      node.set_duration_micros(micros(collective.duration));
      if (i > 0) node.add_control(collectives_.back());
      Ids gradients;
      for (const auto id : buckets.empty() ? std::vector<std::size_t>() : buckets[i]) {
        gradients.push_back(backward_[id].weights);
      }
      depend(node, std::move(gradients));
      auto& attributes = *node.mutable_attributes();
      put_flag(attributes, "is_cpu_op", false);
      if (const auto type = chakra_collective_type(collective.operation)) put_number(attributes, "comm_type", *type);
      put_number(attributes, "comm_size", collective.bytes.count());
      put_collective(collective, attributes);
      collectives_.push_back(node.id());
      add(node);
    }
  }

  // Collectives form a chain: behind the last is behind all.
  void add_update(std::size_t id) {
    const auto& samples = layer(id).samples[static_cast<std::size_t>(Pass::update)].seconds;
    if (samples.empty() && layer(id).parameter_count() == 0) return;
    auto node = pass_node(id, Pass::update);
    Ids reads;
    if (backward_[id].weights != 0) reads.push_back(backward_[id].weights);
    if (!collectives_.empty()) reads.push_back(collectives_.back());
    depend(node, std::move(reads));
    add(node);
  }

  static void depend(chakra::Node& node, Ids ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (const auto id : ids) node.add_data(id);
  }

  // Nodes of a layer's backward pass; 0 where there is none (node 0 is a forward pass).
  struct Backward {
    std::uint64_t gradient = 0;  // computes the gradient of the layer's input
    std::uint64_t weights = 0;
  };

  const Trace& trace_;
  std::vector<std::vector<std::size_t>> consumers_;
  std::vector<Backward> backward_;
  Ids collectives_;
  std::uint64_t next_id_ = 0;
  std::string nodes_;  // the file behind its metadata
};

class ChakraExporter : public Exporter {
 public:
  [[nodiscard]] std::vector<std::string> extensions() const override { return {".et"}; }
  [[nodiscard]] std::string write(const Trace& trace) const override { return Writer(trace).write(); }
  [[nodiscard]] std::vector<std::string> cannot_carry(const Trace&) const override { return {}; }
};

std::unique_ptr<Exporter> make_chakra(const Arguments&, const Exporter::PluginContext&) {
  return std::make_unique<ChakraExporter>();
}

TANDEM_REGISTER(Exporter, chakra_exporter, "chakra", "execution trace of MLCommons Chakra, schema 1.0, one iteration",
                make_chakra, {})

}  // namespace
}  // namespace tandem
