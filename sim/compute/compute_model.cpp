#include "sim/compute/compute_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr double kElementBytes = 4;  // re-timed layers are single precision

double shape_bytes(const std::vector<Shape>& shapes) {
  double sum = 0;
  for (const auto& shape : shapes) sum += static_cast<double>(elements(shape)) * kElementBytes;
  return sum;
}

// Least traffic to memory of a pass, in bytes at the recorded batch: every operand read once, every result written
// once; batch normalization reads its input twice (statistics, then normalization).
double least_traffic(const Layer& layer, Pass pass) {
  const double in = shape_bytes(layer.input_shapes);
  const double out = shape_bytes({layer.output_shape});
  const double again = layer.kind == OpKind::bn ? in : 0;
  switch (pass) {
    case Pass::forward:
      return in + out + again;
    case Pass::backward_data:
      return in + out + (layer.kind == OpKind::relu || layer.kind == OpKind::bn ? out : 0);
    case Pass::backward_weight:
      return layer.parameters.empty() ? 0 : in + out;
    case Pass::update:
      return 0;
  }
  return 0;
}

bool moves_nothing(OpKind kind) {
  return kind == OpKind::flatten;
}

double efficiency(const DevicePreset& device, const Layer& layer) {
  if (layer.kind == OpKind::fc) return device.gemm_efficiency;
  const auto all = [](const std::vector<int>& values, int wanted) {
    return !values.empty() && std::all_of(values.begin(), values.end(), [&](int v) { return v == wanted; });
  };
  const bool winograd = layer.kind == OpKind::conv && all(layer.kernel, 3) && all(layer.stride, 1) && layer.groups == 1;
  return winograd ? device.winograd_efficiency : device.conv_efficiency;
}

}  // namespace

ComputeModel::ComputeModel(const Trace& trace, const ComputeOptions& options) : trace_(trace), options_(options) {
  batch_ = options.batch > 0 ? options.batch : trace.batch;
  if (!(options.device_scale > 0)) {
    throw usage_error(fmt::format("a device scale of {} makes no sense: it must be above 0", options.device_scale));
  }
  modelled_ = options.device != "recorded";
  if (modelled_) {
    device_ = *Registry<DevicePreset>::instance().make(options.device);
    double work = 0;
    for (const auto& layer : trace.layers) work += layer.flops[0].count();
    if (!(work > 0)) {
      throw input_error(fmt::format("the trace of {} has no FLOP counts, so it cannot be re-timed for '{}'",
                                    trace.model, options.device));
    }
  } else if (!(trace.total(Pass::forward).count() > 0)) {
    throw input_error(fmt::format("the trace of {} has no times: record it, or name a --device", trace.model));
  }
}

Seconds ComputeModel::time(LayerId id, Pass pass, const Shard& shard) const {
  const auto& layer = trace_.layers.at(id.index());
  if (pass == Pass::backward_data && !layer.needs_input_gradient) return Seconds(0);
  const double fraction = shard.batch * static_cast<double>(batch_) / static_cast<double>(trace_.batch);
  const auto base = modelled_ ? modelled(layer, pass, fraction) : measured(layer, pass, fraction);
  return base / options_.device_scale;
}

Seconds ComputeModel::total(Pass pass) const {
  Seconds sum{};
  for (std::size_t i = 0; i < trace_.layers.size(); ++i) sum += time(LayerId{static_cast<std::int32_t>(i)}, pass);
  return sum;
}

// On the layer's recorded batch curve, linear between its points; proportional to the batch outside of them.
Seconds ComputeModel::measured(const Layer& layer, Pass pass, double fraction) const {
  const auto full = layer.time(pass);
  if (pass == Pass::update || fraction == 1) return full;
  std::vector<std::pair<double, double>> curve{{1.0, full.count()}};
  for (const auto& split : layer.splits) {
    const auto& samples = split.samples[static_cast<std::size_t>(pass)];
    if (split.axis == SplitCurve::Axis::batch && !samples.seconds.empty()) {
      curve.emplace_back(split.fraction, samples.typical().count());
    }
  }
  std::sort(curve.begin(), curve.end());
  if (fraction <= curve.front().first) return Seconds(curve.front().second * fraction / curve.front().first);
  if (fraction >= curve.back().first) return Seconds(curve.back().second * fraction / curve.back().first);
  const auto above = std::lower_bound(curve.begin(), curve.end(), std::pair{fraction, 0.0});
  const auto below = std::prev(above);
  const double position = (fraction - below->first) / (above->first - below->first);
  return Seconds(below->second + position * (above->second - below->second));
}

// The larger of the arithmetic at the reachable rate and the memory traffic, plus a kernel launch.
Seconds ComputeModel::modelled(const Layer& layer, Pass pass, double fraction) const {
  if (moves_nothing(layer.kind)) return Seconds(0);
  const double parameters = static_cast<double>(layer.parameter_count()) * kElementBytes;
  const double memory_rate = device_.memory_bandwidth.count() * device_.memory_efficiency;
  if (pass == Pass::update) {
    // Read weight, gradient and momentum, write weight and momentum.
    return parameters > 0 ? Seconds(5 * parameters / memory_rate) + device_.launch_overhead : Seconds(0);
  }
  const double traffic = least_traffic(layer, pass);
  if (traffic == 0) return Seconds(0);
  double work = layer.flops[static_cast<std::size_t>(pass)].count() * fraction;
  if (layer.kind != OpKind::conv && layer.kind != OpKind::fc) work = 0;  // bound by memory, whatever they compute
  const double arithmetic = work / (device_.peak.count() * efficiency(device_, layer));
  const double memory = (traffic * fraction + parameters) / memory_rate;
  return Seconds(std::max(arithmetic, memory)) + device_.launch_overhead;
}

// Whether some layer's batch curve reaches the batch: below or above it times are in proportion.
bool ComputeModel::within_curves() const {
  const double fraction = static_cast<double>(batch_) / static_cast<double>(trace_.batch);
  return std::any_of(trace_.layers.begin(), trace_.layers.end(), [&](const Layer& layer) {
    return std::any_of(layer.splits.begin(), layer.splits.end(), [&](const SplitCurve& split) {
      return split.axis == SplitCurve::Axis::batch && split.fraction <= fraction && fraction < 1;
    });
  });
}

std::vector<std::string> ComputeModel::assumptions() const {
  std::vector<std::string> sentences;
  if (modelled_) {
    sentences.push_back(fmt::format(
        "compute times are modelled for '{}', not measured ({})", device_.name,
        trace_.device.empty() ? "shapes of a built-in model" : "the trace was recorded on " + trace_.device));
  } else {
    sentences.push_back(
        fmt::format("compute times are measured ({}, {}, batch {})", trace_.recorder, trace_.device, trace_.batch));
    if (batch_ != trace_.batch) {
      sentences.push_back(within_curves()
                              ? fmt::format("times at batch {} are interpolated on the recorded batch curves", batch_)
                              : fmt::format("times at batch {} are extrapolated in proportion to the batch", batch_));
    }
  }
  if (options_.device_scale != 1) {
    sentences.push_back(fmt::format("compute times are divided by --device-scale {}", options_.device_scale));
  }
  return sentences;
}

}  // namespace tandem
