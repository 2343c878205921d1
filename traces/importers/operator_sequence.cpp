#include "traces/importers/operator_sequence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/core/error.hpp"
#include "traces/layer_work.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kMostBatch = 65536;  // of build_model()
constexpr std::size_t kMostOperators = 1 << 16;

using Operators = std::vector<ObservedOperator>;

// ---- one operator ----

// Kinds that every description of a model has: their order and number is what identifies it.
bool is_anchor(OpKind kind) {
  return kind == OpKind::conv || kind == OpKind::fc || kind == OpKind::bn;
}
// Kinds that a model may have without a description showing them, or the other way round: views, the identity at
// evaluation, an average pool over one element (VGG's at 224 x 224), the loss.
bool is_optional(OpKind kind) {
  return kind == OpKind::flatten || kind == OpKind::dropout || kind == OpKind::softmax_loss ||
         kind == OpKind::avg_pool || kind == OpKind::other;
}

bool same_or_unknown(const Shape& observed, const Shape& expected) {
  return observed.empty() || observed == expected;
}

bool fits(const ObservedOperator& op, const Layer& layer) {
  if (op.kind != layer.kind) return false;
  if (!op.input_shapes.empty() && !layer.input_shapes.empty() &&
      !same_or_unknown(op.input_shapes[0], layer.input_shapes[0])) {
    return false;
  }
  if (!layer.parameters.empty() && !same_or_unknown(op.weight, layer.parameters[0].shape)) return false;
  return same_or_unknown(op.output_shape, layer.output_shape);
}

void check_shape(const ObservedOperator& op, const Shape& shape) {
  double product = 1;
  for (const auto extent : shape) {
    if (extent < 1) throw input_error(fmt::format("'{}' has a shape with an extent of {}", op.name, extent));
    product *= static_cast<double>(extent);
  }
  if (product > 1e15) throw input_error(fmt::format("'{}' has a shape of {:.3g} elements", op.name, product));
}

// ---- matching with a built-in model ----

// Positions of the anchors among operators or layers.
template <class Sequence>
std::vector<std::size_t> anchors_of(const Sequence& sequence) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (is_anchor(sequence[i].kind)) positions.push_back(i);
  }
  return positions;
}

// The layers of `layers` [begin, end) for the operators [first, last) between the same two anchors, in order: every
// operator takes the next free layer of its kind. False where a layer that does work stays without an operator, or the
// other way round.
bool match_between(const Operators& operators, std::size_t first, std::size_t last, const std::vector<Layer>& layers,
                   std::size_t begin, std::size_t end, std::vector<int>& layer_of) {
  std::size_t next = begin;
  int loss = -1;
  const auto required = [&](std::size_t from, std::size_t to) {
    return std::any_of(layers.begin() + static_cast<std::ptrdiff_t>(from),
                       layers.begin() + static_cast<std::ptrdiff_t>(to),
                       [](const Layer& layer) { return !is_optional(layer.kind); });
  };
  for (std::size_t i = first; i < last; ++i) {
    const auto& op = operators[i];
    std::size_t at = next;
    while (at < end && !fits(op, layers[at])) ++at;
    if (at < end && !required(next, at)) {
      layer_of[i] = static_cast<int>(at);
      if (op.kind == OpKind::softmax_loss) loss = layer_of[i];
      next = at + 1;
    } else if (loss >= 0) {
      layer_of[i] = loss;  // what runs behind the softmax computes the loss
    } else if (!is_optional(op.kind)) {
      return false;
    }
  }
  return !required(next, end);
}

std::optional<std::vector<int>> match(const Operators& operators, const std::vector<Layer>& layers) {
  const auto observed = anchors_of(operators);
  const auto expected = anchors_of(layers);
  if (observed.size() != expected.size() || observed.empty()) return std::nullopt;
  std::vector<int> layer_of(operators.size(), -1);
  std::size_t first = 0, begin = 0;
  for (std::size_t k = 0; k < observed.size(); ++k) {
    if (!fits(operators[observed[k]], layers[expected[k]])) return std::nullopt;
    layer_of[observed[k]] = static_cast<int>(expected[k]);
    if (!match_between(operators, first, observed[k], layers, begin, expected[k], layer_of)) return std::nullopt;
    first = observed[k] + 1;
    begin = expected[k] + 1;
  }
  if (!match_between(operators, first, operators.size(), layers, begin, layers.size(), layer_of)) return std::nullopt;
  return layer_of;
}

