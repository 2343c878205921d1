// The cells of a trace's CSV form (traces/CSV.md), in both directions. Lists are joined with ';', extents with 'x'.
// Inside a list a backslash takes the meaning from ';', ':', blanks at the ends and itself, because names may be any
// text. Whatever is written is read back as the same value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

inline constexpr std::string_view kCsvTraceKey = "tandem_trace";  // metadata of a file that leaves nothing to assume
inline constexpr std::string_view kCsvModelInput = "-";           // in the place of a layer: the model's input

[[nodiscard]] std::string csv_shape(const Shape& shape);                 // "32x3x224x224"; "-" has no extents
[[nodiscard]] std::string csv_shapes(const std::vector<Shape>& shapes);  // "32x64x56x56;32x64x56x56"
[[nodiscard]] std::string csv_window(const std::vector<int>& extents);   // "3x3"; empty: not applicable
[[nodiscard]] std::string csv_samples(const Samples& samples);           // seconds, shortest digits that read back
[[nodiscard]] std::string csv_names(const std::vector<std::string>& names);
[[nodiscard]] std::string csv_parameters(const std::vector<ParameterTensor>& tensors);  // "weight:64x3x7x7;bias:64"

// Nothing where the text is not of this form. No extent is below 1 (in a window: below `least`), no shape has more
// than 32 of them, or one above 2^56.
[[nodiscard]] std::optional<Shape> parse_csv_shape(std::string_view text);
[[nodiscard]] std::optional<std::vector<Shape>> parse_csv_shapes(std::string_view text);
[[nodiscard]] std::optional<std::vector<int>> parse_csv_window(std::string_view text, int least);
// Numbers, finite and not negative, each divided by `per_second` (1000 for milliseconds).
[[nodiscard]] std::optional<Samples> parse_csv_samples(std::string_view text, double per_second);
// The item "-" without a backslash is the model's input.
struct CsvName {
  std::string name;
  bool is_model_input = false;
};
[[nodiscard]] std::vector<CsvName> parse_csv_names(std::string_view text);
[[nodiscard]] std::optional<std::vector<ParameterTensor>> parse_csv_parameters(std::string_view text);

}  // namespace tandem
