// The contract of a trace exporter: one file each in traces/exporters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/registry.hpp"
#include "traces/trace.hpp"

namespace tandem {

class Exporter {
 public:
  static constexpr const char* plugin_kind = "exporter";
  static constexpr const char* plugin_help = "writers of other tools' trace formats";
  struct PluginContext {};

  virtual ~Exporter() = default;
  // How names of such files end, each with its dot and in lower case: ".csv". No two exporters share one.
  [[nodiscard]] virtual std::vector<std::string> extensions() const = 0;
  // The whole file. The trace is valid. Equal traces give equal bytes. Input errors name layer and field.
  [[nodiscard]] virtual std::string write(const Trace& trace) const = 0;
  // What of this very trace the format has no place for, one sentence each without full stop ("split curves of 53
  // layers"). Empty where reading the file back gives the same trace.
  [[nodiscard]] virtual std::vector<std::string> cannot_carry(const Trace& trace) const = 0;
};

struct Exported {
  std::string exporter;  // its name, without parameters
  std::vector<std::string> cannot_carry;
  std::size_t bytes = 0;  // of the file
};

// The exporter whose extension `path` ends in; a ".gz" behind it does not count. Usage error where none has it.
[[nodiscard]] std::string exporter_for(const std::string& path);

// Writes the trace with the named exporter ("csv", with parameters), or where `exporter` is empty the one that
// exporter_for() finds. Packed with gzip where the name ends in ".gz". The file is there whole or not at all.
Exported export_trace(const Trace& trace, const std::string& path, const std::string& exporter = "");

}  // namespace tandem