bool has_shapes(const Operators& operators) {
  return std::any_of(operators.begin(), operators.end(), [](const ObservedOperator& op) {
    return is_anchor(op.kind) && !op.input_shapes.empty() && !op.input_shapes[0].empty();
  });
}

// Of the first operator with parameters and shapes; 0 where there is none.
std::int64_t batch_of(const Operators& operators) {
  for (const auto& op : operators) {
    if (is_anchor(op.kind) && !op.input_shapes.empty() && !op.input_shapes[0].empty()) return op.input_shapes[0][0];
  }
  return 0;
}

// The batch by which every output's elements lie within what its kernel's size allows; `least` and `most` bound it.
// Outputs of different sizes narrow it down to one number, or to none where this is another model.
struct BatchRange {
  std::int64_t least = 1, most = kMostBatch;
  int evidence = 0;
};
BatchRange batch_range(const Operators& operators, const std::vector<int>& layer_of, const std::vector<Layer>& layers) {
  BatchRange range;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const auto& op = operators[i];
    if (layer_of[i] < 0 || op.most_elements <= 0) continue;
    const std::int64_t each = elements(layers[static_cast<std::size_t>(layer_of[i])].output_shape);
    range.least = std::max(range.least, (op.least_elements + each - 1) / each);
    range.most = std::min(range.most, op.most_elements / each);
    ++range.evidence;
  }
  return range;
}

struct Match {
  Trace model;
  std::vector<int> layer_of;
  std::vector<std::string> notes;
};

// With shapes the model is built at their batch, and all shapes must agree.
std::optional<Match> match_by_shapes(const Operators& operators, std::int64_t batch) {
  for (const auto& name : model_names()) {
    Match found{build_model(name, batch), {}, {}};
    auto layer_of = match(operators, found.model.layers);
    if (!layer_of) continue;
    found.layer_of = std::move(*layer_of);
    found.notes.push_back(fmt::format("the operators and their shapes are those of {}: its names and edges", name));
    return found;
  }
  return std::nullopt;
}

// Without shapes: models whose kinds are in this order, where the sizes of the launched kernels agree with one batch.
std::optional<Match> match_by_kinds(const Operators& operators, std::int64_t batch) {
  std::vector<Match> candidates;
  std::string unsettled;
  for (const auto& name : model_names()) {
    const Trace one = build_model(name, 1);
    const auto layer_of = match(operators, one.layers);
    if (!layer_of) continue;
    auto range = batch_range(operators, *layer_of, one.layers);
    if (batch > 0) {
      range.least = std::max(range.least, batch);
      range.most = std::min(range.most, batch);
    }
    if (range.least > range.most) continue;
    if (range.least < range.most) {
      unsettled = name;
      continue;
    }
    Match found{build_model(name, range.least), *layer_of, {}};
    found.notes.push_back(fmt::format("no shapes in the file; the order of the operators is that of {}, {}", name,
                                      range.evidence > 0 ? fmt::format("and the sizes of {} launched kernels agree "
                                                                       "with its shapes at a batch of {} only",
                                                                       range.evidence, range.least)
                                                         : std::string("and nothing confirms it")));
    candidates.push_back(std::move(found));
  }
  if (candidates.size() == 1) return candidates[0];
  if (candidates.empty() && !unsettled.empty()) {
    throw input_error(
        fmt::format("no shapes, so the batch is unknown: give it (batch=N); the operators are those of {}", unsettled));
  }
  if (candidates.size() > 1) {
    throw input_error(fmt::format("no shapes, and the operators fit {} as well as {}", candidates[0].model.model,
                                  candidates[1].model.model));
  }
  return std::nullopt;
}

// ---- a chain of what ran ----

// Stride and pad by which `in` becomes `out` under a window of `kernel`: "same" padding first, then none, then any.
std::optional<std::pair<int, int>> infer_window(std::int64_t in, std::int64_t out, int kernel) {
  if (in < 1 || out < 1 || in > (1 << 24)) return std::nullopt;
  std::vector<int> pads{(kernel - 1) / 2, 0};
  for (int pad = 1; pad < std::min(kernel, 16); ++pad) pads.push_back(pad);
  const auto near = static_cast<int>(std::max<std::int64_t>(1, in / out));
  for (const int pad : pads) {
    if (in + 2 * pad < kernel) continue;
    for (const int stride : {near, near + 1, std::max(1, near - 1)}) {
      if (window_extent(in, kernel, stride, pad, pad, 1) == out) return std::pair{stride, pad};
    }
  }
  return std::nullopt;
}

