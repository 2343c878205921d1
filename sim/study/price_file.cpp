#include "sim/study/price_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"

namespace tandem {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::uintmax_t kMostBytes = 1'000'000;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || kBlank.find(line[i - 1]) != std::string_view::npos)) return line.substr(0, i);
  }
  return line;
}

struct Entry {
  const char* name;
  double Prices::*price;
};
constexpr Entry kEntries[]{{"switch-port", &Prices::switch_port},   {"node-switch-port", &Prices::node_switch_port},
                           {"nic-port", &Prices::device_port},      {"board-link", &Prices::board_link},
                           {"copper-cable", &Prices::copper_cable}, {"optical-cable", &Prices::optical_cable}};

double& price_named(Prices& prices, const std::string& name) {
  std::vector<std::string> known;
  for (const auto& entry : kEntries) {
    if (name == entry.name) return prices.*entry.price;
    known.emplace_back(entry.name);
  }
  throw input_error(fmt::format("unknown price '{}'{}", name, suggestion(name, known)));
}

double parse_price(const std::string& name, std::string_view text) {
  double value = 0;
  try {
    value = parse_number(text, "the price '" + name + "'");
  } catch (const Error& error) {
    throw input_error(error.what());
  }
  if (!(value >= 0) || !std::isfinite(value)) {
    throw input_error(fmt::format("the price '{}' is {}: it must be 0 or more", name, text));
  }
  return value;
}

}  // namespace

Prices parse_prices(std::string_view text, const std::string& name) {
  Prices prices;
  std::set<std::string> seen;
  int number = 0;
  for (const auto& line : split(text, '\n')) {
    ++number;
    const auto content = trimmed(without_comment(line));
    if (content.empty()) continue;
    with_context(fmt::format("{}:{}", name, number), [&] {
      const auto equals = content.find('=');
      if (equals == std::string_view::npos) throw input_error("a line must read NAME = PRICE");
      const std::string key(trimmed(content.substr(0, equals)));
      auto& price = price_named(prices, key);
      if (!seen.insert(key).second) throw input_error(fmt::format("the price '{}' is given twice", key));
      price = parse_price(key, trimmed(content.substr(equals + 1)));
    });
  }
  if (seen.empty()) throw input_error(name + ": there are no prices in it: a line must read NAME = PRICE");
  return prices;
}

Prices read_prices(const std::string& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) throw input_error(fmt::format("{}: cannot read the prices: {}", path, failed.message()));
  if (bytes > kMostBytes) {
    throw input_error(fmt::format("{}: {} bytes are too many for a file of prices", path, bytes));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw input_error(
        fmt::format("{}: cannot read the prices: {}", path, bytes == 0 ? "it is empty" : std::strerror(errno)));
  }
  return parse_prices(text.str(), path);
}

}  // namespace tandem
