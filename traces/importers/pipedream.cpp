// PipeDream's profiles (Narayanan et al., SOSP 2019): graph.txt as its profiler writes it.
//
//   node4 -- Conv2d(3, 64, kernel_size=(3, 3), ...) -- forward_compute_time=F, backward_compute_time=B,
//            activation_size=A, parameter_size=P [-- stage_id=S]          (one line)
//   <tab>node4 -- node5                                                    node4 feeds node5
//
// F and B are milliseconds a mini-batch, A the bytes of the output for the whole mini-batch, P bytes of parameters.
// Lines come in any order. The time of the node `Input` is data loading.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <system_error>

#include "sim/core/error.hpp"
#include "traces/importer.hpp"
#include "traces/layer_work.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::string_view kSeparator = " -- ";

// ---- text ----

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\r'; });
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parts between commas that stand outside parentheses.
std::vector<std::string_view> arguments_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      if (const auto part = trim(text.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
      begin = i + 1;
    } else {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    }
  }
  return parts;
}

// A module as PyTorch prints it: "Conv2d(3, 64, kernel_size=(3, 3), bias=False)".
struct Module {
  std::string name;
  std::vector<std::string> positional;
  std::map<std::string, std::string, std::less<>> named;

  explicit Module(std::string_view text) {
    const auto open = text.find('(');
    name = std::string(trim(text.substr(0, open)));
    if (open == std::string_view::npos || text.back() != ')') return;
    for (const auto part : arguments_of(text.substr(open + 1, text.size() - open - 2))) {
      const auto equals = part.find('=');
      if (equals == std::string_view::npos) {
        positional.emplace_back(part);
      } else {
        named.emplace(part.substr(0, equals), part.substr(equals + 1));
      }
    }
  }

  [[nodiscard]] bool is(std::string_view key, std::string_view value) const {
    const auto found = named.find(key);
    return found != named.end() && found->second == value;
  }
  // A positive count; 0 where it is absent or something else.
  [[nodiscard]] std::int64_t count(std::size_t position, std::string_view key) const {
    const auto found = named.find(key);
    const std::string_view text = found != named.end()           ? std::string_view(found->second)
                                  : position < positional.size() ? std::string_view(positional[position])
                                                                 : std::string_view();
    const auto value = parse<std::int64_t>(text);
    return value && *value > 0 && *value <= (std::int64_t{1} << 31) ? *value : 0;
  }
  // "3" or "(3, 5)" as one value a spatial dimension; nothing where it is neither.
  [[nodiscard]] std::optional<std::vector<int>> pair(std::string_view key, std::vector<int> otherwise,
                                                     int least) const {
    const auto found = named.find(key);
    if (found == named.end()) return otherwise;
    std::string_view text = found->second;
    const bool tuple = text.starts_with('(') && text.ends_with(')');
    if (tuple) text = text.substr(1, text.size() - 2);
    std::vector<int> values;
    for (const auto part : arguments_of(text)) {
      const auto value = parse<int>(part);
      if (!value || *value < least || *value > 1'000'000) return std::nullopt;
      values.push_back(*value);
    }
    if (values.size() == 1 && !tuple) values.push_back(values[0]);
    return values.size() == 2 ? std::optional(values) : std::nullopt;
  }
};

// ---- the file ----

struct Node {
  int id = 0;
  int line = 0;
  Module module{""};
  double forward_ms = 0, backward_ms = 0;
  std::int64_t output_elements = 0;
  std::int64_t parameter_elements = 0;
  std::map<int, int> producers;  // id -> line of the edge
  std::vector<int> consumers;
};

using Graph = std::map<int, Node>;

class Parser {
 public:
  Graph read(std::istream& in) {
    std::string line;
    while (std::getline(in, line)) {
      ++line_;
      if (!printable(line)) fail("has characters that no profile has");
      if (trim(line).empty()) continue;
      if (line[0] == '\t' || line[0] == ' ') {
        parse_edge(line);
      } else {
        parse_node(line);
      }
    }
    connect();
    return std::move(nodes_);
  }

 private:
  struct Edge {
    int from, to, line;
  };

  [[noreturn]] void fail(const std::string& why) const { throw input_error(fmt::format("line {} {}", line_, why)); }

