#include "traces/layer_guess.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 31;  // products of two stay inside 64 bits

// Longer words before those they start with.
constexpr std::pair<std::string_view, OpKind> kWords[] = {
    {"conv", OpKind::conv},
    {"pool_proj", OpKind::conv},
    {"fc", OpKind::fc},
    {"ip", OpKind::fc},
    {"linear", OpKind::fc},
    {"dense", OpKind::fc},
    {"innerproduct", OpKind::fc},
    {"bn", OpKind::bn},
    {"batch_norm", OpKind::bn},
    {"batchnorm", OpKind::bn},
    {"relu", OpKind::relu},
    {"avgpool", OpKind::avg_pool},
    {"avg", OpKind::avg_pool},
    {"gap", OpKind::avg_pool},
    {"global", OpKind::avg_pool},
    {"maxpool", OpKind::max_pool},
    {"max_pool", OpKind::max_pool},
    {"pool", OpKind::max_pool},
    {"add", OpKind::add},
    {"eltwise", OpKind::add},
    {"concat", OpKind::concat},
    {"lrn", OpKind::lrn},
    {"norm", OpKind::lrn},
    {"drop", OpKind::dropout},
    {"loss", OpKind::softmax_loss},
    {"softmax", OpKind::softmax_loss},
    {"flatten", OpKind::flatten},
    {"view", OpKind::flatten},
    {"reshape", OpKind::flatten},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "conv2" and "conv_2" start with the word "conv"; "converge" does not.
bool is_word(std::string_view part, std::string_view word) {
  if (!part.starts_with(word)) return false;
  const auto rest = part.substr(word.size());
  return rest.empty() || is_digit(rest[0]) || rest[0] == '_' || rest[0] == '-' || word == "drop" || word == "conv";
}

std::int64_t kernel_size(const Layer& layer) {
  std::int64_t size = 1;
  for (const int extent : layer.kernel) {
    if (__builtin_mul_overflow(size, std::int64_t{extent}, &size)) return 0;
  }
  return size;
}

std::int64_t channels(const Shape& shape) {
  return shape.size() > 1 && shape[1] < kMostExtent ? shape[1] : 0;
}

// Elements a sample; 0 where the shape does not say.
std::int64_t features(const Shape& shape) {
  std::int64_t product = shape.size() > 1 ? 1 : 0;
  for (std::size_t d = 1; d < shape.size(); ++d) {
    if (__builtin_mul_overflow(product, shape[d], &product)) return 0;
  }
  return product < kMostExtent ? product : 0;
}

struct Step {
  int stride = 0, pad_begin = 0, pad_end = 0;
};

// How a window leads from one extent to another, with the stride that is given or (0) the smallest that does.
std::optional<Step> step_between(std::int64_t in, std::int64_t out, int kernel, int dilation, int stride, bool pool) {
  if (in >= kMostExtent || out >= kMostExtent || kernel < 1 || dilation < 1 || stride < 0) return std::nullopt;
  const std::int64_t window = std::int64_t{dilation} * (kernel - 1) + 1;
  if (window >= kMostExtent) return std::nullopt;
  // floor(room / stride) + 1 = out with a room of at least in - window.
  const auto least = stride > 0 ? stride : std::max<std::int64_t>((in - window) / out, 1);
  const auto most = stride > 0 ? stride : least + 2;
  for (auto s = least; s <= most; ++s) {
    const auto fits = [&](std::int64_t pads) {
      const auto room = in + pads - window;
      return room >= 0 && room / s + 1 == out;
    };
    auto pads = std::max<std::int64_t>((out - 1) * s + window - in, 0);
    if (pads % 2 == 1 && !pool && fits(pads + 1)) ++pads;
    if (!fits(pads) || pads > 2 * (window - 1) || pads >= kMostExtent) continue;
    const int begin = pool && pads < s ? 0 : static_cast<int>(pads / 2);
    return Step{static_cast<int>(s), begin, static_cast<int>(pads) - begin};
  }
  return std::nullopt;
}

// Whether the window along one dimension gives this extent, rounded down or (a pool) up.
bool leads_to(const Layer& layer, std::size_t d, std::int64_t in, std::int64_t out) {
  if (in >= kMostExtent) return false;
  const auto room =
      in + layer.pad_begin[d] + layer.pad_end[d] - std::int64_t{layer.dilation[d]} * (layer.kernel[d] - 1) - 1;
  if (room < 0) return false;
  const auto down = room / layer.stride[d] + 1;
  return out == down || (layer.kind != OpKind::conv && room % layer.stride[d] != 0 && out == down + 1);
}

// The extent of a square kernel with so many values for each pair of channels; 0 where there is none.
int square_side(std::int64_t weights, std::int64_t pairs) {
  if (pairs < 1 || weights % pairs != 0) return 0;
  const auto side = std::llround(std::sqrt(static_cast<double>(weights / pairs)));
  return side > 0 && side < 10'000 && side * side == weights / pairs ? static_cast<int>(side) : 0;
}

bool set_convolution_from_count(Layer& layer, std::int64_t count) {
  const auto in = layer.groups > 0 ? channels(layer.input_shapes.at(0)) / layer.groups : 0;
  const auto out = channels(layer.output_shape);
  const std::size_t rank = layer.output_shape.size();
  if (in < 1 || out < 1) return false;
  std::int64_t pairs = 0;
  if (__builtin_mul_overflow(in, out, &pairs)) return false;
  for (const bool bias : {true, false}) {
    const auto weights = count - (bias ? out : 0);
    if (layer.kernel.empty() && rank == 4 && weights > 0) {
      const int side = square_side(weights, pairs);
      if (side == 0) continue;
      layer.kernel = {side, side};
    }
    std::int64_t expected = 0;
    if (layer.kernel.empty() || __builtin_mul_overflow(pairs, kernel_size(layer), &expected)) return false;
    if (expected != weights) continue;
    set_parameters_from_shapes(layer, bias);
    return true;
  }
  return false;
}

// ---- built-in models ----

bool is_telling(const Layer& layer) {
  return layer.kind == OpKind::conv || layer.kind == OpKind::fc || layer.kind == OpKind::max_pool ||
         layer.kind == OpKind::avg_pool;
}

std::vector<std::size_t> telling_layers(const Trace& trace) {
  std::vector<std::size_t> ids;
  for (std::size_t id = 0; id < trace.layers.size(); ++id) {
    if (is_telling(trace.layers[id])) ids.push_back(id);
  }
  return ids;
}

Shape sample_shape(const Shape& shape) {
  return shape.empty() ? shape : Shape(shape.begin() + 1, shape.end());
}

bool same_network(const Trace& trace, const std::vector<std::size_t>& ids, const Trace& model,
                  const std::vector<std::size_t>& model_ids) {
  if (ids.empty() || ids.size() != model_ids.size()) return false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& a = trace.layers[ids[i]];
    const auto& b = model.layers[model_ids[i]];
    if (a.kind != b.kind || sample_shape(a.output_shape) != sample_shape(b.output_shape)) return false;
    if (!a.kernel.empty() && !b.kernel.empty() && a.kernel != b.kernel) return false;
    if (!a.parameters.empty() && a.parameter_count() != b.parameter_count()) return false;
  }
  return sample_shape(trace.layers[ids[0]].input_shapes.at(0)) ==
         sample_shape(model.layers[model_ids[0]].input_shapes.at(0));
}

