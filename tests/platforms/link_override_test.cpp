// Overrides of single links: how they are written, and what they reach.
#include "platforms/link_override.hpp"

#include <gtest/gtest.h>

#include "platforms/cluster.hpp"

namespace tandem {
namespace {

std::string mistake(const std::string& text) {
  try {
    (void)parse_link_overrides(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(LinkOverride, PatternsMayHoldCommasAndColons) {
  const auto all = parse_link_overrides(
      "device 1 (node 0, 1) -> node 0:bandwidth=10Gbps,latency=5us,host:latency=1us,a:b, c:bandwidth=1GBps");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].pattern, "device 1 (node 0, 1) -> node 0");
  EXPECT_DOUBLE_EQ(all[0].bandwidth->count(), 1.25e9);
  EXPECT_DOUBLE_EQ(all[0].latency->count(), 5e-6);
  EXPECT_EQ(all[1].pattern, "host");
  EXPECT_FALSE(all[1].bandwidth);
  EXPECT_EQ(all[2].pattern, "a:b, c");
  EXPECT_FALSE(all[2].latency);
  EXPECT_TRUE(parse_link_overrides("").empty());
}

TEST(LinkOverride, MistakesSayWhatIsAccepted) {
  const std::pair<const char*, const char*> cases[] = {
      {"device*", "'device*' is no override: write PATTERN:bandwidth=10Gbps,latency=5us"},
      {"device*:bandwith=1Gbps", "is no override"},
      {":bandwidth=1Gbps", "is no override"},
      {"a:bandwidth=0Gbps", "bandwidth is '0Gbps': it must be above 0"},
      {"a:bandwidth=-1Gbps", "cannot be negative"},
      {"a:bandwidth=1", "the unit is missing"},
      {"a:latency=5", "the unit is missing"},
      {"a:bandwidth=1Gbps,bandwidth=2Gbps", "'a' has two values of bandwidth"},
      {"a:latency=1us,b", "'b' is no override"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(mistake(text).find(expected), std::string::npos) << mistake(text) << " / " << expected;
  }
}

TEST(LinkOverride, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches("device 1 -> switch", "device 1 -> switch"));
  EXPECT_FALSE(matches("device 1", "device 1 -> switch"));
  EXPECT_TRUE(matches("device 1 *", "device 1 -> switch"));
  EXPECT_TRUE(matches("*switch", "device 1 -> switch"));
  EXPECT_TRUE(matches("*1*sw?tch", "device 11 -> switch"));
  EXPECT_FALSE(matches("*1*sw?tch*x", "device 11 -> switch"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("?", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("[a]*", "[a]b"));
}

TEST(LinkOverride, NamesMayBeWrittenWithoutBlanks) {
  EXPECT_TRUE(reaches({"device1->switch", {}, {}}, "device 1 -> switch"));
  EXPECT_FALSE(reaches({"device1 -> switch", {}, {}}, "device 1 -> switch"));
  EXPECT_FALSE(reaches({"device1*", {}, {}}, "device 2 -> device 1"));
  EXPECT_FALSE(reaches({"device 1 *", {}, {}}, "device 10 -> switch"));
}

TEST(LinkOverride, NamesKindsAndBundlesOfAClusterAreReached) {
  ClusterOptions options;
  options.topology = "star:planes=3";
  options.ranks = 8;
  options.devices_per_node = 4;
  options.host_bandwidth = BytesPerSecond(16e9);
  options.link_overrides = parse_link_overrides(
      "device_port:bandwidth=1GBps,NIC 1.0 -> switch:bandwidth=2GBps,latency=7us,intra_node:latency=9us");
  const Cluster cluster(options);
  EXPECT_EQ(cluster.overridden_links(), (std::vector<std::int64_t>{4, 1, 16}));
  int seen = 0;
  for (std::size_t id = 0; id < cluster.links().size(); ++id) {
    const auto& link = cluster.links()[id];
    const auto name = cluster.link_name(LinkId{static_cast<std::int32_t>(id)});
    if (name == "NIC 1.0 -> switch") {
      EXPECT_DOUBLE_EQ(link.bandwidth.count(), 3 * 2e9);  // of each of three planes' cables
      EXPECT_DOUBLE_EQ(link.latency.count(), 7e-6);
      ++seen;
    } else if (link.kind == LinkKind::device_port) {
      EXPECT_DOUBLE_EQ(link.bandwidth.count(), 3 * 1e9);
      EXPECT_DOUBLE_EQ(link.latency.count(), 500e-9);
      ++seen;
    } else if (link.kind == LinkKind::intra_node) {
      EXPECT_DOUBLE_EQ(link.bandwidth.count(), 150e9);
      EXPECT_DOUBLE_EQ(link.latency.count(), 9e-6);
    } else {
      EXPECT_DOUBLE_EQ(link.bandwidth.count(), 16e9);
    }
  }
  EXPECT_EQ(seen, 4);
  options.link_overrides = parse_link_overrides("spine*:latency=1us");
  try {
    const Cluster none(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no link's name or kind matches 'spine*'"), std::string::npos);
  }
  options.overrides_must_match = false;
  EXPECT_EQ(Cluster(options).overridden_links(), (std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace tandem
