#include "traces/importers/onnx_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.hpp"

namespace tandem::onnx {
namespace {

constexpr std::int64_t kMostNumbers = 64;  // of a constant whose value is kept; shapes, axes and pads have fewer

Value constant_of(Numbers numbers, Shape shape) {
  Value value;
  value.constant = true;
  value.shape = std::move(shape);
  value.numbers = std::move(numbers);
  return value;
}

Value vector_of(Numbers numbers) {
  const auto count = static_cast<std::int64_t>(numbers.size());
  return constant_of(std::move(numbers), {count});
}

// Little-endian, as the format says.
template <class Number>
std::optional<Numbers> unpack_numbers(std::string_view bytes, std::int64_t count) {
  if (static_cast<std::int64_t>(bytes.size()) != count * static_cast<std::int64_t>(sizeof(Number))) return std::nullopt;
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t b = sizeof(Number); b-- > 0;) {
      bits = bits << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i) * sizeof(Number) + b]);
    }
    numbers.push_back(static_cast<Number>(bits));
  }
  return numbers;
}

constexpr int kInt32 = 6;
constexpr int kInt64 = 7;

std::optional<Numbers> numbers_of(const Tensor& tensor, std::int64_t count) {
  if (tensor.data_type() == kInt64) {
    if (tensor.int64_data_size() == count) return Numbers(tensor.int64_data().begin(), tensor.int64_data().end());
    return unpack_numbers<std::int64_t>(tensor.raw_data(), count);
  }
  if (tensor.data_type() == kInt32) {
    if (tensor.int32_data_size() == count) return Numbers(tensor.int32_data().begin(), tensor.int32_data().end());
    return unpack_numbers<std::int32_t>(tensor.raw_data(), count);
  }
  return std::nullopt;
}

std::optional<Value> constant_value(const Attributes& attributes) {
  if (const auto* tensor = attributes.find("value"); tensor != nullptr) return value_of(tensor->t());
  if (const auto* number = attributes.find("value_int"); number != nullptr) return constant_of({number->i()}, {});
  if (auto numbers = attributes.list("value_ints")) return vector_of(std::move(*numbers));
  return std::nullopt;
}

Value shape_value(std::string_view op, const Attributes& attributes, const Inputs& inputs) {
  const Shape& shape = shape_of(inputs, 0);
  if (op == "Size") return constant_of({elements(checked(shape))}, {});
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto at = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const auto begin = at(attributes.integer("start", 0));
  const auto end = std::max(begin, at(attributes.integer("end", rank)));
  return vector_of({shape.begin() + begin, shape.begin() + end});
}

std::optional<Value> sliced(const Numbers& all, const Inputs& inputs) {
  const auto& ends = numbers_of_input(inputs, 2);
  const auto& steps = numbers_of_input(inputs, 4);
  if (!ends || ends->size() != 1 || (steps && *steps != Numbers{1})) return std::nullopt;
  const auto size = static_cast<std::int64_t>(all.size());
  const auto at = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  const auto begin = at(inputs[1]->numbers->front());
  const auto end = std::max(begin, at(ends->front()));
  return vector_of({all.begin() + begin, all.begin() + end});
}

std::optional<Value> arithmetic(std::string_view op, const Numbers& a, const Numbers& b, const Inputs& inputs) {
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return std::nullopt;
  Numbers result;
  for (std::size_t i = 0; i < (a.empty() || b.empty() ? 0 : std::max(a.size(), b.size())); ++i) {
    const auto x = a[a.size() == 1 ? 0 : i];
    const auto y = b[b.size() == 1 ? 0 : i];
    std::int64_t z = 0;
    bool overflow = false;
    if (op == "Mul") {
      overflow = __builtin_mul_overflow(x, y, &z);
    } else if (op == "Add") {
      overflow = __builtin_add_overflow(x, y, &z);
    } else if (op == "Sub") {
      overflow = __builtin_sub_overflow(x, y, &z);
    } else if (op == "Div" && y > 0) {
      z = x / y;
    } else {
      return std::nullopt;
    }
    if (overflow) throw input_error("the arithmetic on shapes overflows");
    result.push_back(z);
  }
  return constant_of(std::move(result), a.size() >= b.size() ? *inputs[0]->shape : inputs[1]->shape.value_or(Shape{}));
}

