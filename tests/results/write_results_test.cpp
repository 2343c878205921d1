#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "sim/core/error.hpp"
#include "tests/results/sample_results.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/hdf5_file.hpp"

namespace tandem {
namespace {

using testing::read_bytes;
using testing::sample_provenance;
using testing::sample_run;
using testing::sample_runs;
using testing::TemporaryFolder;

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error;
  }
  ADD_FAILURE() << "no error";
  return internal_error("no error");
}

void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& body) {
  const Error error = error_of(body);
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
}

TEST(WriteResults, ReadsBackColumnByColumn) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5");
  const auto runs = sample_runs();
  write_results(path, sample_provenance(), runs);
  const Hdf5Reader file(path);
  EXPECT_EQ(file.text_attribute("/", "format"), "tandem-results");
  EXPECT_EQ(file.integer_attribute("/", "schema_version"), 1);
  EXPECT_EQ(file.integer_attribute("/runs", "count"), 6);
  EXPECT_EQ(file.members("/runs").size(), runs[0].row.size());
  EXPECT_TRUE(file.text_attribute("/runs", "columns").starts_with("case trace ranks iteration_time_s "));
  EXPECT_EQ(file.integers("/runs/ranks"), (std::vector<std::int64_t>{8, 16, 64, 8, 16, 64}));
  EXPECT_EQ(file.strings("/runs/case")[3], "torus");
  EXPECT_EQ(file.strings("/runs/bottleneck_link")[0], "switch 0 → NIC 3, \"up\"");
  EXPECT_EQ(file.numbers("/runs/iteration_time_s")[1], 0.1 + 0.001 * 16);
  for (const auto& field : runs[0].row) EXPECT_EQ(file.unit("/runs/" + field.name), field.unit) << field.name;
}

TEST(WriteResults, DetailsOfEveryRun) {
  const TemporaryFolder folder;
  auto runs = sample_runs();
  runs[2].details.clear();
  write_results(folder.file("r.h5"), {}, runs);
  const Hdf5Reader file(folder.file("r.h5"));
  EXPECT_EQ(file.members("/run"), (std::vector<std::string>{"0", "1", "3", "4", "5"}));
  EXPECT_EQ(file.text_attribute("/run/5/links", "columns"), "link bytes");
  EXPECT_EQ(file.strings("/run/5/links/link"), (std::vector<std::string>{"a→b", "b→a"}));
  EXPECT_EQ(file.unit("/run/5/links/bytes"), "bytes");
  EXPECT_EQ(file.numbers("/run/0/ranks/compute_time_s"), (std::vector<double>{0.1, 0.099}));
}

TEST(WriteResults, EqualContentGivesEqualBytes) {
  const TemporaryFolder folder;
  write_results(folder.file("a.h5"), sample_provenance(), sample_runs());
  ::sleep(1);  // object times have seconds
  write_results(folder.file("b.h5"), sample_provenance(), sample_runs());
  write_results(folder.file("b.h5"), sample_provenance(), sample_runs());  // over an older file
  EXPECT_EQ(read_bytes(folder.file("a.h5")), read_bytes(folder.file("b.h5")));
  EXPECT_EQ(folder.entries(), 2U);
}

TEST(WriteResults, ProvenanceOfAnyLength) {
  const TemporaryFolder folder;
  Provenance provenance;
  const std::vector<std::size_t> sizes{0, 1, 59'999, 60'000, 60'001, 70'000, 3'000'000};
  for (const auto size : sizes) provenance.entries.emplace_back("size" + std::to_string(size), std::string(size, 'p'));
  write_results(folder.file("r.h5"), provenance, sample_runs());
  const Hdf5Reader file(folder.file("r.h5"));
  for (const auto& [name, text] : provenance.entries) {
    const bool is_long = text.size() > 60'000;
    EXPECT_EQ(file.has("/provenance/" + name), is_long) << name;
    EXPECT_EQ(is_long ? file.strings("/provenance/" + name).at(0) : file.text_attribute("/", name), text) << name;
  }
}

TEST(WriteResults, NoRunsIsAFileWithoutRows) {
  const TemporaryFolder folder;
  write_results(folder.file("r.h5"), {}, {});
  const Hdf5Reader file(folder.file("r.h5"));
  EXPECT_EQ(file.integer_attribute("/runs", "count"), 0);
  EXPECT_TRUE(file.members("/runs").empty());
}

TEST(WriteResults, AbsentUnitIsOneAndNotANumberSurvives) {
  const TemporaryFolder folder;
  write_results(folder.file("r.h5"), {}, {{{{"x", "", std::nan("")}, {"text", "", std::string()}}, {}}});
  const Hdf5Reader file(folder.file("r.h5"));
  EXPECT_EQ(file.unit("/runs/x"), "1");
  EXPECT_TRUE(std::isnan(file.numbers("/runs/x")[0]));
  EXPECT_EQ(file.strings("/runs/text")[0], "");
}

