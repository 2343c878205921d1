// From the operators of a training step, as a profiler saw them run, to the layers of a trace: kinds, shapes, windows,
// parameters and edges. A profile names no module; but the order of execution and the shapes tell which of the
// built-in models ran, and where one did, layers get its names and its edges. Otherwise they are a chain in the order
// of execution, with the branches that shapes give away.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

// An operator of the forward pass with what its backward pass cost. Times in seconds, one a recorded step (empty: not
// measured). What the source does not say stays empty or 0.
struct ObservedOperator {
  std::string name;  // as the source calls it: "aten::conv2d"
  OpKind kind = OpKind::other;
  std::vector<Shape> input_shapes;  // of the activations only, parameters left out; empty: unknown
  Shape output_shape;
  Shape weight;                          // conv [out, in / groups, extents...], fc [out, in]
  std::vector<int> kernel, stride, pad;  // one a spatial dimension; empty: unknown
  int groups = 0;                        // 0: unknown
  bool bias = false;
  // The least and most elements that the output can have, where only a launched kernel's size tells: 0, 0 says nothing.
  std::int64_t least_elements = 0, most_elements = 0;
  std::vector<double> forward, backward_data, backward_weight;
  bool backward_is_joint = false;  // the whole backward time stands in backward_weight
};

// What kind of layer a PyTorch operator is: "aten::conv2d", "aten::cudnn_convolution", ... ; `other` for those that
// are no layer of a CNN by their name.
[[nodiscard]] OpKind kind_of_operator(std::string_view name);
// Whether the operator only looks at a tensor in another way ("aten::view", "aten::t"): it takes no time and is no
// layer. Views may be left out of a sequence.
[[nodiscard]] bool is_view(std::string_view name);

struct SequenceTrace {
  Trace trace;  // layers, batch, model (empty where none matched), notes; the rest is the importer's to fill in
  bool matched = false;       // with a built-in model
  std::vector<int> layer_of;  // the layer of each operator; -1: of none (its time is in no layer)
};

// `operators` in order of execution. `batch` 0: derived from shapes. Input errors: no operators, neither shapes nor a
// built-in model that the sequence of kinds matches, a batch that cannot be derived or contradicts the shapes.
// Several operators may make up one layer (a loss is a log-softmax and what follows); their times add up.
[[nodiscard]] SequenceTrace trace_of_operators(const std::vector<ObservedOperator>& operators, std::int64_t batch = 0);

// Spreads the optimizer's time (one sample a step) over the layers by their share of the parameters.
void spread_update(Trace& trace, const std::vector<double>& seconds);

}  // namespace tandem
