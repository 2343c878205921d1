// leaf-spine: routes by hand, spreading over spines and parallel cables, choice of sizes, refused parameters.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

TEST(LeafSpine, RoutesByHand) {
  const auto tree = make("leaf-spine:leaves=3,down=4,spines=2,up=4");
  EXPECT_EQ(stops(*tree, 0, 3), (Names{"device 0 (0,0)", "leaf 0", "device 3 (0,3)"}));
  // Device 7 is reached by up port 7 mod 4 = 3, which leads to spine 3 mod 2 = 1.
  EXPECT_EQ(stops(*tree, 0, 7), (Names{"device 0 (0,0)", "leaf 0", "spine 1", "leaf 1", "device 7 (1,3)"}));
  EXPECT_EQ(stops(*tree, 11, 4), (Names{"device 11 (2,3)", "leaf 2", "spine 0", "leaf 1", "device 4 (1,0)"}));
}

TEST(LeafSpine, DModKRoutesShiftsWithoutContention) {
  const auto tree = make("leaf-spine:leaves=5,down=6,spines=3,up=6");
  const int n = tree->devices();
  for (int shift = 1; shift < n; ++shift) {
    std::set<LinkId> used;
    for (int src = 0; src < n; ++src) {
      for (const auto id : route(*tree, src, (src + shift) % n)) ASSERT_TRUE(used.insert(id).second) << shift;
    }
  }
}

// 2 spines with 3 parallel cables a leaf: 6 ways up, and 3 ways down from each spine.
TEST(LeafSpine, EcmpUsesEverySpineAndParallelCable) {
  const auto tree = make("leaf-spine:leaves=3,down=6,spines=2,up=6,routing=ecmp");
  std::map<LinkId, int> up;
  std::map<LinkId, int> down;
  std::set<std::vector<LinkId>> paths;
  constexpr int kFlows = 6000;
  for (FlowHash flow = 0; flow < kFlows; ++flow) {
    const auto path = route(*tree, 0, 17, flow);
    ASSERT_EQ(path.size(), 4U);
    ++up[path[1]];
    ++down[path[2]];
    paths.insert(path);
  }
  EXPECT_EQ(paths.size(), 18U);
  ASSERT_EQ(up.size(), 6U);
  ASSERT_EQ(down.size(), 6U);
  // 1000 expected with a standard deviation of 29.
  for (const auto& [id, count] : up) EXPECT_NEAR(count, kFlows / 6, 150);
  for (const auto& [id, count] : down) EXPECT_NEAR(count, kFlows / 6, 150);
}

TEST(LeafSpine, OversubscriptionIsDownToUp) {
  // 1 + 2/o switch ports a device; an o-th of N/2 in the bisection.
  for (const int o : {1, 2, 4, 8}) {
    const auto closed = make(fmt::format("leaf-spine:leaves=8,down=8,oversubscription={}", o))->characteristics();
    EXPECT_DOUBLE_EQ(closed.switch_ports_per_device, 1 + 2.0 / o);
    EXPECT_DOUBLE_EQ(closed.bisection_links, 64 / 2.0 / o);
    EXPECT_EQ(closed.links, 64 + 64 / o);
  }
  EXPECT_EQ(make("leaf-spine:leaves=2,down=3,oversubscription=1.5")->instance(),
            "leaf-spine:leaves=2,down=3,spines=1,up=2,planes=1");
}

// Independent of the formula: every choice of the side of every switch, for all splits of small networks.
TEST(LeafSpine, BisectionIsTheLeastOfAllSplits) {
  for (const char* text : {"leaf-spine:leaves=3,down=2,spines=1,up=1", "leaf-spine:leaves=3,down=3,spines=2,up=4",
                           "leaf-spine:leaves=2,down=4,spines=2,up=2", "leaf-spine:leaves=5,down=2,spines=3,up=3"}) {
    const auto tree = make(text);
    const auto n = static_cast<unsigned>(tree->devices());
    std::int64_t least = 1 << 30;
    for (unsigned set = 0; set < 1U << n; ++set) {
      std::vector<bool> side;
      for (unsigned device = 0; device < n; ++device) side.push_back((set >> device & 1U) != 0);
      if (std::count(side.begin(), side.end(), true) != n / 2) continue;
      least = std::min(least, min_cut(*tree, side));
    }
    EXPECT_EQ(tree->characteristics().bisection_links, static_cast<double>(least)) << text;
  }
}

