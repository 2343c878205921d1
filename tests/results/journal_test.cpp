// The journal of a sweep: what was written comes back, and no damage goes unnoticed.
#include "sim/results/journal.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "sim/core/random.hpp"
#include "tests/results/sample_results.hpp"
#include "tests/traces/temporary_folder.hpp"

namespace tandem {
namespace {

using testing::read_bytes;
using testing::sample_provenance;
using testing::sample_runs;
using testing::TemporaryFolder;
using testing::write_bytes;

JournalHeader sample_header(StudyShard shard = {}) {
  return {"0123456789abcdef",
          6,
          shard,
          {{{"command", "tandem sweep größe.ini"}, {"tandem_version", "1"}}},
          "fedcba9876543210"};
}

JournalEntry sample_entry(std::int64_t run) {
  return {run, sample_runs()[static_cast<std::size_t>(run)], std::nullopt};
}

JournalEntry failed_entry(std::int64_t run) {
  return {run, {{{"ranks", "1", std::int64_t{7}}, {"case", "1", std::string("torus")}}, {}}, model_error("no memory")};
}

// Six runs, the last one failed.
std::string sample_bytes(StudyShard shard = {}) {
  auto bytes = journal_line(sample_header(shard));
  for (std::int64_t run = 0; run < 6; ++run) {
    if (shard.has(run)) bytes += journal_line(run == 5 ? failed_entry(run) : sample_entry(run));
  }
  return bytes;
}

// Equal lines mean equal content: a line holds all of it.
std::vector<std::string> lines_of(const JournalContent& content) {
  std::vector<std::string> lines;
  if (content.header) lines.push_back(journal_line(*content.header));
  for (const auto& entry : content.entries) lines.push_back(journal_line(entry));
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    return error.what();
  }
  return "";
}

TEST(Journal, ReadsBackWhatWasWritten) {
  const auto bytes = sample_bytes();
  const auto content = parse_journal(bytes, "j");
  EXPECT_EQ(joined(lines_of(content)), bytes);
  EXPECT_EQ(content.good_bytes, bytes.size());
  ASSERT_TRUE(content.header);
  EXPECT_EQ(content.header->runs, 6);
  EXPECT_EQ(content.header->provenance.entries, sample_header().provenance.entries);
  ASSERT_EQ(content.entries.size(), 6U);
  EXPECT_EQ(std::get<std::string>(content.entries[3].record.row[0].value), "torus");
  EXPECT_EQ(content.entries[3].record.details.size(), 2U);
  ASSERT_TRUE(content.entries[5].error);
  EXPECT_EQ(content.entries[5].error->kind(), ErrorKind::model);
  EXPECT_STREQ(content.entries[5].error->what(), "no memory");
}

TEST(Journal, NumbersComeBackExactly) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values{0.0,  -0.0, 0.1,  1.0 / 3,    5e-324, std::numeric_limits<double>::max(),
                                   1e22, inf,  -inf, 123456789.0};
  JournalEntry entry;
  for (std::size_t i = 0; i < values.size(); ++i) entry.record.row.push_back({"v" + std::to_string(i), "s", values[i]});
  entry.record.row.push_back({"nan", "s", std::nan("")});
  entry.record.row.push_back({"least", "1", std::numeric_limits<std::int64_t>::min()});
  entry.record.details.push_back({"t", {{"all", "s", values}, {"none", "1", std::vector<double>{}}}});
  const auto content = parse_journal(journal_line(sample_header()) + journal_line(entry), "j");
  const auto& row = content.entries.at(0).record.row;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::get<double>(row[i].value), values[i]);
    EXPECT_EQ(std::signbit(std::get<double>(row[i].value)), std::signbit(values[i]));
  }
  EXPECT_TRUE(std::isnan(std::get<double>(row[values.size()].value)));
  EXPECT_EQ(std::get<std::int64_t>(row.back().value), std::numeric_limits<std::int64_t>::min());
  const auto& columns = content.entries[0].record.details.at(0).columns;
  EXPECT_EQ(std::get<std::vector<double>>(columns[0].values), values);
  EXPECT_TRUE(std::get<std::vector<double>>(columns[1].values).empty());
}

TEST(Journal, TextThatNoFileCanHoldIsRefused) {
  auto entry = sample_entry(0);
  entry.record.row.push_back({"link", "1", std::string("\xff")});
  EXPECT_NE(error_of([&] { (void)journal_line(entry); }).find("UTF-8"), std::string::npos);
  entry.error = input_error("\xff: cannot be read");  // but it may be the reason of a failure
  EXPECT_NE(journal_line(entry).find("cannot be read"), std::string::npos);
}

