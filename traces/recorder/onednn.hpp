// The words of oneDNN that the recorder's files share, and the two operations that have weights.
#pragma once

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "sim/core/random.hpp"
#include "traces/trace.hpp"

namespace tandem {

using dnnl::memory;
using Md = memory::desc;
using Args = std::unordered_map<int, memory>;
using Tag = memory::format_tag;
inline constexpr auto kF32 = memory::data_type::f32;

[[nodiscard]] inline float* floats(const memory& m) {
  return static_cast<float*>(m.get_data_handle());
}
[[nodiscard]] inline std::int64_t float_count(const Md& md) {
  return static_cast<std::int64_t>(md.get_size() / sizeof(float));
}
[[nodiscard]] inline memory::dims dims_of(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

// oneDNN counts a dense kernel as dilation 0.
[[nodiscard]] inline memory::dims dilation_of(const Layer& layer) {
  auto dims = dims_of(layer.dilation);
  for (auto& d : dims) --d;
  return dims;
}

[[nodiscard]] inline Tag plain_tag(std::size_t rank) {
  constexpr Tag tags[] = {Tag::undef, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde};
  return tags[rank];
}

// Uniform, with mean 0 and the standard deviation asked for.
void fill_random(float* values, std::int64_t count, double deviation, Random& random);

// Whether only a reference kernel, plain loops, can do it.
template <class Description>
[[nodiscard]] bool is_reference(const Description& description) {
  return std::strstr(description.impl_info_str(), "ref") != nullptr;
}

// A convolution's or product's backward pass in the layout that the update needs, unless only a reference kernel
// can do that.
template <class Description, class Make>
[[nodiscard]] Description prefer(const Md& wanted, const Md& any, Make&& make) {
  try {
    const Description fixed = make(wanted);
    if (!is_reference(fixed)) return fixed;
  } catch (const dnnl::error&) {
  }
  return make(any);
}

// What differs between a convolution and an inner product: their descriptors.
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

[[nodiscard]] inline Convolution convolution_of(const Layer& layer) {
  return {dims_of(layer.stride), dilation_of(layer), dims_of(layer.pad_begin), dims_of(layer.pad_end)};
}

}  // namespace tandem
