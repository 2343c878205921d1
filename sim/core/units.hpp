// Strong types for physical quantities and for identifiers. Only physical operators exist: bytes divided by
// bytes per second are seconds, and adding bytes to seconds does not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep count() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Rep value_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;  // whole bytes
using Seconds = Quantity<struct SecondsTag, double>;    // s
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Flops = Quantity<struct FlopsTag, double>;  // floating-point operations (multiply and add count 2)
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

constexpr Seconds operator/(Bytes bytes, BytesPerSecond rate) {
  return Seconds(static_cast<double>(bytes.count()) / rate.count());
}
constexpr BytesPerSecond operator/(Bytes bytes, Seconds time) {
  return BytesPerSecond(static_cast<double>(bytes.count()) / time.count());
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.count() / rate.count());
}

// Text in: a number and its unit, with nothing left over. A bare number is an error that names accepted units.
// Bits and bytes differ (Gbps, GBps), decimal and binary prefixes too (MB, MiB). Errors are of kind usage.
[[nodiscard]] Bytes parse_bytes(std::string_view text);                      // "25MiB", "64KB", "8B"
[[nodiscard]] Seconds parse_seconds(std::string_view text);                  // "5us", "1.5ms"
[[nodiscard]] BytesPerSecond parse_bandwidth(std::string_view text);         // "100Gbps", "12.5GBps"
[[nodiscard]] FlopsPerSecond parse_flops_per_second(std::string_view text);  // "15.7TFLOPS"
// Plain numbers, with an explicit range check; `what` names the value in the error.
[[nodiscard]] std::int64_t parse_integer(std::string_view text, std::int64_t least, std::int64_t most,
                                         std::string_view what);
[[nodiscard]] double parse_number(std::string_view text, std::string_view what);

// Text out, for people: four significant digits and a fitting prefix ("102.2 MB", "1.234 ms", "12.5 GB/s").
[[nodiscard]] std::string to_text(Bytes bytes);
[[nodiscard]] std::string to_text(Seconds time);
[[nodiscard]] std::string to_text(BytesPerSecond rate);
[[nodiscard]] std::string to_text(FlopsPerSecond rate);

// Identifiers: indices that cannot be mixed up.
template <class Tag>
struct Id {
  std::int32_t value = -1;
  constexpr auto operator<=>(const Id&) const = default;
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

using Rank = Id<struct RankTag>;        // a worker of a job, 0 .. ranks-1
using DeviceId = Id<struct DeviceTag>;  // a device of a cluster, 0 .. devices-1
using LinkId = Id<struct LinkTag>;      // one direction of one cable, 0 .. links-1
using LayerId = Id<struct LayerTag>;    // a layer of a trace, in topological order

}  // namespace tandem
