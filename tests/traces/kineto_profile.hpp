// Profiles as PyTorch writes them, small enough to know every time: LeNet-5 in training, step by step.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "traces/models/models.hpp"
#include "traces/trace.hpp"

namespace tandem::testing {

// Microseconds.
struct ProfileOptions {
  bool old_categories = false;
  bool bare_array = false;  // without the object around it
  bool text_numbers = false;
  bool sequence_numbers = true;
  bool flows = false;  // between forward operators and their nodes
  bool shapes = true;
  bool annotated = true;  // ProfilerStep
  bool device = true;
  int steps = 2;
  int filler = 0;  // views more in each step, for large files
};

class Profile {
 public:
  static constexpr int kStep = 10000, kLayer = 100;
  static constexpr const char* kMain = "100";
  static constexpr const char* kAutograd = "200";

  explicit Profile(ProfileOptions options) : options_(options), model_(build_model("lenet5", 2)) {
    for (int s = 0; s < options.steps; ++s) add_step(s);
  }

  // Of the layer at `i`: both known to the test.
  static int forward_us(std::size_t i) { return 20 + static_cast<int>(i); }
  static int data_us(std::size_t i) { return 10 + static_cast<int>(i); }
  static int weight_us(std::size_t i) { return 30 + static_cast<int>(i); }

