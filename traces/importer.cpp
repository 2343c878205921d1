#include "traces/importer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

std::string read_head(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw input_error(fmt::format("{}: is a directory", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw input_error(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
  std::string head(64 << 10, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

std::string recognize(const std::string& path) {
  const auto& importers = Registry<Importer>::instance();
  const auto head = read_head(path);
  std::vector<std::string> matches;
  for (const auto& name : importers.names()) {
    if (importers.make(name)->recognizes(head)) matches.push_back(name);
  }
  if (matches.size() == 1) return matches[0];
  if (matches.empty()) {
    throw input_error(
        fmt::format("{}: no importer recognizes this file; there are: {}", path, fmt::join(importers.names(), ", ")));
  }
  throw usage_error(
      fmt::format("{}: several importers recognize this file, name one: {}", path, fmt::join(matches, ", ")));
}

}  // namespace

Trace import_trace(const std::string& path, const std::string& importer) {
  const auto plugin = Registry<Importer>::instance().make(importer.empty() ? recognize(path) : importer);
  Trace trace = plugin->read(path);
  with_context(path, [&] { validate(trace); });
  return trace;
}

}  // namespace tandem
