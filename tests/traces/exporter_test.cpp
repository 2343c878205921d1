#include <gtest/gtest.h>

#include <set>

#include "sim/core/error.hpp"
#include "tests/traces/sample_trace.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/exporter.hpp"
#include "traces/models/models.hpp"
#include "traces/source_file.hpp"

namespace tandem {
namespace {

using testing::full_trace;
using testing::read_bytes;
using testing::TemporaryFolder;

std::string error_of(auto&& call, ErrorKind kind) {
  try {
    (void)call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

TEST(Exporters, TheExtensionDecides) {
  EXPECT_EQ(exporter_for("a/b.csv"), "csv");
  EXPECT_EQ(exporter_for("B.CSV.gz"), "csv");
  for (const char* path : {"t", "t.gz", "t.xls", "csv", ".csv", "folder.csv/t"}) {
    const auto message = error_of([&] { return exporter_for(path); }, ErrorKind::usage);
    EXPECT_NE(message.find(".csv (csv)"), std::string::npos) << message;
  }
}

// The contract of every exporter: deterministic, owner of its extensions, and frank about what is lost.
TEST(Exporters, EachHasItsOwnExtensionsAndIsDeterministic) {
  std::set<std::string> seen;
  const auto& exporters = Registry<Exporter>::instance();
  for (const auto& name : exporters.names()) {
    SCOPED_TRACE(name);
    const auto exporter = exporters.make(name);
    EXPECT_FALSE(exporter->extensions().empty());
    for (const auto& extension : exporter->extensions()) {
      EXPECT_TRUE(seen.insert(extension).second) << extension;
      EXPECT_EQ(exporter_for("x" + extension), name);
    }
    for (const auto& trace : {full_trace(), build_model("resnet18", 2)}) {
      EXPECT_FALSE(exporter->write(trace).empty());
      EXPECT_EQ(exporter->write(trace), exporters.make(name)->write(trace));
      for (const auto& what : exporter->cannot_carry(trace)) {
        EXPECT_FALSE(what.empty());
        EXPECT_FALSE(what.ends_with(".")) << what;
        EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      }
    }
  }
}

TEST(Exporters, WriteAFileWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const auto done = export_trace(full_trace(), folder.file("t.csv"));
  EXPECT_EQ(done.exporter, "csv");
  EXPECT_EQ(done.bytes, read_bytes(folder.file("t.csv")).size());
  EXPECT_EQ(folder.entries(), 1U);  // no temporary file is left
  (void)export_trace(full_trace(), folder.file("t.csv.gz"));
  EXPECT_NE(read_bytes(folder.file("t.csv.gz")), read_bytes(folder.file("t.csv")));
  EXPECT_EQ(read_source(folder.file("t.csv.gz")).content, read_bytes(folder.file("t.csv")));
  Trace bad = full_trace();
  bad.batch = 0;
  EXPECT_NE(error_of([&] { return export_trace(bad, folder.file("t.csv")); }, ErrorKind::input).find("the batch is 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { return export_trace(full_trace(), folder.file("none/t.csv")); }, ErrorKind::input)
                .find("none/t.csv: cannot write"),
            std::string::npos);
  EXPECT_NE(error_of([&] { return export_trace(full_trace(), folder.file("t.csv"), "cvs"); }, ErrorKind::usage)
                .find("did you mean 'csv'?"),
            std::string::npos);
  EXPECT_EQ(read_source(folder.file("t.csv.gz")).content, read_bytes(folder.file("t.csv")));
  EXPECT_EQ(folder.entries(), 2U);
}

}  // namespace
}  // namespace tandem
