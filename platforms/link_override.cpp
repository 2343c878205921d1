#include "platforms/link_override.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::string_view kBandwidth = "bandwidth=";
constexpr std::string_view kLatency = "latency=";

// Where the first value after the pattern begins, behind its colon.
std::size_t first_value(std::string_view text) {
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
    const auto rest = text.substr(colon + 1);
    if (rest.starts_with(kBandwidth) || rest.starts_with(kLatency)) return colon + 1;
  }
  return std::string_view::npos;
}

void read_value(std::string_view item, LinkOverride& result) {
  const bool rate = item.starts_with(kBandwidth);
  const auto value = item.substr(rate ? kBandwidth.size() : kLatency.size());
  if (rate ? result.bandwidth.has_value() : result.latency.has_value()) {
    throw usage_error(fmt::format("'{}' has two values of {}", result.pattern, rate ? "bandwidth" : "latency"));
  }
  if (!rate) {
    result.latency = parse_seconds(value);
    return;
  }
  result.bandwidth = parse_bandwidth(value);
  if (!(result.bandwidth->count() > 0)) {
    throw usage_error(fmt::format("'{}': bandwidth is '{}': it must be above 0", result.pattern, value));
  }
}

}  // namespace

std::vector<LinkOverride> parse_link_overrides(std::string_view text) {
  std::vector<LinkOverride> result;
  while (!text.empty()) {
    const auto begin = first_value(text);
    if (begin == std::string_view::npos || begin == 1) {
      throw usage_error(fmt::format(
          "'{}' is no override: write PATTERN:bandwidth=10Gbps,latency=5us, with one of the two or both", text));
    }
    LinkOverride each{std::string(text.substr(0, begin - 1)), {}, {}};
    text.remove_prefix(begin);
    do {
      const auto comma = text.find(',');
      read_value(text.substr(0, comma), each);
      text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    } while (text.starts_with(kBandwidth) || text.starts_with(kLatency));
    result.push_back(std::move(each));
  }
  return result;
}

// The last '*' takes one character more whenever what follows it does not match.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool reaches(const LinkOverride& override, std::string_view name) {
  if (matches(override.pattern, name)) return true;
  if (override.pattern.find(' ') != std::string::npos) return false;
  std::string joined(name);
  std::erase(joined, ' ');
  return matches(override.pattern, joined);
}

std::string to_text(const LinkOverride& override) {
  std::string text;
  if (override.bandwidth) text = fmt::format("bandwidth {}", to_text(*override.bandwidth));
  if (override.latency) text += fmt::format("{}latency {}", text.empty() ? "" : ", ", to_text(*override.latency));
  return text;
}

}  // namespace tandem