void copy_missing(Layer& layer, const Layer& from) {
  if (layer.kernel.empty()) {
    layer.kernel = from.kernel;
    layer.stride = from.stride;
    layer.pad_begin = from.pad_begin;
    layer.pad_end = from.pad_end;
    layer.dilation = from.dilation;
  }
  if (layer.parameters.empty()) layer.parameters = from.parameters;
}

}  // namespace

std::optional<OpKind> kind_from_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string_view rest = lower;
  bool sized = false;  // a part such as "3x3_reduce"
  while (!rest.empty()) {
    const auto cut = rest.find_last_of("/.");
    const auto part = cut == std::string_view::npos ? rest : rest.substr(cut + 1);
    if (part.ends_with("_relu")) return OpKind::relu;
    for (const auto& [word, kind] : kWords) {
      if (is_word(part, word)) return kind;
    }
    sized = sized || (part.size() > 2 && is_digit(part[0]) && part[1] == 'x' && is_digit(part[2]));
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(0, cut);
  }
  return sized ? std::optional(OpKind::conv) : std::nullopt;
}

std::optional<std::int64_t> element_bytes(std::string_view dtype) {
  if (dtype == "float32" || dtype == "int32" || dtype == "tf32") return 4;
  if (dtype == "float16" || dtype == "bfloat16") return 2;
  if (dtype == "float64" || dtype == "int64") return 8;
  if (dtype == "int8" || dtype == "uint8") return 1;
  return std::nullopt;
}

