#include "traces/recorder/training_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"

namespace tandem {
namespace {

using dnnl::memory;
using Md = memory::desc;
using Args = std::unordered_map<int, memory>;
using Tag = memory::format_tag;
constexpr auto kF32 = memory::data_type::f32;

constexpr float kMomentum = 0.9F;

float* floats(const memory& m) {
  return static_cast<float*>(m.get_data_handle());
}
std::int64_t float_count(const Md& md) {
  return static_cast<std::int64_t>(md.get_size() / sizeof(float));
}
memory::dims dims_of(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

// oneDNN counts a dense kernel as dilation 0.
memory::dims dilation_of(const Layer& layer) {
  auto dims = dims_of(layer.dilation);
  for (auto& d : dims) --d;
  return dims;
}

Tag plain_tag(std::size_t rank) {
  constexpr Tag tags[] = {Tag::undef, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return tags[rank];
}

// Uniform, with mean 0 and the standard deviation asked for.
void fill(float* values, std::int64_t count, double deviation, Random& random) {
  const double span = deviation * std::sqrt(3.0);
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((2 * random.uniform() - 1) * span);
}

// v = m v + g; w -= r v
void sgd_update(float* weights, float* velocity, const float* gradient, std::int64_t count, float rate) {
#pragma omp parallel for simd if (count > 65536)
  for (std::int64_t i = 0; i < count; ++i) {
    velocity[i] = kMomentum * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
  }
}

// Gradients of activations live from the consumer that writes them to the producer that reads them. Their buffers are
// used again, as a framework's caching allocator does: memory stays small, and caches warm.
class GradientPool {
 public:
  std::size_t acquire(std::size_t bytes) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto& b = buffers_[i];
      const bool fits = b.uses == 0 && b.bytes >= bytes && b.bytes / 2 <= bytes;
      if (fits && (!best || b.bytes < buffers_[*best].bytes)) best = i;
    }
    if (!best) {
      constexpr std::size_t line = 64;
      const std::size_t rounded = (bytes + line - 1) / line * line;
      buffers_.push_back({Pointer(std::aligned_alloc(line, rounded)), rounded, 0});
      if (buffers_.back().data == nullptr) throw model_error("out of memory for gradients");
      std::memset(buffers_.back().data.get(), 0, rounded);
      best = buffers_.size() - 1;
    }
    buffers_[*best].uses = 1;
    return *best;
  }
  void retain(std::size_t i) { ++buffers_[i].uses; }
  void release(std::size_t i) { --buffers_[i].uses; }
  [[nodiscard]] bool shared(std::size_t i) const { return buffers_[i].uses > 1; }
  [[nodiscard]] void* data(std::size_t i) const { return buffers_[i].data.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  using Pointer = std::unique_ptr<void, Free>;
  struct Buffer {
    Pointer data;
    std::size_t bytes = 0;
    int uses = 0;
  };
  std::vector<Buffer> buffers_;
};

struct Gradient {
  memory value;
  std::size_t buffer = 0;
};

struct Parameter {
  memory weights, gradient;
  std::vector<float> velocity;
};

struct Node {
  std::array<std::vector<std::function<void()>>, kPasses> tasks;
  std::array<std::string, kPasses> kernels;
  memory value;                     // the layer's output
  std::vector<Gradient> gradients;  // of its output, one from each consumer
  std::vector<Parameter> parameters;
};

}  // namespace

struct TrainingNetwork::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Random random{1};
  GradientPool pool;
  std::vector<Node> nodes;
  memory input;
  std::vector<std::int32_t> labels;
  double loss = 0;
  float learning_rate = 0;

  // ---- helpers ----

  void add_task(Node& node, Pass pass, const dnnl::primitive& primitive, Args args, const std::string& kernel) {
    const auto p = static_cast<std::size_t>(pass);
    if (node.kernels[p].empty()) node.kernels[p] = kernel;
    node.tasks[p].push_back([this, primitive, args = std::move(args)] {
      primitive.execute(stream, args);
      stream.wait();
    });
  }

