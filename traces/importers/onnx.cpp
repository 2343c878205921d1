// ONNX models (onnx.ai): shapes, parameters and the graph of a network as a framework exports it; no times.
//
// Nodes stand in topological order, each reads and writes named tensors. Shapes follow from the operators' formulas;
// for operators that are unknown here they must stand in the file (value_info). What depends on constants only is
// folded away, with its value where that is a list of whole numbers (the target of a Reshape, say), so that the
// arithmetic on shapes which exporters leave behind needs no layers. The values of weights are never needed, and
// neither are they needed in the file: an input that only ever stands in the place of a weight is taken for one.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <importers/onnx.pb.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/core/error.hpp"
#include "traces/importer.hpp"
#include "traces/importers/onnx_values.hpp"
#include "traces/importers/onnx_wire.hpp"
#include "traces/layer_work.hpp"

namespace tandem::onnx {
namespace {

// ---- windows ----

// The windows of a convolution or pooling, and the extents they give.
struct Windows {
  std::vector<int> kernel, stride, pad_begin, pad_end, dilation;
  Shape extents;  // spatial ones of the result
};

Windows windows_of(const Attributes& attributes, const Shape& input, std::vector<int> kernel) {
  const std::size_t n = kernel.size();
  if (n < 1 || n > 3 || input.size() != n + 2) {
    throw input_error(
        fmt::format("a window of {} dimensions on an input of shape {}; 1 to 3 spatial dimensions behind "
                    "batch and channels are accepted",
                    n, text_of(input)));
  }
  Windows w{
      std::move(kernel), attributes.window("strides", n, 1, 1), {}, {}, attributes.window("dilations", n, 1, 1), {}};
  const auto pads = attributes.window("pads", 2 * n, 0, 0);
  const auto mode = attributes.text("auto_pad");
  if (!mode.empty() && mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") {
    throw input_error(fmt::format("auto_pad is '{}'; accepted are NOTSET, VALID, SAME_UPPER, SAME_LOWER", clean(mode)));
  }
  const bool same = mode.starts_with("SAME");
  const bool ceil_mode = attributes.integer("ceil_mode", 0) != 0;
  for (std::size_t d = 0; d < n; ++d) {
    const auto in = input[d + 2];
    int begin = mode == "VALID" ? 0 : pads[d];
    int end = mode == "VALID" ? 0 : pads[d + n];
    if (same) {
      const auto out = (in - 1) / w.stride[d] + 1;
      const auto covered = (out - 1) * w.stride[d] + std::int64_t{w.kernel[d] - 1} * w.dilation[d] + 1;
      const auto total = std::max<std::int64_t>(covered - in, 0);
      if (total > kMostWindow) throw input_error(fmt::format("auto_pad pads by {}", total));
      begin = static_cast<int>(mode == "SAME_UPPER" ? total / 2 : total - total / 2);
      end = static_cast<int>(total) - begin;
    }
    w.pad_begin.push_back(begin);
    w.pad_end.push_back(end);
    w.extents.push_back(window_extent(in, w.kernel[d], w.stride[d], begin, end, w.dilation[d], ceil_mode && !same));
  }
  return w;
}

// ---- the model ----

class Builder {
 public:
  Builder(const Model& model, std::int64_t batch_given)
      : model_(model), graph_(model.graph()), batch_given_(batch_given) {}

  Imported build() {
    if (graph_.node_size() == 0) throw input_error("the model has no nodes");
    count_uses();
    read_initializers();
    read_inputs();
    read_declared(graph_.value_info());
    read_declared(graph_.output());
    for (const auto& node : graph_.node()) {
      with_context(fmt::format("node '{}' ({})", name_of(node), clean(node.op_type())), [&] { add(node); });
    }
    if (trace_.layers.empty()) throw input_error("nothing in the model depends on its input");
    describe();
    auto said = report();
    return {std::move(trace_), std::move(said)};
  }

 private:
  static std::string name_of(const Node& node) {
    if (!node.name().empty()) return clean(node.name());
    return clean(node.output_size() > 0 ? node.output(0) : node.op_type());
  }

  // Whether input `i` of an operator is a tensor that training learns (or that follows the data, as a mean does).
  static bool is_weight_place(const Node& node, int i) {
    const auto op = operator_of(node);
    if (op == "Conv" || op == "ConvTranspose" || op == "Gemm") return i == 1 || i == 2;
    if (op == "MatMul" || op == "PRelu") return i == 1;
    if (op == "BatchNormalization") return i >= 1;
    return (op == "InstanceNormalization" || op == "LayerNormalization" || op == "GroupNormalization") && i >= 1;
  }

  // ---- what the file states before its nodes ----

  void count_uses() {
    for (const auto& node : graph_.node()) {
      for (int i = 0; i < node.input_size(); ++i) {
        ++uses_[node.input(i)];
        if (!is_weight_place(node, i)) read_as_data_.insert(node.input(i));
      }
    }
    for (const auto& output : graph_.output()) {
      ++uses_[output.name()];
      outputs_.insert(output.name());
    }
  }

  void define(std::string_view name, Value value) {
    if (name.empty()) return;
    if (!values_.emplace(name, std::move(value)).second) {
      throw input_error(fmt::format("tensor '{}' is defined twice", clean(name)));
    }
  }

