#include "traces/csv_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

constexpr std::size_t kMostExtents = 32;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string escaped(std::string_view name) {
  if (name == kCsvModelInput) return fmt::format("\\{}", name);
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool at_end = i == 0 || i + 1 == name.size();
    if (name[i] == ';' || name[i] == ':' || name[i] == '\\' || (at_end && is_blank(name[i]))) text += '\\';
    text += name[i];
  }
  return text;
}

// Parts between separators that no backslash precedes, still escaped. An empty text has one empty part.
std::vector<std::string_view> split_escaped(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == separator) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string unescaped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  std::string name;
  std::size_t kept = 0;  // up to the last character that is no blank of the list
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool literal = text[i] == '\\' && i + 1 < text.size();
    if (literal) ++i;
    name += text[i];
    if (literal || !is_blank(text[i])) kept = name.size();
  }
  name.resize(kept);
  return name;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  text = trimmed(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "3x3x7"; at least one extent.
template <class Number>
std::optional<std::vector<Number>> parse_extents(std::string_view text, Number least, Number most) {
  std::vector<Number> extents;
  for (const auto part : split_escaped(text, 'x')) {
    const auto value = parse<Number>(part);
    if (!value || *value < least || *value > most || extents.size() == kMostExtents) return std::nullopt;
    extents.push_back(*value);
  }
  return extents;
}

}  // namespace

std::string csv_shape(const Shape& shape) {
  return shape.empty() ? "-" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string csv_shapes(const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes) texts.push_back(csv_shape(shape));
  return fmt::format("{}", fmt::join(texts, ";"));
}

std::string csv_window(const std::vector<int>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

std::string csv_samples(const Samples& samples) {
  return fmt::format("{}", fmt::join(samples.seconds, ";"));
}

std::string csv_names(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const auto& name : names) texts.push_back(escaped(name));
  return fmt::format("{}", fmt::join(texts, ";"));
}

std::string csv_parameters(const std::vector<ParameterTensor>& tensors) {
  std::vector<std::string> texts;
  for (const auto& tensor : tensors) texts.push_back(escaped(tensor.name) + ":" + csv_shape(tensor.shape));
  return fmt::format("{}", fmt::join(texts, ";"));
}

std::optional<Shape> parse_csv_shape(std::string_view text) {
  if (trimmed(text) == "-") return Shape{};
  return parse_extents<std::int64_t>(text, 1, std::int64_t{1} << 56);
}

std::optional<std::vector<Shape>> parse_csv_shapes(std::string_view text) {
  std::vector<Shape> shapes;
  for (const auto part : split_escaped(text, ';')) {
    auto shape = parse_csv_shape(part);
    if (!shape) return std::nullopt;
    shapes.push_back(std::move(*shape));
  }
  return shapes;
}

std::optional<std::vector<int>> parse_csv_window(std::string_view text, int least) {
  return parse_extents<int>(text, least, std::numeric_limits<int>::max());
}

std::optional<Samples> parse_csv_samples(std::string_view text, double per_second) {
  Samples samples;
  for (const auto part : split_escaped(text, ';')) {
    const auto value = parse<double>(part);
    if (!value || !std::isfinite(*value) || *value < 0) return std::nullopt;
    samples.seconds.push_back(*value / per_second);
  }
  return samples;
}

std::vector<CsvName> parse_csv_names(std::string_view text) {
  std::vector<CsvName> names;
  for (const auto part : split_escaped(text, ';')) {
    names.push_back({unescaped(part), trimmed(part) == kCsvModelInput});
  }
  return names;
}

std::optional<std::vector<ParameterTensor>> parse_csv_parameters(std::string_view text) {
  std::vector<ParameterTensor> tensors;
  for (const auto item : split_escaped(text, ';')) {
    const auto parts = split_escaped(item, ':');
    if (parts.size() != 2) return std::nullopt;
    auto shape = parse_csv_shape(parts[1]);
    if (!shape) return std::nullopt;
    tensors.push_back({unescaped(parts[0]), std::move(*shape)});
  }
  return tensors;
}

}  // namespace tandem
