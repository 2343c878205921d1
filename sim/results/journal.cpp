#include "sim/results/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr std::size_t kChecksumDigits = 8;

// ---- values as JSON: [name, unit, "i" | "r" | "t", value]; JSON has no NaN and no infinities ----

json to_json_value(std::int64_t value) {
  return value;
}
json to_json_value(const std::string& value) {
  return value;
}
json to_json_value(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

template <class T>
T from_json_value(const json& j) {
  if constexpr (std::is_same_v<T, double>) {
    if (j.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (j.is_string()) return (j == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
  }
  return j.get<T>();
}

template <class T>
std::vector<T> values_from_json(const json& j) {
  std::vector<T> values;
  values.reserve(j.size());
  for (const auto& value : j) values.push_back(from_json_value<T>(value));
  return values;
}

constexpr const char* kTypes[] = {"i", "r", "t"};  // in the order of Value's alternatives

json to_json(const Field& field) {
  return {field.name, field.unit, kTypes[field.value.index()],
          std::visit([](const auto& value) { return to_json_value(value); }, field.value)};
}

json to_json(const Column& column) {
  auto values = json::array();
  std::visit(
      [&](const auto& all) {
        for (const auto& value : all) values.push_back(to_json_value(value));
      },
      column.values);
  return {column.name, column.unit, kTypes[column.values.index()], std::move(values)};
}

json to_json(const Table& table) {
  auto columns = json::array();
  for (const auto& column : table.columns) columns.push_back(to_json(column));
  return {table.name, std::move(columns)};
}

Field field_from(const json& j) {
  Field field{j.at(0), j.at(1), {}};
  const auto type = j.at(2).get<std::string>();
  const auto& value = j.at(3);
  if (type == "i") {
    field.value = value.get<std::int64_t>();
  } else if (type == "r") {
    field.value = from_json_value<double>(value);
  } else {
    field.value = value.get<std::string>();
  }
  return field;
}

Column column_from(const json& j) {
  Column column{j.at(0), j.at(1), {}};
  const auto type = j.at(2).get<std::string>();
  const auto& values = j.at(3);
  if (type == "i") {
    column.values = values_from_json<std::int64_t>(values);
  } else if (type == "r") {
    column.values = values_from_json<double>(values);
  } else {
    column.values = values_from_json<std::string>(values);
  }
  return column;
}

JournalHeader header_from(const json& j) {
  JournalHeader header{j.at("study"), j.at("runs"), {j.at("shard").at(0), j.at("shard").at(1)}, {}, j.at("program")};
  for (const auto& entry : j.at("provenance")) header.provenance.entries.emplace_back(entry.at(0), entry.at(1));
  return header;
}

JournalEntry entry_from(const json& j) {
  JournalEntry entry;
  entry.run = j.at("run");
  for (const auto& field : j.at("row")) entry.record.row.push_back(field_from(field));
  for (const auto& table : j.at("details")) {
    entry.record.details.push_back({table.at(0), {}});
    for (const auto& column : table.at(1)) entry.record.details.back().columns.push_back(column_from(column));
  }
  if (j.contains("error")) {
    entry.error = Error(static_cast<ErrorKind>(j.at("error").at(0).get<int>()), j.at("error").at(1));
  }
  return entry;
}

// ---- lines: checksum, blank, JSON ----

std::string checksum(std::string_view text) {
  const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  return fmt::format("{:08x}", sum);
}

std::string line_of(const json& j, json::error_handler_t not_utf8 = json::error_handler_t::strict) {
  try {
    const auto text = j.dump(-1, ' ', false, not_utf8);
    return checksum(text) + " " + text + "\n";
  } catch (const json::exception&) {
    throw input_error("a text in the results is not UTF-8");
  }
}

// The JSON text of a line without its end, or nothing where the line is damaged.
std::optional<std::string_view> checked(std::string_view line) {
  if (line.size() <= kChecksumDigits || line[kChecksumDigits] != ' ') return std::nullopt;
  const auto text = line.substr(kChecksumDigits + 1);
  if (line.substr(0, kChecksumDigits) != checksum(text)) return std::nullopt;
  return text;
}

void take_line(std::string_view text, JournalContent& content) {
  const auto j = json::parse(text);
  if (content.header) {
    content.entries.push_back(entry_from(j));
    const auto& header = *content.header;
    const auto run = content.entries.back().run;
    if (run < 0 || run >= header.runs || !header.shard.has(run)) {
      throw input_error(fmt::format("run {} is not one of this journal's", run));
    }
    return;
  }
  const int version = j.at("tandem-journal");
  if (version != kFormatVersion) {
    throw input_error(fmt::format("journal version {}; this program reads version {}", version, kFormatVersion));
  }
  content.header = header_from(j);
}

Error system_error(const std::string& path, const char* what) {
  return input_error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

std::string read_all(int file, const std::string& path) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const auto count = ::pread(file, buffer, sizeof buffer, static_cast<off_t>(bytes.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(path, "cannot be read");
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
  }
}

// Locks of fcntl belong to the process: forked runs do not hold them, and they end with it, however it ends.
enum class Lock { taken, held_by_another, unknown };
Lock lock(int file, short type) {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file, F_SETLK, &whole) == 0) return Lock::taken;
  return errno == EACCES || errno == EAGAIN ? Lock::held_by_another : Lock::unknown;
}

Error in_use(const std::string& path) {
  return input_error(fmt::format("{}: another sweep is writing it", path));
}

bool is_same_file(int file, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

void sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto folder = slash == std::string::npos ? std::string(".") : path.substr(0, slash + 1);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

std::string journal_line(const JournalHeader& header) {
  auto provenance = json::array();
  for (const auto& [name, text] : header.provenance.entries) provenance.push_back({name, text});
  return line_of({{"tandem-journal", kFormatVersion},
                  {"study", header.study},
                  {"runs", header.runs},
                  {"program", header.program},
                  {"shard", {header.shard.number, header.shard.count}},
                  {"provenance", std::move(provenance)}});
}

std::string journal_line(const JournalEntry& entry) {
  json j{{"run", entry.run}, {"row", json::array()}, {"details", json::array()}};
  for (const auto& field : entry.record.row) j["row"].push_back(to_json(field));
  for (const auto& table : entry.record.details) j["details"].push_back(to_json(table));
  if (!entry.error) return line_of(j);
  j["error"] = {static_cast<int>(entry.error->kind()), entry.error->what()};
  return line_of(j, json::error_handler_t::replace);  // that a name is not UTF-8 may be what went wrong
}

JournalContent parse_journal(std::string_view bytes, const std::string& name) {
  JournalContent content;
  for (std::int64_t number = 1; content.good_bytes < bytes.size(); ++number) {
    const auto end = bytes.find('\n', content.good_bytes);
    if (end == std::string_view::npos) break;
    const auto text = checked(bytes.substr(content.good_bytes, end - content.good_bytes));
    if (!text && end + 1 == bytes.size()) break;
    const auto where = fmt::format("{}: line {}", name, number);
    if (!text) {
      throw input_error(fmt::format("{} is damaged: {}", where,
                                    number == 1 ? "this is no journal of a sweep, or it cannot be used any more"
                                                : "take the line away, and --resume runs again what it held"));
    }
    try {
      with_context(where, [&] { take_line(*text, content); });
    } catch (const json::exception&) {
      throw input_error(where + ": its checksum is right, but it is no line of a journal");
    }
    content.good_bytes = end + 1;
  }
  return content;
}

JournalContent read_journal(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw system_error(path, "cannot be read");
  std::string bytes;
  const bool busy = lock(file, F_RDLCK) == Lock::held_by_another;
  try {
    if (!busy) bytes = read_all(file, path);
  } catch (const Error&) {
    ::close(file);
    throw;
  }
  ::close(file);
  if (busy) throw in_use(path);
  return parse_journal(bytes, path);
}

Journal::Journal(std::string path) : path_(std::move(path)) {
  for (;;) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) throw system_error(path_, "cannot be written");
    const auto state = lock(file_, F_WRLCK);
    if (state == Lock::held_by_another) {
      ::close(file_);
      throw in_use(path_);
    }
    locked_ = state == Lock::taken;
    // The sweep that had it may have ended, and removed the file, between opening and locking.
    if (is_same_file(file_, path_)) return;
    ::close(file_);
  }
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

JournalContent Journal::read() const {
  return parse_journal(read_all(file_, path_), path_);
}

void Journal::begin(const JournalHeader& header) {
  const auto line = journal_line(header);
  if (::ftruncate(file_, 0) != 0) throw system_error(path_, "cannot be emptied");
  ::lseek(file_, 0, SEEK_SET);
  write(line);
  sync();
  sync_folder_of(path_);
}

void Journal::resume(const JournalContent& content) {
  const auto size = static_cast<off_t>(content.good_bytes);
  if (::ftruncate(file_, size) != 0) throw system_error(path_, "cannot be cut");
  ::lseek(file_, size, SEEK_SET);
}

void Journal::add(const JournalEntry& entry) {
  write(journal_line(entry));
}

void Journal::write(const std::string& line) {
  const char* data = line.data();
  std::size_t left = line.size();
  while (left > 0) {
    const auto written = ::write(file_, data, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error(path_, "cannot be written");
    data += written;
    left -= static_cast<std::size_t>(written);
  }
  dirty_ = true;
}

void Journal::sync() {
  if (!dirty_) return;
  if (::fsync(file_) != 0) throw system_error(path_, "cannot be written");
  dirty_ = false;
}

void Journal::remove() {
  ::unlink(path_.c_str());
}

}  // namespace tandem
