// From the nodes of a Chakra trace of PyTorch to a Trace. Kernels are given to the operator that launched them,
// operators to passes, and operators of the forward pass to layers (traces/importers/operator_sequence.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/chakra_file.hpp"
#include "traces/hdf5_file.hpp"
#include "traces/importers/chakra_graph.hpp"
#include "traces/importers/operator_sequence.hpp"
#include "traces/importers/python_text.hpp"

namespace tandem {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// ---- operators ----

// The converter cuts an operator into a part before, between and behind its kernels: "aten::conv2d(0)".
struct PartName {
  std::string_view base;
  int part = -1;  // -1: not cut
};
PartName part_of(std::string_view name) {
  if (!name.ends_with(')')) return {name};
  const auto open = name.rfind('(');
  if (open == std::string_view::npos || open == 0 || name.size() - open > 8 || name.size() - open < 3) return {name};
  int part = 0;
  for (const char c : name.substr(open + 1, name.size() - open - 2)) {
    if (c < '0' || c > '9') return {name};
    part = 10 * part + (c - '0');
  }
  return {name.substr(0, open), part};
}

// The kind of layer whose backward pass an operator is, by its name.
std::optional<OpKind> backward_kind(std::string_view name) {
  if (!contains(name, "_backward")) return std::nullopt;
  constexpr std::pair<std::string_view, OpKind> parts[] = {{"conv", OpKind::conv},
                                                           {"batch_norm", OpKind::bn},
                                                           {"threshold", OpKind::relu},
                                                           {"hardtanh", OpKind::relu},
                                                           {"relu", OpKind::relu},
                                                           {"max_pool", OpKind::max_pool},
                                                           {"avg_pool", OpKind::avg_pool},
                                                           {"dropout", OpKind::dropout},
                                                           {"softmax", OpKind::softmax_loss},
                                                           {"nll_loss", OpKind::softmax_loss},
                                                           {"cross_entropy", OpKind::softmax_loss},
                                                           {"linear", OpKind::fc}};
  for (const auto& [part, kind] : parts) {
    if (contains(name, part)) return kind;
  }
  return OpKind::other;
}

bool is_copy_operator(std::string_view name) {
  static const std::set<std::string_view> names = {
      "aten::copy_", "aten::_to_copy",       "aten::clone",      "aten::fill_",
      "aten::zero_", "aten::_foreach_copy_", "aten::contiguous", "aten::flatten_dense_tensors"};
  return names.count(name) > 0;
}

enum class Phase { forward, backward, update };

// An operator of the host that launched kernels, or one of the forward pass that launched none.
struct Operator {
  std::string_view name;
  const ChakraGraphNode* node = nullptr;        // its first part, whose arguments are the operator's
  std::vector<const ChakraGraphNode*> kernels;  // in the order of the file
  bool under_backward = false;                  // an autograd node called it
  bool under_optimizer = false;
  Phase phase = Phase::forward;

  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const auto* kernel : kernels) sum += kernel->seconds();
    return sum;
  }
};

// What calls an operator, told by control dependencies where they can be trusted.
struct Caller {
  std::uint32_t outermost = kNone;  // the farthest one that is an operator of a layer
  bool backward = false, optimizer = false;
};

class Operators {
 public:
  explicit Operators(const ChakraGraph& graph) : graph_(graph), operator_of_(graph.nodes.size(), kNone) {
    find_callers();
    group();
    give_kernels();
    sort();
    find_phases();
  }

  [[nodiscard]] std::vector<Operator>& all() { return operators_; }
  [[nodiscard]] const std::vector<const ChakraGraphNode*>& orphans() const { return orphans_; }

 private:
  [[nodiscard]] const ChakraGraphNode& node(std::uint32_t place) const { return graph_.nodes[place]; }

  static bool is_known(std::string_view name) {
    const auto base = part_of(name).base;
    return kind_of_operator(base) != OpKind::other || backward_kind(base).has_value();
  }

  // The host's node that called a node, by control.
  [[nodiscard]] std::uint32_t parent(std::uint32_t place) const {
    for (const auto above : graph_.control[place]) {
      if (node(above).on_host) return above;
    }
    return kNone;
  }

  void find_callers() {
    callers_.resize(graph_.nodes.size());
    for (const auto place : graph_.order) {
      Caller& own = callers_[place];
      if (const auto above = parent(place); above != kNone) own = callers_[above];
      if (!node(place).on_host) continue;
      const std::string_view name = node(place).name;
      own.backward = own.backward || contains(name, "Backward") || contains(name, "autograd::engine");
      own.optimizer = own.optimizer || contains(name, "Optimizer.step");
      if (own.outermost == kNone && is_known(name)) own.outermost = place;
    }
  }

