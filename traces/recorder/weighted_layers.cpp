// Layers with weights: convolution and inner product.
#include <cmath>
#include <utility>

#include "traces/recorder/network_state.hpp"

namespace tandem {

template <class Operation>
TrainingNetwork::State::Backward TrainingNetwork::State::weighted(Layer& layer, Node& node,
                                                                  const Operation& operation) {
  using Forward = typename Operation::Forward;
  const Md source = source_desc(layer);
  const bool bias = layer.parameters.size() > 1;
  Shape weight_shape = layer.parameters[0].shape;
  if (layer.kind == OpKind::fc) {  // reads the feature maps behind a flatten as they are
    const auto in = source.dims();
    weight_shape = {in.begin(), in.end()};
    weight_shape[0] = layer.parameters[0].shape[0];
  }
  const Md any_weights(weight_shape, kF32, Tag::any);
  const Md bias_md = bias ? Md(layer.parameters[1].shape, kF32, Tag::a) : Md();
  const typename Forward::primitive_desc pd(
      operation.forward(source, any_weights, bias_md, {layer.output_shape, kF32, operation.output_tag}), engine);
  set_input(layer, pd.src_desc());
  node.value = allocate(pd.dst_desc());
  const double fan_in = static_cast<double>(elements(layer.parameters[0].shape) / layer.parameters[0].shape[0]);
  node.parameters.reserve(2);
  auto& weights = add_parameter(node, pd.weights_desc(), std::sqrt(2 / fan_in));
  Args args{{DNNL_ARG_SRC, input_value(layer)}, {DNNL_ARG_WEIGHTS, weights.weights}, {DNNL_ARG_DST, node.value}};
  if (bias) args.emplace(DNNL_ARG_BIAS, add_parameter(node, bias_md, 0).weights);
  add_primitive<Forward>(node, Pass::forward, pd, std::move(args));
  return [this, &layer, operation, pd, any_weights, bias_md](Node& self, const Gradient& gradient) {
    weighted_backward_data(layer, self, operation, pd, any_weights, gradient);
    weighted_backward_weight(layer, self, operation, pd, any_weights, bias_md, gradient);
  };
}

template <class Operation, class ForwardDescription>
void TrainingNetwork::State::weighted_backward_data(const Layer& layer, Node& node, const Operation& operation,
                                                    const ForwardDescription& pd, const Md& any_weights,
                                                    const Gradient& gradient) {
  if (!layer.needs_input_gradient) return;
  using Primitive = typename Operation::BackwardData;
  using Description = typename Primitive::primitive_desc;
  const Description back(operation.backward_data(pd.src_desc(), any_weights, pd.dst_desc()), engine, pd);
  memory weights = node.parameters[0].weights;
  if (back.weights_desc() != weights.get_desc()) {  // a copy, made once
    memory copy = allocate(back.weights_desc());
    reorder(weights, copy);
    weights = copy;
  }
  Gradient out = new_gradient(pd.src_desc());
  add_primitive<Primitive>(
      node, Pass::backward_data, back,
      {{DNNL_ARG_DIFF_DST, gradient.value}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, out.value}});
  hand_to_input(layer, 0, std::move(out));
}

template <class Operation, class ForwardDescription>
void TrainingNetwork::State::weighted_backward_weight(const Layer& layer, Node& node, const Operation& operation,
                                                      const ForwardDescription& pd, const Md& any_weights,
                                                      const Md& bias_md, const Gradient& gradient) {
  using Primitive = typename Operation::BackwardWeights;
  using Description = typename Primitive::primitive_desc;
  const auto back = prefer<Description>(pd.weights_desc(), any_weights, [&](const Md& md) {
    return Description(operation.backward_weights(pd.src_desc(), md, bias_md, pd.dst_desc()), engine, pd);
  });
  node.parameters[0].gradient = allocate(back.diff_weights_desc());
  Args args{{DNNL_ARG_SRC, input_value(layer)},
            {DNNL_ARG_DIFF_DST, gradient.value},
            {DNNL_ARG_DIFF_WEIGHTS, node.parameters[0].gradient}};
  if (node.parameters.size() > 1) {
    node.parameters[1].gradient = allocate(bias_md);
    args.emplace(DNNL_ARG_DIFF_BIAS, node.parameters[1].gradient);
  }
  add_primitive<Primitive>(node, Pass::backward_weight, back, std::move(args));
}

TrainingNetwork::State::Backward TrainingNetwork::State::conv(Layer& layer, Node& node) {
  if (layer.groups != 1) throw internal_error("the recorder has no grouped convolutions");
  return weighted(layer, node, convolution_of(layer));
}

TrainingNetwork::State::Backward TrainingNetwork::State::fc(Layer& layer, Node& node) {
  return weighted(layer, node, InnerProduct{});
}

}  // namespace tandem
