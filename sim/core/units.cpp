#include "sim/core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKiB = 1024.0;

constexpr std::array<Unit, 10> kByteUnits{{{"B", 1},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", kKiB},
                                           {"MiB", kKiB* kKiB},
                                           {"GiB", kKiB* kKiB* kKiB},
                                           {"TiB", kKiB* kKiB* kKiB* kKiB},
                                           {"kB", 1e3}}};
constexpr std::array<Unit, 5> kSecondUnits{{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"min", 60}}};
constexpr std::array<Unit, 13> kBandwidthUnits{{{"Bps", 1},
                                                {"KBps", 1e3},
                                                {"MBps", 1e6},
                                                {"GBps", 1e9},
                                                {"TBps", 1e12},
                                                {"KiBps", kKiB},
                                                {"MiBps", kKiB* kKiB},
                                                {"GiBps", kKiB* kKiB* kKiB},
                                                {"bps", 1.0 / 8},
                                                {"Kbps", 1e3 / 8},
                                                {"Mbps", 1e6 / 8},
                                                {"Gbps", 1e9 / 8},
                                                {"Tbps", 1e12 / 8}}};
constexpr std::array<Unit, 4> kFlopsUnits{{{"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}, {"MFLOPS", 1e6}}};

// Reads the number in front; returns what follows it. std::from_chars takes no locale, no blanks, no '+'.
std::string_view read_number(std::string_view text, double& value, std::string_view what) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || !std::isfinite(value)) {
    throw usage_error(fmt::format("'{}' is not a {}: it must start with a number", text, what));
  }
  return text.substr(static_cast<std::size_t>(end - text.data()));
}

double parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view what,
                       std::string_view examples, std::string_view note = "") {
  double value = 0;
  const auto rest = read_number(text, value, what);
  if (value < 0) throw usage_error(fmt::format("'{}': a {} cannot be negative", text, what));
  for (const auto& unit : units) {
    if (rest == unit.name) return value * unit.factor;
  }
  std::string names;
  for (const auto& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  throw usage_error(
      fmt::format("'{}': {}; a {} is written like {} (units: {}){}", text,
                  rest.empty() ? std::string("the unit is missing") : fmt::format("'{}' is not a known unit", rest),
                  what, examples, names, note));
}

std::string with_prefix(double value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const auto& unit : units) {
    if (std::abs(value) >= unit.factor * 0.9999995) best = &unit;
  }
  return fmt::format("{:.4g} {}", value / best->factor, best->name);
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const double value =
      parse_with_unit(text, kByteUnits, "size", "25MiB, 64KB or 8B", "; note that the 'M' of nccl-tests is MiB here");
  if (value > 9e18) throw usage_error(fmt::format("'{}' is too large: at most 9e18 bytes", text));
  if (value != std::floor(value)) throw usage_error(fmt::format("'{}' is not a whole number of bytes", text));
  return Bytes(static_cast<std::int64_t>(value));
}

Seconds parse_seconds(std::string_view text) {
  return Seconds(parse_with_unit(text, kSecondUnits, "duration", "5us or 1.5ms"));
}

BytesPerSecond parse_bandwidth(std::string_view text) {
  return BytesPerSecond(parse_with_unit(text, kBandwidthUnits, "bandwidth", "100Gbps (bits) or 12.5GBps (bytes)"));
}

FlopsPerSecond parse_flops_per_second(std::string_view text) {
  return FlopsPerSecond(parse_with_unit(text, kFlopsUnits, "compute rate", "15.7TFLOPS"));
}

namespace {

// Bounds that are only those of a type are nothing that a user would want to know.
std::string range_text(std::int64_t least, std::int64_t most) {
  const bool is_bounded_below = least > INT32_MIN;
  const bool is_bounded_above = most != INT32_MAX && most != INT64_MAX;
  if (is_bounded_below && is_bounded_above) return fmt::format(" from {} to {}", least, most);
  if (is_bounded_below) return fmt::format(", {} or more", least);
  return is_bounded_above ? fmt::format(", {} or less", most) : "";
}

}  // namespace

std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most, std::string_view what) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = end == text.data() + text.size() && code != std::errc::invalid_argument;
  if (is_number && code == std::errc{} && value >= least && value <= most) return value;
  const bool is_large = is_number && !text.starts_with('-') && (code == std::errc::result_out_of_range || value > most);
  if (is_large && (most == INT32_MAX || most == INT64_MAX)) {
    throw usage_error(fmt::format("{} is '{}': it is too large", what, text));
  }
  throw usage_error(fmt::format("{} is '{}': it must be a whole number{}", what, text, range_text(least, most)));
}

double parse_number(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    throw usage_error(fmt::format("{} is '{}': it must be a number", what, text));
  }
  return value;
}

std::string to_text(Bytes bytes) {
  static constexpr std::array<Unit, 5> kUnits{{{"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}}};
  return with_prefix(static_cast<double>(bytes.count()), kUnits);
}

std::string to_text(Seconds time) {
  static constexpr std::array<Unit, 4> kUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  return with_prefix(time.count(), kUnits);
}

std::string to_text(BytesPerSecond rate) {
  static constexpr std::array<Unit, 5> kUnits{
      {{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};
  return with_prefix(rate.count(), kUnits);
}

std::string to_text(FlopsPerSecond rate) {
  static constexpr std::array<Unit, 4> kUnits{{{"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}}};
  return with_prefix(rate.count(), kUnits);
}

}  // namespace tandem
