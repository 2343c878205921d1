// libFuzzer target of one importer (TANDEM_IMPORTER): whatever the bytes are, the importer returns a trace that is
// valid and survives being looked at, or throws Error with one line. Anything else, a crash, a hang or a gigabyte, is a
// defect.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/core/error.hpp"
#include "traces/importer.hpp"

namespace {

[[noreturn]] void fail(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s: '%s'\n", what, text.c_str());
  std::abort();
}

void import(std::string bytes) {
  tandem::SourceFile source{"fuzz", tandem::unpack(std::move(bytes))};
  const auto imported = tandem::import_source(source, TANDEM_IMPORTER);
  tandem::validate(imported.trace);
  for (const auto& entry : imported.report.entries) {
    if (entry.count < 0 || !(entry.time.count() >= 0)) fail("a report that makes no sense", entry.what);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    import(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const tandem::Error& error) {
    const std::string text = error.what();
    if (error.kind() == tandem::ErrorKind::internal) fail("an internal error", text);
    if (text.empty() || text.find('\n') != std::string::npos) fail("not one line", text);
  }
  return 0;
}