  static std::string shortened(std::string_view text) {
    constexpr std::size_t most = 60;
    return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
  }

  [[nodiscard]] int parse_id(std::string_view text) const {
    text = trim(text);
    const auto id = text.starts_with("node") ? parse<int>(text.substr(4)) : std::nullopt;
    if (!id || *id < 0) fail(fmt::format("has '{}' where a node is expected (\"node12\")", shortened(text)));
    return *id;
  }

  void parse_edge(std::string_view line) {
    const auto split = line.find(kSeparator);
    if (split == std::string_view::npos) fail("is neither a node nor an edge (\"<tab>node1 -- node2\")");
    edges_.push_back({parse_id(line.substr(0, split)), parse_id(line.substr(split + kSeparator.size())), line_});
  }

  void parse_node(std::string_view line) {
    // Once partitioned, PipeDream appends the stage. It is a result, not a measurement.
    if (const auto stage = line.rfind(" -- stage_id="); stage != std::string_view::npos) line = line.substr(0, stage);
    const auto first = line.find(kSeparator);
    const auto last = line.rfind(kSeparator);
    if (first == std::string_view::npos || first == last) {
      fail("is neither a node (\"node1 -- layer -- times\") nor an edge");
    }
    Node node;
    node.id = parse_id(line.substr(0, first));
    node.line = line_;
    const auto begin = first + kSeparator.size();
    node.module = Module(trim(line.substr(begin, last - begin)));
    if (node.module.name.empty()) fail("has no layer text");
    parse_fields(line.substr(last + kSeparator.size()), node);
    const auto [known, added] = nodes_.emplace(node.id, std::move(node));
    if (!added) fail(fmt::format("gives node{} again (first on line {})", known->first, known->second.line));
  }

  void parse_fields(std::string_view text, Node& node) const {
    std::map<std::string_view, std::string_view> fields;
    for (const auto part : arguments_of(text)) {
      const auto equals = part.find('=');
      if (equals == std::string_view::npos) fail(fmt::format("has '{}' where key=value is expected", shortened(part)));
      fields[part.substr(0, equals)] = part.substr(equals + 1);
    }
    node.forward_ms = parse_time(fields, "forward_compute_time");
    node.backward_ms = parse_time(fields, "backward_compute_time");
    node.output_elements = parse_elements(fields, "activation_size");
    node.parameter_elements = parse_elements(fields, "parameter_size");
  }

  using Fields = std::map<std::string_view, std::string_view>;

  [[nodiscard]] std::string_view field(const Fields& fields, std::string_view name) const {
    const auto found = fields.find(name);
    if (found == fields.end()) fail(fmt::format("has no {}", name));
    return found->second;
  }

  [[nodiscard]] double parse_time(const Fields& fields, std::string_view name) const {
    const auto text = field(fields, name);
    const auto value = parse<double>(text);
    if (!value || !std::isfinite(*value) || *value < 0) {
      fail(fmt::format("has {}='{}'; milliseconds, 0 or more, are expected", name, shortened(text)));
    }
    return *value;
  }

  // One number of bytes, or a list "[a; b]" for a layer of several outputs. Elements are floats.
  [[nodiscard]] std::int64_t parse_elements(const Fields& fields, std::string_view name) const {
    auto text = field(fields, name);
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    double bytes = 0;
    for (std::size_t begin = 0; begin <= text.size();) {
      const auto end = std::min(text.find(';', begin), text.size());
      const auto value = parse<double>(trim(text.substr(begin, end - begin)));
      bytes += value ? *value : NAN;
      begin = end + 1;
    }
    constexpr double most = 1e15;
    if (!(bytes >= 0 && bytes <= most) || std::fmod(bytes, kFloat) != 0) {
      fail(fmt::format("has {}='{}'; bytes of whole {}-byte numbers, 0 to 1e15, are expected", name, shortened(text),
                       kFloat));
    }
    return static_cast<std::int64_t>(bytes) / kFloat;
  }

  void connect() {
    if (nodes_.empty()) throw input_error("no nodes: not a PipeDream profile");
    for (const auto& edge : edges_) {
      line_ = edge.line;
      for (const int end : {edge.from, edge.to}) {
        if (nodes_.count(end) == 0) fail(fmt::format("is an edge of node{}, which is not in the file", end));
      }
      if (edge.from == edge.to) fail(fmt::format("feeds node{} to itself", edge.to));
      if (!nodes_.at(edge.to).producers.emplace(edge.from, edge.line).second) {
        fail(fmt::format("gives the edge node{} -- node{} again", edge.from, edge.to));
      }
      nodes_.at(edge.from).consumers.push_back(edge.to);
    }
    check_one_part();
  }