// The arithmetic on shapes that exporters leave in a graph.
std::optional<Value> folded_numbers(std::string_view op, const Inputs& inputs) {
  if (op == "Concat") {
    Numbers all;
    for (const auto* input : inputs) {
      if (input == nullptr || !input->numbers || all.size() > kMostNumbers) return std::nullopt;
      all.insert(all.end(), input->numbers->begin(), input->numbers->end());
    }
    return vector_of(std::move(all));
  }
  const auto& first = inputs[0]->numbers;
  if (!first) return std::nullopt;
  if (op == "Squeeze") return constant_of(*first, first->size() == 1 ? Shape{} : *inputs[0]->shape);
  if (op == "Unsqueeze" || op == "Reshape") return vector_of(*first);
  const auto& second = numbers_of_input(inputs, 1);
  if (!second) return std::nullopt;
  const bool vector = inputs[0]->shape->size() == 1;
  if (op == "Gather" && vector && inputs[1]->shape) {
    Numbers picked;
    for (const auto index : *second) picked.push_back((*first)[axis_of(index, first->size())]);
    return constant_of(std::move(picked), *inputs[1]->shape);
  }
  if (op == "Slice" && vector && second->size() == 1) return sliced(*first, inputs);
  return arithmetic(op, *first, *second, inputs);
}

}  // namespace

Value value_of(const Tensor& tensor) {
  Value value;
  value.constant = true;
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  if (shape.size() > kMostRank) {
    throw input_error(fmt::format("tensor '{}' has {} dimensions; at most {} are accepted", clean(tensor.name()),
                                  shape.size(), kMostRank));
  }
  std::int64_t count = 1;
  for (const auto extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kMostElements) {
      throw input_error(fmt::format("tensor '{}' has the impossible shape {}", clean(tensor.name()), text_of(shape)));
    }
  }
  value.shape = std::move(shape);
  if (count <= kMostNumbers) value.numbers = numbers_of(tensor, count);
  return value;
}

const Shape& shape_of(const Inputs& inputs, std::size_t i) {
  if (i >= inputs.size() || inputs[i] == nullptr) throw input_error(fmt::format("its input {} is missing", i));
  if (!inputs[i]->shape) throw input_error(fmt::format("the shape of its input {} is not known", i));
  return *inputs[i]->shape;
}
bool has(const Inputs& inputs, std::size_t i) {
  return i < inputs.size() && inputs[i] != nullptr;
}
const std::optional<Numbers>& numbers_of_input(const Inputs& inputs, std::size_t i) {
  static const std::optional<Numbers> nothing;
  return has(inputs, i) ? inputs[i]->numbers : nothing;
}

std::string_view operator_of(const Node& node) {
  return node.domain().empty() || node.domain() == "ai.onnx" ? std::string_view(node.op_type()) : "";
}

std::vector<int> Attributes::window(std::string_view name, std::size_t count, int otherwise, int least) const {
  const auto values = list(name);
  if (!values) return std::vector<int>(count, otherwise);
  if (values->size() != count) {
    throw input_error(fmt::format("'{}' has {} values where {} are expected", name, values->size(), count));
  }
  std::vector<int> result;
  for (const auto value : *values) {
    if (value < least || value > kMostWindow) {
      throw input_error(fmt::format("'{}' has a value of {}; {} to {} are accepted", name, value, least, kMostWindow));
    }
    result.push_back(static_cast<int>(value));
  }
  return result;
}

std::optional<Value> folded_value(const Node& node, const Inputs& inputs) {
  const std::string_view op = operator_of(node);
  const Attributes attributes(node);
  if (op == "Constant") return constant_value(attributes);
  if (op == "Shape" || op == "Size") return shape_value(op, attributes, inputs);
  if (!has(inputs, 0)) return std::nullopt;
  if (op == "Identity" || op == "Cast") return *inputs[0];
  if (!inputs[0]->shape) return std::nullopt;
  if (op == "Transpose") {
    Value value;
    value.constant = true;
    value.shape = transposed(*inputs[0]->shape, attributes.list("perm"));
    return value;
  }
  return folded_numbers(op, inputs);
}

}  // namespace tandem::onnx