// However far the last line got when the power went, the lines before it are there.
TEST(Journal, CutAnywhereItLosesTheLastLineOnly) {
  const auto bytes = sample_bytes();
  const auto lines = lines_of(parse_journal(bytes, "j"));
  for (std::size_t size = 0; size <= bytes.size(); size += size < 2000 || size + 2000 > bytes.size() ? 1 : 7) {
    const auto content = parse_journal(std::string_view(bytes).substr(0, size), "j");
    std::string whole;
    for (const auto& line : lines) {
      if (whole.size() + line.size() > size) break;
      whole += line;
    }
    ASSERT_EQ(joined(lines_of(content)), whole) << "cut at " << size;
    ASSERT_EQ(content.good_bytes, whole.size());
  }
}

// A changed byte is an error with its line, or in the last line (or its end before it) the loss of that.
TEST(Journal, EveryFlippedByteIsNoticed) {
  const auto bytes = sample_bytes();
  const auto lines = lines_of(parse_journal(bytes, "j"));
  const auto last = bytes.size() - lines.back().size();
  Random random(7);
  for (int round = 0; round < 4000; ++round) {
    // Every byte of the last two lines' seam and of the start, and any others.
    const auto at = round < 100   ? last - 50 + static_cast<std::size_t>(round)
                    : round < 300 ? static_cast<std::size_t>(round - 100)
                                  : random.below(static_cast<std::uint32_t>(bytes.size()));
    auto damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1U << random.below(8)));
    JournalContent content;
    const auto message = error_of([&] { content = parse_journal(damaged, "file.journal"); });
    if (!message.empty()) {
      EXPECT_NE(message.find("file.journal: line "), std::string::npos) << message;
      EXPECT_TRUE(at < last || damaged[at] == '\n') << message;
      continue;
    }
    ASSERT_GE(at, last - 1) << "a changed byte at " << at << " went unnoticed";
    const auto kept = lines_of(content);
    ASSERT_EQ(kept.size(), lines.size() - (at == last - 1 ? 2 : 1)) << at;
    ASSERT_TRUE(std::equal(kept.begin(), kept.end(), lines.begin()));
  }
}

TEST(Journal, RandomBytesAreNoJournal) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random.below(300), '\0');
    for (auto& c : bytes) c = random.below(8) == 0 ? '\n' : static_cast<char>(random.below(256));
    const auto message = error_of([&] { EXPECT_FALSE(parse_journal(bytes, "j").header); });
    EXPECT_TRUE(message.empty() || message.find("j: line 1 is damaged") != std::string::npos) << message;
  }
}

TEST(Journal, LinesOfAnotherVersionOrJournalAreRefused) {
  const auto header = journal_line(sample_header());
  const auto entry = journal_line(sample_entry(0));
  EXPECT_NE(error_of([&] { (void)parse_journal(entry + header, "j"); }).find("no line of a journal"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (void)parse_journal(header + header, "j"); }).find("line 2"), std::string::npos);
  EXPECT_NE(error_of([&] {
              (void)parse_journal(journal_line(sample_header({2, 3})) + entry, "j");
            }).find("run 0 is not one of this journal's"),
            std::string::npos);
}

TEST(Journal, GoesOnAfterALineThatWasNeverFinished) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5.journal");
  const auto whole = sample_bytes();
  const auto cut = whole.size() - journal_line(failed_entry(5)).size() / 2;
  write_bytes(path, whole.substr(0, cut));
  {
    Journal journal(path);
    const auto content = journal.read();
    EXPECT_EQ(content.entries.size(), 5U);
    journal.resume(content);
    journal.add(failed_entry(5));
    journal.sync();
  }
  EXPECT_EQ(read_bytes(path), whole);
  EXPECT_EQ(read_journal(path).entries.size(), 6U);
}

TEST(Journal, BeginsAnewAndIsRemoved) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5.journal");
  write_bytes(path, sample_bytes());
  Journal journal(path);
  journal.begin(sample_header());
  journal.add(sample_entry(2));
  journal.sync();
  EXPECT_EQ(read_bytes(path), journal_line(sample_header()) + journal_line(sample_entry(2)));
  journal.remove();
  EXPECT_EQ(folder.entries(), 0U);
}

// Locks are those of a process, so that the other one has to be one. It answers with its exit status.
bool is_refused_elsewhere(const std::function<void()>& body) {
  const auto child = ::fork();
  if (child == 0) {
    const auto message = error_of(body);
    ::_exit(message.find("another sweep is writing it") != std::string::npos ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST(Journal, IsWrittenByOneProcessAtATime) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5.journal");
  const auto write = [&] { Journal second(path); };
  const auto read = [&] { (void)read_journal(path); };
  {
    Journal first(path);
    first.begin(sample_header());
    EXPECT_TRUE(is_refused_elsewhere(write));
    EXPECT_TRUE(is_refused_elsewhere(read));
  }
  EXPECT_FALSE(is_refused_elsewhere(write));
  EXPECT_FALSE(is_refused_elsewhere(read));
}

TEST(Journal, CannotBeAFolderOrMissing) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of([&] { Journal journal(folder.path().string()); }).find("cannot be written"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)read_journal(folder.file("none")); }).find("No such file"), std::string::npos);
}