std::string_view base_name(OpKind kind) {
  switch (kind) {
    case OpKind::max_pool:
      return "maxpool";
    case OpKind::avg_pool:
      return "avgpool";
    case OpKind::softmax_loss:
      return "loss";
    default:
      return to_text(kind);
  }
}

class ChainBuilder {
 public:
  ChainBuilder(const Operators& operators, std::int64_t batch) : operators_(operators) {
    trace_.batch = batch;
    layer_of_.assign(operators.size(), -1);
  }

  SequenceTrace build() {
    for (std::size_t i = 0; i < operators_.size(); ++i) add(i);
    note("the edges are guessed: a chain in order of execution, branches where the shapes tell");
    if (guessed_windows_ > 0) {
      note(fmt::format("windows of {} layers are guessed from their input and output extents", guessed_windows_));
    }
    SequenceTrace result;
    result.trace = std::move(trace_);
    result.layer_of = std::move(layer_of_);
    return result;
  }

 private:
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }
  [[nodiscard]] std::vector<Layer>& layers() { return trace_.layers; }

  static Shape input_of(const ObservedOperator& op) { return op.input_shapes.empty() ? Shape{} : op.input_shapes[0]; }

  void add(std::size_t i) {
    const auto& op = operators_[i];
    // What follows the softmax computes the loss.
    if (!layers().empty() && layers().back().kind == OpKind::softmax_loss &&
        (op.kind == OpKind::softmax_loss || op.kind == OpKind::other)) {
      layer_of_[i] = static_cast<int>(layers().size()) - 1;
      return;
    }
    if (op.kind == OpKind::fc) flatten_before(input_of(op));
    Layer layer;
    layer.kind = op.kind;
    layer.name = fmt::format("{}{}", base_name(op.kind), ++counts_[op.kind]);
    connect(op, layer);
    if (layer.input_shapes[0].empty()) {
      throw input_error(fmt::format("'{}' has no shapes: profile with record_shapes=True", op.name));
    }
    set_shapes(i, layer);
    layer.activation_bytes = Bytes(layer.in_place ? 0 : kFloat * elements(layer.output_shape));
    layer_of_[i] = push(std::move(layer));
  }

  int push(Layer layer) {
    for (const auto input : layer.inputs) consumed_.insert(input.value);
    layers().push_back(std::move(layer));
    return static_cast<int>(layers().size()) - 1;
  }

  void flatten_before(const Shape& input) {
    if (layers().empty() || input.size() != 2) return;
    const auto& last = layers().back();
    if (last.output_shape.size() <= 2 || elements(last.output_shape) != elements(input)) return;
    Layer layer;
    layer.kind = OpKind::flatten;
    layer.name = fmt::format("flatten{}", ++counts_[OpKind::flatten]);
    layer.inputs = {id(layers().size() - 1)};
    layer.input_shapes = {last.output_shape};
    layer.output_shape = input;
    layer.in_place = true;
    push(std::move(layer));
  }

  static LayerId id(std::size_t index) { return LayerId{static_cast<std::int32_t>(index)}; }

  void connect(const ObservedOperator& op, Layer& layer) {
    layer.input_shapes = {input_of(op)};
    if (layers().empty()) {
      layer.needs_input_gradient = false;
      return;
    }
    if (layer.kind == OpKind::concat && connect_concat(op, layer)) return;
    const auto from = producer(layer.input_shapes[0]);
    layer.inputs = {id(from)};
    if (layer.input_shapes[0].empty()) layer.input_shapes[0] = layers()[from].output_shape;
    if (layer.kind == OpKind::add) connect_add(from, layer);
  }

  // The latest layer with that output; where shapes are unknown or none fits, the last one. Far back nothing is
  // looked for: a branch is a few layers long, and the search must not grow with the file.
  static constexpr std::size_t kWindow = 64;
  [[nodiscard]] std::size_t producer(const Shape& shape) {
    const auto size = layers().size();
    for (std::size_t back = 1; back <= std::min(size, kWindow) && !shape.empty(); ++back) {
      if (layers()[size - back].output_shape == shape) return size - back;
    }
    return size - 1;
  }

  // The other branch of an addition: an open end of that shape, or else (a shortcut without a convolution) what the
  // block started from: the layer behind the addition before, or before the second last convolution.
  void connect_add(std::size_t from, Layer& layer) {
    const Shape shape = layer.input_shapes[0];
    std::optional<std::size_t> other;
    std::optional<std::size_t> start;
    int convolutions = 0;
    const auto size = layers().size();
    for (std::size_t back = 2; back <= std::min(size, kWindow) && !other; ++back) {
      const std::size_t at = size - back;
      if (at >= from) continue;
      const auto& candidate = layers()[at];
      if (layers()[at + 1].kind == OpKind::conv) ++convolutions;
      if (candidate.output_shape != shape) continue;
      if (consumed_.count(static_cast<std::int32_t>(at)) == 0) other = at;
      const bool block_end = candidate.kind == OpKind::add ||
                             (candidate.kind == OpKind::relu && at > 0 && layers()[at - 1].kind == OpKind::add);
      if (!start && convolutions > 0 && (block_end || convolutions >= 2)) start = at;
    }
    if (!other) other = start;
    if (!other) return;
    layer.inputs.push_back(id(*other));
    layer.input_shapes.push_back(shape);
  }

  // Open ends whose channels add up to those of the next operator, or whose shapes the concatenation lists.
  bool connect_concat(const ObservedOperator& op, Layer& layer) {
    if (op.input_shapes.size() < 2) return false;
    std::set<std::size_t> taken;
    layer.inputs.clear();
    layer.input_shapes.clear();
    const auto size = layers().size();
    for (const auto& shape : op.input_shapes) {
      std::optional<std::size_t> found;
      for (std::size_t back = std::min(size, kWindow); back >= 1 && !found; --back) {
        const std::size_t at = size - back;
        const bool open = consumed_.count(static_cast<std::int32_t>(at)) == 0;
        if (open && layers()[at].output_shape == shape && taken.count(at) == 0) found = at;
      }
      if (!found) found = producer(shape);
      if (!taken.insert(*found).second) continue;
      layer.inputs.push_back(id(*found));
      layer.input_shapes.push_back(layers()[*found].output_shape);
    }
    return true;
  }

  // The output as the file says it, as the next operator reads it, or by formula.
  [[nodiscard]] Shape observed_output(std::size_t i, const Shape& like) const {
    if (!operators_[i].output_shape.empty()) return operators_[i].output_shape;
    for (std::size_t k = i + 1; k < std::min(operators_.size(), i + 3); ++k) {
      const Shape next = input_of(operators_[k]);
      if (next.size() == like.size() && next.size() > 2 && next[0] == like[0] && next[1] == like[1]) return next;
    }
    return {};
  }

  void set_shapes(std::size_t i, Layer& layer) {
    const auto& op = operators_[i];
    layer.output_shape = layer.input_shapes[0];
    switch (layer.kind) {
      case OpKind::conv:
      case OpKind::max_pool:
      case OpKind::avg_pool:
        set_window(i, layer);
        break;
      case OpKind::fc:
        set_fc(op, layer);
        break;
      case OpKind::bn:
        if (layer.output_shape.size() > 1) {
          layer.parameters = {{"weight", {layer.output_shape[1]}}, {"bias", {layer.output_shape[1]}}};
        }
        break;
      case OpKind::concat:
        set_concat(op, layer);
        break;
      case OpKind::relu:
        layer.in_place = op.name.ends_with('_');
        break;
      default:
        if (!op.output_shape.empty()) layer.output_shape = op.output_shape;
    }
    check_shape(op, layer.output_shape);
    set_work(layer);
  }

  static void set_work(Layer& layer) {
    const bool windowed =
        layer.kind == OpKind::conv || layer.kind == OpKind::max_pool || layer.kind == OpKind::avg_pool;
    if (!windowed || !layer.kernel.empty()) set_flops(layer);
  }

  static void set_fc(const ObservedOperator& op, Layer& layer) {
    if (op.weight.size() == 2) {
      layer.output_shape.back() = op.weight[0];
      layer.parameters.push_back({"weight", op.weight});
      if (op.bias) layer.parameters.push_back({"bias", {op.weight[0]}});
    } else if (!op.output_shape.empty()) {
      layer.output_shape = op.output_shape;
    }
  }

  static void set_concat(const ObservedOperator& op, Layer& layer) {
    if (!op.output_shape.empty()) layer.output_shape = op.output_shape;
    if (!op.output_shape.empty() || layer.output_shape.size() < 2) return;
    for (std::size_t k = 1; k < layer.input_shapes.size(); ++k) {
      if (layer.input_shapes[k].size() < 2) return;
      layer.output_shape[1] += layer.input_shapes[k][1];
    }
  }

  // Window extents; a pool's are in no shape, so that its kernel is guessed where the file does not say it.
  void set_kernel(const ObservedOperator& op, const Shape& out, Layer& layer) {
    const auto& in = layer.input_shapes[0];
    layer.kernel = op.kernel;
    if (layer.kind == OpKind::conv) {
      layer.kernel.clear();
      for (std::size_t d = 2; d < op.weight.size(); ++d) layer.kernel.push_back(static_cast<int>(op.weight[d]));
    } else if (layer.kernel.size() + 2 != in.size()) {
      layer.kernel.clear();
      for (std::size_t d = 2; d < in.size(); ++d) {
        const std::int64_t extent = out.empty() ? 1 : out[d];
        const bool whole = in[d] % extent == 0;
        layer.kernel.push_back(static_cast<int>(whole ? std::min<std::int64_t>(in[d] / extent, 1 << 20) : 3));
      }
      ++guessed_windows_;
    }
  }

  void set_window(std::size_t i, Layer& layer) {
    const auto& op = operators_[i];
    const Shape in = layer.input_shapes[0];
    Shape out = in;
    if (layer.kind == OpKind::conv) {
      if (op.weight.size() != in.size() || in.size() < 3) {
        throw input_error(
            fmt::format("'{}' has an input of {} extents and a weight of {}", op.name, in.size(), op.weight.size()));
      }
      out[1] = op.weight[0];
      layer.groups = static_cast<int>(std::clamp<std::int64_t>(in[1] / op.weight[1], 1, 1 << 20));
      layer.parameters.push_back({"weight", op.weight});
      if (op.bias) layer.parameters.push_back({"bias", {op.weight[0]}});
    }
    Shape seen = observed_output(i, out);
    if (seen.size() != out.size()) seen.clear();
    set_kernel(op, seen, layer);
    const auto spatial = in.size() - std::min<std::size_t>(in.size(), 2);
    if (layer.kernel.size() != spatial || spatial == 0) return layer.kernel.clear();
    layer.dilation.assign(spatial, 1);
    for (std::size_t d = 0; d < spatial; ++d) {
      const auto [stride, pad] = stride_and_pad(op, d, in[d + 2], seen.empty() ? 0 : seen[d + 2], layer.kernel[d]);
      layer.stride.push_back(stride);
      layer.pad_begin.push_back(pad);
      out[d + 2] = !seen.empty() ? seen[d + 2]
                   : in[d + 2] + 2 * pad < layer.kernel[d]
                       ? 1
                       : window_extent(in[d + 2], layer.kernel[d], stride, pad, pad, 1);
    }
    layer.pad_end = layer.pad_begin;
    layer.output_shape = out;
  }

  [[nodiscard]] static std::pair<int, int> stride_and_pad(const ObservedOperator& op, std::size_t d, std::int64_t in,
                                                          std::int64_t out, int kernel) {
    const bool pool = op.kind != OpKind::conv;
    if (op.stride.size() > d && op.pad.size() > d) return {op.stride[d], op.pad[d]};
    if (const auto inferred = infer_window(in, out, kernel)) return *inferred;
    return pool ? std::pair{kernel, 0} : std::pair{1, (kernel - 1) / 2};
  }

  const Operators& operators_;
  Trace trace_;
  std::vector<int> layer_of_;
  std::map<OpKind, int> counts_;
  std::set<std::int32_t> consumed_;
  int guessed_windows_ = 0;
};

