#include "sim/cli/trace_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

constexpr double kTolerance = 0.25;  // of the sum of layers against the whole iteration

Seconds sum_of_layers(const Trace& trace) {
  Seconds sum{};
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update})
    sum += trace.total(pass);
  return sum;
}

// Of the parts that were measured as a whole; the sum to compare it with has the same parts.
struct WholeIteration {
  Seconds measured{};
  Seconds layers{};
};
WholeIteration whole_iteration(const Trace& trace) {
  WholeIteration whole;
  const auto add = [&](const Samples& samples, Seconds layers) {
    if (samples.seconds.empty()) return;
    whole.measured += samples.typical();
    whole.layers += layers;
  };
  add(trace.iteration_forward, trace.total(Pass::forward));
  add(trace.iteration_backward, trace.total(Pass::backward_data) + trace.total(Pass::backward_weight));
  add(trace.iteration_update, trace.total(Pass::update));
  return whole;
}

double ratio_of(const WholeIteration& whole) {
  return whole.measured > Seconds{} ? whole.layers / whole.measured : std::numeric_limits<double>::quiet_NaN();
}

std::string shape_text(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

Seconds layer_time(const Layer& layer) {
  return layer.time(Pass::forward) + layer.time(Pass::backward_data) + layer.time(Pass::backward_weight) +
         layer.time(Pass::update);
}

Record layer_record(const Trace& trace, std::size_t index) {
  const auto& layer = trace.layers[index];
  double flops = 0;
  for (const auto pass : layer.flops) flops += pass.count();
  std::vector<std::string> inputs;
  for (const auto& shape : layer.input_shapes) inputs.push_back(shape_text(shape));
  Record row{{"layer", "1", static_cast<std::int64_t>(index)},
             {"name", "1", layer.name},
             {"kind", "1", std::string(to_text(layer.kind))},
             {"input_shape", "1", fmt::format("{}", fmt::join(inputs, "+"))},
             {"output_shape", "1", shape_text(layer.output_shape)},
             {"parameters", "1", layer.parameter_count()},
             {"activation_bytes", "bytes", layer.activation_bytes.count()},
             {"flops", "1", flops}};
  for (const auto pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update}) {
    auto name = std::string(to_text(pass));
    std::replace(name.begin(), name.end(), '-', '_');
    std::replace(name.begin(), name.end(), ' ', '_');
    row.push_back({name + "_time_s", "s", layer.time(pass).count()});
  }
  return row;
}

}  // namespace

Record trace_facts(const Trace& trace) {
  const auto whole = whole_iteration(trace);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::int64_t activations = 0;
  for (const auto& layer : trace.layers) activations += layer.activation_bytes.count();
  return {{"model", "1", trace.model},
          {"device", "1", trace.device},
          {"threads", "1", std::int64_t{trace.threads}},
          {"clock_hz", "Hz", trace.clock_hz},
          {"recorder", "1", trace.recorder},
          {"library", "1", trace.framework + (trace.framework_version.empty() ? "" : " " + trace.framework_version)},
          {"date", "1", trace.date},
          {"dtype", "1", trace.dtype},
          {"layout", "1", trace.layout},
          {"cache_mode", "1", trace.cache_mode},
          {"batch", "samples", trace.batch},
          {"layers", "1", static_cast<std::int64_t>(trace.layers.size())},
          {"parameters", "1", trace.parameter_count()},
          {"parameter_bytes", "bytes", trace.parameter_count() * (trace.dtype == "float64" ? 8 : 4)},
          {"activation_bytes", "bytes", activations},
          {"forward_time_s", "s", trace.total(Pass::forward).count()},
          {"backward_data_time_s", "s", trace.total(Pass::backward_data).count()},
          {"backward_weight_time_s", "s", trace.total(Pass::backward_weight).count()},
          {"update_time_s", "s", trace.total(Pass::update).count()},
          {"sum_of_layers_s", "s", sum_of_layers(trace).count()},
          {"whole_iteration_s", "s", whole.measured > Seconds{} ? whole.measured.count() : nan},
          {"sum_over_whole", "1", ratio_of(whole)}};
}

std::vector<Record> layer_records(const Trace& trace, std::size_t top) {
  std::vector<std::size_t> order(trace.layers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (top > 0) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return layer_time(trace.layers[a]) > layer_time(trace.layers[b]);
    });
    order.resize(std::min(order.size(), top));
  }
  std::vector<Record> rows;
  for (const auto index : order) rows.push_back(layer_record(trace, index));
  return rows;
}

std::vector<std::string> remarks_of(const Trace& trace) {
  std::vector<std::string> remarks;
  const double ratio = ratio_of(whole_iteration(trace));
  if (std::isnan(ratio)) {
    remarks.push_back("no whole iteration was measured: nothing says whether the layers' times add up");
  } else if (std::abs(ratio - 1) > kTolerance) {
    remarks.push_back(
        fmt::format("the sum of layers is {:.2f} times the measured whole iteration, more than {:.0f} % off: caches or "
                    "disturbances "
                    "differed between the two",
                    ratio, 100 * kTolerance));
  }
  // The recorder's own notes already name unsteady layers.
  if (trace.notes.empty()) {
    for (const auto& line : unsteady_layers(trace)) remarks.push_back("unsteady: " + line);
  }
  for (const auto& note : trace.notes) remarks.push_back(note);
  return remarks;
}

std::string trace_remarks(const Trace& trace) {
  const auto remarks = remarks_of(trace);
  if (remarks.empty()) return "";
  std::string text = "\nremarks\n";
  for (const auto& remark : remarks) text += "  - " + remark + "\n";
  return text;
}

}  // namespace tandem
