#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <span>

#include "sim/core/error.hpp"
#include "sim/results/record.hpp"
#include "traces/hdf5_file.hpp"

namespace tandem {
namespace {

constexpr const char* kFormat = "tandem-results";
constexpr std::int64_t kSchemaVersion = 1;

// HDF5 refuses attributes beyond 64 KB less a few bytes of header. Longer provenance goes to /provenance/<name>.
constexpr std::size_t kLongestAttribute = 60'000;

// Names end up as HDF5 paths, JSON keys and Python attributes, and lists of them are joined with blanks.
void check_name(std::string_view what, const std::string& name) {
  const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  if (!good) {
    throw internal_error(fmt::format("results: '{}' cannot name a {}: letters, digits, '_' and '-' only", name, what));
  }
}

void check_names(std::string_view what, std::span<const std::string> names) {
  std::set<std::string_view> seen;
  for (const auto& name : names) {
    check_name(what, name);
    if (!seen.insert(name).second)
      throw internal_error(fmt::format("results: more than one {} is named '{}'", what, name));
  }
}

const std::string& unit_or_one(const std::string& unit) {
  static const std::string one = "1";
  return unit.empty() ? one : unit;
}

void check_same_fields(const std::vector<RunRecord>& runs) {
  const auto& first = runs.front().row;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const auto& row = runs[i].row;
    if (row.size() != first.size()) {
      throw internal_error(fmt::format("results: run {} has {} fields and run 0 has {}", i, row.size(), first.size()));
    }
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (row[k].name != first[k].name || unit_or_one(row[k].unit) != unit_or_one(first[k].unit) ||
          row[k].value.index() != first[k].value.index()) {
        throw internal_error(
            fmt::format("results: field {} of run {} is '{}' [{}] and of run 0 '{}' [{}]: names, units and types must "
                        "be the same in every run",
                        k, i, row[k].name, row[k].unit, first[k].name, first[k].unit));
      }
    }
  }
}

std::string joined(std::span<const std::string> names) {
  return fmt::format("{}", fmt::join(names, " "));
}

template <class T>
void write_field(Hdf5Writer& file, const std::string& name, std::size_t k, const std::vector<RunRecord>& runs) {
  std::vector<T> values;
  values.reserve(runs.size());
  for (const auto& run : runs) values.push_back(std::get<T>(run.row[k].value));
  file.dataset(name, values, unit_or_one(runs.front().row[k].unit), Hdf5Layout::extendible);
}

void write_rows(Hdf5Writer& file, const std::vector<RunRecord>& runs) {
  file.group("/runs");
  std::vector<std::string> names;
  if (!runs.empty()) {
    for (const auto& field : runs.front().row) names.push_back(field.name);
    check_names("field", names);
    check_same_fields(runs);
  }
  file.attribute("/runs", "columns", joined(names));
  file.attribute("/runs", "count", static_cast<std::int64_t>(runs.size()));
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::string path = "/runs/" + names[k];
    const auto write = [&]<class T>(const T&) { write_field<T>(file, path, k, runs); };
    std::visit(write, runs.front().row[k].value);
  }
}

void write_table(Hdf5Writer& file, const std::string& group, const Table& table) {
  std::vector<std::string> names;
  std::set<std::size_t> lengths;
  for (const auto& column : table.columns) {
    names.push_back(column.name);
    lengths.insert(std::visit([](const auto& values) { return values.size(); }, column.values));
  }
  check_names("column", names);
  if (lengths.size() > 1) {
    throw internal_error(
        fmt::format("results: the columns of table '{}' differ in length: {}", table.name, fmt::join(lengths, ", ")));
  }
  file.group(group);
  file.attribute(group, "columns", joined(names));
  for (const auto& column : table.columns) {
    const std::string path = group + "/" + column.name;
    std::visit([&](const auto& values) { file.dataset(path, values, unit_or_one(column.unit)); }, column.values);
  }
}

void write_details(Hdf5Writer& file, const std::vector<RunRecord>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> names;
    for (const auto& table : runs[i].details) names.push_back(table.name);
    check_names("table", names);
    for (const auto& table : runs[i].details) write_table(file, fmt::format("/run/{}/{}", i, table.name), table);
  }
}

void write_provenance(Hdf5Writer& file, const Provenance& provenance) {
  std::vector<std::string> names{"format", "schema_version", "provenance"};
  for (const auto& entry : provenance.entries) names.push_back(entry.first);
  check_names("provenance entry", names);
  names.erase(names.begin(), names.begin() + 3);
  file.attribute("/", "format", kFormat);
  file.attribute("/", "schema_version", kSchemaVersion);
  file.attribute("/", "provenance", joined(names));
  for (const auto& [name, text] : provenance.entries) {
    if (text.size() <= kLongestAttribute) {
      file.attribute("/", name, text);
    } else {
      file.dataset("/provenance/" + name, std::span(&text, 1), "1");
    }
  }
}

}  // namespace

void check_results_path(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw input_error(fmt::format("{}: cannot write: {}", path,
                                  S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file"));
  }
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  if (path.empty() || path.back() == '/') {
    throw input_error(fmt::format("'{}': cannot write: a file name is missing", path));
  }
  if (::stat(folder.c_str(), &info) != 0) {
    throw input_error(errno == ENOENT ? fmt::format("{}: cannot write: there is no folder '{}'", path, folder)
                                      : fmt::format("{}: cannot write: '{}': {}", path, folder, std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode)) throw input_error(fmt::format("{}: cannot write: '{}' is not a folder", path, folder));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw input_error(fmt::format("{}: cannot write in folder '{}': {}", path, folder, std::strerror(errno)));
  }
}

void write_results(const std::string& path, const Provenance& provenance, const std::vector<RunRecord>& runs) {
  check_results_path(path);
  Hdf5Writer file(path);
  write_provenance(file, provenance);
  write_rows(file, runs);
  write_details(file, runs);
  file.commit();
}

}  // namespace tandem
