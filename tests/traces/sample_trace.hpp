// Traces for tests: one that uses every field, and random ones.
#pragma once

#include <rapidcheck.h>

#include <string>

#include "traces/trace.hpp"

namespace tandem::testing {

[[nodiscard]] inline Trace full_trace() {
  Trace trace;
  trace.model = "toy";
  trace.recorder = "a test";
  trace.framework = "none";
  trace.framework_version = "1.2.3";
  trace.device = "Prüfstand";
  trace.threads = 3;
  trace.clock_hz = 2.5e9;
  trace.dtype = "float16";
  trace.layout = "nhwc";
  trace.batch = 4;
  trace.cache_mode = "hot";
  trace.date = "2024-02-29";
  trace.iteration_forward.seconds = {0.5, 0.25};
  trace.iteration_backward.seconds = {1.0};
  trace.notes = {"first", "", "third, longer than the others"};

  Layer conv;
  conv.name = "conv";
  conv.kind = OpKind::conv;
  conv.input_shapes = {{4, 6, 9, 8}};
  conv.output_shape = {4, 10, 5, 8};
  conv.kernel = {3, 2};
  conv.stride = {2, 1};
  conv.pad_begin = {1, 0};
  conv.pad_end = {0, 1};
  conv.dilation = {1, 2};
  conv.groups = 2;
  conv.needs_input_gradient = false;
  conv.parameters = {{"weight", {10, 3, 3, 2}}, {"bias", {10}}};
  conv.activation_bytes = Bytes(3200);
  conv.workspace_bytes = Bytes(77);
  conv.flops = {Flops(1), Flops(2), Flops(3), Flops(4)};
  conv.samples[0].seconds = {1e-3, 2e-3};
  conv.samples[2].seconds = {3e-3};
  conv.samples[3].seconds = {0};
  SplitCurve split;
  split.axis = SplitCurve::Axis::output_channel;
  split.fraction = 0.5;
  split.input_shape = {4, 6, 9, 8};
  split.output_shape = {4, 5, 5, 8};
  split.samples[0].seconds = {6e-4};
  split.samples[1].seconds = {7e-4, 8e-4};
  conv.splits = {split, split};
  conv.splits[1].axis = SplitCurve::Axis::height;

  Layer relu;
  relu.name = "relu";
  relu.kind = OpKind::relu;
  relu.inputs = {LayerId{0}};
  relu.input_shapes = {conv.output_shape};
  relu.output_shape = conv.output_shape;
  relu.in_place = true;

  Layer add;
  add.name = "add";
  add.kind = OpKind::add;
  add.inputs = {LayerId{1}, LayerId{0}};
  add.input_shapes = {conv.output_shape, conv.output_shape};
  add.output_shape = conv.output_shape;
  add.backward_is_joint = true;
  trace.layers = {conv, relu, add};
  return trace;
}

// ---- generators ----

template <class Make>
auto list_of(int most, Make&& make) {
  std::vector<decltype(make())> values;
  for (int n = *rc::gen::inRange(0, most + 1); n > 0; --n) values.push_back(make());
  return values;
}

inline std::string random_text() {
  return *rc::gen::container<std::string>(rc::gen::inRange<char>(' ', '~'));
}

inline Samples random_samples() {
  return {list_of(4, [] { return *rc::gen::inRange(0, 1 << 30) * 1e-9; })};
}

inline Shape random_shape() {
  return list_of(5, [] { return std::int64_t{*rc::gen::inRange(1, 1000)}; });
}

inline std::int64_t random_bytes() {
  return *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 46);
}

inline SplitCurve random_split() {
  SplitCurve split;
  split.axis = static_cast<SplitCurve::Axis>(*rc::gen::inRange(0, 5));
  split.fraction = 1.0 / *rc::gen::inRange(1, 17);
  split.input_shape = random_shape();
  split.output_shape = random_shape();
  for (auto& samples : split.samples) samples = random_samples();
  return split;
}

inline Layer random_layer(int id) {
  Layer layer;
  layer.name = random_text() + std::to_string(id);
  layer.kind = static_cast<OpKind>(*rc::gen::inRange(0, static_cast<int>(OpKind::other) + 1));
  if (id > 0) layer.inputs = list_of(3, [&] { return LayerId{*rc::gen::inRange(0, id)}; });
  for (std::size_t i = 0; i < std::max<std::size_t>(layer.inputs.size(), 1); ++i) {
    layer.input_shapes.push_back(random_shape());
  }
  layer.output_shape = random_shape();
  const auto rank = static_cast<std::size_t>(*rc::gen::inRange(0, 4));
  for (auto* window : {&layer.kernel, &layer.stride, &layer.pad_begin, &layer.pad_end, &layer.dilation}) {
    for (std::size_t d = 0; d < rank; ++d) window->push_back(*rc::gen::inRange(1, 12));
  }
  layer.groups = *rc::gen::inRange(1, 64);
  layer.in_place = *rc::gen::arbitrary<bool>();
  layer.needs_input_gradient = *rc::gen::arbitrary<bool>();
  layer.backward_is_joint = *rc::gen::arbitrary<bool>();
  layer.activation_bytes = Bytes(random_bytes());
  layer.workspace_bytes = Bytes(random_bytes());
  layer.parameters = list_of(3, [] {
    auto shape = random_shape();
    shape.push_back(*rc::gen::inRange(1, 9));
    return ParameterTensor{random_text() + "p", shape};
  });
  for (auto& flops : layer.flops) flops = Flops(static_cast<double>(random_bytes()) * 1.25);
  for (auto& samples : layer.samples) samples = random_samples();
  layer.splits = list_of(2, random_split);
  return layer;
}

inline Trace random_trace() {
  Trace trace;
  for (auto* text : {&trace.model, &trace.recorder, &trace.framework, &trace.framework_version, &trace.device,
                     &trace.dtype, &trace.layout, &trace.cache_mode, &trace.date}) {
    *text = random_text();
  }
  trace.threads = *rc::gen::inRange(0, 1000);
  trace.clock_hz = *rc::gen::inRange(0, 1 << 30) * 4.0;
  trace.batch = *rc::gen::inRange(1, 100000);
  for (auto* samples : {&trace.iteration_forward, &trace.iteration_backward, &trace.iteration_update}) {
    *samples = random_samples();
  }
  const int layers = *rc::gen::inRange(1, 9);
  for (int id = 0; id < layers; ++id) trace.layers.push_back(random_layer(id));
  trace.notes = list_of(4, random_text);
  return trace;
}

}  // namespace tandem::testing