  template <class Primitive, class Description>
  void add_primitive(Node& node, Pass pass, const Description& description, Args args) {
    add_task(node, pass, Primitive(description), std::move(args), description.impl_info_str());
  }

  // Zeroed, which also touches every page.
  [[nodiscard]] memory allocate(const Md& md) {
    memory m(md, engine);
    if (md.get_size() > 0) std::memset(m.get_data_handle(), 0, md.get_size());
    return m;
  }

  void reorder(memory from, memory to) {  // handles; oneDNN wants them mutable
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  // Through a plain layout, so that the padding of a blocked one stays zero, which oneDNN relies on.
  [[nodiscard]] memory random_memory(const Md& md, double deviation) {
    memory plain(Md(md.dims(), kF32, plain_tag(md.dims().size())), engine);
    fill(floats(plain), float_count(plain.get_desc()), deviation, random);
    memory m = allocate(md);
    reorder(plain, m);
    return m;
  }

  [[nodiscard]] memory& input_value(const Layer& layer, std::size_t i = 0) {
    return layer.inputs.empty() ? input : nodes[layer.inputs[i].index()].value;
  }

  // The first layer may choose the layout of the model's input; every other one takes what its producer left.
  [[nodiscard]] Md source_desc(const Layer& layer) {
    if (layer.inputs.empty()) return {layer.input_shapes[0], kF32, Tag::any};
    return input_value(layer).get_desc();
  }

  void set_input(const Layer& layer, const Md& chosen) {
    if (layer.inputs.empty() && !input) input = random_memory(chosen, 1);
  }

  [[nodiscard]] Gradient new_gradient(const Md& md) {
    const auto buffer = pool.acquire(md.get_size());
    return {memory(md, engine, pool.data(buffer)), buffer};
  }

  void hand_to_input(const Layer& layer, std::size_t i, Gradient gradient) {
    nodes[layer.inputs[i].index()].gradients.push_back(std::move(gradient));
  }

  Parameter& add_parameter(Node& node, const Md& md, double deviation) {
    Parameter parameter;
    parameter.weights = deviation > 0 ? random_memory(md, deviation) : allocate(md);
    parameter.velocity.assign(static_cast<std::size_t>(float_count(md)), 0.0F);
    node.parameters.push_back(std::move(parameter));
    return node.parameters.back();
  }

  // A convolution's or product's backward pass in the layout that the update needs, unless only a reference kernel
  // can do that.
  template <class Description, class Make>
  [[nodiscard]] static Description prefer(const Md& wanted, const Md& any, Make&& make) {
    try {
      const Description fixed = make(wanted);
      if (std::strstr(fixed.impl_info_str(), "ref") == nullptr) return fixed;
    } catch (const dnnl::error&) {
    }
    return make(any);
  }

  // ---- forward, layer by layer; each returns what its backward pass needs as a closure ----

  using Backward = std::function<void(Node&, const Gradient&)>;

  // `operation` holds what differs between convolution and inner product: their descriptors.
  template <class Operation>
  Backward weighted(Layer& layer, Node& node, const Operation& operation) {
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
  void weighted_backward_data(const Layer& layer, Node& node, const Operation& operation, const ForwardDescription& pd,
                              const Md& any_weights, const Gradient& gradient) {
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
  void weighted_backward_weight(const Layer& layer, Node& node, const Operation& operation,
                                const ForwardDescription& pd, const Md& any_weights, const Md& bias_md,
                                const Gradient& gradient) {
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

  struct Convolution {
    using Forward = dnnl::convolution_forward;
    using BackwardData = dnnl::convolution_backward_data;
    using BackwardWeights = dnnl::convolution_backward_weights;
    static constexpr auto algorithm = dnnl::algorithm::convolution_auto;
    static constexpr Tag output_tag = Tag::any;
    memory::dims stride, dilation, pad_begin, pad_end;

    [[nodiscard]] Forward::desc forward(const Md& src, const Md& weights, const Md& bias, const Md& dst) const {
      return {
          dnnl::prop_kind::forward_training, algorithm, src, weights, bias, dst, stride, dilation, pad_begin, pad_end};
    }
    [[nodiscard]] BackwardData::desc backward_data(const Md& src, const Md& weights, const Md& dst) const {
      return {algorithm, src, weights, dst, stride, dilation, pad_begin, pad_end};
    }
    [[nodiscard]] BackwardWeights::desc backward_weights(const Md& src, const Md& weights, const Md& bias,
                                                         const Md& dst) const {
      return {algorithm, src, weights, bias, dst, stride, dilation, pad_begin, pad_end};
    }
  };

  struct InnerProduct {
    using Forward = dnnl::inner_product_forward;
    using BackwardData = dnnl::inner_product_backward_data;
    using BackwardWeights = dnnl::inner_product_backward_weights;
    static constexpr Tag output_tag = Tag::ab;  // what the loss reads

    [[nodiscard]] Forward::desc forward(const Md& src, const Md& weights, const Md& bias, const Md& dst) const {
      return {dnnl::prop_kind::forward_training, src, weights, bias, dst};
    }
    [[nodiscard]] BackwardData::desc backward_data(const Md& src, const Md& weights, const Md& dst) const {
      return {src, weights, dst};
    }
    [[nodiscard]] BackwardWeights::desc backward_weights(const Md& src, const Md& weights, const Md& bias,
                                                         const Md& dst) const {
      return {src, weights, bias, dst};
    }
  };

  Backward conv(Layer& layer, Node& node) {
    if (layer.groups != 1) throw internal_error("the recorder has no grouped convolutions");
    return weighted(
        layer, node,
        Convolution{dims_of(layer.stride), dilation_of(layer), dims_of(layer.pad_begin), dims_of(layer.pad_end)});
  }

  Backward bn(Layer& layer, Node& node) {
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

  Backward relu(Layer& layer, Node& node) {
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

  Backward pool_layer(Layer& layer, Node& node) {
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

  void binary(Node& node, Pass pass, dnnl::algorithm algorithm, const memory& left, const memory& right,
              const memory& out) {
    const dnnl::binary::primitive_desc pd(
        dnnl::binary::desc(algorithm, left.get_desc(), right.get_desc(), out.get_desc()), engine);
    add_primitive<dnnl::binary>(node, pass, pd, {{DNNL_ARG_SRC_0, left}, {DNNL_ARG_SRC_1, right}, {DNNL_ARG_DST, out}});
  }

  Backward add(Layer& layer, Node& node) {
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

  Backward flatten(Layer& layer, Node& node) {
    node.value = input_value(layer);
    return [this, &layer](Node&, const Gradient& gradient) {
      pool.retain(gradient.buffer);
      hand_to_input(layer, 0, gradient);
    };
  }

  Backward dropout(Layer& layer, Node& node) {
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

  Backward softmax_loss(Layer& layer, Node& node) {
    const Md md = source_desc(layer);
    const dnnl::softmax_forward::primitive_desc pd(
        dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, md, 1), engine);
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
  void loss_gradient(const float* p, float* d, std::size_t classes) const {
    const float scale = 1.0F / static_cast<float>(labels.size());
    const auto count = static_cast<std::int64_t>(labels.size() * classes);
    for (std::int64_t i = 0; i < count; ++i) d[i] = p[i] * scale;
    for (std::size_t i = 0; i < labels.size(); ++i) d[i * classes + static_cast<std::size_t>(labels[i])] -= scale;
  }

  // ---- assembly ----

  Backward forward_of(Layer& layer, Node& node) {
    switch (layer.kind) {
      case OpKind::conv:
        return conv(layer, node);
      case OpKind::fc:
        return weighted(layer, node, InnerProduct{});
      case OpKind::bn:
        return bn(layer, node);
      case OpKind::relu:
        return relu(layer, node);
      case OpKind::max_pool:
      case OpKind::avg_pool:
        return pool_layer(layer, node);
      case OpKind::add:
        return add(layer, node);
      case OpKind::flatten:
        return flatten(layer, node);
      case OpKind::dropout:
        return dropout(layer, node);
      case OpKind::softmax_loss:
        return softmax_loss(layer, node);
      default:
        throw internal_error(fmt::format("the recorder has no {}", to_text(layer.kind)));
    }
  }

  // Where an output fans out its gradients are added up, which counts as this layer's backward pass.
  [[nodiscard]] Gradient accumulate(const Layer& layer, Node& node) {
    Gradient total = node.gradients.back();
    const Pass pass = layer.backward_is_joint ? Pass::backward_weight : Pass::backward_data;
    for (std::size_t i = node.gradients.size() - 1; i-- > 0;) {
      const Gradient& next = node.gradients[i];
      Gradient out = pool.shared(total.buffer) ? new_gradient(total.value.get_desc()) : total;
      binary(node, pass, dnnl::algorithm::binary_add, total.value, next.value, out.value);
      if (out.buffer != total.buffer) pool.release(total.buffer);
      pool.release(next.buffer);
      total = out;
    }
    return total;
  }

  void add_updates(Node& node) {
    for (auto& parameter : node.parameters) {
      // Where the gradient's layout differs from the weights' one is longer than the other by its padding.
      const auto count =
          std::min(float_count(parameter.weights.get_desc()), float_count(parameter.gradient.get_desc()));
      node.tasks[static_cast<std::size_t>(Pass::update)].push_back(
          [w = floats(parameter.weights), v = parameter.velocity.data(), g = floats(parameter.gradient), count,
           rate = learning_rate] { sgd_update(w, v, g, count, rate); });
    }
  }

  void build(Trace& model) {
    auto& layers = model.layers;
    nodes.resize(layers.size());
    std::vector<Backward> backward;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      backward.push_back(with_context(layers[i].name, [&] { return forward_of(layers[i], nodes[i]); }));
    }
    for (std::size_t i = layers.size(); i-- > 0;) {
      const bool last = nodes[i].gradients.empty();
      const Gradient gradient = last ? Gradient{} : accumulate(layers[i], nodes[i]);
      backward[i](nodes[i], gradient);
      if (!last) pool.release(gradient.buffer);
      add_updates(nodes[i]);
    }
  }
};

TrainingNetwork::TrainingNetwork(Trace& model, float learning_rate) : state_(std::make_unique<State>()) {
  state_->learning_rate = learning_rate;
  try {
    state_->build(model);
  } catch (const dnnl::error& error) {
    throw model_error(fmt::format("oneDNN: {}", error.what()));
  } catch (const std::bad_alloc&) {
    throw model_error("out of memory");
  }
}

TrainingNetwork::~TrainingNetwork() = default;

void TrainingNetwork::run(std::size_t layer, Pass pass) {
  for (const auto& task : state_->nodes[layer].tasks[static_cast<std::size_t>(pass)]) task();
}

bool TrainingNetwork::has(std::size_t layer, Pass pass) const {
  return !state_->nodes[layer].tasks[static_cast<std::size_t>(pass)].empty();
}

double TrainingNetwork::loss() const {
  return state_->loss;
}

double TrainingNetwork::gradient_square(std::size_t layer) const {
  double sum = 0;
  for (const auto& parameter : state_->nodes[layer].parameters) {
    const float* g = floats(parameter.gradient);
    for (std::int64_t i = 0; i < float_count(parameter.gradient.get_desc()); ++i) sum += double{g[i]} * g[i];
  }
  return sum;
}

const std::string& TrainingNetwork::kernel(std::size_t layer, Pass pass) const {
  return state_->nodes[layer].kernels[static_cast<std::size_t>(pass)];
}

}  // namespace tandem
