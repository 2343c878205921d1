// The contract of a trace importer: one file each in traces/importers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/core/registry.hpp"
#include "traces/trace.hpp"

namespace tandem {

class Importer {
 public:
  static constexpr const char* plugin_kind = "importer";
  static constexpr const char* plugin_help = "readers of other tools' traces and profiles";
  struct PluginContext {};

  virtual ~Importer() = default;
  // Whether the content (the first bytes of the file, up to 64 KiB) looks like this format.
  [[nodiscard]] virtual bool recognizes(std::string_view head) const = 0;
  // Reads the whole file; what is dropped or assumed goes to Trace::notes. Input errors name line or element.
  [[nodiscard]] virtual Trace read(const std::string& path) const = 0;
};

// Imports with the named importer ("pipedream", with parameters), or where `importer` is empty the one that recognizes
// the content.
[[nodiscard]] Trace import_trace(const std::string& path, const std::string& importer = "");

}  // namespace tandem
