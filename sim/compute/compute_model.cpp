#include "sim/compute/compute_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/core/error.hpp"

namespace tandem {

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

double ComputeModel::batch_fraction(const Shard& shard) const {
  return shard.batch * static_cast<double>(batch_) / static_cast<double>(trace_.batch);
}

Ratio ComputeModel::ratio(const Layer& layer, Pass pass, const Shard& shard) const {
  using Axis = SplitCurve::Axis;
  // The optimizer sees weights only, and goes through them in a stream.
  if (pass == Pass::update) return {shard.output_channel * shard.input_channel, Origin::measured};
  const int block = channel_block(trace_);
  Ratio product;
  const std::pair<Axis, double> cuts[] = {{Axis::batch, batch_fraction(shard)},
                                          {Axis::height, shard.height},
                                          {Axis::output_channel, shard.output_channel},
                                          {Axis::input_channel, shard.input_channel}};
  for (const auto& [axis, fraction] : cuts) {
    const auto one = split_ratio(layer, pass, axis, fraction, block);
    product.value *= one.value;
    product.origin = std::max(product.origin, one.origin);
  }
  return product;
}

Seconds ComputeModel::time(LayerId id, Pass pass, const Shard& shard) const {
  const auto& layer = trace_.layers.at(id.index());
  if (pass == Pass::backward_data && !layer.needs_input_gradient) return Seconds(0);
  if (!modelled_) return layer.time(pass) * ratio(layer, pass, shard).value / options_.device_scale;
  auto whole = shard;
  whole.batch = batch_fraction(shard);
  return modelled_time(device_, layer, pass, whole) / options_.device_scale;
}

Origin ComputeModel::origin(LayerId id, Pass pass, const Shard& shard) const {
  return modelled_ ? Origin::modelled : ratio(trace_.layers.at(id.index()), pass, shard).origin;
}

// Whether any time lies on what was recorded.
bool ComputeModel::on_curve() const {
  for (std::size_t i = 0; i < trace_.layers.size(); ++i) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weight}) {
      const bool some = trace_.layers[i].time(pass).count() > 0;
      if (some && origin(LayerId{static_cast<std::int32_t>(i)}, pass) <= Origin::interpolated) return true;
    }
  }
  return false;
}

std::vector<std::string> ComputeModel::extrapolated(const Shard& shard) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < trace_.layers.size(); ++i) {
    const auto outside = [&](Pass pass) {
      return trace_.layers[i].time(pass).count() > 0 &&
             origin(LayerId{static_cast<std::int32_t>(i)}, pass, shard) == Origin::extrapolated;
    };
    if (outside(Pass::forward) || outside(Pass::backward_data) || outside(Pass::backward_weight)) {
      names.push_back(trace_.layers[i].name);
    }
  }
  return names;
}

Seconds ComputeModel::total(Pass pass) const {
  Seconds sum{};
  for (std::size_t i = 0; i < trace_.layers.size(); ++i) sum += time(LayerId{static_cast<std::int32_t>(i)}, pass);
  return sum;
}

namespace {

std::string listed(const std::vector<std::string>& names, std::size_t all) {
  constexpr std::size_t shown = 5;
  if (names.size() == all) return "all layers";
  const auto end = names.begin() + static_cast<long>(std::min(shown, names.size()));
  return fmt::format("{} of {} layers ({}{})", names.size(), all, fmt::join(names.begin(), end, ", "),
                     names.size() > shown ? ", ..." : "");
}

}  // namespace

std::vector<std::string> ComputeModel::assumptions() const {
  std::vector<std::string> sentences;
  if (modelled_) {
    sentences.push_back(fmt::format(
        "compute times are modelled for '{}', not measured (rates fitted to {}; {})", device_.name, device_.fitted_to,
        trace_.device.empty() ? "shapes of a built-in model" : "the trace was recorded on " + trace_.device));
  } else {
    // A simulator's input holds what a model of a processor gave.
    const bool simulated = trace_.recorder.starts_with("ASTRA-sim");
    sentences.push_back(fmt::format("compute times are {} ({}, {}, batch {})",
                                    simulated ? "modelled by another tool, not measured" : "measured", trace_.recorder,
                                    trace_.device, trace_.batch));
    if (batch_ != trace_.batch) {
      const auto outside = extrapolated();
      if (on_curve()) {
        sentences.push_back(fmt::format("times at batch {} are interpolated on the recorded batch curves", batch_));
      }
      if (!outside.empty()) {
        sentences.push_back(fmt::format("times at batch {} are extrapolated in proportion to the batch for {}", batch_,
                                        listed(outside, trace_.layers.size())));
      }
    }
  }
  if (options_.device_scale != 1) {
    sentences.push_back(fmt::format("compute times are divided by --device-scale {}", options_.device_scale));
  }
  return sentences;
}

}  // namespace tandem
