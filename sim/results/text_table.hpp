// Records as text: an aligned table for people, CSV and JSON for programs. Every text ends with a newline.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/results/record.hpp"

namespace tandem {

// A value for people, four significant digits, with the prefix that fits its unit: "s" -> "1.234 ms", "bytes" ->
// "102.2 MB", "bytes/s" -> "12.5 GB/s", "flops/s" -> "15.7 TFLOPS", "1" -> the number alone; any other unit follows
// the number. "-" is not a number.
[[nodiscard]] std::string to_text(const Field& field);

// One line a record under a line of names; columns are those of all records in order of first appearance, "-" where
// a record has none. A unit that stands with the values is dropped from the name ("iteration_time_s" ->
// "iteration_time"). Numbers are aligned to the right, text to the left.
[[nodiscard]] std::string to_table(const std::vector<Record>& records);

// One line a field: what a single record with many fields is read as.
[[nodiscard]] std::string to_list(const Record& record);

// The fields of `names` that the record has, in that order.
[[nodiscard]] Record select(const Record& record, const std::vector<std::string>& names);

// RFC 4180 quoting, lines ended by a line feed; SI units, shortest digits that read back as the same number; empty
// where a record lacks a column.
[[nodiscard]] std::string to_csv(const std::vector<Record>& records);

// Keys are field names; numbers have the shortest digits that read back as the same number, and are null where they
// are not finite. Text that is not UTF-8 has its bad bytes replaced.
[[nodiscard]] nlohmann::ordered_json to_json_value(const Record& record);
[[nodiscard]] std::string to_json(const Record& record);                // an object
[[nodiscard]] std::string to_json(const std::vector<Record>& records);  // an array of objects

}  // namespace tandem