  // Parts of one operator have the same record; where there are no records, each follows the one before by its data.
  [[nodiscard]] std::uint32_t earlier_part(std::uint32_t place, const PartName& name) const {
    for (const auto before : graph_.data[place]) {
      const auto other = part_of(node(before).name);
      if (node(before).on_host && other.base == name.base && other.part >= 0 && other.part < name.part &&
          node(before).record == node(place).record) {
        return before;
      }
    }
    return kNone;
  }

  void group() {
    for (const auto place : graph_.order) {
      if (!node(place).on_host || node(place).is_communication()) continue;
      const auto name = part_of(node(place).name);
      const auto above = callers_[place].outermost;
      const auto earlier = name.part > 0 ? earlier_part(place, name) : kNone;
      if (above != kNone && above != place && operator_of_[above] != kNone) {
        operator_of_[place] = operator_of_[above];
      } else if (earlier != kNone && operator_of_[earlier] != kNone) {
        operator_of_[place] = operator_of_[earlier];
      } else {
        operator_of_[place] = static_cast<std::uint32_t>(operators_.size());
        operators_.push_back({name.base, &node(place), {}, callers_[place].backward, callers_[place].optimizer});
      }
    }
  }

  // The converter lists the part that launched a kernel first among the data it depends on.
  [[nodiscard]] std::uint32_t launcher(std::uint32_t place) const {
    if (const auto above = parent(place); above != kNone && operator_of_[above] != kNone) return operator_of_[above];
    for (const auto before : graph_.data[place]) {
      if (node(before).on_host && operator_of_[before] != kNone) return operator_of_[before];
    }
    return kNone;
  }

  void give_kernels() {
    for (std::uint32_t place = 0; place < graph_.nodes.size(); ++place) {
      if (node(place).on_host || node(place).is_communication()) continue;
      if (const auto by = launcher(place); by != kNone) {
        operators_[by].kernels.push_back(&node(place));
      } else {
        orphans_.push_back(&node(place));
      }
    }
  }

  // In the order of execution: start times, or the numbers, which converters give in that order.
  void sort() {
    const bool timed =
        std::all_of(operators_.begin(), operators_.end(), [](const Operator& op) { return op.node->start_micros > 0; });
    std::stable_sort(operators_.begin(), operators_.end(), [&](const Operator& a, const Operator& b) {
      if (timed && a.node->start_micros != b.node->start_micros) return a.node->start_micros < b.node->start_micros;
      return a.node->id < b.node->id;
    });
    for (auto& op : operators_) {
      std::sort(op.kernels.begin(), op.kernels.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    }
  }

  static bool is_optimizer(const Operator& op) {
    return op.under_optimizer || op.name.starts_with("aten::_fused_") || op.name.starts_with("aten::_foreach_");
  }
  static bool is_backward(const Operator& op) { return op.under_backward || backward_kind(op.name).has_value(); }

  // Names tell the phase of most; the others are where they are: between the first and the last of the backward pass,
  // before, or behind. Behind, autograd's own thread still handles gradients; any other runs the optimizer.
  void find_phases() {
    std::size_t first = operators_.size(), last = 0;
    std::int64_t thread = 0;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      if (!is_backward(operators_[i])) continue;
      if (first == operators_.size()) thread = operators_[i].node->thread;
      first = std::min(first, i);
      last = i;
    }
    const bool own_thread = std::any_of(operators_.begin(), operators_.end(),
                                        [&](const Operator& op) { return op.node->thread != thread; });
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      auto& op = operators_[i];
      const bool gradients = own_thread && op.node->thread == thread;
      op.phase = is_optimizer(op)              ? Phase::update
                 : i < first                   ? Phase::forward
                 : is_backward(op) || i < last ? Phase::backward
                 : gradients                   ? Phase::backward
                                               : Phase::update;
    }
  }

  const ChakraGraph& graph_;
  std::vector<Caller> callers_;
  std::vector<std::uint32_t> operator_of_;  // nodes of the host
  std::vector<Operator> operators_;
  std::vector<const ChakraGraphNode*> orphans_;  // kernels that nothing launched
};

// ---- arguments of operators ----

