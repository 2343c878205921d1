// Comma-separated text (RFC 4180), read record by record and written: what the readers of tables share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct CsvCell {
  std::string text;  // without its quotes; blanks around a cell without quotes are gone
  bool quoted = false;

  [[nodiscard]] bool blank() const { return text.empty() && !quoted; }
};

struct CsvRecord {
  enum class Kind {
    row,
    comment,   // "# text": one cell, the text
    metadata,  // "# key = cell": the key and the cell
    section,   // "[name]": one cell, the name
  };
  Kind kind = Kind::row;
  int line = 0;  // the first of its lines
  std::vector<CsvCell> cells;
};

// Cells are separated by commas; one in double quotes may hold commas, line ends and doubled quotes. Lines end in a
// line feed, with or without a carriage return; a byte order mark in front is skipped. Beyond the RFC, lines that start
// with '#' or '[' (outside of quotes) are not rows. Input errors name the line: a quote inside a bare cell, text behind
// a closing quote or a section's name, quotes that are never closed.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text);
  // Records in turn; blank ones are skipped. Nothing at the end.
  [[nodiscard]] std::optional<CsvRecord> next();

 private:
  CsvCell cell();
  CsvCell bare_cell();
  CsvCell quoted_cell();
  std::vector<CsvCell> cells();
  void comment(CsvRecord& record);
  void section(CsvRecord& record);

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// The cell as a file shows it: in quotes only where it would be read back differently without.
[[nodiscard]] std::string csv_cell(std::string_view text);
// Cells with commas between and a line feed behind.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& texts);

// What a reader notes of a table whose last line has no end: a cut inside of its last number cannot be told from a
// number.
inline constexpr std::string_view kUnfinishedLine =
    "the last line has no line end: if the file was cut short there, its last number is wrong";

// A part of a file in a message: shortened, in quotes, without control characters.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace tandem
