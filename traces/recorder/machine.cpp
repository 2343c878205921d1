#include "traces/recorder/machine.hpp"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

namespace tandem {
namespace {

// "key : value" lines up to the first empty one.
std::map<std::string, std::string> read_fields(const char* path) {
  std::map<std::string, std::string> fields;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key_end = line.find_last_not_of(" \t", colon == 0 ? 0 : colon - 1);
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    fields[line.substr(0, key_end + 1)] = begin == std::string::npos ? "" : line.substr(begin);
  }
  return fields;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  auto fields = read_fields("/proc/cpuinfo");
  if (fields.count("model name") != 0) machine.processor = fields["model name"];
  // Virtual machines often hide the product's name ("AMD EPYC"); family and model still tell the generation.
  if (fields.count("cpu family") != 0 && fields.count("model") != 0) {
    machine.processor += fmt::format(" (family {}, model {})", fields["cpu family"], fields["model"]);
  }
  double mhz = 0;
  if (std::istringstream(fields["cpu MHz"]) >> mhz) machine.clock_hz = mhz * 1e6;
  return machine;
}

Bytes available_memory() {
  std::int64_t kib = 0;
  auto fields = read_fields("/proc/meminfo");
  std::istringstream(fields["MemAvailable"]) >> kib;
  return Bytes(kib * 1024);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

}  // namespace tandem