  // Edges stand behind the nodes, so a file that was cut short has nodes that nothing leads to.
  void check_one_part() const {
    std::set<int> reached = {nodes_.begin()->first};
    std::vector<int> open = {nodes_.begin()->first};
    const auto visit = [&](int id) {
      if (reached.insert(id).second) open.push_back(id);
    };
    while (!open.empty()) {
      const auto& node = nodes_.at(open.back());
      open.pop_back();
      for (const auto& [producer, line] : node.producers) visit(producer);
      for (const int consumer : node.consumers) visit(consumer);
    }
    for (const auto& [id, node] : nodes_) {
      if (reached.contains(id)) continue;
      throw input_error(fmt::format("line {}: no edges connect node{} with node{}: was the file cut short?", node.line,
                                    id, nodes_.begin()->first));
    }
  }

  Graph nodes_;
  std::vector<Edge> edges_;
  int line_ = 0;
};

bool is_input(const Node& node) {
  return node.module.name == "Input";
}
// x.size(0): a number, not a tensor; nothing flows back through it.
bool is_size(const Node& node) {
  return node.module.name == "Size";
}

[[noreturn]] void fail_cycle(const Graph& graph, const std::map<int, std::size_t>& waiting) {
  // Every node that still waits has a producer that waits: walking back must meet itself.
  std::set<int> seen;
  int at = std::find_if(waiting.begin(), waiting.end(), [](const auto& entry) { return entry.second > 0; })->first;
  int line = 0;
  while (seen.insert(at).second) {
    for (const auto& [from, edge_line] : graph.at(at).producers) {
      if (waiting.at(from) == 0) continue;
      line = edge_line;
      at = from;
      break;
    }
  }
  throw input_error(fmt::format("line {} closes a cycle through node{}", line, at));
}

// Producers first; where there is a choice, in the order of node numbers, which is the order of execution.
std::vector<int> topological_order(const Graph& graph) {
  std::map<int, std::size_t> waiting;  // producers not placed yet
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (const auto& [id, node] : graph) {
    waiting[id] = node.producers.size();
    if (node.producers.empty()) ready.push(id);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const int consumer : graph.at(id).consumers) {
      if (--waiting[consumer] == 0) ready.push(consumer);
    }
  }
  if (order.size() < graph.size()) fail_cycle(graph, waiting);
  return order;
}

// ---- layers ----

OpKind kind_of(const Module& module) {
  static const std::map<std::string_view, OpKind> kinds = {
      {"Conv2d", OpKind::conv},
      {"Linear", OpKind::fc},
      {"BatchNorm2d", OpKind::bn},
      {"ReLU", OpKind::relu},
      {"MaxPool2d", OpKind::max_pool},
      {"AvgPool2d", OpKind::avg_pool},
      {"AdaptiveAvgPool2d", OpKind::avg_pool},
      {"Add", OpKind::add},
      {"Concat", OpKind::concat},
      {"LocalResponseNorm", OpKind::lrn},
      {"Dropout", OpKind::dropout},
      {"CrossEntropyLoss", OpKind::softmax_loss},
      {"View", OpKind::flatten},
  };
  const auto found = kinds.find(module.name);
  return found == kinds.end() ? OpKind::other : found->second;
}

// False where the text does not describe a two-dimensional window.
bool set_window(Layer& layer, const Module& module) {
  if (module.named.count("kernel_size") == 0) return false;
  const auto kernel = module.pair("kernel_size", {}, 1);
  if (!kernel) return false;
  const bool pool = layer.kind != OpKind::conv;
  const auto stride = module.pair("stride", pool ? *kernel : std::vector<int>{1, 1}, 1);
  const auto pad = module.pair("padding", {0, 0}, 0);
  const auto dilation = module.pair("dilation", {1, 1}, 1);
  if (!stride || !pad || !dilation) return false;
  layer.kernel = *kernel;
  layer.stride = *stride;
  layer.pad_begin = layer.pad_end = *pad;
  layer.dilation = *dilation;
  return true;
}