// ---- times ----

void add_times(std::vector<double>& to, const std::vector<double>& from) {
  if (to.size() < from.size()) to.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

// Nothing measured, nothing kept: a pass without work has no samples.
void drop_zeros(std::vector<double>& samples) {
  if (std::all_of(samples.begin(), samples.end(), [](double s) { return s == 0; })) samples.clear();
}

void put_times(const Operators& operators, SequenceTrace& result) {
  auto& layers = result.trace.layers;
  for (auto& layer : layers) layer.backward_is_joint = false;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (result.layer_of[i] < 0) continue;
    const auto& op = operators[i];
    auto& layer = layers[static_cast<std::size_t>(result.layer_of[i])];
    const auto sample = [&](Pass pass) -> auto& {
      return layer.samples[static_cast<std::size_t>(pass)].seconds;
    };
    add_times(sample(Pass::forward), op.forward);
    add_times(sample(Pass::backward_data), op.backward_data);
    add_times(sample(Pass::backward_weight), op.backward_weight);
    layer.backward_is_joint = layer.backward_is_joint || op.backward_is_joint;
  }
  for (auto& layer : layers) {
    const auto sample = [&](Pass pass) -> auto& {
      return layer.samples[static_cast<std::size_t>(pass)].seconds;
    };
    // Without parameters there is one gradient only; normalizations compute all of theirs at once.
    if (layer.kind == OpKind::bn) layer.backward_is_joint = true;
    if (layer.parameters.empty() && layer.kind != OpKind::other) layer.backward_is_joint = false;
    const Pass whole =
        layer.parameters.empty() && layer.kind != OpKind::other ? Pass::backward_data : Pass::backward_weight;
    const Pass rest = whole == Pass::backward_data ? Pass::backward_weight : Pass::backward_data;
    if (layer.backward_is_joint || whole == Pass::backward_data || !layer.needs_input_gradient) {
      add_times(sample(whole), sample(rest));
      sample(rest).clear();
      if (!layer.needs_input_gradient && layer.kind != OpKind::bn) layer.backward_is_joint = false;
    }
    for (auto& samples : layer.samples) drop_zeros(samples.seconds);
    if (!layer.kernel.empty() ||
        (layer.kind != OpKind::conv && layer.kind != OpKind::max_pool && layer.kind != OpKind::avg_pool)) {
      set_flops(layer);
    }
  }
}

