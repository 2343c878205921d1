// Shapes of results by the formulas of ONNX's operators. Every function throws an input error for what is impossible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem::onnx {

using Numbers = std::vector<std::int64_t>;

inline constexpr std::size_t kMostRank = 8;
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;  // as in validate()

// A name as it may stand in a trace and in a message.
[[nodiscard]] std::string clean(std::string_view text);
[[nodiscard]] std::string text_of(const Shape& shape);

// `shape`, if its extents are at least 1 and its elements no more than a trace can hold.
[[nodiscard]] Shape checked(Shape shape);

// An axis of a tensor of `rank` dimensions, negative ones counted from the end; several of them, in rising order.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);
[[nodiscard]] std::vector<std::size_t> axes_of(const Numbers& axes, std::size_t rank);

// NumPy's rule: aligned at the end, extents of 1 stretch.
[[nodiscard]] Shape broadcast(const Shape& a, const Shape& b);
// -1 is inferred; 0 keeps the extent of `from`, unless `zero_is_zero`.
[[nodiscard]] Shape reshaped(const Shape& from, Numbers target, bool zero_is_zero);
// Without those axes, or without all of extent 1.
[[nodiscard]] Shape squeezed(const Shape& from, const std::optional<Numbers>& axes);
[[nodiscard]] Shape unsqueezed(const Shape& from, const Numbers& axes);
// Reversed where there is no order.
[[nodiscard]] Shape transposed(const Shape& from, const std::optional<Numbers>& order);
[[nodiscard]] std::int64_t slice_extent(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step);

}  // namespace tandem::onnx