std::optional<Shape> windowed_shape(const Layer& layer, const Module& module, std::int64_t channels) {
  Shape shape = layer.input_shapes[0];
  if (shape.size() != 4 || layer.kernel.size() != 2 || channels < 1) return std::nullopt;
  shape[1] = channels;
  try {
    for (std::size_t d = 0; d < 2; ++d) {
      shape[d + 2] = window_extent(shape[d + 2], layer.kernel[d], layer.stride[d], layer.pad_begin[d], layer.pad_end[d],
                                   layer.dilation[d], module.is("ceil_mode", "True"));
    }
  } catch (const Error&) {  // the window does not fit: the shape is not what it seemed
    return std::nullopt;
  }
  return shape;
}

std::optional<Shape> concat_shape(const Layer& layer) {
  Shape shape = layer.input_shapes[0];
  if (shape.size() < 2) return std::nullopt;
  for (std::size_t i = 1; i < layer.input_shapes.size(); ++i) {
    if (layer.input_shapes[i].size() != shape.size()) return std::nullopt;
    shape[1] += layer.input_shapes[i][1];
  }
  return shape;
}

// The output shape that the layer's text and inputs imply.
std::optional<Shape> implied_shape(const Layer& layer, const Module& module, std::int64_t elements_a_sample) {
  const Shape& in = layer.input_shapes[0];
  switch (layer.kind) {
    case OpKind::conv:
      return windowed_shape(layer, module, module.count(1, "out_channels"));
    case OpKind::max_pool:
    case OpKind::avg_pool:
      return in.size() == 4 ? windowed_shape(layer, module, in[1]) : std::nullopt;
    case OpKind::fc:
      return Shape{in[0], module.count(1, "out_features")};
    case OpKind::flatten:
      return Shape{in[0], elements_a_sample};
    case OpKind::concat:
      return concat_shape(layer);
    default:
      return in;
  }
}

std::vector<ParameterTensor> implied_parameters(const Layer& layer, const Module& module) {
  const bool bias = !module.is("bias", "False");
  if (layer.kind == OpKind::conv && layer.kernel.size() == 2) {
    const auto out = module.count(1, "out_channels");
    std::vector<ParameterTensor> tensors = {
        {"weight", {out, module.count(0, "in_channels") / layer.groups, layer.kernel[0], layer.kernel[1]}}};
    if (bias) tensors.push_back({"bias", {out}});
    return tensors;
  }
  if (layer.kind == OpKind::fc) {
    const auto out = module.count(1, "out_features");
    std::vector<ParameterTensor> tensors = {{"weight", {out, module.count(0, "in_features")}}};
    if (bias) tensors.push_back({"bias", {out}});
    return tensors;
  }
  if (layer.kind == OpKind::bn && !module.is("affine", "False")) {
    const auto channels = module.count(0, "num_features");
    return {{"weight", {channels}}, {"bias", {channels}}};
  }
  return {};
}

// ---- the trace ----

class Builder {
 public:
  Builder(const Graph& graph, std::int64_t batch_given) : graph_(graph), batch_given_(batch_given) {}

  Trace build() {
    find_batch();
    for (const int id : topological_order(graph_)) {
      const Node& node = graph_.at(id);
      if (is_input(node) || is_size(node)) {
        leave_out(node);
      } else {
        add_layer(node);
      }
    }
    describe();
    return std::move(trace_);
  }

 private:
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  void set_batch(std::int64_t batch, const std::string& why) {
    trace_.batch = batch;
    note(fmt::format("the file does not state its batch: {} {}", batch, why));
  }

  // The file holds whole mini-batches. A layer that states its features gives the batch away; the size of the input
  // does only if one knows its images.
  void find_batch() {
    if (batch_given_ > 0) {
      trace_.batch = batch_given_;
      note(fmt::format("batch {} as given", batch_given_));
      return;
    }
    for (const auto& [id, node] : graph_) {
      const bool linear = node.module.name == "Linear";
      const auto features = linear                       ? node.module.count(1, "out_features")
                            : node.module.name == "View" ? node.module.count(0, "")
                                                         : 0;
      if (features > 0 && node.output_elements > 0 && node.output_elements % features == 0) {
        set_batch(node.output_elements / features, fmt::format("is node{}'s output by its {} features", id, features));
        return;
      }
    }
    for (const auto& [id, node] : graph_) {
      if (!is_input(node)) continue;
      for (const std::int64_t side : {224, 299}) {
        const std::int64_t image = 3 * side * side;
        if (node.output_elements == 0 || node.output_elements % image != 0) continue;
        set_batch(node.output_elements / image, fmt::format("is the input's size in images of 3 x {0} x {0}", side));
        return;
      }
    }
    throw input_error("the batch cannot be derived; give it as pipedream:batch=N");
  }