  void read_initializers() {
    for (const auto& tensor : graph_.initializer()) {
      define(tensor.name(), value_of(tensor));
      const int type = tensor.data_type();
      if (type == 1 || type == 10 || type == 11 || type == 16) loose_.insert(tensor.name());
    }
  }

  void read_inputs() {
    for (const auto& input : graph_.input()) {
      if (values_.contains(input.name())) continue;  // an initializer's default, in old files
      with_context(fmt::format("input '{}'", clean(input.name())), [&] {
        if (!read_as_data_.contains(input.name())) {
          read_weight(input);
        } else {
          read_data(input);
        }
      });
    }
    if (trace_.batch == 0) throw input_error("the model has no input besides its weights");
  }

  static const TensorShape* shape_in(const ValueInfo& info) {
    if (!info.has_type() || !info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return nullptr;
    const auto& shape = info.type().tensor_type().shape();
    return static_cast<std::size_t>(shape.dim_size()) > kMostRank ? nullptr : &shape;
  }

  void read_weight(const ValueInfo& input) {
    const auto* stated = shape_in(input);
    if (stated == nullptr) throw input_error("a weight without a shape");
    Shape shape;
    for (const auto& dim : stated->dim()) shape.push_back(dim.dim_value());
    Value value;
    value.constant = true;
    value.shape = checked(std::move(shape));
    define(input.name(), std::move(value));
    ++weight_inputs_;
  }

  void read_data(const ValueInfo& input) {
    const auto* stated = shape_in(input);
    if (stated == nullptr || stated->dim_size() == 0) {
      throw input_error("its shape is not stated; export the model with one");
    }
    if (trace_.batch == 0) find_batch(stated->dim(0), input);
    Shape shape;
    for (const auto& dim : stated->dim()) shape.push_back(extent_of(dim));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 1) {
        throw input_error(
            fmt::format("its extent {} is symbolic ('{}') or not positive; export the model with fixed extents", d,
                        clean(stated->dim(static_cast<int>(d)).dim_param())));
      }
    }
    Value value;
    value.shape = checked(std::move(shape));
    define(input.name(), std::move(value));
  }

  void find_batch(const Dimension& dim, const ValueInfo& input) {
    file_batch_ = std::max<std::int64_t>(dim.dim_value(), 0);
    batch_name_ = file_batch_ == 0 ? dim.dim_param() : "";
    trace_.batch = batch_given_ > 0 ? batch_given_ : file_batch_;
    if (trace_.batch == 0) {
      throw input_error(fmt::format("the batch, its first extent, is symbolic ('{}'); give it as onnx:batch=N",
                                    clean(dim.dim_param())));
    }
    if (trace_.batch > 1 << 20) throw input_error(fmt::format("the batch is {}", trace_.batch));
    if (file_batch_ != 0 && trace_.batch != file_batch_) {
      note(fmt::format("batch {} as given, where the file has {}", trace_.batch, file_batch_));
    } else {
      note(fmt::format("batch {}: the first extent of the input '{}'{}", trace_.batch, clean(input.name()),
                       file_batch_ == 0 ? ", as given" : ""));
    }
    const int type = input.type().tensor_type().elem_type();
    trace_.dtype = type == 10 ? "float16" : type == 16 ? "bfloat16" : type == 11 ? "float64" : "float32";
    element_bytes_ = type == 10 || type == 16 ? 2 : type == 11 ? 8 : 4;
    if (type != 1 && trace_.dtype == "float32")
      note("the input is of no floating-point type; activations count as float32");
  }

  // 0 where it is symbolic. The file's batch becomes the trace's.
  [[nodiscard]] std::int64_t extent_of(const Dimension& dim) const {
    if (dim.dim_value() != 0) return dim.dim_value() == file_batch_ ? trace_.batch : dim.dim_value();
    return file_batch_ == 0 && !batch_name_.empty() && dim.dim_param() == batch_name_ ? trace_.batch : 0;
  }

  // Shapes that the file states of results. Only the first extent can be the batch.
  template <class Infos>
  void read_declared(const Infos& infos) {
    for (const auto& info : infos) {
      const auto* stated = shape_in(info);
      if (stated == nullptr) continue;
      Shape shape;
      for (const auto& dim : stated->dim()) {
        shape.push_back(shape.empty() ? extent_of(dim) : std::max<std::int64_t>(dim.dim_value(), 0));
      }
      if (std::all_of(shape.begin(), shape.end(), [](std::int64_t e) { return e > 0; })) declared_[info.name()] = shape;
    }
  }

  // ---- nodes ----

  void add(const Node& node) {
    std::vector<const Value*> inputs;  // null: left out
    bool constant = true;
    for (const auto& name : node.input()) {
      if (name.empty()) {
        inputs.push_back(nullptr);
        continue;
      }
      const auto found = values_.find(name);
      if (found == values_.end()) {
        throw input_error(
            fmt::format("it reads '{}', which nothing before it produces: the nodes are not in topological "
                        "order, or form a cycle",
                        clean(name)));
      }
      inputs.push_back(&found->second);
      constant = constant && found->second.constant;
    }
    if (constant || operator_of(node) == "Shape" || operator_of(node) == "Size") {
      fold(node, inputs);
    } else {
      add_computed(node, inputs);
    }
  }

