// From the entries of journals to the rows of a result file.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "sim/core/text.hpp"
#include "sim/results/journal.hpp"
#include "traces/hdf5_file.hpp"

namespace tandem {
namespace {

std::string entry_of(const Provenance& provenance, const std::string& name) {
  for (const auto& [other, text] : provenance.entries) {
    if (other == name) return text;
  }
  return "";
}

// The value that a failed run's row has for a column of the others': its own where it knows one.
struct Known {
  const Value* own;  // may be null

  [[nodiscard]] Value as(std::int64_t) const {
    std::int64_t number = 0;
    if (own == nullptr) return number;
    if (const auto* whole = std::get_if<std::int64_t>(own)) return *whole;
    const auto* text = std::get_if<std::string>(own);
    if (text == nullptr) return number;
    const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
    return problem == std::errc() && end == text->data() + text->size() ? number : std::int64_t{0};
  }
  [[nodiscard]] Value as(double) const {
    if (own != nullptr && std::holds_alternative<double>(*own)) return *own;
    return std::numeric_limits<double>::quiet_NaN();
  }
  [[nodiscard]] Value as(const std::string&) const {
    return own != nullptr && std::holds_alternative<std::string>(*own) ? *own : Value(std::string());
  }
};

Record completed(const Record& own, const Record& all) {
  Record row;
  for (const auto& column : all) {
    const auto found = std::find_if(own.begin(), own.end(), [&](const auto& f) { return f.name == column.name; });
    const Known known{found == own.end() ? nullptr : &found->value};
    row.push_back(
        {column.name, column.unit, std::visit([&](const auto& value) { return known.as(value); }, column.value)});
  }
  return row;
}

// In run order; of two entries for one run the later one.
std::vector<JournalEntry> in_run_order(std::vector<JournalEntry> entries) {
  std::map<std::int64_t, std::size_t> last;
  for (std::size_t i = 0; i < entries.size(); ++i) last[entries[i].run] = i;
  std::vector<JournalEntry> ordered;
  ordered.reserve(last.size());
  for (const auto& [run, i] : last) ordered.push_back(std::move(entries[i]));
  return ordered;
}

void check_complete(const std::vector<JournalEntry>& entries, const JournalHeader& header) {
  const auto missing = header.runs - static_cast<std::int64_t>(entries.size());
  if (missing == 0) return;
  std::set<std::int64_t> there;
  for (const auto& entry : entries) there.insert(entry.run);
  std::set<std::int64_t> shards;
  for (std::int64_t run = 0; run < header.runs; ++run) {
    if (!there.contains(run)) shards.insert(StudyShard::number_of(run, header.shard.count));
  }
  throw input_error(fmt::format("{} of {} are missing, of shard{} {} of {}", grouped(missing),
                                counted(header.runs, "run"), shards.size() == 1 ? "" : "s", fmt::join(shards, ", "),
                                header.shard.count));
}

}  // namespace

int StudyShard::number_of(std::int64_t run, int count) {
  if (count == 1) return 1;
  std::int64_t digits = 0;
  for (; run > 0; run /= count) digits += run % count;
  return static_cast<int>(digits % count) + 1;
}

std::int64_t StudyShard::share_of(std::int64_t runs) const {
  auto share = runs / count;
  for (auto run = share * count; run < runs; ++run) share += has(run) ? 1 : 0;
  return share;
}

std::string difference(const JournalHeader& found, const JournalHeader& wanted) {
  for (const auto* name : {"tandem_version", "simgrid_version"}) {
    const auto was = entry_of(found.provenance, name);
    const auto is = entry_of(wanted.provenance, name);
    if (was != is) return fmt::format("{} is {} there and {} here", name, was, is);
  }
  if (found.program != wanted.program) return "another build of tandem wrote it";
  if (found.runs != wanted.runs) {
    return fmt::format("it has {}, and this study {}", counted(found.runs, "run"), counted(wanted.runs, "run"));
  }
  if (found.study != wanted.study) {
    return "the options of its runs, the files they read or the fidelity settled for them differ from this study's";
  }
  if (found.shard != wanted.shard) {
    return fmt::format("it is shard {}/{}, and this {}/{}", found.shard.number, found.shard.count, wanted.shard.number,
                       wanted.shard.count);
  }
  return "";
}

bool has_rows_of(const std::string& path, const JournalHeader& header) {
  if (!is_hdf5_file(path)) return false;
  try {
    const Hdf5Reader file(path);
    for (const auto* name : {"study_hash", "program_hash", "tandem_version", "simgrid_version"}) {
      if (file.text_attribute("/", name) != entry_of(header.provenance, name)) return false;
    }
    return true;
  } catch (const Error&) {
    return false;  // another kind of file, or an older one
  }
}

bool is_result_of(const std::string& path, const JournalHeader& header) {
  if (!has_rows_of(path, header)) return false;
  try {
    const auto errors = Hdf5Reader(path).strings("/runs/error");
    return std::all_of(errors.begin(), errors.end(), [](const auto& error) { return error.empty(); });
  } catch (const Error&) {
    return false;
  }
}

std::vector<RunRecord> to_run_records(std::vector<JournalEntry> entries) {
  entries = in_run_order(std::move(entries));
  const auto good = std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return !entry.error; });
  if (good == entries.end() && !entries.empty()) {
    throw Error(entries.front().error->kind(), "every run failed; nothing is written");
  }
  std::vector<RunRecord> runs;
  runs.reserve(entries.size());
  const Record all = entries.empty() ? Record() : good->record.row;
  for (auto& entry : entries) {
    if (entry.error) entry.record = {completed(entry.record.row, all), {}};
    entry.record.row.push_back({"error", "1", std::string(entry.error ? entry.error->what() : "")});
    runs.push_back(std::move(entry.record));
  }
  return runs;
}

std::vector<JournalEntry> join_shards(std::vector<std::pair<std::string, JournalContent>> journals) {
  std::vector<JournalEntry> entries;
  std::map<int, std::string> seen;
  for (auto& [name, content] : journals) {
    if (!content.header) throw input_error(name + ": is empty: its sweep ended before it began");
    const auto& first = *journals.front().second.header;
    auto wanted = first;
    wanted.shard.number = content.header->shard.number;
    const auto reason = difference(*content.header, wanted);
    if (!reason.empty()) {
      throw input_error(fmt::format("{}: does not belong with {}: {}", name, journals.front().first, reason));
    }
    const auto [other, is_new] = seen.emplace(content.header->shard.number, name);
    if (!is_new) {
      throw input_error(fmt::format("{} and {} are both shard {}", other->second, name, content.header->shard.number));
    }
    std::move(content.entries.begin(), content.entries.end(), std::back_inserter(entries));
  }
  entries = in_run_order(std::move(entries));
  if (!journals.empty()) check_complete(entries, *journals.front().second.header);
  return entries;
}

}  // namespace tandem