class OperatorArguments {
 public:
  explicit OperatorArguments(const Operator& op)
      : values_(items(op.node->values)), shapes_(items(op.node->shapes)), outputs_(items(op.node->output_shapes)) {}

  // Empty: not a tensor, or a scalar.
  [[nodiscard]] Shape shape(std::size_t i) const { return i < shapes_.size() ? shape_of(shapes_[i]) : Shape(); }
  [[nodiscard]] Shape output(std::size_t i) const { return i < outputs_.size() ? shape_of(outputs_[i]) : Shape(); }
  // Of an argument that is a list of tensors.
  [[nodiscard]] std::vector<Shape> shapes(std::size_t i) const {
    std::vector<Shape> list;
    if (i >= shapes_.size()) return list;
    for (const auto& item : shapes_[i].items) {
      if (auto shape = shape_of(item); !shape.empty()) list.push_back(std::move(shape));
    }
    return list;
  }
  // One value for each of `rank` dimensions, or one for all; empty where the file says neither.
  [[nodiscard]] std::vector<int> window(std::size_t i, std::size_t rank) const {
    if (i >= values_.size()) return {};
    const auto given = values_[i].integers();
    if (!given || given->empty() || (given->size() != rank && given->size() != 1)) return {};
    std::vector<int> window;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto value = given->size() == 1 ? (*given)[0] : (*given)[d];
      if (value < 0 || value > 1 << 20) return {};
      window.push_back(static_cast<int>(value));
    }
    return window;
  }
  [[nodiscard]] std::int64_t integer(std::size_t i) const {
    return i < values_.size() && values_[i].kind == PythonValue::Kind::integer ? values_[i].integer : 0;
  }
  // The flags of the last argument, which say what gradients a backward operator computes; empty: unknown.
  [[nodiscard]] std::vector<bool> mask() const {
    std::vector<bool> flags;
    if (values_.empty()) return flags;
    for (const auto& item : values_.back().items) {
      if (item.text != "True" && item.text != "False") return {};
      flags.push_back(item.text == "True");
    }
    return flags;
  }
  // Identity of a tensor's memory; 0: unknown.
  [[nodiscard]] std::int64_t storage(std::size_t i) const {
    if (i >= values_.size() || values_[i].items.size() < 5) return 0;
    const auto& item = values_[i].items[1];
    return item.kind == PythonValue::Kind::integer ? item.integer : 0;
  }

 private:
  static std::vector<PythonValue> items(const std::string& text) {
    auto value = parse_python(text);
    return value && value->is_list() ? std::move(value->items) : std::vector<PythonValue>();
  }
  static Shape shape_of(const PythonValue& value) {
    auto extents = value.integers();
    const bool usable = extents && std::all_of(extents->begin(), extents->end(), [](auto e) { return e > 0; });
    return usable ? std::move(*extents) : Shape();
  }

  std::vector<PythonValue> values_, shapes_, outputs_;
};

// Where operators of one kind keep their window arguments.
struct WindowPlaces {
  std::size_t kernel = 0, stride = 0, pad = 0, groups = 0;  // 0: not an argument
};
WindowPlaces window_places(std::string_view name, OpKind kind) {
  if (kind == OpKind::max_pool || kind == OpKind::avg_pool) {
    return contains(name, "adaptive") || name == "aten::mean" ? WindowPlaces{} : WindowPlaces{1, 2, 3, 0};
  }
  if (name.starts_with("aten::conv") && !name.starts_with("aten::convolution")) return {0, 3, 4, 6};
  if (name == "aten::convolution" || name == "aten::_convolution") return {0, 3, 4, 8};
  if (name == "aten::cudnn_convolution") return {0, 3, 2, 5};
  return {};
}

void set_window(const OperatorArguments& arguments, ObservedOperator& seen) {
  if (seen.input_shapes.empty() || seen.input_shapes[0].size() < 3) return;
  const std::size_t rank = seen.input_shapes[0].size() - 2;
  const auto places = window_places(seen.name, seen.kind);
  if (places.kernel > 0) seen.kernel = arguments.window(places.kernel, rank);
  if (places.stride > 0) seen.stride = arguments.window(places.stride, rank);
  if (places.pad > 0) seen.pad = arguments.window(places.pad, rank);
  if (places.kernel > 0 && seen.stride.empty()) seen.stride = seen.kernel;  // a pool's default
  if (places.groups > 0) {
    seen.groups = static_cast<int>(std::clamp<std::int64_t>(arguments.integer(places.groups), 0, 1 << 20));
  }
  const auto zero = [](const std::vector<int>& w) { return std::find(w.begin(), w.end(), 0) != w.end(); };
  if (zero(seen.kernel)) seen.kernel.clear();
  if (zero(seen.stride)) seen.stride.clear();
}

