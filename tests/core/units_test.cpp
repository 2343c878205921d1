#include "sim/core/units.hpp"

#include <gtest/gtest.h>

#include <concepts>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};

// Only physical operators exist.
static_assert(Addable<Bytes, Bytes> && Addable<Seconds, Seconds>);
static_assert(!Addable<Bytes, Seconds> && !Addable<Seconds, double> && !Addable<Bytes, int>);
static_assert(std::same_as<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::same_as<decltype(Flops(1) / FlopsPerSecond(1)), Seconds>);
static_assert(!Divisible<Seconds, Bytes> && !Divisible<Flops, BytesPerSecond>);
static_assert(!std::convertible_to<Rank, DeviceId> && !std::convertible_to<int, Rank>);

std::string message(auto&& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Units, BytesDistinguishDecimalFromBinary) {
  EXPECT_EQ(parse_bytes("25MiB").count(), 25 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("25MB").count(), 25'000'000);
  EXPECT_EQ(parse_bytes("1.5KB").count(), 1500);
  EXPECT_EQ(parse_bytes("0B").count(), 0);
}

TEST(Units, BandwidthDistinguishesBitsFromBytes) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("100Gbps").count(), 12.5e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("12.5GBps").count(), 12.5e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("8bps").count(), 1);
}

TEST(Units, SecondsAndFlops) {
  EXPECT_DOUBLE_EQ(parse_seconds("5us").count(), 5e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5ms").count(), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_flops_per_second("15.7TFLOPS").count(), 15.7e12);
}

TEST(Units, BareNumbersAndUnknownUnitsAreRefusedWithWhatIsAccepted) {
  EXPECT_NE(message([] { return parse_bytes("25"); }).find("MiB"), std::string::npos);
  EXPECT_NE(message([] { return parse_bytes("25M"); }).find("nccl-tests"), std::string::npos);
  EXPECT_NE(message([] { return parse_bandwidth("100"); }).find("Gbps"), std::string::npos);
  EXPECT_NE(message([] { return parse_seconds("5"); }).find("unit is missing"), std::string::npos);
  for (const char* bad : {"", "MiB", "-1B", "nanB", "infB", "1e30B", "0.5B", " 1B", "1B ", "0x10B", "1 B"}) {
    EXPECT_NE(message([&] { return parse_bytes(bad); }), "no error") << bad;
  }
}

TEST(Units, WholeNumbersNameTheirRange) {
  EXPECT_NE(message([] { return parse_integer("0", 1, 8, "'m'"); }).find("from 1 to 8"), std::string::npos);
  EXPECT_EQ(message([] { return parse_integer("x", INT64_MIN, INT64_MAX, "'m'"); }),
            "'m' is 'x': it must be a whole number");
  EXPECT_EQ(message([] { return parse_integer("-1", 0, INT64_MAX, "'m'"); }),
            "'m' is '-1': it must be a whole number, 0 or more");
  EXPECT_EQ(message([] { return parse_integer("9223372036854775808", 0, INT64_MAX, "'m'"); }),
            "'m' is '9223372036854775808': it is too large");
  EXPECT_EQ(message([] { return parse_integer("2147483648", INT32_MIN, INT32_MAX, "'m'"); }),
            "'m' is '2147483648': it is too large");
  EXPECT_EQ(message([] { return parse_integer("", INT32_MIN, INT32_MAX, "'m'"); }),
            "'m' is '': it must be a whole number");
}

TEST(Text, CountsInSingularAndPlural) {
  EXPECT_EQ(counted(0, "run"), "0 runs");
  EXPECT_EQ(counted(1, "run"), "1 run");
  EXPECT_EQ(counted(999, "run"), "999 runs");
  EXPECT_EQ(counted(2000, "rank"), "2,000 ranks");
  EXPECT_EQ(counted(1048576, "rank"), "1,048,576 ranks");
  EXPECT_EQ(counted(-100, "rank"), "-100 ranks");
  EXPECT_EQ(counted(-2000, "rank"), "-2,000 ranks");
  EXPECT_EQ(grouped(-1048576), "-1,048,576");
  EXPECT_EQ(grouped(2000), "2,000");
}

TEST(Units, TextForPeople) {
  EXPECT_EQ(to_text(Bytes(102228128)), "102.2 MB");
  EXPECT_EQ(to_text(Seconds(0.001234)), "1.234 ms");
  EXPECT_EQ(to_text(Seconds(0)), "0 ns");
  EXPECT_EQ(to_text(BytesPerSecond(12.5e9)), "12.5 GB/s");
}

TEST(Error, ContextIsAddedFromTheInsideOut) {
  try {
    with_context("vgg16.h5", [] { with_context("layer 'fc6'", [] { throw input_error("no samples"); }); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "vgg16.h5: layer 'fc6': no samples");
    EXPECT_EQ(error.exit_status(), 1);
  }
}

}  // namespace
}  // namespace tandem
