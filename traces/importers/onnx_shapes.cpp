#include "traces/importers/onnx_shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "sim/core/error.hpp"

namespace tandem::onnx {

std::string clean(std::string_view text) {
  std::string name(text.substr(0, 200));
  for (auto& c : name) c = c < 0x20 || c > 0x7e ? '?' : c;
  return name;
}

std::string text_of(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

Shape checked(Shape shape) {
  if (shape.size() > kMostRank) {
    throw input_error(fmt::format("a result has {} dimensions; at most {} are accepted", shape.size(), kMostRank));
  }
  std::int64_t count = 1;
  for (const auto extent : shape) {
    if (extent < 1 || __builtin_mul_overflow(count, extent, &count) || count > kMostElements) {
      throw input_error(fmt::format("a result has the impossible shape {}", text_of(shape)));
    }
  }
  return shape;
}

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    throw input_error(fmt::format("axis {} does not exist in {} dimensions", axis, rank));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<std::size_t> axes_of(const Numbers& axes, std::size_t rank) {
  if (axes.size() > kMostRank) throw input_error(fmt::format("{} axes are given", axes.size()));
  std::vector<std::size_t> result;
  for (const auto axis : axes) result.push_back(axis_of(axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) throw input_error("an axis is given twice");
  return result;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto at = [&](const Shape& s) { return i < s.size() ? s[s.size() - 1 - i] : std::int64_t{1}; };
    if (at(a) != at(b) && at(a) != 1 && at(b) != 1) {
      throw input_error(fmt::format("shapes {} and {} do not go together", text_of(a), text_of(b)));
    }
    result[result.size() - 1 - i] = at(a) == 1 ? at(b) : at(a);
  }
  return result;
}

Shape reshaped(const Shape& from, Numbers target, bool zero_is_zero) {
  if (target.size() > kMostRank) throw input_error(fmt::format("the new shape has {} dimensions", target.size()));
  std::int64_t known = 1;
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_is_zero && i < from.size()) target[i] = from[i];
    if (target[i] == -1 && !inferred) {
      inferred = i;
    } else if (target[i] < 1 || __builtin_mul_overflow(known, target[i], &known)) {
      throw input_error(fmt::format("the new shape {} is impossible", text_of(target)));
    }
  }
  const auto count = elements(from);
  if (inferred) {
    if (count % known != 0) throw input_error(fmt::format("{} elements do not fill {}", count, text_of(target)));
    target[*inferred] = count / known;
  } else if (known != count) {
    throw input_error(fmt::format("{} elements do not fill {}", count, text_of(target)));
  }
  return target;
}

Shape squeezed(const Shape& from, const std::optional<Numbers>& axes) {
  std::vector<std::size_t> removed;
  if (axes) {
    removed = axes_of(*axes, from.size());
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 1) removed.push_back(i);
    }
  }
  Shape result;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!std::binary_search(removed.begin(), removed.end(), i)) {
      result.push_back(from[i]);
    } else if (from[i] != 1) {
      throw input_error(fmt::format("axis {} of {} has an extent other than 1", i, text_of(from)));
    }
  }
  return result;
}

Shape unsqueezed(const Shape& from, const Numbers& axes) {
  const auto added = axes_of(axes, from.size() + axes.size());
  Shape result;
  auto next = from.begin();
  for (std::size_t i = 0; i < from.size() + axes.size(); ++i) {
    result.push_back(std::binary_search(added.begin(), added.end(), i) ? 1 : *next++);
  }
  return result;
}

Shape transposed(const Shape& from, const std::optional<Numbers>& order) {
  if (!order) return {from.rbegin(), from.rend()};
  if (order->size() != from.size()) throw input_error("the permutation has another number of dimensions");
  (void)axes_of(*order, from.size());
  Shape result;
  for (const auto axis : *order) result.push_back(from[axis_of(axis, from.size())]);
  return result;
}

std::int64_t slice_extent(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) throw input_error("a slice has a step of 0");
  const auto from_end = [&](std::int64_t at) { return at < 0 ? at + extent : at; };
  if (step > 0) {
    start = std::clamp<std::int64_t>(from_end(start), 0, extent);
    end = std::clamp<std::int64_t>(from_end(end), 0, extent);
    return start < end ? (end - start - 1) / step + 1 : 0;
  }
  start = std::clamp<std::int64_t>(from_end(start), 0, extent - 1);
  end = std::clamp<std::int64_t>(end < 0 ? end + extent : end, -1, extent - 1);
  return start > end ? (start - end - 1) / -step + 1 : 0;
}

}  // namespace tandem::onnx
