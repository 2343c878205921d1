#include "traces/exporter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/error.hpp"
#include "traces/atomic_file.hpp"
#include "traces/source_file.hpp"

namespace tandem {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_packed(const std::string& path) {
  return lower(std::filesystem::path(path).extension().string()) == ".gz";
}

}  // namespace

std::string exporter_for(const std::string& path) {
  std::filesystem::path name(path);
  if (is_packed(path)) name.replace_extension();
  const auto extension = lower(name.extension().string());
  const auto& exporters = Registry<Exporter>::instance();
  std::vector<std::string> known;
  for (const auto& exporter : exporters.names()) {
    for (const auto& owned : exporters.make(exporter)->extensions()) {
      if (owned == extension) return exporter;
      known.push_back(fmt::format("{} ({})", owned, exporter));
    }
  }
  throw usage_error(fmt::format("{}: the name's extension '{}' is no exporter's; there are {}, or name the exporter",
                                path, extension, fmt::join(known, ", ")));
}

Exported export_trace(const Trace& trace, const std::string& path, const std::string& exporter) {
  const auto text = exporter.empty() ? exporter_for(path) : exporter;
  const auto plugin = Registry<Exporter>::instance().make(text);
  validate(trace);
  auto content = plugin->write(trace);
  if (is_packed(path)) content = pack(content);
  write_atomically(path, content);
  return {split_plugin_text(text).name, plugin->cannot_carry(trace), content.size()};
}

}  // namespace tandem
