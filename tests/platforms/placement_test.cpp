#include "platforms/placement.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>

namespace tandem {
namespace {

Cluster star(int devices) {
  ClusterOptions options;
  options.ranks = devices;
  return Cluster(options);
}

Cluster nodes_of_four(int nodes) {
  ClusterOptions options;
  options.ranks = 4 * nodes;
  options.devices_per_node = 4;
  return Cluster(options);
}

std::vector<int> placed(const std::string& text, const Cluster& cluster, int ranks) {
  std::vector<int> values;
  for (const auto device : place(text, cluster, ranks)) values.push_back(device.value);
  return values;
}

// A file of the test's own that is gone when the test is.
class PlacementFile {
 public:
  explicit PlacementFile(const std::string& content)
      : path_(::testing::TempDir() + "placement_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
              ".txt") {
    std::ofstream(path_) << content;
  }
  ~PlacementFile() { std::remove(path_.c_str()); }
  PlacementFile(const PlacementFile&) = delete;
  PlacementFile& operator=(const PlacementFile&) = delete;
  [[nodiscard]] std::string text() const { return "file:" + path_; }

 private:
  std::string path_;
};

using Values = std::vector<int>;

TEST(Placement, PackedFillsNodes) {
  EXPECT_EQ(placed("packed", nodes_of_four(2), 6), (Values{0, 1, 2, 3, 4, 5}));
}

TEST(Placement, SpreadGoesRoundTheNodes) {
  EXPECT_EQ(placed("spread", nodes_of_four(3), 7), (Values{0, 4, 8, 1, 5, 9, 2}));
}

TEST(Placement, SpreadUsesTheWholeClusterWithFewRanks) {
  EXPECT_EQ(placed("spread", star(16), 4), (Values{0, 4, 8, 12}));
  EXPECT_EQ(placed("spread", star(10), 3), (Values{0, 3, 6}));
  EXPECT_EQ(placed("spread", nodes_of_four(4), 2), (Values{0, 8}));
}

TEST(Placement, EveryPolicyWithoutAFileUsesEveryDeviceOnce) {
  for (const char* policy : {"packed", "spread", "random:seed=3"}) {
    for (const auto& cluster : {star(11), nodes_of_four(3)}) {
      auto devices = placed(policy, cluster, cluster.devices());
      std::sort(devices.begin(), devices.end());
      Values all(static_cast<std::size_t>(cluster.devices()));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(devices, all) << policy;
    }
  }
}

TEST(Placement, RandomIsFixedByItsSeed) {
  const auto cluster = star(64);
  EXPECT_EQ(placed("random:seed=5", cluster, 20), placed("random:5", cluster, 20));
  EXPECT_NE(placed("random:seed=5", cluster, 20), placed("random:seed=6", cluster, 20));
  EXPECT_EQ(placed("random", cluster, 20), placed("random:seed=1", cluster, 20));
  const auto twenty = placed("random:seed=5", cluster, 20);
  EXPECT_EQ(std::set<int>(twenty.begin(), twenty.end()).size(), 20U);
  EXPECT_GT(*std::max_element(twenty.begin(), twenty.end()), 20) << "drawn from the whole cluster";
}

TEST(Placement, FileNamesADeviceALine) {
  const PlacementFile file("# ranks in order\n 7\n\n3 # the slow one\r\n0\n");
  EXPECT_EQ(placed(file.text(), star(8), 3), (Values{7, 3, 0}));
  EXPECT_EQ(placed(file.text(), star(8), 2), (Values{7, 3})) << "a longer file serves fewer ranks";
}

std::string message(const std::string& text, const Cluster& cluster, int ranks, ErrorKind kind) {
  try {
    (void)place(text, cluster, ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(PlacementErrors, InFilesNameTheLine) {
  const auto ending = [](const std::string& content, int ranks) {
    const PlacementFile file(content);
    const auto text = message(file.text(), star(8), ranks, ErrorKind::input);
    return text.substr(text.rfind(".txt:") + 4);
  };
  EXPECT_EQ(ending("1\n2\n1\n", 3), ":3: device 1 is already taken by line 1");
  EXPECT_EQ(ending("1\n8\n", 2), ":2: the device is '8': it must be a whole number from 0 to 7");
  EXPECT_EQ(ending("-1\n", 1), ":1: the device is '-1': it must be a whole number from 0 to 7");
  EXPECT_EQ(ending("#\n1 2\n", 1), ":2: the device is '1 2': it must be a whole number from 0 to 7");
  EXPECT_EQ(ending("1\n", 2), ": 1 devices are named for 2 ranks");
  EXPECT_EQ(ending("", 1), ": 0 devices are named for 1 ranks");
}

TEST(PlacementErrors, EachMistakeIsOneClearError) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << text;
  };
  const auto cluster = star(8);
  EXPECT_TRUE(has(message("file:/nowhere/at/all", cluster, 1, ErrorKind::input), "cannot be opened"));
  EXPECT_TRUE(has(message("file:" + ::testing::TempDir(), cluster, 1, ErrorKind::input), "cannot be read"));
  EXPECT_TRUE(has(message("file", cluster, 1, ErrorKind::usage), "parameter 'path' must be given"));
  EXPECT_TRUE(has(message("paked", cluster, 1, ErrorKind::usage), "unknown placement 'paked'; did you mean 'packed'?"));
  EXPECT_TRUE(has(message("random:seed=-1", cluster, 1, ErrorKind::usage), "'seed' is '-1'"));
  EXPECT_TRUE(has(message("packed:3", cluster, 1, ErrorKind::usage), "takes no parameters"));
  EXPECT_TRUE(has(message("packed", cluster, 9, ErrorKind::usage), "9 ranks cannot be placed on 8 devices"));
  EXPECT_TRUE(has(message("packed", cluster, 0, ErrorKind::usage), "0 ranks cannot be placed"));
}

}  // namespace
}  // namespace tandem