// Inputs, weight and bias of a fully connected layer, by the three ways in which PyTorch writes it.
void set_fc(const OperatorArguments& arguments, ObservedOperator& seen) {
  const bool linear = seen.name == "aten::linear";
  const std::size_t in = seen.name == "aten::addmm" ? 1 : 0;
  seen.input_shapes = {arguments.shape(in)};
  seen.weight = arguments.shape(in + 1);
  if (!linear) std::reverse(seen.weight.begin(), seen.weight.end());
  seen.bias = linear ? !arguments.shape(2).empty() : in == 1;
}

// Nothing where the operator is no layer: an addition of counters, for one.
std::optional<ObservedOperator> observe(const Operator& op) {
  ObservedOperator seen;
  seen.name = op.name;
  seen.kind = kind_of_operator(op.name);
  if (seen.kind == OpKind::other || is_view(op.name)) return std::nullopt;
  const OperatorArguments arguments(op);
  seen.input_shapes = {arguments.shape(0)};
  seen.output_shape = arguments.output(0);
  if (seen.kind == OpKind::add) {
    if (arguments.shape(0).empty() && !op.node->shapes.empty()) return std::nullopt;
    seen.input_shapes.push_back(arguments.shape(1));
  } else if (seen.kind == OpKind::concat) {
    seen.input_shapes = arguments.shapes(0);
  } else if (seen.kind == OpKind::conv) {
    seen.weight = arguments.shape(1);
    seen.bias = !arguments.shape(2).empty() && !op.name.ends_with("cudnn_convolution");
  } else if (seen.kind == OpKind::fc) {
    set_fc(arguments, seen);
  } else if (seen.kind == OpKind::softmax_loss) {
    seen.output_shape.clear();  // the loss itself; a trace has the probabilities there
  }
  if (seen.input_shapes.empty() || seen.input_shapes[0].empty()) seen.input_shapes.clear();
  set_window(arguments, seen);
  seen.forward = {op.seconds()};
  seen.backward_data = {0};
  seen.backward_weight = {0};
  return seen;
}

// ---- the backward pass ----

// cuDNN's kernels for the gradient of the weights have it in their names, and PyTorch launches them behind those for
// the gradient of the input. False where the names do not tell.
bool split_convolution(const Operator& op, ObservedOperator& layer) {
  const auto mask = OperatorArguments(op).mask();
  const bool data = mask.size() < 2 || mask[0];
  const bool weights = mask.size() < 2 || mask[1];
  if (data != weights) {
    (data ? layer.backward_data : layer.backward_weight)[0] += op.seconds();
    return true;
  }
  const auto boundary = std::find_if(op.kernels.begin(), op.kernels.end(), [](const ChakraGraphNode* kernel) {
    return contains(kernel->name, "wgrad") || contains(kernel->name, "Wgrad");
  });
  if (boundary == op.kernels.end() || boundary == op.kernels.begin()) return false;
  for (auto kernel = op.kernels.begin(); kernel != op.kernels.end(); ++kernel) {
    (kernel < boundary ? layer.backward_data : layer.backward_weight)[0] += (*kernel)->seconds();
  }
  return true;
}

