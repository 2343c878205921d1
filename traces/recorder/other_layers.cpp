// Layers without weights, and batch norm.
#include <algorithm>
#include <cmath>
#include <utility>

#include "traces/recorder/network_state.hpp"

namespace tandem {

TrainingNetwork::State::Backward TrainingNetwork::State::bn(Layer& layer, Node& node) {
  constexpr auto flags = dnnl::normalization_flags::use_scale_shift;
  constexpr float epsilon = 1e-5F;
  const Md md = source_desc(layer);
  const dnnl::batch_normalization_forward::primitive_desc pd(
      dnnl::batch_normalization_forward::desc(dnnl::prop_kind::forward_training, md, epsilon, flags), engine);
  node.value = allocate(pd.dst_desc());
  const memory mean = allocate(pd.mean_desc());
  const memory variance = allocate(pd.variance_desc());
  auto& parameter = add_parameter(node, pd.weights_desc(), 0);  // scale and shift in one, as oneDNN has them
  std::fill_n(floats(parameter.weights), layer.output_shape[1], 1.0F);
  layer.workspace_bytes = Bytes(2 * 4 * layer.output_shape[1]);
  add_primitive<dnnl::batch_normalization_forward>(node, Pass::forward, pd,
                                                   {{DNNL_ARG_SRC, input_value(layer)},
                                                    {DNNL_ARG_MEAN, mean},
                                                    {DNNL_ARG_VARIANCE, variance},
                                                    {DNNL_ARG_SCALE_SHIFT, parameter.weights},
                                                    {DNNL_ARG_DST, node.value}});
  return [this, &layer, md, pd, mean, variance](Node& self, const Gradient& gradient) {
    const dnnl::batch_normalization_backward::primitive_desc back(
        dnnl::batch_normalization_backward::desc(dnnl::prop_kind::backward, md, md, epsilon, flags), engine, pd);
    auto& scale_shift = self.parameters[0];
    scale_shift.gradient = allocate(back.diff_weights_desc());
    Gradient out = new_gradient(md);
    add_primitive<dnnl::batch_normalization_backward>(self, Pass::backward_weight, back,
                                                      {{DNNL_ARG_SRC, input_value(layer)},
                                                       {DNNL_ARG_MEAN, mean},
                                                       {DNNL_ARG_VARIANCE, variance},
                                                       {DNNL_ARG_SCALE_SHIFT, scale_shift.weights},
                                                       {DNNL_ARG_DIFF_DST, gradient.value},
                                                       {DNNL_ARG_DIFF_SRC, out.value},
                                                       {DNNL_ARG_DIFF_SCALE_SHIFT, scale_shift.gradient}});
    hand_to_input(layer, 0, std::move(out));
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::relu(Layer& layer, Node& node) {
  // The form that needs only the output, because the input is overwritten.
  constexpr auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
  const Md md = source_desc(layer);
  const dnnl::eltwise_forward::primitive_desc pd(
      dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, algorithm, md, 0.0F), engine);
  node.value = input_value(layer);
  add_primitive<dnnl::eltwise_forward>(node, Pass::forward, pd,
                                       {{DNNL_ARG_SRC, node.value}, {DNNL_ARG_DST, node.value}});
  return [this, &layer, md, pd](Node& self, const Gradient& gradient) {
    const dnnl::eltwise_backward::primitive_desc back(dnnl::eltwise_backward::desc(algorithm, md, md, 0.0F), engine,
                                                      pd);
    Gradient out = pool.shared(gradient.buffer) ? new_gradient(md) : gradient;
    if (out.buffer == gradient.buffer) pool.retain(out.buffer);
    add_primitive<dnnl::eltwise_backward>(
        self, Pass::backward_data, back,
        {{DNNL_ARG_DST, self.value}, {DNNL_ARG_DIFF_DST, gradient.value}, {DNNL_ARG_DIFF_SRC, out.value}});
    hand_to_input(layer, 0, std::move(out));
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::pool_layer(Layer& layer, Node& node) {
  const bool is_max = layer.kind == OpKind::max_pool;
  const auto algorithm = is_max ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  const Md source = source_desc(layer);
  const auto kernel = dims_of(layer.kernel);
  const auto stride = dims_of(layer.stride);
  const auto begin = dims_of(layer.pad_begin);
  const auto end = dims_of(layer.pad_end);
  const dnnl::pooling_forward::primitive_desc pd(
      dnnl::pooling_forward::desc(dnnl::prop_kind::forward_training, algorithm, source,
                                  {layer.output_shape, kF32, Tag::any}, stride, kernel, begin, end),
      engine);
  node.value = allocate(pd.dst_desc());
  memory workspace;
  Args args{{DNNL_ARG_SRC, input_value(layer)}, {DNNL_ARG_DST, node.value}};
  if (is_max) {
    workspace = allocate(pd.workspace_desc());
    layer.workspace_bytes = Bytes(static_cast<std::int64_t>(pd.workspace_desc().get_size()));
    args.emplace(DNNL_ARG_WORKSPACE, workspace);
  }
  add_primitive<dnnl::pooling_forward>(node, Pass::forward, pd, std::move(args));
  return [=, this, &layer](Node& self, const Gradient& gradient) {
    const dnnl::pooling_backward::primitive_desc back(
        dnnl::pooling_backward::desc(algorithm, source, pd.dst_desc(), stride, kernel, begin, end), engine, pd);
    Gradient out = new_gradient(source);
    Args back_args{{DNNL_ARG_DIFF_DST, gradient.value}, {DNNL_ARG_DIFF_SRC, out.value}};
    if (is_max) back_args.emplace(DNNL_ARG_WORKSPACE, workspace);
    add_primitive<dnnl::pooling_backward>(self, Pass::backward_data, back, std::move(back_args));
    hand_to_input(layer, 0, std::move(out));
  };
}

void TrainingNetwork::State::binary(Node& node, Pass pass, dnnl::algorithm algorithm, const memory& left,
                                    const memory& right, const memory& out) {
  const dnnl::binary::primitive_desc pd(
      dnnl::binary::desc(algorithm, left.get_desc(), right.get_desc(), out.get_desc()), engine);
  add_primitive<dnnl::binary>(node, pass, pd, {{DNNL_ARG_SRC_0, left}, {DNNL_ARG_SRC_1, right}, {DNNL_ARG_DST, out}});
}

TrainingNetwork::State::Backward TrainingNetwork::State::add(Layer& layer, Node& node) {
  if (layer.inputs.size() != 2) throw internal_error("the recorder adds two branches, not more");
  node.value = allocate(input_value(layer).get_desc());
  binary(node, Pass::forward, dnnl::algorithm::binary_add, input_value(layer, 0), input_value(layer, 1), node.value);
  // The gradient of a sum is the same for both sides: nothing is computed or moved.
  return [this, &layer](Node&, const Gradient& gradient) {
    for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
      pool.retain(gradient.buffer);
      hand_to_input(layer, i, gradient);
    }
  };
}

// The layout is the library's choice where the gradient can be cut apart in it: a blocked one cannot where a branch
// ends inside a block of channels.
Md TrainingNetwork::State::concat_desc(const Layer& layer, const std::vector<Md>& sources) const {
  const dnnl::concat::primitive_desc any({layer.output_shape, kF32, Tag::any}, 1, sources, engine);
  try {
    memory::dims offsets(layer.output_shape.size(), 0);
    for (const auto& source : sources) {
      (void)any.dst_desc().submemory_desc(source.dims(), offsets);
      offsets[1] += source.dims()[1];
    }
    return any.dst_desc();
  } catch (const dnnl::error&) {
    return {layer.output_shape, kF32, plain_tag(layer.output_shape.size())};
  }
}

TrainingNetwork::State::Backward TrainingNetwork::State::concat(Layer& layer, Node& node) {
  std::vector<Md> sources;
  Args args;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) {
    sources.push_back(input_value(layer, i).get_desc());
    args.emplace(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), input_value(layer, i));
  }
  const dnnl::concat::primitive_desc pd(concat_desc(layer, sources), 1, sources, engine);
  node.value = allocate(pd.dst_desc());
  args.emplace(DNNL_ARG_DST, node.value);
  add_primitive<dnnl::concat>(node, Pass::forward, pd, std::move(args));
  // Every branch gets a copy of its part: the kernels below do not read every other stride.
  return [this, &layer, sources](Node& self, const Gradient& gradient) {
    memory::dims offsets(layer.output_shape.size(), 0);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Md part = gradient.value.get_desc().submemory_desc(sources[i].dims(), offsets);
      offsets[1] += sources[i].dims()[1];
      Gradient out = new_gradient(sources[i]);
      const dnnl::reorder::primitive_desc copy(engine, part, engine, sources[i]);
      add_primitive<dnnl::reorder>(
          self, Pass::backward_data, copy,
          {{DNNL_ARG_FROM, memory(part, engine, gradient.value.get_data_handle())}, {DNNL_ARG_TO, out.value}});
      hand_to_input(layer, i, std::move(out));
    }
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::lrn(Layer& layer, Node& node) {
  // Krizhevsky et al. 2012.
  constexpr auto algorithm = dnnl::algorithm::lrn_across_channels;
  constexpr std::int64_t size = 5;
  constexpr float alpha = 1e-4F, beta = 0.75F, k = 2;
  const Md md = source_desc(layer);
  const dnnl::lrn_forward::primitive_desc pd(
      dnnl::lrn_forward::desc(dnnl::prop_kind::forward_training, algorithm, md, size, alpha, beta, k), engine);
  node.value = allocate(pd.dst_desc());
  const memory workspace = allocate(pd.workspace_desc());
  layer.workspace_bytes = Bytes(static_cast<std::int64_t>(pd.workspace_desc().get_size()));
  add_primitive<dnnl::lrn_forward>(
      node, Pass::forward, pd,
      {{DNNL_ARG_SRC, input_value(layer)}, {DNNL_ARG_DST, node.value}, {DNNL_ARG_WORKSPACE, workspace}});
  return [=, this, &layer](Node& self, const Gradient& gradient) {
    const dnnl::lrn_backward::primitive_desc back(dnnl::lrn_backward::desc(algorithm, md, md, size, alpha, beta, k),
                                                  engine, pd);
    Gradient out = new_gradient(md);
    add_primitive<dnnl::lrn_backward>(self, Pass::backward_data, back,
                                      {{DNNL_ARG_SRC, input_value(layer)},
                                       {DNNL_ARG_DIFF_DST, gradient.value},
                                       {DNNL_ARG_WORKSPACE, workspace},
                                       {DNNL_ARG_DIFF_SRC, out.value}});
    hand_to_input(layer, 0, std::move(out));
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::flatten(Layer& layer, Node& node) {
  node.value = input_value(layer);
  return [this, &layer](Node&, const Gradient& gradient) {
    pool.retain(gradient.buffer);
    hand_to_input(layer, 0, gradient);
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::dropout(Layer& layer, Node& node) {
  const Md md = source_desc(layer);
  node.value = allocate(md);
  const memory mask = allocate(md);
  for (std::int64_t i = 0; i < float_count(md); ++i) floats(mask)[i] = random.uniform() < 0.5 ? 0.0F : 2.0F;
  layer.workspace_bytes = Bytes(static_cast<std::int64_t>(md.get_size()));
  binary(node, Pass::forward, dnnl::algorithm::binary_mul, input_value(layer), mask, node.value);
  return [this, &layer, md, mask](Node& self, const Gradient& gradient) {
    Gradient out = new_gradient(md);
    binary(self, Pass::backward_data, dnnl::algorithm::binary_mul, gradient.value, mask, out.value);
    hand_to_input(layer, 0, std::move(out));
  };
}

TrainingNetwork::State::Backward TrainingNetwork::State::softmax_loss(Layer& layer, Node& node) {
  const Md md = source_desc(layer);
  const dnnl::softmax_forward::primitive_desc pd(dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, md, 1),
                                                 engine);
  node.value = allocate(md);
  const auto classes = static_cast<std::uint32_t>(layer.output_shape[1]);
  for (std::int64_t i = 0; i < layer.output_shape[0]; ++i) {
    labels.push_back(static_cast<std::int32_t>(random.below(classes)));
  }
  add_primitive<dnnl::softmax_forward>(node, Pass::forward, pd,
                                       {{DNNL_ARG_SRC, input_value(layer)}, {DNNL_ARG_DST, node.value}});
  node.tasks[0].push_back([this, p = floats(node.value), classes] {
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      sum -= std::log(static_cast<double>(p[i * classes + static_cast<std::size_t>(labels[i])]));
    }
    loss = sum / static_cast<double>(labels.size());
  });
  return [this, &layer, md, classes](Node& self, const Gradient&) {
    Gradient out = new_gradient(md);
    self.tasks[1].push_back(
        [this, p = floats(self.value), d = floats(out.value), classes] { loss_gradient(p, d, classes); });
    hand_to_input(layer, 0, std::move(out));
  };
}

// Of the mean loss with respect to the input of the softmax: (p - 1 at the label) / batch.
void TrainingNetwork::State::loss_gradient(const float* p, float* d, std::size_t classes) const {
  const float scale = 1.0F / static_cast<float>(labels.size());
  const auto count = static_cast<std::int64_t>(labels.size() * classes);
  for (std::int64_t i = 0; i < count; ++i) d[i] = p[i] * scale;
  for (std::size_t i = 0; i < labels.size(); ++i) d[i * classes + static_cast<std::size_t>(labels[i])] -= scale;
}

}  // namespace tandem
