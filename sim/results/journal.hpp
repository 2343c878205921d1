// The journal of a sweep: its runs as they end, one checksummed line each, so that a sweep that is killed loses no more
// than the runs under way. The result file is built from it, or from those of all shards. FORMAT.md has the lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/results/record.hpp"

namespace tandem {

// A share of a study's runs: those whose digits in base `count` sum to number - 1, modulo count. Of the first `count`
// runs, the next `count` and so on each shard has one, and a list of the study that repeats every count, or count^2,
// runs is dealt evenly too: with plain dealing one shard might get all runs of 1,024 ranks.
struct StudyShard {
  int number = 1;
  int count = 1;

  [[nodiscard]] static int number_of(std::int64_t run, int count);
  [[nodiscard]] bool has(std::int64_t run) const { return number_of(run, count) == number; }
  // How many of a study's runs.
  [[nodiscard]] std::int64_t share_of(std::int64_t runs) const;
  friend bool operator==(const StudyShard&, const StudyShard&) = default;
};

struct JournalHeader {
  std::string study;      // a hash of the runs' cases, options and levels and of what they read (study_hash)
  std::int64_t runs = 0;  // of the whole study
  StudyShard shard;
  Provenance provenance;  // of the result file
  std::string program;    // a hash of the program that ran them: two builds may compute differently
};

struct JournalEntry {
  std::int64_t run = 0;  // from 0, in the order of the study
  RunRecord record;      // of a failed run: what was known before it began
  std::optional<Error> error;
};

struct JournalContent {
  std::optional<JournalHeader> header;  // nothing: the file is empty, or its first line was never finished
  std::vector<JournalEntry> entries;    // in the order of the file; of two for one run the later one holds
  std::size_t good_bytes = 0;           // of all these lines; what follows is a last line, cut off or damaged
};

// Input error where a text is not UTF-8: JSON cannot hold it. In a failed run's line such bytes are replaced.
[[nodiscard]] std::string journal_line(const JournalHeader& header);
[[nodiscard]] std::string journal_line(const JournalEntry& entry);

// A last line that is cut off or damaged is left out. Input error, with `name` and the line's number, for a damaged
// line before the last, and for any that is sound but of another version, no line of a journal, or of a run that is not
// in the shard.
[[nodiscard]] JournalContent parse_journal(std::string_view bytes, const std::string& name);
// Input error also where a sweep is writing it.
[[nodiscard]] JournalContent read_journal(const std::string& path);

// A journal being written, by one process at a time.
class Journal {
 public:
  // Opens the file, or makes it, and locks it where the file system can. Input error where another process has the
  // lock, or where the file cannot be opened.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // False where the file system knows no locks.
  [[nodiscard]] bool is_locked() const { return locked_; }

  [[nodiscard]] JournalContent read() const;
  void begin(const JournalHeader& header);     // empties it first, and syncs
  void resume(const JournalContent& content);  // cuts off what follows the good lines
  void add(const JournalEntry& entry);
  void sync();    // what was added is on the disk
  void remove();  // nothing may follow

 private:
  void write(const std::string& line);

  std::string path_;
  int file_ = -1;
  bool locked_ = true;
  bool dirty_ = false;
};

// ---- from journals to a result file ----

// Rows in run order, every one with all columns: those of a failed run that it lacks are NaN, 0 or empty. A column
// `error` comes last, empty where a run did not fail. Where all failed nobody knows the columns: an error, of the kind
// of the first run's.
[[nodiscard]] std::vector<RunRecord> to_run_records(std::vector<JournalEntry> entries);

// All entries of the shards of one study, each run once. Input error where they belong to different studies, versions,
// builds or divisions, where one is there twice or has no header, or where runs are missing (with the shards that lack
// them).
[[nodiscard]] std::vector<JournalEntry> join_shards(std::vector<std::pair<std::string, JournalContent>> journals);

// Whether the file is the whole result of this study, by this build (the provenance's study_hash and program_hash),
// without failed runs. False where it is not there.
[[nodiscard]] bool is_result_of(const std::string& path, const JournalHeader& header);
// The same, with or without failed runs.
[[nodiscard]] bool has_rows_of(const std::string& path, const JournalHeader& header);

// Why a journal with this header cannot go on as `wanted`; "" where it can.
[[nodiscard]] std::string difference(const JournalHeader& found, const JournalHeader& wanted);

}  // namespace tandem