// Finds the layer of each operator of the backward pass: the latest one of the forward pass that has none yet, is of
// its kind and has its shapes, or the very weights.
class BackwardMatcher {
 public:
  BackwardMatcher(std::vector<ObservedOperator>& layers, const std::vector<const Operator*>& forward)
      : layers_(layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      keys_.push_back(key_of(*forward[i], layers[i].kind, false));
      open_[layers[i].kind].push_back(i);
    }
  }

  // The layer that got the time, by its place; nothing where none is found: the time stays with the caller.
  std::optional<std::size_t> give(const Operator& op) {
    if (op.name == "aten::mm" || op.name == "aten::addmm" || op.name == "aten::sum") return give_to_fc(op);
    if (op.name == "aten::div" || op.name == "aten::div_") return give_to_mean(op);
    const auto kind = backward_kind(op.name);
    if (!kind || *kind == OpKind::other) return std::nullopt;
    if (*kind == OpKind::softmax_loss) return give_to_loss(op);
    const auto at = take(*kind, key_of(op, *kind, true));
    if (!at) return std::nullopt;
    auto& layer = layers_[*at];
    if (*kind != OpKind::conv) {
      layer.backward_data[0] += op.seconds();
    } else if (!split_convolution(op, layer)) {
      layer.backward_weight[0] += op.seconds();
      layer.backward_is_joint = true;
    }
    return at;
  }

  // Gradients of a tensor that two layers read are added up where its block began: `number` additions of the backward
  // pass are those of the forward pass in reverse. The layers in the order of the backward pass; none where there are
  // fewer.
  [[nodiscard]] std::vector<std::size_t> layers_of_additions(std::size_t number) {
    const auto& sums = open_[OpKind::add];
    if (number > sums.size()) return {};
    return {sums.rbegin(), sums.rbegin() + static_cast<std::ptrdiff_t>(number)};
  }

 private:
  std::optional<std::size_t> give_to_loss(const Operator& op) {
    const auto& losses = open_[OpKind::softmax_loss];
    if (losses.empty()) return std::nullopt;
    layers_[losses.back()].backward_data[0] += op.seconds();
    return losses.back();
  }

  // What forward and backward operators of a layer have in common.
  struct Key {
    std::int64_t weights = 0;  // identity of the weights' memory
    Shape input, weight;
  };

  static Key key_of(const Operator& op, OpKind kind, bool backward) {
    const OperatorArguments arguments(op);
    switch (kind) {
      case OpKind::conv:  // backward: gradient, input, weight
        return {arguments.storage(backward ? 2 : 1), arguments.shape(backward ? 1 : 0),
                arguments.shape(backward ? 2 : 1)};
      case OpKind::bn: {  // forward: input, weight; cuDNN's backward: input, gradient; others: gradient, input
        return {arguments.storage(backward ? 2 : 1), arguments.shape(backward ? 1 : 0), {}};
      }
      default:  // the gradient has the output's shape, what was kept the input's
        return {0,
                backward ? arguments.shape(kind == OpKind::avg_pool || kind == OpKind::max_pool ? 1 : 0)
                         : arguments.shape(0),
                {}};
    }
  }

  // Not far back: layers run backward roughly in reverse, and the search must not grow with the file.
  static constexpr std::size_t kWindow = 256;

  std::optional<std::size_t> take(OpKind kind, const Key& wanted) {
    auto& open = open_[kind];
    const std::size_t least = open.size() > kWindow ? open.size() - kWindow : 0;
    const auto find = [&](auto&& matches) -> std::optional<std::size_t> {
      for (std::size_t i = open.size(); i > least; --i) {
        if (!matches(keys_[open[i - 1]])) continue;
        const auto at = open[i - 1];
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i - 1));
        return at;
      }
      return std::nullopt;
    };
    if (wanted.weights != 0) {
      if (const auto same = find([&](const Key& key) { return key.weights == wanted.weights; })) return same;
    }
    return find([&](const Key& key) {
      return (wanted.input.empty() || key.input.empty() || key.input == wanted.input) &&
             (wanted.weight.empty() || key.weight.empty() || key.weight == wanted.weight);
    });
  }

  // The product with the shape of the input is its gradient; one with the shape of the weights, either way round, is
  // theirs, and a sum over the batch the bias'.
  std::optional<std::size_t> give_to_fc(const Operator& op) {
    const Shape out = OperatorArguments(op).output(0);
    const auto& open = open_[OpKind::fc];
    const std::size_t least = open.size() > kWindow ? open.size() - kWindow : 0;
    for (std::size_t i = open.size(); i > least; --i) {
      auto& layer = layers_[open[i - 1]];
      if (layer.weight.size() != 2 || out.empty() || layer.input_shapes.empty()) continue;
      const Shape turned = {layer.weight[1], layer.weight[0]};
      const bool weights = out == layer.weight || out == turned;
      const bool bias = op.name == "aten::sum" && elements(out) == layer.weight[0];
      const bool data = op.name != "aten::sum" && out == layer.input_shapes[0];
      if (!weights && !bias && !data) continue;
      (data ? layer.backward_data : layer.backward_weight)[0] += op.seconds();
      return open[i - 1];
    }
    return std::nullopt;
  }

  // The gradient of a mean is spread over what was averaged by a division.
  std::optional<std::size_t> give_to_mean(const Operator& op) {
    const Shape out = OperatorArguments(op).output(0);
    const auto& open = open_[OpKind::avg_pool];
    const std::size_t least = open.size() > kWindow ? open.size() - kWindow : 0;
    for (std::size_t i = open.size(); i > least; --i) {
      const auto at = open[i - 1];
      if (layers_[at].input_shapes.empty() || layers_[at].input_shapes[0] != out) continue;
      layers_[at].backward_data[0] += op.seconds();
      return at;
    }
    return std::nullopt;
  }

  std::vector<ObservedOperator>& layers_;
  std::vector<Key> keys_;
  std::map<OpKind, std::vector<std::size_t>> open_;  // layers without a backward operator, in order of execution
};

