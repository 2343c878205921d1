#include "traces/recorder/training_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/recorder/network_state.hpp"

namespace tandem {
namespace {

constexpr float kMomentum = 0.9F;

// v = m v + g; w -= r v
void sgd_update(float* weights, float* velocity, const float* gradient, std::int64_t count, float rate) {
#pragma omp parallel for simd if (count > 65536)
  for (std::int64_t i = 0; i < count; ++i) {
    velocity[i] = kMomentum * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
  }
}

}  // namespace

// Uniform, with mean 0 and the standard deviation asked for.
void fill_random(float* values, std::int64_t count, double deviation, Random& random) {
  const double span = deviation * std::sqrt(3.0);
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((2 * random.uniform() - 1) * span);
}

TrainingNetwork::State::Backward TrainingNetwork::State::forward_of(Layer& layer, Node& node) {
  switch (layer.kind) {
    case OpKind::conv:
      return conv(layer, node);
    case OpKind::fc:
      return fc(layer, node);
    case OpKind::bn:
      return bn(layer, node);
    case OpKind::relu:
      return relu(layer, node);
    case OpKind::max_pool:
    case OpKind::avg_pool:
      return pool_layer(layer, node);
    case OpKind::add:
      return add(layer, node);
    case OpKind::concat:
      return concat(layer, node);
    case OpKind::lrn:
      return lrn(layer, node);
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
Gradient TrainingNetwork::State::accumulate(const Layer& layer, Node& node) {
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

void TrainingNetwork::State::add_updates(Node& node) {
  for (auto& parameter : node.parameters) {
    // Where the gradient's layout differs from the weights' one is longer than the other by its padding.
    const auto count = std::min(float_count(parameter.weights.get_desc()), float_count(parameter.gradient.get_desc()));
    node.tasks[static_cast<std::size_t>(Pass::update)].push_back(
        [w = floats(parameter.weights), v = parameter.velocity.data(), g = floats(parameter.gradient), count,
         rate = learning_rate] { sgd_update(w, v, g, count, rate); });
  }
}

void TrainingNetwork::State::build(Trace& model) {
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