  // {batch, channels, side, side} where the convolution that reads the input makes that possible.
  [[nodiscard]] Shape input_shape(const Node& input) const {
    const auto sample = input.output_elements / trace_.batch;
    for (const int consumer : input.consumers) {
      const Module& module = graph_.at(consumer).module;
      const auto channels = module.name == "Conv2d" ? module.count(0, "in_channels") : 0;
      if (channels < 1 || sample < channels || sample % channels != 0) continue;
      const auto side = std::llround(std::sqrt(static_cast<double>(sample / channels)));
      if (channels * side * side * trace_.batch == input.output_elements) return {trace_.batch, channels, side, side};
    }
    return counted_shape(input.output_elements);
  }

  // Element counts where nothing better is known.
  [[nodiscard]] Shape counted_shape(std::int64_t count) const {
    if (count > 0 && count % trace_.batch == 0) return {trace_.batch, count / trace_.batch};
    return {std::max<std::int64_t>(count, 1)};
  }

  void leave_out(const Node& node) {
    if (is_input(node)) {
      shapes_[node.id] = input_shape(node);
      note(fmt::format("node{} 'Input': its {} ms are data loading and left out", node.id, node.forward_ms));
    } else if (node.forward_ms + node.backward_ms > 0) {
      note(fmt::format("node{} 'Size': its {} ms are left out", node.id, node.forward_ms + node.backward_ms));
    }
  }

  void add_inputs(const Node& node, Layer& layer) {
    bool reads_input = node.producers.empty();
    Shape model_input;
    for (const auto& [from, line] : node.producers) {
      const Node& producer = graph_.at(from);
      if (is_size(producer)) continue;
      if (is_input(producer)) {
        reads_input = true;
        model_input = shapes_.at(from);
        continue;
      }
      layer.inputs.push_back(ids_.at(from));
      layer.input_shapes.push_back(shapes_.at(from));
    }
    if (layer.inputs.empty()) {
      // With an `Input` in the file a layer that nothing feeds has lost its edges: the file was cut off.
      const bool has_input =
          std::any_of(graph_.begin(), graph_.end(), [](const auto& e) { return is_input(e.second); });
      if (has_input && model_input.empty()) {
        throw input_error(fmt::format("line {}: nothing feeds node{}; edges are missing", node.line, node.id));
      }
      layer.input_shapes.push_back(model_input.empty() ? counted_shape(node.output_elements) : model_input);
      layer.needs_input_gradient = false;
    } else if (reads_input) {
      note(fmt::format("{}: reads the model's input too, which a trace cannot say", layer.name));
    }
  }

  void set_shape(const Node& node, Layer& layer) {
    const auto shape = implied_shape(layer, node.module, node.output_elements / trace_.batch);
    const bool usable =
        shape && std::all_of(shape->begin(), shape->end(), [](std::int64_t extent) { return extent > 0; });
    if (usable && elements(*shape) == node.output_elements) {
      layer.output_shape = *shape;
    } else {
      layer.output_shape = counted_shape(node.output_elements);
      ++counted_;
    }
  }

  void set_parameters(const Node& node, Layer& layer) {
    auto tensors = implied_parameters(layer, node.module);
    std::int64_t count = 0;
    for (const auto& tensor : tensors) count += tensor.count();
    if (count == node.parameter_elements && count > 0) {
      layer.parameters = std::move(tensors);
    } else if (node.parameter_elements > 0) {
      layer.parameters = {{"weight", {node.parameter_elements}}};
      note(fmt::format("{}: {} parameters kept as one tensor, since the layer's text does not explain them", layer.name,
                       node.parameter_elements));
    }
  }

