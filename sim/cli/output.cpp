#include "sim/cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"

namespace tandem {
namespace {

Error output_error() {
  return input_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

// Text of several bytes a character (UTF-8) is as wide as it has characters.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool looks_numeric(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell.front())) != 0 || cell == "-" ||
                           ((cell.front() == '-' || cell.front() == '+') && cell.size() > 1));
}

// Whether all cells under the heading are numbers.
bool is_numeric(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  bool any = false;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (column >= rows[r].size() || rows[r][column].empty()) continue;
    if (!looks_numeric(rows[r][column])) return false;
    any = true;
  }
  return any;
}

}  // namespace

OptionSpec format_option() {
  return {"format", "table|json|csv", "table", "form of the results on standard output", "Output", 0, false, 1};
}

Format format_of(const CommandLine& line) {
  const auto& text = line.text("format");
  if (text == "table") return Format::table;
  if (text == "json") return Format::json;
  if (text == "csv") return Format::csv;
  throw usage_error(fmt::format("--format is '{}'{}", text, suggestion(text, {"table", "json", "csv"})));
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw output_error();
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw output_error();
  if (std::ferror(stdout) != 0) throw input_error("cannot write to standard output");
}

void warn(const std::string& line) {
  if (!line.empty()) fmt::print(stderr, "{}\n", line);
}

void print_records(Format format, const std::vector<Record>& records) {
  switch (format) {
    case Format::json:
      print(to_json(records));
      break;
    case Format::csv:
      print(to_csv(records));
      break;
    case Format::table:
      print(to_table(records));
      break;
  }
}

void check_output(const std::string& path) {
  if (path.empty()) throw usage_error("the output file has no name");
  check_results_path(path);
}

void check_not_an_input(const std::string& output, const std::vector<std::string>& inputs, const std::string& option) {
  for (const auto& input : inputs) {
    std::error_code ignored;  // a file that is not there is no other one
    if (std::filesystem::equivalent(output, input, ignored)) {
      throw usage_error(fmt::format("{} {} is the input: it would be overwritten", option, output));
    }
  }
}

std::string command_text(const std::string& command, const std::vector<std::string>& arguments) {
  static const std::vector<std::string> without{"--output", "--format", "--jobs", "--shard"};
  std::string text = "tandem " + command;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto name = arguments[i].substr(0, arguments[i].find('='));
    if (name == "--resume") continue;  // a flag
    if (name.starts_with("-j")) {      // short for --jobs, its value in this word or in the next
      if (name == "-j") ++i;
    } else if (std::find(without.begin(), without.end(), name) == without.end()) {
      text += " " + arguments[i];
    } else if (name == arguments[i]) {
      ++i;  // its value
    }
  }
  return text;
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::string& indent, bool heading) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::vector<bool> right(widths.size());
  for (std::size_t c = 1; c < widths.size(); ++c) right[c] = heading && is_numeric(rows, c);
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string blanks(widths[c] - width_of(row[c]), ' ');
      if (c > 0) line.append("  ");
      if (right[c]) line.append(blanks);
      line.append(row[c]);
      if (!right[c]) line.append(blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

const Field* find_field(const Record& row, const std::string& name) {
  const auto found = std::find_if(row.begin(), row.end(), [&](const auto& field) { return field.name == name; });
  return found == row.end() ? nullptr : &*found;
}

std::string text_of(const Record& row, const std::string& name) {
  const auto* field = find_field(row, name);
  return field == nullptr ? "" : to_text(*field);
}

double number_of(const Record& row, const std::string& name) {
  const auto* field = find_field(row, name);
  if (field == nullptr) return 0;
  if (const auto* whole = std::get_if<std::int64_t>(&field->value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&field->value)) return *real;
  return 0;
}

}  // namespace tandem