TEST(LeafSpine, ChoosesSizes) {
  const auto chosen = [](const std::string& text, int devices) { return make(text, devices)->instance(); };
  EXPECT_EQ(chosen("leaf-spine", 1), "leaf-spine:leaves=1,down=1,spines=1,up=1,planes=1");
  // Spines with as many ports as leaves: 8 leaves with 8 up ports each fill four switches of 16.
  EXPECT_EQ(chosen("leaf-spine", 64), "leaf-spine:leaves=8,down=8,spines=4,up=8,planes=1");
  EXPECT_EQ(chosen("leaf-spine", 512), "leaf-spine:leaves=16,down=32,spines=8,up=32,planes=1");
  EXPECT_EQ(chosen("leaf-spine:oversubscription=4", 512), "leaf-spine:leaves=16,down=32,spines=4,up=8,planes=1");
  EXPECT_EQ(chosen("leaf-spine:oversubscription=4", 1), "leaf-spine:leaves=1,down=4,spines=1,up=1,planes=1");
  EXPECT_EQ(chosen("leaf-spine:oversubscription=7", 50), "leaf-spine:leaves=4,down=14,spines=1,up=2,planes=1");
  EXPECT_EQ(chosen("leaf-spine:down=8", 60), "leaf-spine:leaves=8,down=8,spines=4,up=8,planes=1");
  EXPECT_EQ(chosen("leaf-spine:leaves=4,oversubscription=2", 30), "leaf-spine:leaves=4,down=8,spines=2,up=4,planes=1");
  EXPECT_EQ(chosen("leaf-spine:leaves=4,up=2", 30), "leaf-spine:leaves=4,down=8,spines=1,up=2,planes=1");
  EXPECT_EQ(chosen("leaf-spine:oversubscription=100000", 400'000),
            "leaf-spine:leaves=4,down=100000,spines=1,up=1,planes=1");
}

TEST(LeafSpine, RefusesWhatDoesNotFit) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"leaf-spine:leaves=0", "'leaves' is '0'"},
      {"leaf-spine:down=-1", "'down' is '-1'"},
      {"leaf-spine:leaves=4,down=4,spines=3", "spines=3 does not divide the 4 up ports of a leaf"},
      {"leaf-spine:leaves=4,down=4,spines=8", "spines=8 does not divide"},
      {"leaf-spine:leaves=4,down=4,oversubscription=3", "4/3 = 1.333 up ports"},
      {"leaf-spine:leaves=4,down=4,oversubscription=0", "'oversubscription' is 0: it must be above 0"},
      {"leaf-spine:leaves=4,down=4,oversubscription=-2", "'oversubscription' is -2"},
      {"leaf-spine:oversubscription=1e30", "no sizes give 1 devices and a whole number of up ports"},
      {"leaf-spine:oversubscription=1e-30", "no sizes give 1 devices and a whole number of up ports"},
      {"leaf-spine:leaves=4,down=4,up=4,oversubscription=1", "leave 'oversubscription' out"},
      {"leaf-spine:routing=emcp", "unknown routing 'emcp'; did you mean 'ecmp'?"},
      {"leaf-spine:leaves=4194304,down=4194304", "at most 4194304 devices"},
      {"leaf-spine:leaves=4194304,down=1,up=4194304", "at most 33554432 cables"},
  };
  for (const auto& [text, says] : table) EXPECT_EQ(refusal_fault(text, 1, says), "") << text;
  EXPECT_EQ(refusal_fault("leaf-spine:leaves=2,down=2", 5, "has 4 devices, but 5 are wanted"), "");
}

}  // namespace
}  // namespace tandem