  // An operator (or annotation) of the host; `args` are further members of its arguments.
  void op(const std::string& name, const char* thread, double start, double duration, const std::string& args = "",
          bool annotation = false) {
    const char* category = options_.old_categories ? "Operator" : annotation ? "user_annotation" : "cpu_op";
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{},"dur":{},"args":{{"External id":{}{}{}}}}})",
        category, name, options_.old_categories ? fmt::format("\"{}\"", thread) : thread, time(start), time(duration),
        ++external_, args.empty() ? "" : ",", args));
  }

  // A launch at `launched` and what it launches.
  void kernel(const std::string& name, const char* thread, double launched, double start, double duration,
              int stream = 7) {
    device_event(options_.old_categories ? "Kernel" : "kernel", name, thread, "cudaLaunchKernel", launched, start,
                 duration, stream, "\"grid\":[1,1,1],\"block\":[128,1,1]");
  }
  void copy(const char* thread, double launched, double start, double duration, int stream = 7) {
    device_event(options_.old_categories ? "Memcpy" : "gpu_memcpy", "Memcpy HtoD", thread, "cudaMemcpyAsync", launched,
                 start, duration, stream, "\"bytes\":1000");
  }
  void raw(const std::string& event) { events_.push_back(event); }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& event : events_) all += (all.empty() ? "" : ",\n") + event;
    if (options_.bare_array) return "[" + all + "]";
    return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Test GPU"}],"traceEvents":[)" + all + "]}";
  }

 private:
  [[nodiscard]] std::string time(double value) const {
    return options_.text_numbers ? fmt::format("\"{}\"", value) : fmt::format("{}", value);
  }

  void device_event(const char* category, const std::string& name, const char* thread, const char* call,
                    double launched, double start, double duration, int stream, const std::string& args) {
    if (!options_.device) return;
    const char* runtime = options_.old_categories ? "Runtime" : "cuda_runtime";
    ++correlation_;
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":{},"ts":{},"dur":1,"args":{{"correlation":{},"external id":{}}}}})",
        runtime, call, options_.old_categories ? fmt::format("\"{}\"", thread) : thread, time(launched), correlation_,
        external_));
    events_.push_back(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":"stream {}","ts":{},"dur":{},"args":{{"device":0,"stream":{},"correlation":{},"external id":{},{}}}}})",
        category, name, stream, time(start), time(duration), stream, correlation_, external_, args));
  }

  static std::string list(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

  [[nodiscard]] std::string dims(const Layer& layer) const {
    if (!options_.shapes) return {};
    std::string text = "\"Input Dims\":[" + list(layer.input_shapes[0]);
    if (layer.kind == OpKind::conv || layer.kind == OpKind::fc) {
      for (const auto& tensor : layer.parameters) text += "," + list(tensor.shape);
    }
    return text + ",[],[]]";
  }

  static const char* name_of(OpKind kind) {
    switch (kind) {
      case OpKind::conv:
        return "conv2d";
      case OpKind::max_pool:
        return "max_pool2d";
      case OpKind::fc:
        return "linear";
      case OpKind::relu:
        return "relu";
      default:
        return "cross_entropy_loss";
    }
  }
  static const char* node_of(OpKind kind) {
    switch (kind) {
      case OpKind::conv:
        return "ConvolutionBackward0";
      case OpKind::max_pool:
        return "MaxPool2DWithIndicesBackward0";
      case OpKind::fc:
        return "AddmmBackward0";
      case OpKind::relu:
        return "ReluBackward0";
      default:
        return "NllLossBackward0";
    }
  }

  [[nodiscard]] std::string numbered(std::int64_t number, std::string args) const {
    if (!options_.sequence_numbers) return args;
    return args + (args.empty() ? "" : ",") + fmt::format("\"Sequence number\":{}", number);
  }

  void flow(const char* phase, std::int64_t id, const char* thread, double at) {
    if (!options_.flows) return;
    events_.push_back(fmt::format(R"({{"ph":"{}","id":{},"pid":7,"tid":{},"ts":{},"cat":"fwdbwd","name":"fwdbwd"}})",
                                  phase, id, thread, at));
  }

  // Layers every 100 us from 1000 us on, their gradients from 3000 us on in reverse, the optimizer at 8000 us; each
  // kernel begins 20 us behind its operator.
  void add_step(int s) {
    const double begin = 1e6 + s * kStep;
    if (options_.annotated) op(fmt::format("ProfilerStep#{}", s), kMain, begin, kStep, "", true);
    std::vector<std::size_t> layers;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      if (model_.layers[i].kind != OpKind::flatten) layers.push_back(i);
    }
    double at = begin + 1000;
    for (const auto i : layers) {
      const auto& layer = model_.layers[i];
      const auto number = 100 * s + static_cast<std::int64_t>(i);
      op(std::string("aten::") + name_of(layer.kind), kMain, at, 50, numbered(number, dims(layer)));
      flow("s", number, kMain, at + 1);
      kernel("forward_kernel", kMain, at + 10, at + 20, forward_us(i));
      at += kLayer;
    }
    for (int k = 0; k < options_.filler; ++k) op("aten::view", kMain, at + 0.1 * k / options_.filler, 0.01);
    at = begin + 3000;
    for (auto i = layers.rbegin(); i != layers.rend(); ++i, at += 2 * kLayer) add_backward(*i, s, at);
    op("Optimizer.step#SGD.step", kMain, begin + 8000, 200, "", true);
    kernel("multi_tensor_apply_kernel", kMain, begin + 8010, begin + 8020, 70);
  }

  void add_backward(std::size_t i, int s, double at) {
    const auto& layer = model_.layers[i];
    const auto number = 100 * s + static_cast<std::int64_t>(i);
    op(node_of(layer.kind), kAutograd, at, 100, numbered(number, ""));
    flow("f", number, kAutograd, at);
    const bool two = layer.needs_input_gradient && !layer.parameters.empty();
    if (layer.kind == OpKind::fc) op("aten::mm", kAutograd, at + 8, 5);
    if (two || layer.parameters.empty()) kernel("cudnn::dgrad", kAutograd, at + 10, at + 20, data_us(i));
    if (layer.kind == OpKind::fc) op("aten::mm", kAutograd, at + 14, 5);
    if (!layer.parameters.empty()) kernel("cudnn::wgrad", kAutograd, at + 15, at + 80, weight_us(i));
    if (!layer.parameters.empty()) op("torch::autograd::AccumulateGrad", kAutograd, at + 110, 20);
  }

  ProfileOptions options_;
  Trace model_;
  std::vector<std::string> events_;
  std::int64_t external_ = 0, correlation_ = 0;
};

}  // namespace tandem::testing