  // ---- constants ----

  void fold(const Node& node, const Inputs& inputs) {
    ++folded_;
    Value value;
    value.constant = true;
    if (node.output_size() > 0) {
      if (const auto known = declared_.find(node.output(0)); known != declared_.end()) value.shape = known->second;
    }
    if (auto folded = folded_value(node, inputs)) value = std::move(*folded);
    if (node.output_size() > 0) define(node.output(0), std::move(value));
    Value unknown;
    unknown.constant = true;
    for (int i = 1; i < node.output_size(); ++i) define(node.output(i), unknown);
  }

  // ---- layers ----

  // A layer that reads those of `inputs` that are no constants.
  Layer start(const Node& node, OpKind kind, const Inputs& inputs) {
    Layer layer;
    layer.name = unique(name_of(node));
    layer.kind = kind;
    layer.needs_input_gradient = false;
    const Shape* model_input = nullptr;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || inputs[i]->constant) continue;
      const Shape& shape = shape_of(inputs, i);
      layer.needs_input_gradient = layer.needs_input_gradient || inputs[i]->needs_gradient;
      if (inputs[i]->layer == kModelInput) {
        model_input = &shape;
      } else {
        layer.inputs.push_back(inputs[i]->layer);
        layer.input_shapes.push_back(shape);
      }
    }
    if (layer.inputs.empty() && model_input != nullptr) {
      layer.input_shapes = {*model_input};
    } else if (model_input != nullptr) {
      note(fmt::format("{}: reads the model's input too, which a trace cannot say", layer.name));
    }
    return layer;
  }

  std::string unique(const std::string& name) {
    std::string candidate = name;
    while (candidate.empty() || !names_.insert(candidate).second)
      candidate = fmt::format("{}.{}", name, ++names_given_[name] + 1);
    return candidate;
  }

  // Adds the layer; its result is the node's output `output`.
  void push(const Node& node, Layer layer, Shape shape, int output = 0) {
    layer.output_shape = checked(std::move(shape));
    if (!layer.in_place) layer.activation_bytes = Bytes(element_bytes_ * elements(layer.output_shape));
    set_flops(layer);
    Value value;
    value.shape = layer.output_shape;
    value.layer = LayerId{static_cast<std::int32_t>(trace_.layers.size())};
    value.needs_gradient = layer.needs_input_gradient || !layer.parameters.empty();
    if (output < node.output_size()) {
      compare(node.output(output), layer);
      define(node.output(output), std::move(value));
    }
    trace_.layers.push_back(std::move(layer));
  }

  void compare(const std::string& name, const Layer& layer) {
    const auto stated = declared_.find(name);
    if (stated == declared_.end() || stated->second == layer.output_shape) return;
    if (contradictions_++ == 0) {
      note(fmt::format("{}: its shape is {}, where the file states {}", layer.name, text_of(layer.output_shape),
                       text_of(stated->second)));
    }
  }

  // Masks, indices and statistics: results that no layer of a network reads on.
  void define_rest(const Node& node) {
    for (int i = 1; i < node.output_size(); ++i) define(node.output(i), Value{});
  }

  // The tensor in a weight's place. A tensor that serves several layers counts where it is read first.
  void add_parameter(Layer& layer, const char* what, const std::string& tensor, Shape shape) {
    loose_.erase(tensor);
    const auto [first, is_new] = readers_.emplace(tensor, layer.name);
    if (is_new) {
      layer.parameters.push_back({what, checked(std::move(shape))});
    } else {
      note(fmt::format("{}: shares its {} with {}, where it counts", layer.name, what, first->second));
    }
  }

  static Shape weight_shape(const Inputs& inputs, std::size_t i) {
    if (!has(inputs, i)) throw input_error("it has no weights");
    if (!inputs[i]->constant) throw input_error("its weights are computed in the model, which is not supported");
    return checked(shape_of(inputs, i));
  }

  void add_computed(const Node& node, const Inputs& inputs) {
    using Handler = void (Builder::*)(const Node&, const Inputs&);
    static const std::map<std::string_view, Handler> handlers = {
        {"Conv", &Builder::add_conv},
        {"Gemm", &Builder::add_gemm},
        {"MatMul", &Builder::add_matmul},
        {"BatchNormalization", &Builder::add_normalization},
        {"InstanceNormalization", &Builder::add_normalization},
        {"LayerNormalization", &Builder::add_normalization},
        {"GroupNormalization", &Builder::add_normalization},
        {"PRelu", &Builder::add_prelu},
        {"Relu", &Builder::add_relu},
        {"LeakyRelu", &Builder::add_relu},
        {"Clip", &Builder::add_relu},
        {"MaxPool", &Builder::add_pool},
        {"AveragePool", &Builder::add_pool},
        {"GlobalMaxPool", &Builder::add_global_pool},
        {"GlobalAveragePool", &Builder::add_global_pool},
        {"ReduceMean", &Builder::add_reduce_mean},
        {"Add", &Builder::add_sum},
        {"Sum", &Builder::add_sum},
        {"Sub", &Builder::add_elementwise},
        {"Mul", &Builder::add_elementwise},
        {"Div", &Builder::add_elementwise},
        {"Pow", &Builder::add_elementwise},
        {"Min", &Builder::add_elementwise},
        {"Max", &Builder::add_elementwise},
        {"Concat", &Builder::add_concat},
        {"LRN", &Builder::add_same},
        {"Dropout", &Builder::add_same},
        {"Softmax", &Builder::add_softmax},
        {"LogSoftmax", &Builder::add_softmax},
        {"Flatten", &Builder::add_view},
        {"Reshape", &Builder::add_view},
        {"Squeeze", &Builder::add_view},
        {"Unsqueeze", &Builder::add_view},
        {"Identity", &Builder::add_alias},
        {"Cast", &Builder::add_alias},
        {"Transpose", &Builder::add_transpose},
        {"Pad", &Builder::add_pad},
        {"Slice", &Builder::add_slice},
        {"Split", &Builder::add_split},
        {"Gather", &Builder::add_gather},
    };
    static const std::set<std::string_view> same = {"Sigmoid",
                                                    "HardSigmoid",
                                                    "HardSwish",
                                                    "Tanh",
                                                    "Elu",
                                                    "Selu",
                                                    "Celu",
                                                    "Softplus",
                                                    "Softsign",
                                                    "Mish",
                                                    "Gelu",
                                                    "Erf",
                                                    "Exp",
                                                    "Log",
                                                    "Abs",
                                                    "Neg",
                                                    "Sqrt",
                                                    "Floor",
                                                    "Ceil",
                                                    "Reciprocal",
                                                    "Round",
                                                    "Sign",
                                                    "Sin",
                                                    "Cos",
                                                    "Not",
                                                    "ThresholdedRelu",
                                                    "LpNormalization"};
    const auto op = operator_of(node);
    if (const auto handler = handlers.find(op); handler != handlers.end()) {
      (this->*handler->second)(node, inputs);
    } else if (same.contains(op)) {
      add_same(node, inputs);
    } else {
      add_unknown(node, inputs);
    }
  }

  void set_windows(Layer& layer, Windows&& w) {
    layer.kernel = std::move(w.kernel);
    layer.stride = std::move(w.stride);
    layer.pad_begin = std::move(w.pad_begin);
    layer.pad_end = std::move(w.pad_end);
    layer.dilation = std::move(w.dilation);
  }

  void add_conv(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    const Shape weight = weight_shape(inputs, 1);
    const Shape& in = shape_of(inputs, 0);
    const auto groups = attributes.integer("group", 1);
    if (in.size() < 3 || weight.size() != in.size()) {
      throw input_error(fmt::format("weights of shape {} on an input of shape {}", text_of(weight), text_of(in)));
    }
    if (groups < 1 || groups > kMostWindow || weight[1] > kMostElements / groups || weight[1] * groups != in[1] ||
        weight[0] % groups != 0) {
      throw input_error(fmt::format("weights of shape {} in {} groups on {} channels", text_of(weight), groups, in[1]));
    }
    std::vector<int> kernel;
    for (std::size_t d = 2; d < weight.size(); ++d) {
      if (weight[d] > kMostWindow) throw input_error(fmt::format("a kernel of {}", weight[d]));
      kernel.push_back(static_cast<int>(weight[d]));
    }
    if (attributes.find("kernel_shape") != nullptr &&
        attributes.window("kernel_shape", kernel.size(), 1, 1) != kernel) {
      throw input_error("kernel_shape differs from the shape of the weights");
    }
    auto w = windows_of(attributes, in, kernel);
    Layer layer = start(node, OpKind::conv, {inputs[0]});
    Shape out{in[0], weight[0]};
    out.insert(out.end(), w.extents.begin(), w.extents.end());
    set_windows(layer, std::move(w));
    layer.groups = static_cast<int>(groups);
    add_parameter(layer, "weight", node.input(1), weight);
    if (has(inputs, 2)) add_parameter(layer, "bias", node.input(2), {weight[0]});
    push(node, std::move(layer), std::move(out));
    define_rest(node);
  }

  // out = in x weight (K x N, or N x K transposed) + bias.
  void add_gemm(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    const Shape weight = weight_shape(inputs, 1);
    const Shape& in = shape_of(inputs, 0);
    if (weight.size() != 2 || in.size() != 2 || attributes.integer("transA", 0) != 0) {
      throw input_error(fmt::format("weights of shape {} on an input of shape {}{}", text_of(weight), text_of(in),
                                    attributes.integer("transA", 0) != 0 ? ", transposed" : ""));
    }
    const bool transposed_weight = attributes.integer("transB", 0) != 0;
    const bool bias = has(inputs, 2) && inputs[2]->constant;
    add_fc(node, inputs, transposed_weight ? weight[0] : weight[1], transposed_weight ? weight[1] : weight[0],
           bias ? &node.input(2) : nullptr);
  }

  void add_fc(const Node& node, const Inputs& inputs, std::int64_t out, std::int64_t in, const std::string* bias) {
    Shape shape = shape_of(inputs, 0);
    if (shape.back() != in) throw input_error(fmt::format("weights for {} features on {}", in, shape.back()));
    Layer layer = start(node, shape.size() == 2 ? OpKind::fc : OpKind::other, {inputs[0]});
    add_parameter(layer, "weight", node.input(1), {out, in});
    if (bias != nullptr) add_parameter(layer, "bias", *bias, {out});
    shape.back() = out;
    push(node, std::move(layer), std::move(shape));
  }

  void add_matmul(const Node& node, const Inputs& inputs) {
    if (has(inputs, 0) && has(inputs, 1) && !inputs[0]->constant && inputs[1]->constant) {
      const Shape weight = weight_shape(inputs, 1);
      if (weight.size() == 2 && shape_of(inputs, 0).size() >= 2) {
        add_fc(node, inputs, weight[1], weight[0], nullptr);
        if (node.output_size() > 0) biasless_.insert(node.output(0));
        return;
      }
    }
    // A product of two computed matrices, or of stacks of them.
    const Shape& a = shape_of(inputs, 0);
    const Shape& b = shape_of(inputs, 1);
    if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) {
      throw input_error(fmt::format("matrices of shape {} and {}", text_of(a), text_of(b)));
    }
    Shape shape = broadcast({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
    shape.push_back(a[a.size() - 2]);
    shape.push_back(b.back());
    push(node, start(node, OpKind::other, inputs), std::move(shape));
  }

  void add_normalization(const Node& node, const Inputs& inputs) {
    const bool batch = operator_of(node) == "BatchNormalization";
    const Shape& in = shape_of(inputs, 0);
    if (in.size() < 2) throw input_error(fmt::format("an input of shape {}", text_of(in)));
    Layer layer = start(node, batch ? OpKind::bn : OpKind::other, {inputs[0]});
    for (std::size_t i = 1; i <= 2 && i < inputs.size(); ++i) {
      if (!has(inputs, i)) continue;
      const Shape scale = weight_shape(inputs, i);
      if (batch && scale != Shape{in[1]}) {
        throw input_error(
            fmt::format("{} of shape {} for {} channels", i == 1 ? "a scale" : "a shift", text_of(scale), in[1]));
      }
      add_parameter(layer, i == 1 ? "weight" : "bias", node.input(static_cast<int>(i)), scale);
    }
    for (int i = 3; i < node.input_size(); ++i) loose_.erase(node.input(i));  // running mean and variance
    // The gradients of input, scale and shift come from one kernel in every library.
    layer.backward_is_joint = true;
    push(node, std::move(layer), in);
    define_rest(node);
  }

  void add_prelu(const Node& node, const Inputs& inputs) {
    Layer layer = start(node, OpKind::other, {inputs[0]});
    add_parameter(layer, "weight", node.input(1), weight_shape(inputs, 1));
    push(node, std::move(layer), shape_of(inputs, 0));
  }

  // In place where nobody else reads what it overwrites.
  void add_relu(const Node& node, const Inputs& inputs) {
    const Shape& shape = shape_of(inputs, 0);
    Layer layer = start(node, OpKind::relu, {inputs[0]});
    layer.in_place = uses_.find(node.input(0))->second == 1 && inputs[0]->layer != kModelInput;
    push(node, std::move(layer), shape);
  }

  void add_pool(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    const Shape& in = shape_of(inputs, 0);
    if (in.size() < 3) throw input_error(fmt::format("a pooling of an input of shape {}", text_of(in)));
    if (attributes.find("kernel_shape") == nullptr) throw input_error("it has no kernel_shape");
    auto w = windows_of(attributes, in, attributes.window("kernel_shape", in.size() - 2, 1, 1));
    Layer layer = start(node, operator_of(node) == "MaxPool" ? OpKind::max_pool : OpKind::avg_pool, {inputs[0]});
    Shape out{in[0], in[1]};
    out.insert(out.end(), w.extents.begin(), w.extents.end());
    set_windows(layer, std::move(w));
    push(node, std::move(layer), std::move(out));
    define_rest(node);
  }

  // A window as large as the input. `keep`: its extents of 1 stay.
  void add_whole_pool(const Node& node, const Inputs& inputs, OpKind kind, bool keep) {
    const Shape& in = shape_of(inputs, 0);
    if (in.size() < 3 || in.size() > 5)
      throw input_error(fmt::format("a pooling of an input of shape {}", text_of(in)));
    std::vector<int> kernel;
    for (std::size_t d = 2; d < in.size(); ++d) {
      if (in[d] > kMostWindow) throw input_error(fmt::format("a window of {}", in[d]));
      kernel.push_back(static_cast<int>(in[d]));
    }
    Layer layer = start(node, kind, {inputs[0]});
    layer.stride = layer.dilation = std::vector<int>(kernel.size(), 1);
    layer.pad_begin = layer.pad_end = std::vector<int>(kernel.size(), 0);
    layer.kernel = std::move(kernel);
    Shape out{in[0], in[1]};
    if (keep) out.resize(in.size(), 1);
    push(node, std::move(layer), std::move(out));
  }

  void add_global_pool(const Node& node, const Inputs& inputs) {
    add_whole_pool(node, inputs, operator_of(node) == "GlobalMaxPool" ? OpKind::max_pool : OpKind::avg_pool, true);
  }

  // The mean over all spatial dimensions is a global average pool, as some exporters write it.
  void add_reduce_mean(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    const Shape& in = shape_of(inputs, 0);
    auto axes = attributes.list("axes");
    if (!axes) axes = numbers_of_input(inputs, 1);
    if (!axes) axes = Numbers{};
    const auto reduced = axes_of(*axes, in.size());
    const bool keep = attributes.integer("keepdims", 1) != 0;
    bool spatial = in.size() >= 3 && in.size() <= 5 && reduced.size() == in.size() - 2;
    for (std::size_t i = 0; i < reduced.size() && spatial; ++i) spatial = reduced[i] == i + 2;
    if (spatial) return add_whole_pool(node, inputs, OpKind::avg_pool, keep);
    Shape out;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool gone = reduced.empty() || std::binary_search(reduced.begin(), reduced.end(), i);
      if (!gone || keep) out.push_back(gone ? 1 : in[i]);
    }
    push(node, start(node, OpKind::other, {inputs[0]}), std::move(out));
  }

  // `add` where equal shapes meet, as in residual branches; else an element-wise operation.
  void add_sum(const Node& node, const Inputs& inputs) {
    if (fold_bias(node, inputs)) return;
    bool equal = inputs.size() >= 2;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      equal = equal && has(inputs, i) && !inputs[i]->constant && shape_of(inputs, i) == shape_of(inputs, 0);
    }
    if (!equal) return add_elementwise(node, inputs);
    push(node, start(node, OpKind::add, inputs), shape_of(inputs, 0));
  }

  // A MatMul and the Add of a constant vector behind it are one fully connected layer.
  bool fold_bias(const Node& node, const Inputs& inputs) {
    if (inputs.size() != 2 || !has(inputs, 0) || !has(inputs, 1) || node.output_size() < 1) return false;
    const std::size_t data = inputs[0]->constant ? 1 : 0;
    const auto& product = node.input(static_cast<int>(data));
    const auto& bias = *inputs[1 - data];
    if (!biasless_.contains(product) || !bias.constant || !bias.shape) return false;
    Layer& layer = trace_.layers[inputs[data]->layer.index()];
    if (*bias.shape != Shape{layer.output_shape.back()} || uses_.find(product)->second != 1) return false;
    add_parameter(layer, "bias", node.input(static_cast<int>(1 - data)), *bias.shape);
    set_flops(layer);
    ++folded_;
    define(node.output(0), *inputs[data]);
    return true;
  }

  void add_elementwise(const Node& node, const Inputs& inputs) {
    Shape shape;
    for (std::size_t i = 0; i < inputs.size(); ++i) shape = broadcast(shape, shape_of(inputs, i));
    push(node, start(node, OpKind::other, inputs), std::move(shape));
  }

  void add_concat(const Node& node, const Inputs& inputs) {
    Shape shape = shape_of(inputs, 0);
    const auto axis = axis_of(Attributes(node).integer("axis", 1), shape.size());
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Shape& other = shape_of(inputs, i);
      bool fits = other.size() == shape.size();
      for (std::size_t d = 0; d < shape.size() && fits; ++d) fits = d == axis || other[d] == shape[d];
      if (!fits || __builtin_add_overflow(shape[axis], other[axis], &shape[axis])) {
        throw input_error(
            fmt::format("shapes {} and {} do not go together along axis {}", text_of(shape), text_of(other), axis));
      }
    }
    push(node, start(node, axis == 1 ? OpKind::concat : OpKind::other, inputs), std::move(shape));
  }

  void add_same(const Node& node, const Inputs& inputs) {
    const auto op = operator_of(node);
    const auto kind = op == "LRN" ? OpKind::lrn : op == "Dropout" ? OpKind::dropout : OpKind::other;
    push(node, start(node, kind, {inputs.empty() ? nullptr : inputs[0]}), shape_of(inputs, 0));
    define_rest(node);
  }

  // At the end of the network it belongs to the loss.
  void add_softmax(const Node& node, const Inputs& inputs) {
    const bool last = node.output_size() > 0 && outputs_.contains(node.output(0));
    has_loss_ = has_loss_ || last;
    push(node, start(node, last ? OpKind::softmax_loss : OpKind::other, {inputs.empty() ? nullptr : inputs[0]}),
         shape_of(inputs, 0));
  }

  void add_view(const Node& node, const Inputs& inputs) {
    Layer layer = start(node, OpKind::flatten, {inputs.empty() ? nullptr : inputs[0]});
    layer.in_place = true;
    push(node, std::move(layer), viewed(node, inputs));
  }

  [[nodiscard]] Shape viewed(const Node& node, const Inputs& inputs) const {
    const Attributes attributes(node);
    const Shape& in = shape_of(inputs, 0);
    const auto op = operator_of(node);
    if (op == "Flatten") {
      const auto axis = attributes.integer("axis", 1);
      const auto cut = axis == static_cast<std::int64_t>(in.size()) ? in.size() : axis_of(axis, in.size());
      const auto from = in.begin() + static_cast<std::ptrdiff_t>(cut);
      return {elements({in.begin(), from}), elements({from, in.end()})};
    }
    auto numbers = op == "Reshape" ? numbers_of_input(inputs, 1) : attributes.list("axes");
    if (!numbers) numbers = numbers_of_input(inputs, 1);
    if (op == "Squeeze" && (numbers || !has(inputs, 1))) return squeezed(in, numbers);
    if (!numbers) return declared_shape(node);
    if (op == "Unsqueeze") {
      if (numbers->size() + in.size() > kMostRank) throw input_error(fmt::format("{} axes are added", numbers->size()));
      return unsqueezed(in, *numbers);
    }
    // A batch that the exporter wrote into the constant.
    if (!numbers->empty() && file_batch_ != 0 && numbers->front() == file_batch_) numbers->front() = trace_.batch;
    return reshaped(in, *numbers, attributes.integer("allowzero", 0) != 0);
  }

  [[nodiscard]] Shape declared_shape(const Node& node) const {
    const auto stated = node.output_size() > 0 ? declared_.find(node.output(0)) : declared_.end();
    if (stated == declared_.end()) {
      throw input_error("its shape depends on values that are not constant, and the file does not state it");
    }
    return stated->second;
  }

  void add_alias(const Node& node, const Inputs& inputs) {
    if (!has(inputs, 0) || node.output_size() < 1) throw input_error("it has no input or no output");
    ++aliases_;
    define(node.output(0), *inputs[0]);
  }

  void add_transpose(const Node& node, const Inputs& inputs) {
    push(node, start(node, OpKind::other, inputs), transposed(shape_of(inputs, 0), Attributes(node).list("perm")));
  }

  void add_pad(const Node& node, const Inputs& inputs) {
    Shape shape = shape_of(inputs, 0);
    auto pads = Attributes(node).list("pads");
    if (!pads) pads = numbers_of_input(inputs, 1);
    if (!pads || has(inputs, 3)) {
      shape = declared_shape(node);
    } else {
      if (pads->size() != 2 * shape.size())
        throw input_error(fmt::format("{} pads for {} dimensions", pads->size(), shape.size()));
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (__builtin_add_overflow(shape[d], (*pads)[d], &shape[d]) ||
            __builtin_add_overflow(shape[d], (*pads)[d + shape.size()], &shape[d])) {
          throw input_error("a pad is too large");
        }
      }
    }
    push(node, start(node, OpKind::other, {inputs[0]}), std::move(shape));
  }

  void add_slice(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    Shape shape = shape_of(inputs, 0);
    const auto list = [&](const char* name, std::size_t input) {
      auto numbers = attributes.list(name);
      return numbers ? numbers : numbers_of_input(inputs, input);
    };
    const auto starts = list("starts", 1);
    const auto ends = list("ends", 2);
    auto axes = list("axes", 3);
    auto steps = list("steps", 4);
    if (!starts || !ends || (has(inputs, 3) && !axes) || (has(inputs, 4) && !steps)) {
      shape = declared_shape(node);
    } else {
      if (!axes) {
        axes = Numbers(std::min(starts->size(), kMostRank));
        std::iota(axes->begin(), axes->end(), 0);
      }
      if (!steps) steps = Numbers(std::min(starts->size(), kMostRank), 1);
      if (starts->size() != axes->size() || ends->size() != axes->size() || steps->size() != axes->size()) {
        throw input_error("starts, ends, axes and steps differ in length");
      }
      (void)axes_of(*axes, shape.size());
      for (std::size_t i = 0; i < axes->size(); ++i) {
        auto& extent = shape[axis_of((*axes)[i], shape.size())];
        extent = slice_extent(extent, (*starts)[i], (*ends)[i], (*steps)[i]);
      }
    }
    push(node, start(node, OpKind::other, {inputs[0]}), std::move(shape));
  }

  // Views of parts, one a result.
  void add_split(const Node& node, const Inputs& inputs) {
    const Attributes attributes(node);
    const Shape whole = shape_of(inputs, 0);
    const auto axis = axis_of(attributes.integer("axis", 0), whole.size());
    auto parts = attributes.list("split");
    if (!parts) parts = numbers_of_input(inputs, 1);
    const int count = node.output_size();
    if (count < 1) throw input_error("it has no outputs");
    if (!parts) {
      const auto each = (whole[axis] + count - 1) / count;
      parts = Numbers(static_cast<std::size_t>(count), each);
      parts->back() = whole[axis] - each * (count - 1);
    }
    std::int64_t sum = 0;
    for (const auto part : *parts) sum += part < 1 || part > whole[axis] ? whole[axis] + 1 : part;
    if (parts->size() != static_cast<std::size_t>(count) || sum != whole[axis]) {
      throw input_error(fmt::format("its parts do not make up the {} of axis {}", whole[axis], axis));
    }
    const Value input = *inputs[0];  // push() may move what `inputs` points at
    for (int i = 0; i < count; ++i) {
      Layer layer = start(node, OpKind::flatten, {&input});
      layer.in_place = true;
      Shape shape = whole;
      shape[axis] = (*parts)[static_cast<std::size_t>(i)];
      push(node, std::move(layer), std::move(shape), i);
    }
  }

  void add_gather(const Node& node, const Inputs& inputs) {
    const Shape& in = shape_of(inputs, 0);
    const Shape& indices = shape_of(inputs, 1);
    const auto axis = static_cast<std::ptrdiff_t>(axis_of(Attributes(node).integer("axis", 0), in.size()));
    Shape shape(in.begin(), in.begin() + axis);
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), in.begin() + axis + 1, in.end());
    push(node, start(node, OpKind::other, inputs), std::move(shape));
  }

  void add_unknown(const Node& node, const Inputs& inputs) {
    if (node.output_size() < 1) throw input_error("it has no outputs");
    for (const auto& output : node.output()) {
      if (!output.empty() && !declared_.contains(output)) {
        throw input_error(
            fmt::format("the importer does not know this operator, and the file does not state the shape of "
                        "its result '{}' (shape inference before the export adds it)",
                        clean(output)));
      }
    }
    std::vector<Value> kept;  // push() may move what `inputs` points at
    for (const auto* input : inputs) kept.push_back(input == nullptr ? Value{} : *input);
    Inputs again;
    for (std::size_t i = 0; i < inputs.size(); ++i) again.push_back(inputs[i] == nullptr ? nullptr : &kept[i]);
    note(fmt::format("{}: operator {} is unknown to the importer, kept as 'other'", name_of(node),
                     clean(node.op_type())));
    for (int i = 0; i < node.output_size(); ++i) {
      if (!node.output(i).empty())
        push(node, start(node, OpKind::other, again), declared_.find(node.output(i))->second, i);
    }
  }

  // ---- what is said about it ----

  void note(std::string text) {
    constexpr std::size_t most = 1000;
    if (trace_.notes.size() < most) trace_.notes.push_back(std::move(text));
  }

  void describe() {
    trace_.recorder = "ONNX model";
    trace_.framework = clean(model_.producer_name());
    trace_.framework_version = clean(model_.producer_version());
    trace_.device = "unknown";
    trace_.layout = "nchw";
    note("an ONNX model has no times: name a device to have them modelled");
    if (!has_loss_) note("the model ends without a softmax: the loss has no layer");
    if (weight_inputs_ > 0) {
      note(
          fmt::format("{} inputs of the model stand only where weights do, and are taken for weights", weight_inputs_));
    }
    if (contradictions_ > 1) note(fmt::format("{} shapes differ from those that the file states", contradictions_));
    std::int64_t loose = 0;
    for (const auto& name : loose_) loose += uses_.contains(name) ? 1 : 0;
    if (loose > 0) {
      note(fmt::format("{} floating-point constants of other operators are not counted as parameters", loose));
    }
  }

  [[nodiscard]] ImportReport report() const {
    using Fate = ImportReport::Fate;
    ImportReport report;
    const auto add = [&](const char* what, std::int64_t count, Fate fate, const char* why) {
      if (count > 0) report.entries.push_back({what, count, {}, fate, why});
    };
    std::int64_t tensors = 0;
    for (const auto& layer : trace_.layers) tensors += static_cast<std::int64_t>(layer.parameters.size());
    add("nodes kept as layers", graph_.node_size() - folded_ - aliases_, Fate::used, "");
    add("parameter tensors", tensors, Fate::used, "shapes only");
    add("nodes of constants and shapes", folded_, Fate::dropped, "folded: they compute nothing in an iteration");
    add("Identity and Cast nodes", aliases_, Fate::dropped, "another name of the same tensor");
    return report;
  }

  const Model& model_;
  const Graph& graph_;
  std::int64_t batch_given_;
  Trace trace_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, Shape, std::less<>> declared_;
  std::map<std::string, std::int64_t, std::less<>> uses_;
  std::set<std::string, std::less<>> read_as_data_, outputs_;
  std::set<std::string, std::less<>> biasless_;              // results of MatMul that may yet get a bias
  std::set<std::string, std::less<>> loose_;                 // floating-point initializers in no weight's place
  std::map<std::string, std::string, std::less<>> readers_;  // of a parameter tensor
  std::set<std::string> names_;
  std::map<std::string, int> names_given_;
  std::int64_t file_batch_ = 0;  // 0: symbolic
  std::string batch_name_;
  std::int64_t element_bytes_ = 4;
  std::int64_t folded_ = 0, aliases_ = 0, weight_inputs_ = 0, contradictions_ = 0;
  bool has_loss_ = false;
};

class OnnxImporter : public Importer {
 public:
  explicit OnnxImporter(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] bool recognizes(std::string_view head) const override { return begins_onnx_model(head); }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    check_onnx_pieces(source.content);
    Model model;
    if (source.content.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
        !model.ParseFromString(source.content)) {
      throw input_error("the file is damaged: it is no ONNX model");
    }
    return Builder(model, batch_).build();
  }

 private:
  std::int64_t batch_;
};

std::unique_ptr<Importer> make_onnx(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<OnnxImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 20) : 0);
}

TANDEM_REGISTER(Importer, onnx, "onnx", "ONNX models: layers, shapes and parameters, without times", make_onnx,
                {{"batch", ParameterType::integer, "", "samples; by default the first extent of the model's input"}})

}  // namespace
}  // namespace tandem::onnx
