#include "traces/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::pair<OpKind, std::string_view> kOpKinds[] = {
    {OpKind::conv, "conv"},
    {OpKind::fc, "fc"},
    {OpKind::bn, "bn"},
    {OpKind::relu, "relu"},
    {OpKind::max_pool, "max-pool"},
    {OpKind::avg_pool, "avg-pool"},
    {OpKind::add, "add"},
    {OpKind::concat, "concat"},
    {OpKind::lrn, "lrn"},
    {OpKind::dropout, "dropout"},
    {OpKind::softmax_loss, "softmax-loss"},
    {OpKind::flatten, "flatten"},
    {OpKind::other, "other"},
};

// Linear between order statistics, as numpy's default.
Seconds quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return Seconds(0);
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, values.size() - 1);
  return Seconds(std::lerp(values[below], values[above], position - static_cast<double>(below)));
}

}  // namespace

std::string_view to_text(OpKind kind) {
  for (const auto& [known, text] : kOpKinds) {
    if (known == kind) return text;
  }
  throw internal_error(fmt::format("no text for op kind {}", static_cast<int>(kind)));
}

std::optional<OpKind> op_kind_from_text(std::string_view text) {
  for (const auto& [kind, known] : kOpKinds) {
    if (known == text) return kind;
  }
  return std::nullopt;
}

std::string_view to_text(Pass pass) {
  constexpr std::string_view texts[kPasses] = {"forward", "backward-data", "backward-weight", "update"};
  return texts[static_cast<std::size_t>(pass)];
}

std::string_view to_text(SplitCurve::Axis axis) {
  constexpr std::string_view texts[] = {"batch", "height", "width", "output-channel", "input-channel"};
  return texts[static_cast<std::size_t>(axis)];
}

std::optional<SplitCurve::Axis> split_axis_from_text(std::string_view text) {
  using Axis = SplitCurve::Axis;
  for (const Axis axis : {Axis::batch, Axis::height, Axis::width, Axis::output_channel, Axis::input_channel}) {
    if (to_text(axis) == text) return axis;
  }
  return std::nullopt;
}

std::string_view to_text(OutsideTime::Kind kind) {
  constexpr std::string_view texts[] = {"input-wait", "launch-gap", "copy", "communication", "unmatched"};
  return texts[static_cast<std::size_t>(kind)];
}

std::optional<OutsideTime::Kind> outside_kind_from_text(std::string_view text) {
  using Kind = OutsideTime::Kind;
  for (const Kind kind : {Kind::input_wait, Kind::launch_gap, Kind::copy, Kind::communication, Kind::unmatched}) {
    if (to_text(kind) == text) return kind;
  }
  return std::nullopt;
}

Seconds Samples::typical() const {
  return quantile(seconds, 0.2);
}
Seconds Samples::median() const {
  return quantile(seconds, 0.5);
}
Seconds Samples::max() const {
  return quantile(seconds, 1);
}

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const auto extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      throw input_error("a shape has more elements than 64 bits can count");
    }
  }
  return product;
}

std::int64_t Layer::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& tensor : parameters) count += tensor.count();
  return count;
}

std::int64_t Trace::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& layer : layers) count += layer.parameter_count();
  return count;
}

Seconds Trace::total(Pass pass) const {
  Seconds sum{};
  for (const auto& layer : layers) sum += layer.time(pass);
  return sum;
}

std::vector<std::string> unsteady_layers(const Trace& trace, double ratio) {
  std::vector<std::pair<Seconds, std::string>> found;
  for (const auto& layer : trace.layers) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const Seconds median = layer.samples[pass].median();
      const Seconds most = layer.samples[pass].max();
      if (most <= median * ratio) continue;
      found.emplace_back(median, fmt::format("layer '{}': {} took up to {} where its median is {}", layer.name,
                                             to_text(static_cast<Pass>(pass)), to_text(most), to_text(median)));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> lines;
  for (auto& [median, line] : found) lines.push_back(std::move(line));
  return lines;
}

// ---- validation ----