void check(const Operators& operators) {
  if (operators.empty()) throw input_error("no operators of a forward pass");
  if (operators.size() > kMostOperators) {
    throw input_error(
        fmt::format("{} operators in one step; at most {} are accepted", operators.size(), kMostOperators));
  }
  for (const auto& op : operators) {
    for (const auto& shape : op.input_shapes) check_shape(op, shape);
    check_shape(op, op.output_shape);
    check_shape(op, op.weight);
    for (const auto* window : {&op.kernel, &op.stride, &op.pad}) {
      for (const int value : *window) {
        if (value < (window == &op.pad ? 0 : 1) || value > 1 << 20) {
          throw input_error(fmt::format("'{}' has a window with {}", op.name, value));
        }
      }
    }
    for (std::size_t d = 2; d < op.weight.size(); ++d) {
      if (op.weight[d] > 1 << 20) throw input_error(fmt::format("'{}' has a window of {}", op.name, op.weight[d]));
    }
  }
}

}  // namespace

OpKind kind_of_operator(std::string_view name) {
  static const std::map<std::string_view, OpKind> kinds = {
      {"conv1d", OpKind::conv},
      {"conv2d", OpKind::conv},
      {"conv3d", OpKind::conv},
      {"convolution", OpKind::conv},
      {"_convolution", OpKind::conv},
      {"cudnn_convolution", OpKind::conv},
      {"miopen_convolution", OpKind::conv},
      {"mkldnn_convolution", OpKind::conv},
      {"thnn_conv2d", OpKind::conv},
      {"linear", OpKind::fc},
      {"addmm", OpKind::fc},
      {"mm", OpKind::fc},
      {"matmul", OpKind::fc},
      {"batch_norm", OpKind::bn},
      {"_batch_norm_impl_index", OpKind::bn},
      {"cudnn_batch_norm", OpKind::bn},
      {"miopen_batch_norm", OpKind::bn},
      {"native_batch_norm", OpKind::bn},
      {"_native_batch_norm_legit", OpKind::bn},
      {"relu", OpKind::relu},
      {"relu_", OpKind::relu},
      {"relu6", OpKind::relu},
      {"hardtanh", OpKind::relu},
      {"hardtanh_", OpKind::relu},
      {"clamp_min", OpKind::relu},
      {"clamp_min_", OpKind::relu},
      {"threshold", OpKind::relu},
      {"threshold_", OpKind::relu},
      {"max_pool1d", OpKind::max_pool},
      {"max_pool2d", OpKind::max_pool},
      {"max_pool3d", OpKind::max_pool},
      {"max_pool2d_with_indices", OpKind::max_pool},
      {"max_pool3d_with_indices", OpKind::max_pool},
      {"avg_pool1d", OpKind::avg_pool},
      {"avg_pool2d", OpKind::avg_pool},
      {"avg_pool3d", OpKind::avg_pool},
      {"adaptive_avg_pool1d", OpKind::avg_pool},
      {"adaptive_avg_pool2d", OpKind::avg_pool},
      {"adaptive_avg_pool3d", OpKind::avg_pool},
      {"_adaptive_avg_pool2d", OpKind::avg_pool},
      {"mean", OpKind::avg_pool},
      {"add", OpKind::add},
      {"add_", OpKind::add},
      {"cat", OpKind::concat},
      {"concat", OpKind::concat},
      {"_cat", OpKind::concat},
      {"flatten", OpKind::flatten},
      {"dropout", OpKind::dropout},
      {"dropout_", OpKind::dropout},
      {"feature_dropout", OpKind::dropout},
      {"native_dropout", OpKind::dropout},
      {"_fused_dropout", OpKind::dropout},
      {"cross_entropy_loss", OpKind::softmax_loss},
      {"log_softmax", OpKind::softmax_loss},
      {"_log_softmax", OpKind::softmax_loss},
      {"softmax", OpKind::softmax_loss},
      {"_softmax", OpKind::softmax_loss},
      {"nll_loss", OpKind::softmax_loss},
      {"nll_loss_nd", OpKind::softmax_loss},
      {"nll_loss_forward", OpKind::softmax_loss},
  };
  if (name.starts_with("aten::")) name.remove_prefix(6);
  const auto found = kinds.find(name);
  return found == kinds.end() ? OpKind::other : found->second;
}

