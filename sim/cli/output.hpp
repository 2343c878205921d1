// What every subcommand does with its results: print them, in one of three forms, and check files to be written.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "sim/results/record.hpp"

namespace tandem {

enum class Format { table, json, csv };

// "--format table|json|csv".
[[nodiscard]] OptionSpec format_option();
[[nodiscard]] Format format_of(const CommandLine& line);

// To standard output. Input error where it cannot be written.
void print(const std::string& text);
void flush_output();
// A line on standard error; nothing where it is empty.
void warn(const std::string& line);
// As one JSON array, as CSV or as a table.
void print_records(Format format, const std::vector<Record>& records);

// Input error, before any work is done, where a file of this name could not be written.
void check_output(const std::string& path);
// Usage error where the output is one of the files read, under whatever name: it would be overwritten.
void check_not_an_input(const std::string& output, const std::vector<std::string>& inputs,
                        const std::string& option = "--output");

// A text of the command that made a file, without options that have no influence on the file's content.
[[nodiscard]] std::string command_text(const std::string& command, const std::vector<std::string>& arguments);

// Cells in columns as wide as their widest cell. Where the first row is a heading, columns of numbers are flush right.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::string& indent = "",
                                  bool heading = true);

// The field of this name, or nothing.
[[nodiscard]] const Field* find_field(const Record& row, const std::string& name);
// The field as people read it ("12.34 ms"), "" where there is none; as a number, 0 where there is none.
[[nodiscard]] std::string text_of(const Record& row, const std::string& name);
[[nodiscard]] double number_of(const Record& row, const std::string& name);

}  // namespace tandem
