#include "traces/recorder/part_timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <tuple>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/recorder/onednn.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kCacheBytes = std::int64_t{64} << 20;  // more than the last-level cache that one core can use
constexpr std::size_t kLine = 64;

// The operands of a layer's three passes. Parts of all sizes use the same memory, one after the other.
enum class Role {
  source,
  weights,
  back_weights,
  bias,
  output,
  output_gradient,
  source_gradient,
  weights_gradient,
  bias_gradient
};
constexpr std::size_t kRoles = 9;
using Sizes = std::array<std::size_t, kRoles>;

class Operands {
 public:
  // Random numbers, which also touches every page. The padding of blocked layouts is then not zero, which spoils
  // values there, but costs no kernel any time.
  void reserve(const Sizes& bytes) {
    for (std::size_t i = 0; i < kRoles; ++i) {
      if (bytes[i] <= blocks_[i].bytes) continue;
      blocks_[i] = {};
      const std::size_t rounded = (bytes[i] + kLine - 1) / kLine * kLine;
      blocks_[i] = {Pointer(static_cast<float*>(std::aligned_alloc(kLine, rounded))), rounded};
      if (blocks_[i].data == nullptr) throw model_error("out of memory for the parts of layers");
      fill_random(blocks_[i].data.get(), static_cast<std::int64_t>(rounded / sizeof(float)), 1, random_);
    }
  }
  [[nodiscard]] float* data(Role role) const { return blocks_[static_cast<std::size_t>(role)].data.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  using Pointer = std::unique_ptr<float, Free>;
  struct Block {
    Pointer data;
    std::size_t bytes = 0;
  };
  std::array<Block, kRoles> blocks_;
  Random random_{2};
};

// One part of a layer: the primitives of its passes, made first, and their operands, bound once all parts' sizes are
// known.
class PartPasses {
 public:
  PartPasses(const Layer& part, const dnnl::engine& engine) : engine_(engine) {
    if (part.kind == OpKind::conv) {
      make_fast(part);
    } else {
      make(part, InnerProduct{}, Tag::any, InnerProduct::output_tag);
    }
  }

  void widen(Sizes& sizes) const {
    for (const auto& task : tasks_) {
      for (const auto& [argument, role, md] : task.operands) {
        auto& size = sizes[static_cast<std::size_t>(role)];
        size = std::max(size, md.get_size());
      }
    }
  }

  void bind(const Operands& operands) {
    for (auto& task : tasks_) {
      for (const auto& [argument, role, md] : task.operands) {
        task.args.emplace(argument, memory(md, engine_, operands.data(role)));
      }
    }
  }

  [[nodiscard]] bool has(Pass pass) const { return !tasks_[static_cast<std::size_t>(pass)].operands.empty(); }
  void run(Pass pass, dnnl::stream& stream) const {
    const auto& task = tasks_[static_cast<std::size_t>(pass)];
    task.primitive.execute(stream, task.args);
    stream.wait();
  }
  [[nodiscard]] std::size_t source_bytes() const { return source_bytes_; }
  [[nodiscard]] std::size_t output_bytes() const { return output_bytes_; }

 private:
  using Operand = std::tuple<int, Role, Md>;
  struct Task {
    dnnl::primitive primitive;
    std::vector<Operand> operands;
    Args args;
  };

  template <class Primitive, class Description>
  void set(Pass pass, const Description& description, std::vector<Operand> operands) {
    slow_ = slow_ || is_reference(description);
    tasks_[static_cast<std::size_t>(pass)] = {Primitive(description), std::move(operands), {}};
  }

  // The layouts that the forward pass likes best may leave a backward pass to a reference kernel, some hundred times
  // slower, where there are few channels; channels last avoid that.
  void make_fast(const Layer& part) {
    const auto operation = convolution_of(part);
    make(part, operation, Tag::any, Tag::any);
    if (!slow_ || part.output_shape.size() != 4) return;
    make(part, operation, Tag::acdb, Tag::acdb);
    if (slow_) make(part, operation, Tag::any, Tag::any);
  }

  template <class Operation>
  void make(const Layer& part, const Operation& operation, Tag source_layout, Tag output_layout) {
    using Forward = typename Operation::Forward;
    slow_ = false;
    const Md source(part.input_shapes[0], kF32, source_layout);
    const Md any_weights(part.parameters[0].shape, kF32, Tag::any);
    const bool with_bias = part.parameters.size() > 1;
    const Md bias = with_bias ? Md(part.parameters[1].shape, kF32, Tag::a) : Md();
    const typename Forward::primitive_desc pd(
        operation.forward(source, any_weights, bias, {part.output_shape, kF32, output_layout}), engine_);
    source_bytes_ = pd.src_desc().get_size();
    output_bytes_ = pd.dst_desc().get_size();
    std::vector<Operand> operands{{DNNL_ARG_SRC, Role::source, pd.src_desc()},
                                  {DNNL_ARG_WEIGHTS, Role::weights, pd.weights_desc()},
                                  {DNNL_ARG_DST, Role::output, pd.dst_desc()}};
    if (with_bias) operands.emplace_back(DNNL_ARG_BIAS, Role::bias, bias);
    set<Forward>(Pass::forward, pd, std::move(operands));
    if (part.needs_input_gradient) make_backward_data(operation, pd, any_weights);
    make_backward_weight(operation, pd, any_weights, bias, with_bias);
  }