TEST(RunRecords, FailedRunsHaveEveryColumn) {
  auto runs = to_run_records({failed_entry(5), sample_entry(0)});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].row.back().name, "error");
  EXPECT_EQ(std::get<std::string>(runs[0].row.back().value), "");
  ASSERT_EQ(runs[1].row.size(), runs[0].row.size());
  for (std::size_t k = 0; k < runs[0].row.size(); ++k) {
    EXPECT_EQ(runs[1].row[k].name, runs[0].row[k].name);
    EXPECT_EQ(runs[1].row[k].value.index(), runs[0].row[k].value.index());
  }
  EXPECT_EQ(std::get<std::string>(runs[1].row[0].value), "torus");
  EXPECT_EQ(std::get<std::string>(runs[1].row[1].value), "");
  EXPECT_EQ(std::get<std::int64_t>(runs[1].row[2].value), 7);
  EXPECT_TRUE(std::isnan(std::get<double>(runs[1].row[3].value)));
  EXPECT_EQ(std::get<std::string>(runs[1].row.back().value), "no memory");
  EXPECT_TRUE(runs[1].details.empty());
}

TEST(RunRecords, TheLaterEntryHolds) {
  auto again = sample_entry(5);
  const auto runs = to_run_records({failed_entry(5), sample_entry(0), again});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(std::get<std::string>(runs[1].row.back().value), "");
  EXPECT_EQ(error_of([] { (void)to_run_records({failed_entry(5)}); }), "every run failed; nothing is written");
  EXPECT_TRUE(to_run_records({}).empty());
}

JournalContent shard(int number, int count) {
  return parse_journal(sample_bytes({number, count}), "j");
}

TEST(JoinShards, GivesAllRunsInOrder) {
  const auto joined_entries =
      join_shards({{"c", shard(3, 4)}, {"a", shard(1, 4)}, {"d", shard(4, 4)}, {"b", shard(2, 4)}});
  std::string lines = journal_line(sample_header());
  for (const auto& entry : joined_entries) lines += journal_line(entry);
  EXPECT_EQ(lines, sample_bytes());
}

TEST(JoinShards, RefusesWhatDoesNotBelongTogether) {
  EXPECT_EQ(error_of([] {
              (void)join_shards({{"a", shard(1, 4)}, {"c", shard(3, 4)}});
            }),
            "3 of 6 runs are missing, of shards 2, 4 of 4");
  EXPECT_EQ(error_of([] { (void)join_shards({{"a", shard(1, 2)}, {"b", shard(1, 2)}}); }), "a and b are both shard 1");
  EXPECT_NE(error_of([] {
              (void)join_shards({{"a", shard(1, 2)}, {"b", shard(2, 3)}});
            }).find("does not belong"),
            std::string::npos);
  auto other = shard(2, 2);
  other.header->study = "another";
  EXPECT_NE(error_of([&] {
              (void)join_shards({{"a", shard(1, 2)}, {"b", other}});
            }).find("options of its runs"),
            std::string::npos);
  other.header->program = "another";
  EXPECT_NE(error_of([&] {
              (void)join_shards({{"a", shard(1, 2)}, {"b", other}});
            }).find("another build"),
            std::string::npos);
  other.header->provenance.entries[1].second = "2";
  EXPECT_NE(error_of([&] {
              (void)join_shards({{"a", shard(1, 2)}, {"b", other}});
            }).find("tandem_version is 2"),
            std::string::npos);
  EXPECT_NE(error_of([] { (void)join_shards({{"a", JournalContent()}}); }).find("a: is empty"), std::string::npos);
}

TEST(Shards, ShareAllRunsEvenly) {
  for (const int count : {1, 2, 3, 7}) {
    for (const std::int64_t runs : {0, 1, 6, 7, 20}) {
      std::int64_t sum = 0;
      for (int number = 1; number <= count; ++number) {
        const StudyShard one{number, count};
        std::int64_t own = 0;
        for (std::int64_t run = 0; run < runs; ++run) own += one.has(run) ? 1 : 0;
        EXPECT_EQ(one.share_of(runs), own);
        sum += own;
      }
      EXPECT_EQ(sum, runs);
    }
  }
}

// A list of four sizes that varies fastest, second fastest or slowest: each shard has each size equally often.
TEST(Shards, ShareEverySizeEvenly) {
  for (const std::int64_t stride : {1, 4, 16}) {
    for (int number = 1; number <= 4; ++number) {
      const StudyShard one{number, 4};
      std::array<int, 4> count{};
      for (std::int64_t run = 0; run < 64; ++run) {
        if (one.has(run)) ++count[static_cast<std::size_t>(run / stride % 4)];
      }
      EXPECT_EQ(count, (std::array<int, 4>{4, 4, 4, 4})) << "stride " << stride << ", shard " << number;
    }
  }
}

}  // namespace
}  // namespace tandem