namespace {

constexpr std::int64_t kMostBatch = 1'048'576;

void require(bool holds, std::string_view message) {
  if (!holds) throw input_error(std::string(message));
}

void check(const Samples& samples, std::string_view what) {
  constexpr double most = 1e9;  // a few decades: sums over any model stay times
  for (const double value : samples.seconds) {
    if (!std::isfinite(value) || value < 0 || value > most) {
      throw input_error(
          fmt::format("{} has a sample of {} s; times are finite, not negative and below {} s", what, value, most));
    }
  }
}

// 70 TB: no device holds it, and sums over any model stay inside 64 bits.
void check(Bytes bytes, std::string_view what) {
  constexpr std::int64_t most = std::int64_t{1} << 46;
  if (bytes.count() < 0 || bytes.count() > most) {
    throw input_error(fmt::format("{} is {} bytes; 0 to {} are expected", what, bytes.count(), most));
  }
}

void check(const Shape& shape, std::string_view what) {
  // The bound keeps every product with a small factor (bytes an element, FLOPs a multiply) inside 64 bits.
  constexpr std::int64_t most = std::int64_t{1} << 56;
  for (const auto extent : shape) {
    if (extent < 1) throw input_error(fmt::format("{} has an extent of {}; extents are at least 1", what, extent));
  }
  if (const auto count = elements(shape); count > most) {
    throw input_error(fmt::format("{} has {} elements, which no device holds", what, count));
  }
}

void check_window(const Layer& layer) {
  const std::pair<std::string_view, const std::vector<int>*> fields[] = {{"kernel", &layer.kernel},
                                                                         {"stride", &layer.stride},
                                                                         {"pad_begin", &layer.pad_begin},
                                                                         {"pad_end", &layer.pad_end},
                                                                         {"dilation", &layer.dilation}};
  for (const auto& [name, values] : fields) {
    const bool pad = name.starts_with("pad");
    if (values->size() != layer.kernel.size() || values->size() > 3) {
      throw input_error(fmt::format("{} has {} values where kernel has {}; both need one a spatial dimension (1 to 3)",
                                    name, values->size(), layer.kernel.size()));
    }
    for (const int value : *values) {
      if (value < (pad ? 0 : 1)) throw input_error(fmt::format("{} has a value of {}", name, value));
    }
  }
  if (layer.groups < 1) throw input_error(fmt::format("groups is {}; at least 1 is expected", layer.groups));
}

void check_split(const SplitCurve& split) {
  require(split.fraction > 0 && split.fraction <= 1, "a split's fraction lies outside (0, 1]");
  check(split.input_shape, "a split's input shape");
  check(split.output_shape, "a split's output shape");
  for (const auto& samples : split.samples) check(samples, "a split");
}

void check_edges(const Layer& layer, std::size_t id) {
  for (const LayerId input : layer.inputs) {
    if (input.value < 0 || input.index() >= id) {
      throw input_error(
          fmt::format("reads layer {}, but only layers before its own id {} can feed it", input.value, id));
    }
  }
  const std::size_t wanted = std::max<std::size_t>(layer.inputs.size(), 1);
  if (layer.input_shapes.size() != wanted) {
    throw input_error(fmt::format("has {} input shapes and {} inputs", layer.input_shapes.size(), layer.inputs.size()));
  }
}

void check_layer(const Layer& layer, std::size_t id) {
  check_edges(layer, id);
  for (const auto& shape : layer.input_shapes) check(shape, "an input shape");
  check(layer.output_shape, "the output shape");
  check_window(layer);
  for (const auto& tensor : layer.parameters) {
    require(!tensor.name.empty(), "a parameter tensor has no name");
    require(!tensor.shape.empty(), fmt::format("parameter tensor '{}' has no elements", tensor.name));
    check(tensor.shape, fmt::format("parameter tensor '{}'", tensor.name));
  }
  check(layer.activation_bytes, "the output");
  check(layer.workspace_bytes, "the workspace");
  for (const Flops flops : layer.flops) {
    require(std::isfinite(flops.count()) && flops.count() >= 0, "a number of FLOPs is negative or not finite");
  }
  for (std::size_t pass = 0; pass < kPasses; ++pass) check(layer.samples[pass], to_text(static_cast<Pass>(pass)));
  for (const auto& split : layer.splits) check_split(split);
}

void check_iterations(const Trace& trace) {
  check(trace.iteration_forward, "the whole forward pass");
  check(trace.iteration_backward, "the whole backward pass");
  check(trace.iteration_update, "the whole update");
  std::int64_t last = 0;
  for (const auto& other : trace.other_batches) {
    if (other.batch <= last || other.batch > kMostBatch || other.batch == trace.batch) {
      throw input_error(
          fmt::format("whole iterations at batch {} are out of place: batches rise, none twice", other.batch));
    }
    last = other.batch;
    for (const auto* samples : {&other.forward, &other.backward, &other.update}) {
      check(*samples, fmt::format("a whole iteration at batch {}", other.batch));
    }
  }
}

void check_surroundings(const Trace& trace) {
  std::set<OutsideTime::Kind> kinds;
  for (const auto& time : trace.outside) {
    check(time.samples, to_text(time.kind));
    if (!kinds.insert(time.kind).second) {
      throw input_error(fmt::format("time outside of layers of kind '{}' is given twice", to_text(time.kind)));
    }
  }
  for (const auto& collective : trace.collectives) {
    require(!collective.operation.empty(), "a recorded collective has no operation");
    check(collective.bytes, "a recorded collective");
    check(Samples{{collective.duration.count()}}, "a recorded collective");
  }
}

}  // namespace

void validate(const Trace& trace) {
  require(!trace.layers.empty(), "the trace has no layers");
  if (trace.batch < 1 || trace.batch > kMostBatch) {
    throw input_error(fmt::format("the batch is {}; 1 to {} are expected", trace.batch, kMostBatch));
  }
  require(trace.threads >= 0, "the number of threads is negative");
  require(std::isfinite(trace.clock_hz) && trace.clock_hz >= 0, "the clock is negative or not finite");
  check_iterations(trace);
  check_surroundings(trace);
  std::set<std::string_view> names;
  for (std::size_t id = 0; id < trace.layers.size(); ++id) {
    const auto& layer = trace.layers[id];
    if (layer.name.empty()) throw input_error(fmt::format("layer {} has no name", id));
    with_context(fmt::format("layer '{}'", layer.name), [&] {
      require(names.insert(layer.name).second, "the name is given twice");
      check_layer(layer, id);
    });
  }
}

}  // namespace tandem