  template <class Operation, class ForwardDescription>
  void make_backward_data(const Operation& operation, const ForwardDescription& pd, const Md& any_weights) {
    using Primitive = typename Operation::BackwardData;
    const typename Primitive::primitive_desc back(operation.backward_data(pd.src_desc(), any_weights, pd.dst_desc()),
                                                  engine_, pd);
    const Role weights = back.weights_desc() == pd.weights_desc() ? Role::weights : Role::back_weights;
    set<Primitive>(Pass::backward_data, back,
                   {{DNNL_ARG_DIFF_DST, Role::output_gradient, pd.dst_desc()},
                    {DNNL_ARG_WEIGHTS, weights, back.weights_desc()},
                    {DNNL_ARG_DIFF_SRC, Role::source_gradient, pd.src_desc()}});
  }

  template <class Operation, class ForwardDescription>
  void make_backward_weight(const Operation& operation, const ForwardDescription& pd, const Md& any_weights,
                            const Md& bias, bool with_bias) {
    using Primitive = typename Operation::BackwardWeights;
    using Description = typename Primitive::primitive_desc;
    const auto back = prefer<Description>(pd.weights_desc(), any_weights, [&](const Md& md) {
      return Description(operation.backward_weights(pd.src_desc(), md, bias, pd.dst_desc()), engine_, pd);
    });
    std::vector<Operand> operands{{DNNL_ARG_SRC, Role::source, pd.src_desc()},
                                  {DNNL_ARG_DIFF_DST, Role::output_gradient, pd.dst_desc()},
                                  {DNNL_ARG_DIFF_WEIGHTS, Role::weights_gradient, back.diff_weights_desc()}};
    if (with_bias) operands.emplace_back(DNNL_ARG_DIFF_BIAS, Role::bias_gradient, bias);
    set<Primitive>(Pass::backward_weight, back, std::move(operands));
  }

  dnnl::engine engine_;
  std::array<Task, kPasses> tasks_;
  std::size_t source_bytes_ = 0, output_bytes_ = 0;
  bool slow_ = false;  // some pass has but a reference kernel
};

}  // namespace

struct PartTimer::State {
  explicit State(Bytes iteration_bytes)
      : elsewhere(static_cast<std::size_t>(std::min(iteration_bytes.count(), kCacheBytes)) / sizeof(float)) {}

  [[nodiscard]] std::vector<PartPasses> prepare(const std::vector<Layer>& parts) {
    std::vector<PartPasses> passes;
    Sizes sizes{};
    for (const auto& part : parts) {
      passes.push_back(with_context(part.name, [&] { return PartPasses(part, engine); }));
      passes.back().widen(sizes);
    }
    operands.reserve(sizes);
    for (auto& part : passes) part.bind(operands);
    return passes;
  }

  [[nodiscard]] std::array<double, kPasses> run(const PartPasses& part) {
    std::array<double, kPasses> seconds{};
    const auto timed = [&](Pass pass) {
      if (!part.has(pass)) return;
      const auto start = Clock::now();
      part.run(pass, stream);
      seconds[static_cast<std::size_t>(pass)] = std::chrono::duration<double>(Clock::now() - start).count();
    };
    stream_over_caches();
    rewrite(Role::source, part.source_bytes());
    timed(Pass::forward);
    stream_over_caches();
    rewrite(Role::output_gradient, part.output_bytes());
    timed(Pass::backward_data);
    timed(Pass::backward_weight);
    return seconds;
  }

  void stream_over_caches() {
    for (std::size_t i = 0; i < elsewhere.size(); i += kLine / sizeof(float)) elsewhere[i] += 1;
  }

  // As the neighbour does that has just made it; the values keep their size.
  void rewrite(Role role, std::size_t bytes) const {
    float* values = operands.data(role);
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) values[i] = -values[i];
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Operands operands;
  std::vector<float> elsewhere;
};

PartTimer::PartTimer(Bytes iteration_bytes) : state_(std::make_unique<State>(iteration_bytes)) {}

PartTimer::~PartTimer() = default;

std::vector<PartTimer::Times> PartTimer::time(const std::vector<Layer>& parts, int repetitions,
                                              const std::function<void()>& after_round) {
  try {
    const auto passes = state_->prepare(parts);
    std::vector<Times> times(parts.size());
    for (int round = 0; round <= repetitions; ++round) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto seconds = state_->run(passes[i]);
        if (round == 0) continue;  // warming up
        for (std::size_t pass = 0; pass < kPasses; ++pass) {
          if (passes[i].has(static_cast<Pass>(pass))) times[i][pass].seconds.push_back(seconds[pass]);
        }
      }
      after_round();
    }
    return times;
  } catch (const dnnl::error& error) {
    throw model_error(fmt::format("oneDNN: {}", error.what()));
  } catch (const std::bad_alloc&) {
    throw model_error("out of memory");
  }
}

}  // namespace tandem
