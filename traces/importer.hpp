// The contract of a trace importer: one file each in traces/importers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/registry.hpp"
#include "traces/source_file.hpp"
#include "traces/trace.hpp"

namespace tandem {

// What became of a file's content: every part of it is used, kept apart from compute, or dropped, with how much time
// that is. Nothing disappears unsaid.
struct ImportReport {
  enum class Fate {
    used,   // in the layers' times
    apart,  // in Trace::outside or Trace::collectives
    dropped,
  };
  struct Entry {
    std::string what;        // "kernels of layers", "events of the data loader"
    std::int64_t count = 0;  // how many; 0 where counting makes no sense
    Seconds time{};          // in the whole file; 0 where it has none
    Fate fate = Fate::used;
    std::string why;  // of what is dropped, mostly; may be empty
  };
  std::vector<Entry> entries;
};
[[nodiscard]] std::string_view to_text(ImportReport::Fate fate);

struct Imported {
  Trace trace;
  ImportReport report;
};

class Importer {
 public:
  static constexpr const char* plugin_kind = "importer";
  static constexpr const char* plugin_help = "readers of other tools' traces and profiles";
  struct PluginContext {};

  virtual ~Importer() = default;
  // Whether the content (the first bytes of the file, unpacked, up to 64 KiB) looks like this format.
  [[nodiscard]] virtual bool recognizes(std::string_view head) const = 0;
  // What is assumed goes to Trace::notes, what is used or dropped to the report. Input errors name line or element,
  // not the file. The trace's model may stay empty: it is called after the file then.
  [[nodiscard]] virtual Imported read(const SourceFile& source) const = 0;
};

// Imports with the named importer ("pipedream", with parameters), or where `importer` is empty the one that recognizes
// the content. `parameters` ("clock=1GHz") are added to those of whichever importer that is. Several files are the
// ranks of one run: they must have the same layers, and their samples are pooled.
[[nodiscard]] Imported import_trace(const std::vector<std::string>& paths, const std::string& importer = "",
                                    const std::string& parameters = "");
// The same of what is in memory already.
[[nodiscard]] Imported import_source(const SourceFile& source, const std::string& importer = "",
                                     const std::string& parameters = "");

}  // namespace tandem
