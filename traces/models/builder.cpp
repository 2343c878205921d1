#include "traces/models/builder.hpp"

#include <algorithm>
#include <utility>

#include "traces/layer_work.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = 4;

}  // namespace

ModelBuilder::ModelBuilder(std::string model, Shape input) : input_(std::move(input)) {
  trace_.model = std::move(model);
  trace_.batch = input_.at(0);
}

const Shape& ModelBuilder::shape_of(LayerId id) const {
  return id == kInput ? input_ : trace_.layers.at(id.index()).output_shape;
}

Layer ModelBuilder::start(const std::string& name, OpKind kind, std::vector<LayerId> inputs) const {
  Layer layer;
  layer.name = name;
  layer.kind = kind;
  for (const LayerId id : inputs) layer.input_shapes.push_back(shape_of(id));
  layer.needs_input_gradient = inputs.front() != kInput;
  if (inputs.front() != kInput) layer.inputs = std::move(inputs);
  layer.output_shape = layer.input_shapes.front();
  return layer;
}

void ModelBuilder::set_window(Layer& layer, Window window) {
  layer.kernel = {window.kernel, window.kernel};
  layer.stride = {window.stride, window.stride};
  layer.pad_begin = layer.pad_end = {window.pad, window.pad};
  layer.dilation = {1, 1};
  for (std::size_t d = 0; d < layer.kernel.size(); ++d) {
    const auto in = layer.input_shapes[0][d + 2];
    const auto out = window_extent(in, window.kernel, window.stride, window.pad, window.pad, 1, window.ceil_mode);
    const auto reach = (out - 1) * window.stride + window.kernel - in - window.pad;
    layer.pad_end[d] = std::max(window.pad, static_cast<int>(reach));
    layer.output_shape[d + 2] = out;
  }
}

LayerId ModelBuilder::push(Layer layer) {
  if (!layer.in_place) layer.activation_bytes = Bytes(kFloat * elements(layer.output_shape));
  set_flops(layer);
  trace_.layers.push_back(std::move(layer));
  return LayerId{static_cast<std::int32_t>(trace_.layers.size()) - 1};
}

LayerId ModelBuilder::conv(const std::string& name, LayerId from, std::int64_t channels, Window window, bool bias) {
  Layer layer = start(name, OpKind::conv, {from});
  set_window(layer, window);
  layer.output_shape[1] = channels;
  layer.parameters.push_back({"weight", {channels, layer.input_shapes[0][1], window.kernel, window.kernel}});
  if (bias) layer.parameters.push_back({"bias", {channels}});
  return push(std::move(layer));
}

LayerId ModelBuilder::bn(const std::string& name, LayerId from) {
  Layer layer = start(name, OpKind::bn, {from});
  const auto channels = layer.output_shape[1];
  layer.parameters = {{"weight", {channels}}, {"bias", {channels}}};
  // The gradients of input, scale and shift come from one kernel in every library.
  layer.backward_is_joint = true;
  return push(std::move(layer));
}

LayerId ModelBuilder::relu(const std::string& name, LayerId from) {
  Layer layer = start(name, OpKind::relu, {from});
  layer.in_place = true;
  return push(std::move(layer));
}

LayerId ModelBuilder::max_pool(const std::string& name, LayerId from, Window window) {
  Layer layer = start(name, OpKind::max_pool, {from});
  set_window(layer, window);
  return push(std::move(layer));
}

LayerId ModelBuilder::global_avg_pool(const std::string& name, LayerId from) {
  Layer layer = start(name, OpKind::avg_pool, {from});
  set_window(layer, {static_cast<int>(layer.output_shape[2]), 1, 0});
  return push(std::move(layer));
}

LayerId ModelBuilder::add(const std::string& name, LayerId left, LayerId right) {
  return push(start(name, OpKind::add, {left, right}));
}

LayerId ModelBuilder::concat(const std::string& name, const std::vector<LayerId>& from) {
  Layer layer = start(name, OpKind::concat, from);
  layer.output_shape[1] = 0;
  for (const auto& shape : layer.input_shapes) layer.output_shape[1] += shape[1];
  return push(std::move(layer));
}

LayerId ModelBuilder::lrn(const std::string& name, LayerId from) {
  return push(start(name, OpKind::lrn, {from}));
}

LayerId ModelBuilder::flatten(const std::string& name, LayerId from) {
  Layer layer = start(name, OpKind::flatten, {from});
  layer.in_place = true;  // a view
  layer.output_shape = {layer.output_shape[0], elements(layer.output_shape) / layer.output_shape[0]};
  return push(std::move(layer));
}

LayerId ModelBuilder::dropout(const std::string& name, LayerId from) {
  return push(start(name, OpKind::dropout, {from}));
}

LayerId ModelBuilder::fc(const std::string& name, LayerId from, std::int64_t features) {
  Layer layer = start(name, OpKind::fc, {from});
  layer.parameters = {{"weight", {features, layer.output_shape[1]}}, {"bias", {features}}};
  layer.output_shape[1] = features;
  return push(std::move(layer));
}

LayerId ModelBuilder::softmax_loss(const std::string& name, LayerId from) {
  return push(start(name, OpKind::softmax_loss, {from}));
}

Trace ModelBuilder::finish() {
  validate(trace_);
  return std::move(trace_);
}

}  // namespace tandem