bool complete_window(Layer& layer, bool shapes_known) {
  const auto rank = layer.kernel.size();
  const bool pool = layer.kind == OpKind::max_pool || layer.kind == OpKind::avg_pool;
  const bool no_stride = layer.stride.empty();
  const bool no_pads = layer.pad_begin.empty() && layer.pad_end.empty();
  if (layer.dilation.empty()) layer.dilation.assign(rank, 1);
  if (no_stride) layer.stride = pool ? layer.kernel : std::vector<int>(rank, 1);
  if (layer.pad_begin.empty()) layer.pad_begin.assign(rank, 0);
  if (layer.pad_end.empty()) layer.pad_end.assign(rank, 0);
  const auto& in = layer.input_shapes.at(0);
  const auto& out = layer.output_shape;
  if (!shapes_known) return true;
  for (const auto* window : {&layer.stride, &layer.dilation, &layer.pad_begin, &layer.pad_end}) {
    if (window->size() != rank) return false;
  }
  if (in.size() != rank + 2 || out.size() != rank + 2) return false;
  if (!no_pads) {
    for (std::size_t d = 0; d < rank; ++d) {
      if (!leads_to(layer, d, in[d + 2], out[d + 2])) return false;
    }
    return true;
  }
  std::vector<Step> steps;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto step =
        step_between(in[d + 2], out[d + 2], layer.kernel[d], layer.dilation[d], no_stride ? 0 : layer.stride[d], pool);
    if (!step) return false;
    steps.push_back(*step);
  }
  for (std::size_t d = 0; d < rank; ++d) {
    layer.stride[d] = steps[d].stride;
    layer.pad_begin[d] = steps[d].pad_begin;
    layer.pad_end[d] = steps[d].pad_end;
  }
  return true;
}

void set_parameters_from_shapes(Layer& layer, bool bias) {
  const auto& in = layer.input_shapes.at(0);
  const bool conv = layer.kind == OpKind::conv;
  if (!conv && layer.kind != OpKind::fc) return;
  const auto out = conv ? channels(layer.output_shape) : features(layer.output_shape);
  const auto width = conv ? channels(in) / std::max(layer.groups, 1) : features(in);
  if (out < 1 || width < 1 || (conv && layer.kernel.empty())) return;
  Shape weight{out, width};
  if (conv) weight.insert(weight.end(), layer.kernel.begin(), layer.kernel.end());
  constexpr std::int64_t most = std::int64_t{1} << 46;  // no device holds more: the shapes mislead
  std::int64_t count = 1;
  for (const auto extent : weight) {
    if (__builtin_mul_overflow(count, extent, &count) || count > most) return;
  }
  layer.parameters = {{"weight", weight}};
  if (bias) layer.parameters.push_back({"bias", {out}});
}

bool set_parameters_from_count(Layer& layer, std::int64_t count) {
  layer.parameters.clear();
  if (count < 1) return count == 0;
  if (layer.kind == OpKind::conv && set_convolution_from_count(layer, count)) return true;
  if (layer.kind == OpKind::fc) {
    const auto out = features(layer.output_shape);
    const auto weights = out * features(layer.input_shapes.at(0));  // both below 2^31
    if (weights > 0 && (count == weights || count == weights + out)) {
      set_parameters_from_shapes(layer, count != weights);
      return true;
    }
  }
  const auto normalized = channels(layer.output_shape);
  if (layer.kind == OpKind::bn && count == 2 * normalized) {
    layer.parameters = {{"weight", {normalized}}, {"bias", {normalized}}};
    return true;
  }
  layer.parameters = {{"weight", {count}}};
  return false;
}

std::string complete_from_model(Trace& trace) {
  const auto ids = telling_layers(trace);
  for (const auto& name : model_names()) {
    const Trace model = build_model(name, 1);
    const auto model_ids = telling_layers(model);
    if (!same_network(trace, ids, model, model_ids)) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) copy_missing(trace.layers[ids[i]], model.layers[model_ids[i]]);
    return name;
  }
  return "";
}

}  // namespace tandem
