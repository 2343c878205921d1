// Tensors of an ONNX model as the importer sees them: shapes, and the values of constants that are lists of whole
// numbers (targets of a Reshape, axes, pads and the arithmetic that leads to them).
#pragma once

#include <importers/onnx.pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/importers/onnx_shapes.hpp"
#include "traces/trace.hpp"

namespace tandem::onnx {

inline constexpr LayerId kModelInput{};
inline constexpr std::int64_t kMostWindow = 1 << 20;  // kernels, strides, pads, dilations

struct Value {
  std::optional<Shape> shape;  // nothing: not known
  bool constant = false;
  std::optional<Numbers> numbers;  // of a constant of whole numbers, in order
  LayerId layer = kModelInput;     // that computes it; kModelInput: an input of the model
  bool needs_gradient = false;     // something above it has parameters
};

// Input error for an impossible shape.
[[nodiscard]] Value value_of(const Tensor& tensor);

// What a node reads, in order; null: left out.
using Inputs = std::vector<const Value*>;
[[nodiscard]] bool has(const Inputs& inputs, std::size_t i);
// Input error where it is missing or not known.
[[nodiscard]] const Shape& shape_of(const Inputs& inputs, std::size_t i);
[[nodiscard]] const std::optional<Numbers>& numbers_of_input(const Inputs& inputs, std::size_t i);

// The name of a standard operator; "" for those of other domains.
[[nodiscard]] std::string_view operator_of(const Node& node);

class Attributes {
 public:
  explicit Attributes(const Node& node) : node_(node) {}

  [[nodiscard]] const Attribute* find(std::string_view name) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    const auto* attribute = find(name);
    return attribute == nullptr ? otherwise : attribute->i();
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto* attribute = find(name);
    return attribute == nullptr ? "" : attribute->s();
  }
  [[nodiscard]] std::optional<Numbers> list(std::string_view name) const {
    const auto* attribute = find(name);
    if (attribute == nullptr) return std::nullopt;
    return Numbers(attribute->ints().begin(), attribute->ints().end());
  }

  // `count` window sizes, all `otherwise` where they are left out.
  [[nodiscard]] std::vector<int> window(std::string_view name, std::size_t count, int otherwise, int least) const;

 private:
  const Node& node_;
};

// The result of a node that reads only constants, or only asks for a shape. Nothing where neither its shape nor its
// value is worth knowing.
[[nodiscard]] std::optional<Value> folded_value(const Node& node, const Inputs& inputs);

}  // namespace tandem::onnx