bool is_view(std::string_view name) {
  static const std::set<std::string_view> views = {
      "view",      "reshape",   "_reshape_alias", "t",          "transpose", "transpose_", "permute",
      "expand",    "detach",    "detach_",        "as_strided", "unsqueeze", "squeeze",    "narrow",
      "slice",     "select",    "alias",          "chunk",      "split",     "unbind",     "_unsafe_view",
      "expand_as", "view_as",   "contiguous",     "numel",      "size",      "resize_",    "empty",
      "conj",      "is_pinned", "result_type",    "set_",       "to",        "item",       "_local_scalar_dense"};
  if (name.starts_with("aten::")) name.remove_prefix(6);
  return views.count(name) > 0;
}

SequenceTrace trace_of_operators(const std::vector<ObservedOperator>& operators, std::int64_t batch) {
  check(operators);
  const std::int64_t seen = batch_of(operators);
  if (batch > 0 && seen > 0 && batch != seen) {
    throw input_error(fmt::format("the shapes have a batch of {}, not {}", seen, batch));
  }
  if (batch > kMostBatch || seen > kMostBatch) {
    throw input_error(fmt::format("a batch of {}; at most {} is accepted", std::max(batch, seen), kMostBatch));
  }
  SequenceTrace result;
  const bool shapes = has_shapes(operators);
  auto found = shapes ? match_by_shapes(operators, seen) : match_by_kinds(operators, batch);
  if (found) {
    result.trace = std::move(found->model);
    result.layer_of = std::move(found->layer_of);
    result.trace.notes.insert(result.trace.notes.end(), found->notes.begin(), found->notes.end());
    result.matched = true;
  } else if (shapes) {
    result = ChainBuilder(operators, seen).build();
  } else {
    throw input_error(
        fmt::format("no operator has shapes, and their order is that of none of the built-in models ({}): profile with "
                    "record_shapes=True",
                    fmt::join(model_names(), ", ")));
  }
  put_times(operators, result);
  return result;
}

void spread_update(Trace& trace, const std::vector<double>& seconds) {
  const auto all = static_cast<double>(trace.parameter_count());
  if (all <= 0) return;
  for (auto& layer : trace.layers) {
    const auto own = static_cast<double>(layer.parameter_count());
    if (own <= 0) continue;
    auto& samples = layer.samples[static_cast<std::size_t>(Pass::update)].seconds;
    samples.clear();
    for (const double s : seconds) samples.push_back(s * own / all);
  }
}

}  // namespace tandem