TEST(WriteResults, RunsThatDifferInTheirFieldsAreADefect) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5");
  const auto refuse = [&](const std::string& part, const std::function<void(RunRecord&)>& change) {
    auto runs = sample_runs();
    change(runs[4]);
    expect_error(ErrorKind::internal, part, [&] { write_results(path, {}, runs); });
  };
  refuse("run 4 has 14 fields and run 0 has 15", [](RunRecord& run) { run.row.pop_back(); });
  refuse("field 2 of run 4 is 'rank'", [](RunRecord& run) { run.row[2].name = "rank"; });
  refuse("field 3 of run 4", [](RunRecord& run) { run.row[3].unit = "ms"; });
  refuse("field 2 of run 4", [](RunRecord& run) { run.row[2].value = 8.0; });
  refuse("field 0 of run 4", [](RunRecord& run) { std::swap(run.row[0], run.row[1]); });
  refuse("differ in length: 1, 2",
         [](RunRecord& run) { run.details[0].columns[0].values = std::vector<std::int64_t>{0}; });
  refuse("more than one table is named 'ranks'", [](RunRecord& run) { run.details[1].name = "ranks"; });
  refuse("'a/b' cannot name a column", [](RunRecord& run) { run.details[0].columns[0].name = "a/b"; });
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(WriteResults, NamesThatCannotBeColumnsAreADefect) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5");
  for (const char* name : {"", "a b", "a/b", ".", "größe"}) {
    expect_error(ErrorKind::internal, "cannot name a field", [&] {
      write_results(path, {}, {{{{name, "1", std::int64_t{1}}}, {}}});
    });
  }
  expect_error(ErrorKind::internal, "more than one field is named 'x'", [&] {
    write_results(path, {}, {{{{"x", "1", std::int64_t{1}}, {"x", "1", std::int64_t{1}}}, {}}});
  });
  expect_error(ErrorKind::internal, "more than one provenance entry is named 'format'", [&] {
    write_results(path, {{{"format", "mine"}}}, sample_runs());
  });
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(WriteResults, PlacesThatCannotBeWritten) {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("file"), "x");
  const auto refuse = [](const std::string& path, const std::string& part) {
    expect_error(ErrorKind::input, part, [&] { write_results(path, {}, sample_runs()); });
    expect_error(ErrorKind::input, part, [&] { check_results_path(path); });
  };
  refuse(folder.file("none/r.h5"), "there is no folder '" + folder.file("none") + "'");
  refuse(folder.file("file/r.h5"), "is not a folder");
  refuse(folder.path().string(), "it is a folder");
  refuse(folder.file("none/"), "a file name is missing");
  refuse("", "a file name is missing");
  // Renaming a file over a device would replace the device.
  refuse("/dev/full", "it is not a regular file");
  EXPECT_EQ(folder.entries(), 1U);
}

// In a child without privileges, because root writes everywhere.
TEST(WriteResults, ReadOnlyFolder) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0555);
  const auto write_as_nobody = [&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    try {
      write_results(folder.file("r.h5"), {}, sample_runs());
    } catch (const Error& error) {
      std::cerr << error.what();
      ::_exit(error.exit_status());
    }
    ::_exit(0);
  };
  EXPECT_EXIT(write_as_nobody(), ::testing::ExitedWithCode(1), "r.h5: cannot write in folder '.*': Permission denied");
  EXPECT_EQ(folder.entries(), 0U);
}

// A limit on the size of files fails a write half-way, as a full disk does, and needs no privileges.
TEST(WriteResults, DiskThatFillsUpLeavesTheOldFileAndNoOther) {
  const TemporaryFolder folder;
  const auto path = folder.file("r.h5");
  testing::write_bytes(path, "old");
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{8192, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_results(path, sample_provenance(), sample_runs());
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(message, path + ": cannot write: File too large");
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(WriteResults, TwoThousandRunsWithDetails) {
  const TemporaryFolder folder;
  std::vector<RunRecord> runs(2000, sample_run("torus", 8));
  write_results(folder.file("r.h5"), {}, runs);
  const Hdf5Reader file(folder.file("r.h5"));
  EXPECT_EQ(file.members("/run").size(), 2000U);
  EXPECT_EQ(file.integers("/runs/ranks").size(), 2000U);
  EXPECT_EQ(file.integers("/run/1999/links/bytes")[1], 20);
  EXPECT_LT(read_bytes(folder.file("r.h5")).size(), 2000U * 8192);
}

}  // namespace
}  // namespace tandem
