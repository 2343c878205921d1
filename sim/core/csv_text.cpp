#include "sim/core/csv_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostCells = 10'000;  // no table is wider, and a file of commas must not fill memory

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_blank_row(const std::vector<CsvCell>& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const CsvCell& cell) { return cell.blank(); });
}

bool is_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

CsvReader::CsvReader(std::string_view text) : text_(text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
}

CsvCell CsvReader::bare_cell() {
  const auto begin = at_;
  while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') ++at_;
  auto text = text_.substr(begin, at_ - begin);
  const bool ends_line = at_ == text_.size() || text_[at_] == '\n';
  if (ends_line && text.ends_with('\r')) text.remove_suffix(1);
  return {std::string(trimmed(text)), false};
}

CsvCell CsvReader::quoted_cell() {
  const int first = line_;
  CsvCell cell{"", true};
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c != '"') {
      cell.text += c;
      continue;
    }
    if (!text_.substr(at_ + 1).starts_with('"')) break;
    cell.text += text_[++at_];
  }
  if (at_ == text_.size()) throw input_error(fmt::format("line {} opens a quote that is never closed", first));
  ++at_;
  const auto rest = bare_cell();
  if (!rest.text.empty()) {
    throw input_error(fmt::format("line {} has {} behind a closing quote", line_, shown(rest.text)));
  }
  return cell;
}

CsvCell CsvReader::cell() {
  const auto begin = std::min(text_.find_first_not_of(" \t", at_), text_.size());
  if (begin < text_.size() && text_[begin] == '"') {
    at_ = begin;
    return quoted_cell();
  }
  auto bare = bare_cell();
  if (bare.text.find('"') != std::string::npos) {
    throw input_error(fmt::format("line {} has a quote inside the cell {}; a cell with quotes stands in quotes", line_,
                                  shown(bare.text)));
  }
  return bare;
}

// The rest of the line and the line's end.
std::vector<CsvCell> CsvReader::cells() {
  std::vector<CsvCell> all{cell()};
  while (at_ < text_.size() && text_[at_] == ',') {
    if (all.size() == kMostCells) throw input_error(fmt::format("line {} has more than {} cells", line_, kMostCells));
    ++at_;
    all.push_back(cell());
  }
  if (at_ < text_.size()) ++at_;
  ++line_;
  return all;
}

void CsvReader::comment(CsvRecord& record) {
  const auto line = text_.substr(at_, text_.find('\n', at_) - at_);
  const auto equals = line.find('=');
  const auto key = equals == std::string_view::npos ? std::string_view() : trimmed(line.substr(1, equals - 1));
  if (!is_key(key)) {
    record.kind = CsvRecord::Kind::comment;
    record.cells = {{std::string(line.substr(1)), false}};
    at_ = std::min(at_ + line.size() + 1, text_.size());
    ++line_;
    return;
  }
  record.kind = CsvRecord::Kind::metadata;
  at_ += equals + 1;
  auto values = cells();
  const auto value = values.front();
  values.front() = {};
  // A spreadsheet fills the line up to the width of its table.
  if (!is_blank_row(values)) {
    throw input_error(
        fmt::format("line {} has a comma in the value of '{}'; such a value stands in quotes", record.line, key));
  }
  record.cells = {{std::string(key), false}, value};
}

void CsvReader::section(CsvRecord& record) {
  record.kind = CsvRecord::Kind::section;
  auto words = cells();
  const std::string name = words.front().text;
  words.front() = {};
  if (!name.ends_with(']') || !is_blank_row(words)) {
    throw input_error(
        fmt::format("line {} starts with {}; a section is a line such as '[splits]', and a cell that "
                    "starts with '[' stands in quotes",
                    record.line, shown(name)));
  }
  record.cells = {{std::string(trimmed(std::string_view(name).substr(1, name.size() - 2))), false}};
}

std::optional<CsvRecord> CsvReader::next() {
  while (at_ < text_.size()) {
    CsvRecord record;
    record.line = line_;
    const auto begin = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    const char first = begin < text_.size() ? text_[begin] : '\n';
    if (first == '#' || first == '[') {
      at_ = begin;
      first == '#' ? comment(record) : section(record);
      return record;
    }
    record.cells = cells();
    if (!is_blank_row(record.cells)) return record;
  }
  return std::nullopt;
}

std::string csv_cell(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n") == std::string_view::npos && trimmed(text).size() == text.size() &&
                     !text.starts_with('#') && !text.starts_with('[');
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& texts) {
  std::string line;
  for (std::size_t i = 0; i < texts.size(); ++i) line += (i > 0 ? "," : "") + csv_cell(texts[i]);
  if (line.empty()) line = "\"\"";  // a row of one empty cell is not a blank line
  return line + "\n";
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string out(text.substr(0, most));
  // Not in the middle of a character of several bytes.
  if (text.size() > most) {
    while (!out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xC0) == 0x80) out.pop_back();
  }
  for (char& c : out) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return "'" + out + (text.size() > most ? "..." : "") + "'";
}

}  // namespace tandem