// ---- the trace ----

using Fate = ImportReport::Fate;
using Entry = ImportReport::Entry;

class TraceBuilder {
 public:
  TraceBuilder(const ChakraGraph& graph, std::int64_t batch) : graph_(graph), batch_(batch), operators_(graph) {}

  Imported build() {
    add_collectives();
    sort_out();
    if (!layers_.empty()) {
      build_layers();
    } else if (batch_ > 0) {
      build_others();
    } else {
      refuse();
    }
    describe();
    return {std::move(trace_), report()};
  }

 private:
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  static void count(Entry& entry, const ChakraGraphNode& node) {
    ++entry.count;
    entry.time += Seconds(node.seconds());
  }
  static void count(Entry& entry, const Operator& op) {
    for (const auto* kernel : op.kernels) count(entry, *kernel);
  }

  // ---- what is no layer's ----

  void add_collectives() {
    for (const auto& node : graph_.nodes) {
      if (node.on_host) {
        count(node.is_communication() ? host_collectives_ : host_, node);
        continue;
      }
      if (!node.is_communication()) continue;
      count(communication_, node);
      if (node.type == static_cast<int>(ChakraNodeType::collective)) device_collectives_.push_back(&node);
    }
    std::stable_sort(device_collectives_.begin(), device_collectives_.end(), [](const auto* a, const auto* b) {
      return std::pair{a->start_micros, a->id} < std::pair{b->start_micros, b->id};
    });
    for (const auto* node : device_collectives_) {
      auto operation = std::string(chakra_collective(node->comm_type.value_or(-1)));
      if (operation.empty()) operation = "unknown";
      trace_.collectives.push_back({operation, Bytes(node->comm_size.value_or(0)), Seconds(node->seconds())});
    }
  }

  // PyTorch's DDP divides each gradient by the number of ranks while it copies it into its bucket.
  [[nodiscard]] bool fills_bucket(const Operator& op) const {
    return op.phase == Phase::backward && (op.name == "aten::mul" || op.name == "aten::div") &&
           contains(op.node->operator_schema, ".out(") && !device_collectives_.empty();
  }

  // Every kernel goes to a layer of the forward pass, or to one of the entries of the report.
  void sort_out() {
    std::vector<const Operator*> backward;
    for (auto& op : operators_.all()) {
      const bool copies = is_copy_operator(op.name) && !op.under_optimizer;
      if (copies || fills_bucket(op)) {
        count(copies ? copies_ : buckets_, op);
      } else if (op.phase == Phase::update) {
        count(update_, op);
      } else if (op.phase == Phase::backward) {
        backward.push_back(&op);
      } else {
        add_forward(op);
      }
    }
    for (const auto* op : pending_) count(unmatched_, *op);
    give_backward(backward);
    for (const auto* kernel : operators_.orphans()) count(orphan_entry(*kernel), *kernel);
  }

  Entry& orphan_entry(const ChakraGraphNode& kernel) {
    return kernel.name.starts_with("Memcpy") || kernel.name.starts_with("Memset") ? copies_ : unmatched_;
  }

  // A batch normalization counts its batches in front; what runs behind the loss begins its backward pass.
  void add_forward(Operator& op) {
    auto seen = observe(op);
    if (!seen) {
      if (op.kernels.empty()) return;
      if (!layers_.empty() && layers_.back().kind == OpKind::softmax_loss) {
        layers_.back().backward_data[0] += op.seconds();
        kernels_of_.back() += op.kernels.size();
      } else {
        pending_.push_back(&op);
      }
      return;
    }
    std::size_t kernels = op.kernels.size();
    if (seen->kind == OpKind::bn) {
      for (const auto* counter : pending_) {
        const bool adds = counter->name == "aten::add_" || counter->name == "aten::add";
        if (!adds) {
          count(unmatched_, *counter);
          continue;
        }
        seen->forward[0] += counter->seconds();
        kernels += counter->kernels.size();
      }
      pending_.clear();
    }
    kernels_of_.push_back(kernels);
    layers_.push_back(std::move(*seen));
    forward_.push_back(&op);
  }

