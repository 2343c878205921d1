#include "sim/results/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/core/units.hpp"

namespace tandem {
namespace {

// Four significant digits, without an exponent where the number is still easily read.
std::string plain(double value) {
  const double size = std::abs(value);
  return size >= 1e4 && size < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

bool has_prefixes(const std::string& unit) {
  return unit == "s" || unit == "bytes" || unit == "bytes/s" || unit == "flops/s";
}

std::string number_text(double value, const std::string& unit) {
  if (std::isnan(value)) return "-";
  if (std::isfinite(value)) {
    if (unit == "s") return value == 0 ? "0 s" : to_text(Seconds(value));
    if (unit == "bytes" && std::abs(value) < 9e18) return to_text(Bytes(std::llround(value)));
    if (unit == "bytes/s") return to_text(BytesPerSecond(value));
    if (unit == "flops/s") return to_text(FlopsPerSecond(value));
  }
  return unit.empty() || unit == "1" ? plain(value) : plain(value) + " " + unit;
}

std::string integer_text(std::int64_t value, const std::string& unit) {
  if (unit == "bytes") return to_text(Bytes(value));
  if (has_prefixes(unit)) return number_text(static_cast<double>(value), unit);
  return unit.empty() || unit == "1" ? std::to_string(value) : fmt::format("{} {}", value, unit);
}

// A cell is one line: control characters become blanks.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

// The values carry the unit, so the name need not.
std::string heading(const Field& field) {
  static const std::map<std::string, std::vector<std::string>> kSuffixes{
      {"s", {"_s"}}, {"bytes", {"_bytes"}}, {"bytes/s", {"_bytes_per_s"}}, {"flops/s", {"_flops_per_s"}}};
  const auto found = kSuffixes.find(field.unit);
  if (found == kSuffixes.end()) return field.name;
  for (const auto& suffix : found->second) {
    if (field.name.size() > suffix.size() && field.name.ends_with(suffix)) {
      return field.name.substr(0, field.name.size() - suffix.size());
    }
  }
  return field.name;
}

// Columns a terminal needs: one a code point. (Wide scripts would need more; names here have none.)
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](unsigned char c) { return c >> 6 != 2; }));
}

bool is_text(const Field& field) {
  return std::holds_alternative<std::string>(field.value);
}

const Field* find(const Record& record, const std::string& name) {
  const auto found = std::find_if(record.begin(), record.end(), [&](const Field& f) { return f.name == name; });
  return found == record.end() ? nullptr : &*found;
}

// The first field of each name, in order of first appearance.
std::vector<const Field*> all_columns(const std::vector<Record>& records) {
  std::vector<const Field*> columns;
  std::map<std::string, bool> seen;
  for (const auto& record : records) {
    for (const auto& field : record) {
      if (!std::exchange(seen[field.name], true)) columns.push_back(&field);
    }
  }
  return columns;
}

struct TextColumn {
  bool left = false;
  std::vector<std::string> cells;
};

std::string align(const std::vector<TextColumn>& columns, std::size_t rows) {
  std::vector<std::size_t> widths;
  for (const auto& column : columns) {
    std::size_t width = 0;
    for (const auto& cell : column.cells) width = std::max(width, width_of(cell));
    widths.push_back(width);
  }
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const auto& cell = columns[k].cells[row];
      const std::string blanks(widths[k] - width_of(cell), ' ');
      if (k > 0) line += "  ";
      line += columns[k].left ? cell + blanks : blanks + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string csv_cell(std::string text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_text(const Value& value) {
  return std::visit([](const auto& v) { return csv_cell(fmt::format("{}", v)); }, value);
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_text(const Field& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) return one_line(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&field.value)) return integer_text(*integer, field.unit);
  return number_text(std::get<double>(field.value), field.unit);
}

std::string to_table(const std::vector<Record>& records) {
  std::vector<TextColumn> columns;
  for (const Field* column : all_columns(records)) {
    TextColumn text{is_text(*column), {heading(*column)}};
    for (const auto& record : records) {
      const Field* field = find(record, column->name);
      text.cells.push_back(field == nullptr ? "-" : to_text(*field));
    }
    columns.push_back(std::move(text));
  }
  return columns.empty() ? "" : align(columns, records.size() + 1);
}

std::string to_list(const Record& record) {
  std::vector<TextColumn> columns{{true, {}}, {true, {}}};
  for (const auto& field : record) {
    columns[0].cells.push_back(heading(field));
    columns[1].cells.push_back(to_text(field));
  }
  return align(columns, record.size());
}

Record select(const Record& record, const std::vector<std::string>& names) {
  Record selected;
  for (const auto& name : names) {
    if (const Field* field = find(record, name)) selected.push_back(*field);
  }
  return selected;
}

std::string to_csv(const std::vector<Record>& records) {
  const auto columns = all_columns(records);
  if (columns.empty()) return "";
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (k > 0) text += ',';
      text += cell_of(*columns[k]);
    }
    text += '\n';
  };
  add_line([](const Field& column) { return csv_cell(column.name); });
  for (const auto& record : records) {
    add_line([&](const Field& column) {
      const Field* field = find(record, column.name);
      return field == nullptr ? std::string() : csv_text(field->value);
    });
  }
  return text;
}

nlohmann::ordered_json to_json_value(const Record& record) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& field : record) {
    std::visit([&](const auto& value) { object[field.name] = value; }, field.value);
  }
  return object;
}

std::string to_json(const Record& record) {
  return dump(to_json_value(record));
}

std::string to_json(const std::vector<Record>& records) {
  auto array = nlohmann::ordered_json::array();
  for (const auto& record : records) array.push_back(to_json_value(record));
  return dump(array);
}

}  // namespace tandem
