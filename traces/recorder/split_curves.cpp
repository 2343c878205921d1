#include "traces/recorder/split_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/recorder/layer_part.hpp"
#include "traces/recorder/part_timer.hpp"

namespace tandem {
namespace {

using Axis = SplitCurve::Axis;

// Everything that the time of a layer's primitives can depend on.
using Key = std::tuple<OpKind, Shape, Shape, std::vector<int>, std::vector<int>, std::vector<int>, std::vector<int>,
                       std::vector<int>, int, bool, std::size_t>;

Key key_of(const Layer& layer) {
  return {layer.kind,
          layer.input_shapes[0],
          layer.output_shape,
          layer.kernel,
          layer.stride,
          layer.pad_begin,
          layer.pad_end,
          layer.dilation,
          layer.groups,
          layer.needs_input_gradient,
          layer.parameters.size()};
}

// About what PartTimer allocates for a layer: values and gradients of input and output, three copies of the weights.
Bytes operand_bytes(const Layer& layer) {
  return Bytes(8 * (elements(layer.input_shapes[0]) + elements(layer.output_shape)) + 16 * layer.parameter_count());
}

void check_names(const Trace& trace, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const auto& layer : trace.layers) names.push_back(layer.name);
  for (const auto& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw usage_error(fmt::format("{} has no layer '{}'{}", trace.model, name, suggestion(name, names)));
  }
}

SplitCurve row(const Layer& whole, const Layer& part, Axis axis, const std::array<Samples, kPasses>& samples) {
  SplitCurve split;
  split.axis = axis;
  split.fraction = static_cast<double>(split_extent(part, axis)) / static_cast<double>(split_extent(whole, axis));
  split.input_shape = part.input_shapes[0];
  split.output_shape = part.output_shape;
  split.samples = samples;
  return split;
}

}  // namespace

SplitCurveRecorder::SplitCurveRecorder(const Trace& trace, const SplitOptions& options)
    : repetitions_(options.repetitions) {
  check_names(trace, options.layers);
  std::map<Key, std::size_t> seen;
  for (std::size_t id = 0; id < trace.layers.size(); ++id) {
    const Layer& layer = trace.layers[id];
    iteration_bytes_ += layer.activation_bytes * 2 + Bytes(16 * layer.parameter_count());
    const auto& wanted = options.layers;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), layer.name) == wanted.end()) continue;
    if (layer.kind != OpKind::conv && layer.kind != OpKind::fc) continue;
    const auto [at, first] = seen.emplace(key_of(layer), subjects_.size());
    if (first) {
      subjects_.push_back({{}, {layer}, {Axis::batch}});
      for (const Axis axis : {Axis::height, Axis::output_channel, Axis::input_channel}) {
        if (options.has(axis)) add_parts(subjects_.back(), axis, options.fractions);
      }
    }
    subjects_[at->second].layers.push_back(id);
  }
  std::erase_if(subjects_, [](const Subject& subject) { return subject.parts.size() == 1; });
  for (const auto& subject : subjects_) memory_ = std::max(memory_, operand_bytes(subject.parts[0]));
}

void SplitCurveRecorder::add_parts(Subject& subject, Axis axis, const std::vector<double>& fractions) {
  std::map<std::int64_t, Layer, std::greater<>> parts;  // by extent: two fractions may round to the same
  for (const double fraction : fractions) {
    if (auto part = part_of(subject.parts[0], axis, fraction); part && fraction < 1) {
      parts.emplace(split_extent(*part, axis), std::move(*part));
    }
  }
  for (auto& [extent, part] : parts) {
    subject.parts.push_back(std::move(part));
    subject.axes.push_back(axis);
  }
}

int SplitCurveRecorder::steps() const {
  return static_cast<int>(subjects_.size()) * (repetitions_ + 1);
}

void SplitCurveRecorder::record(Trace& trace, const std::function<void(const std::string& layer)>& step) const {
  PartTimer timer(iteration_bytes_);
  for (const auto& subject : subjects_) {
    const Layer& whole = subject.parts[0];
    const auto times = timer.time(subject.parts, repetitions_, [&] { step(whole.name); });
    std::vector<SplitCurve> rows;
    for (std::size_t i = 1; i < times.size(); ++i) {
      const Axis axis = subject.axes[i];
      if (subject.axes[i - 1] != axis) rows.push_back(row(whole, whole, axis, times[0]));
      rows.push_back(row(whole, subject.parts[i], axis, times[i]));
    }
    for (const auto id : subject.layers) {
      auto& splits = trace.layers[id].splits;
      splits.insert(splits.end(), rows.begin(), rows.end());
    }
  }
}

}  // namespace tandem