  void give_backward(const std::vector<const Operator*>& backward) {
    BackwardMatcher matcher(layers_, forward_);
    std::vector<const Operator*> additions;
    for (const auto* op : backward) {
      if (op->kernels.empty()) continue;
      if (op->name == "aten::add_" || op->name == "aten::add") {
        additions.push_back(op);
      } else if (const auto at = matcher.give(*op)) {
        kernels_of_[*at] += op->kernels.size();
      } else {
        count(unmatched_, *op);
      }
    }
    const auto sums = matcher.layers_of_additions(additions.size());
    for (std::size_t i = 0; i < additions.size(); ++i) {
      if (sums.empty()) {
        count(unmatched_, *additions[i]);
        continue;
      }
      layers_[sums[i]].backward_data[0] += additions[i]->seconds();
      kernels_of_[sums[i]] += additions[i]->kernels.size();
    }
  }

  // ---- layers ----

  void build_layers() {
    auto sequence = trace_of_operators(layers_, batch_);
    auto collectives = std::move(trace_.collectives);
    trace_ = std::move(sequence.trace);
    trace_.collectives = std::move(collectives);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      auto& entry = sequence.layer_of[i] >= 0 ? layer_kernels_ : unmatched_;
      entry.count += static_cast<std::int64_t>(kernels_of_[i]);
      entry.time += Seconds(layers_[i].forward[0] + layers_[i].backward_data[0] + layers_[i].backward_weight[0]);
    }
    if (trace_.parameter_count() > 0) {
      if (update_.count > 0) spread_update(trace_, {update_.time.count()});
    } else {  // nothing to update that is known
      unmatched_.count += std::exchange(update_.count, 0);
      unmatched_.time += std::exchange(update_.time, Seconds(0));
    }
  }

  // Nothing but timed nodes: each keeps its time as a layer of which nothing is known.
  void build_others() {
    std::vector<const ChakraGraphNode*> nodes;
    for (const auto& node : graph_.nodes) {
      if (!node.on_host && !node.is_communication() && node.micros > 0) nodes.push_back(&node);
    }
    constexpr std::size_t most = 65536;
    if (nodes.empty()) throw input_error("no node of the device has a duration");
    if (nodes.size() > most) {
      throw input_error(
          fmt::format("{} nodes without an operator of a layer; at most {} are kept", nodes.size(), most));
    }
    trace_.batch = batch_;
    for (const auto* node : nodes) {
      Layer layer;
      layer.name = fmt::format("{}.{}", node->id, is_storable_text(node->name) ? node->name.substr(0, 60) : "node");
      if (!is_storable_text(layer.name)) layer.name = fmt::format("{}.node", node->id);
      if (!trace_.layers.empty()) layer.inputs = {LayerId{static_cast<std::int32_t>(trace_.layers.size()) - 1}};
      layer.input_shapes = {{batch_}};
      layer.output_shape = {batch_};
      layer.samples[0].seconds = {node->seconds()};
      trace_.layers.push_back(std::move(layer));
    }
    layer_kernels_ = {layer_kernels_.what, 0, {}, Fate::used, "no operators of layers: each node is one, forward"};
    for (const auto* node : nodes) count(layer_kernels_, *node);
    for (auto* entry : {&update_, &copies_, &buckets_, &unmatched_}) entry->count = 0, entry->time = Seconds(0);
    note(
        "no operators of layers in the file: every node of the device is kept as 'other', a chain in order of the "
        "file");
  }

  [[noreturn]] void refuse() {
    const auto device = static_cast<std::int64_t>(graph_.nodes.size()) - host_.count - host_collectives_.count;
    throw input_error(fmt::format(
        "none of the {} nodes ({} of the device, {:.3g} us, {} of them communication) belongs to an operator of a "
        "layer such as aten::conv2d: there is no forward pass here to make layers of; with batch=N the nodes of the "
        "device "
        "would be kept as they are",
        graph_.nodes.size(), device, device_seconds() * 1e6, communication_.count));
  }

  // ---- description ----

  [[nodiscard]] double device_seconds() const {
    double sum = 0;
    for (const auto& node : graph_.nodes) sum += node.on_host ? 0 : node.seconds();
    return sum;
  }

  void add_outside(OutsideTime::Kind kind, Seconds time) {
    if (time > Seconds(0)) trace_.outside.push_back({kind, {{time.count()}}});
  }

  void describe() {
    trace_.recorder = fmt::format("Chakra execution trace{}{}", graph_.schema.empty() ? "" : ", schema ",
                                  is_storable_text(graph_.schema) ? graph_.schema.substr(0, 64) : "");
    trace_.framework = "PyTorch";
    trace_.device = "unknown";
    trace_.layout = "nchw";
    trace_.cache_mode = "in situ";
    trace_.dtype = dtype();
    if (graph_.time.size() >= 10 && graph_.time[4] == '-' && is_storable_text(graph_.time)) {
      trace_.date = graph_.time.substr(0, 10);
    }
    add_outside(OutsideTime::Kind::copy, copies_.time + buckets_.time);
    add_outside(OutsideTime::Kind::communication, communication_.time);
    add_outside(OutsideTime::Kind::unmatched, unmatched_.time);
    note_what_is_known();
  }

  [[nodiscard]] std::string dtype() const {
    for (const auto* op : forward_) {
      if (contains(op->node->types, "c10::Half")) return "float16";
      if (contains(op->node->types, "c10::BFloat16")) return "bfloat16";
      if (contains(op->node->types, "Tensor(double)")) return "float64";
      if (contains(op->node->types, "Tensor(float)")) return "float32";
    }
    return "float32";
  }

  void note_what_is_known() {
    if (!graph_.control_is_trusted) {
      note(
          "control dependencies name nodes that are not in the file, or the node itself, and are left out: kernels "
          "go to operators by data dependencies");
    }
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), [](const auto& n) { return n.start_micros > 0; })) {
      note(
          "no start times: communication is the time of the collectives whether compute ran meanwhile or not, and "
          "nothing is known of idle time");
    }
    if (buckets_.count > 0) {
      note(fmt::format("{} kernels, {}, scale gradients while they copy them into buckets: they stand under copy",
                       buckets_.count, to_text(buckets_.time)));
    }
    note_gradients();
  }

  void note_gradients() {
    std::int64_t bytes = 0, buckets = 0;
    for (const auto& collective : trace_.collectives) {
      if (collective.operation != "all-reduce" || __builtin_add_overflow(bytes, collective.bytes.count(), &bytes)) {
        continue;
      }
      ++buckets;
    }
    if (buckets == 0 || trace_.parameter_count() == 0) return;
    const std::int64_t width = trace_.dtype == "float64" ? 8 : trace_.dtype == "float32" ? 4 : 2;
    const bool all = bytes / width == trace_.parameter_count() && bytes % width == 0;
    note(fmt::format("{} all-reduces carry {} bytes, which {} the gradients of the {} parameters", buckets, bytes,
                     all ? "are" : "are not just", trace_.parameter_count()));
  }

  [[nodiscard]] ImportReport report() const {
    ImportReport report;
    for (const auto& entry :
         {layer_kernels_, update_, communication_, copies_, buckets_, unmatched_, host_collectives_, host_}) {
      if (entry.count > 0 || entry.time > Seconds(0)) report.entries.push_back(entry);
    }
    return report;
  }

  const ChakraGraph& graph_;
  std::int64_t batch_;
  Operators operators_;
  std::vector<ObservedOperator> layers_;
  std::vector<const Operator*> forward_;  // of each of layers_
  std::vector<std::size_t> kernels_of_;   // how many the same have, of both passes
  std::vector<const Operator*> pending_;  // with kernels, of no layer so far
  std::vector<const ChakraGraphNode*> device_collectives_;
  Trace trace_;
  Entry layer_kernels_{"kernels of layers, forward and backward", 0, {}, Fate::used, ""};
  Entry update_{"kernels of the optimizer", 0, {}, Fate::used, "spread over the layers by their parameters"};
  Entry communication_{"kernels of communication", 0, {}, Fate::apart, ""};
  Entry copies_{"copies and fills", 0, {}, Fate::apart, ""};
  Entry buckets_{"kernels that fill gradient buckets", 0, {}, Fate::apart, ""};
  Entry unmatched_{"kernels of no known layer", 0, {}, Fate::apart, ""};
  Entry host_collectives_{"collectives as the host started them", 0, {}, Fate::dropped, "the device's are kept"};
  Entry host_{"operators of the host", 0, {}, Fate::dropped, "not the device's work; they contain each other"};
};

}  // namespace

Imported trace_of_graph(const ChakraGraph& graph, std::int64_t batch) {
  if (graph.nodes.empty()) throw input_error("there are no nodes in it");
  return TraceBuilder(graph, batch).build();
}

}  // namespace tandem
