// A network under construction and ready to run: the tasks of every layer's passes, and the memory they work in.
// Private to TrainingNetwork; its layers are in weighted_layers.cpp and other_layers.cpp.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/error.hpp"
#include "traces/recorder/onednn.hpp"
#include "traces/recorder/training_network.hpp"

namespace tandem {

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
    fill_random(floats(plain), float_count(plain.get_desc()), deviation, random);
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

  // ---- layers: each builds the forward pass and returns what builds the backward one, given the gradient of the
  // layer's output ----

  using Backward = std::function<void(Node&, const Gradient&)>;

  template <class Operation>
  Backward weighted(Layer& layer, Node& node, const Operation& operation);
  template <class Operation, class ForwardDescription>
  void weighted_backward_data(const Layer& layer, Node& node, const Operation& operation, const ForwardDescription& pd,
                              const Md& any_weights, const Gradient& gradient);
  template <class Operation, class ForwardDescription>
  void weighted_backward_weight(const Layer& layer, Node& node, const Operation& operation,
                                const ForwardDescription& pd, const Md& any_weights, const Md& bias_md,
                                const Gradient& gradient);
  Backward conv(Layer& layer, Node& node);
  Backward fc(Layer& layer, Node& node);
  Backward bn(Layer& layer, Node& node);
  Backward relu(Layer& layer, Node& node);
  Backward pool_layer(Layer& layer, Node& node);
  Backward add(Layer& layer, Node& node);
  Backward concat(Layer& layer, Node& node);
  Backward lrn(Layer& layer, Node& node);
  Backward flatten(Layer& layer, Node& node);
  Backward dropout(Layer& layer, Node& node);
  Backward softmax_loss(Layer& layer, Node& node);

  [[nodiscard]] Md concat_desc(const Layer& layer, const std::vector<Md>& sources) const;
  // out = left (add or multiply) right
  void binary(Node& node, Pass pass, dnnl::algorithm algorithm, const memory& left, const memory& right,
              const memory& out);
  void loss_gradient(const float* probabilities, float* gradient, std::size_t classes) const;

  // ---- assembly ----

  Backward forward_of(Layer& layer, Node& node);
  [[nodiscard]] Gradient accumulate(const Layer& layer, Node& node);
  void add_updates(Node& node);
  void build(Trace& model);
};

}  // namespace tandem
