// Results as people and files see them: named values with units. The same names are JSON keys and HDF5 columns.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tandem {

using Value = std::variant<std::int64_t, double, std::string>;

struct Field {
  std::string name;  // "iteration_time_s"
  std::string unit;  // "s", "bytes", "1" where there is none
  Value value;
};
using Record = std::vector<Field>;

struct Column {
  std::string name;
  std::string unit;
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
};

// A table of details of one run: "ranks", "layers", "links", "timeline".
struct Table {
  std::string name;
  std::vector<Column> columns;
};

struct RunRecord {
  Record row;  // the same fields in the same order for every run of a file
  std::vector<Table> details;
};

// What the root of a result file says of where it comes from, as name and text: command, options, trace and platform
// hashes, SimGrid's version and settings, code version.
struct Provenance {
  std::vector<std::pair<std::string, std::string>> entries;
};

// Input error, one line, where `path` cannot become a result file: its folder is missing or read-only, or it names
// something that is not a regular file. To be called before hours of simulation, not only after them.
void check_results_path(const std::string& path);

// Writes /runs (one data set a column, row i = run i) and /run/<i>/<table>/<column>; FORMAT.md has the layout. Atomic;
// equal content gives equal bytes. Input error where the file cannot be written; internal error where runs differ in
// their fields, a table's columns in their lengths, or a name cannot be a column's.
void write_results(const std::string& path, const Provenance& provenance, const std::vector<RunRecord>& runs);

}  // namespace tandem
