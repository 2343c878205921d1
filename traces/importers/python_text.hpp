// Values as Python prints them: "[[32, 64, 56, 56], [], True, '<None>', 1e-05]". Profilers keep arguments so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

struct PythonValue {
  enum class Kind { list, integer, other };
  Kind kind = Kind::other;
  std::vector<PythonValue> items;  // of a list
  std::int64_t integer = 0;
  std::string text;  // of anything else: True, 1e-05, <None>

  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  // A list of whole numbers and nothing else.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers() const;
};

// Nothing where the text is not of this form, nested more than 8 deep or longer than 64 KiB.
[[nodiscard]] std::optional<PythonValue> parse_python(std::string_view text);

}  // namespace tandem