  void add_layer(const Node& node) {
    Layer layer;
    layer.name = fmt::format("node{}.{}", node.id, node.module.name);
    layer.kind = kind_of(node.module);
    if (layer.kind == OpKind::other) note(fmt::format("{}: unknown to the importer, kept as 'other'", layer.name));
    add_inputs(node, layer);
    set_window(layer, node.module);
    const auto groups = node.module.count(99, "groups");
    if (groups > 0) layer.groups = static_cast<int>(std::min<std::int64_t>(groups, 1 << 20));
    const auto& flags = node.module.positional;
    layer.in_place = layer.kind == OpKind::flatten || node.module.is("inplace", "True") ||
                     std::find(flags.begin(), flags.end(), "inplace") != flags.end();
    set_shape(node, layer);
    set_parameters(node, layer);
    if (!layer.in_place) layer.activation_bytes = Bytes(kFloat * node.output_elements);
    layer.backward_is_joint = true;
    layer.samples[static_cast<std::size_t>(Pass::forward)].seconds = {node.forward_ms * 1e-3};
    layer.samples[static_cast<std::size_t>(Pass::backward_weight)].seconds = {node.backward_ms * 1e-3};
    set_work(layer);
    ids_[node.id] = LayerId{static_cast<std::int32_t>(trace_.layers.size())};
    shapes_[node.id] = layer.output_shape;
    trace_.layers.push_back(std::move(layer));
  }

  // Only where the shapes that the formulas read are known.
  static void set_work(Layer& layer) {
    const bool spatial = layer.kind != OpKind::conv || (layer.input_shapes[0].size() == 4 && !layer.kernel.empty());
    if (spatial && layer.output_shape.size() > 1) set_flops(layer);
  }

  void describe() {
    trace_.recorder = "pipedream profiler";
    trace_.framework = "PyTorch";
    trace_.device = "unknown";
    trace_.layout = "nchw";
    trace_.cache_mode = "in situ";
    note("one time for the whole backward pass of a layer: it stands under backward-weight; no update times, no loss");
    note("a synchronisation behind every layer: the sum of layers is an upper bound on an undisturbed iteration");
    note("the first layer's forward time may hold the copy of the input to the device");
    if (counted_ > 0) {
      note(fmt::format("{} layers whose shapes could not be derived have element counts instead", counted_));
    }
  }

  const Graph& graph_;
  std::int64_t batch_given_;
  Trace trace_;
  std::map<int, LayerId> ids_;
  std::map<int, Shape> shapes_;
  int counted_ = 0;
};

ImportReport report_of(const Graph& graph) {
  using Fate = ImportReport::Fate;
  ImportReport::Entry layers{"modules, forward and backward", 0, {}, Fate::used, ""};
  ImportReport::Entry loading{"data loading (node Input)", 0, {}, Fate::dropped, "not the device's work"};
  ImportReport::Entry sizes{"reads of a size (node Size)", 0, {}, Fate::dropped, "compute nothing"};
  for (const auto& [id, node] : graph) {
    auto& entry = is_input(node) ? loading : is_size(node) ? sizes : layers;
    ++entry.count;
    entry.time += Seconds((node.forward_ms + node.backward_ms) * 1e-3);
  }
  ImportReport report;
  for (const auto& entry : {layers, loading, sizes}) {
    if (entry.count > 0) report.entries.push_back(entry);
  }
  return report;
}

class PipeDreamImporter : public Importer {
 public:
  explicit PipeDreamImporter(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] bool recognizes(std::string_view head) const override {
    return head.find("forward_compute_time=") != std::string_view::npos &&
           head.find("parameter_size=") != std::string_view::npos && head.find("node") != std::string_view::npos;
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    std::istringstream lines(source.content);
    const Graph graph = Parser().read(lines);
    return {Builder(graph, batch_).build(), report_of(graph)};
  }

 private:
  std::int64_t batch_;
};

std::unique_ptr<Importer> make_pipedream(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<PipeDreamImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 24) : 0);
}

TANDEM_REGISTER(Importer, pipedream, "pipedream", "graph.txt of PipeDream's profiler (PyTorch, joint backward times)",
                make_pipedream,
                {{"batch", ParameterType::integer, "", "samples a mini-batch; by default derived from the sizes"}})

}  // namespace
}  // namespace tandem
