// What is particular to one topology: routes by hand, choice of sizes, path diversity, large instances.
#include "platforms/topology.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/core/random.hpp"
#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make(const std::string& text, int devices = 1) {
  return make_topology(text, {devices});
}

std::vector<LinkId> route(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, flow, path);
  return path;
}

// The vertices a route passes, by name.
std::vector<std::string> stops(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<std::string> names{network.vertex_name(src)};
  for (const auto id : route(network, src, dst, flow)) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

using Names = std::vector<std::string>;

TEST(Star, PassesTheSwitch) {
  EXPECT_EQ(stops(*make("star:devices=4"), 3, 0), (Names{"device 3", "switch", "device 0"}));
}

TEST(Star, HasAsManyDevicesAsWanted) {
  EXPECT_EQ(make("star", 37)->instance(), "star:devices=37,planes=1");
  EXPECT_EQ(make("star:planes=2", 5)->instance(), "star:devices=5,planes=2");
}

TEST(FatTree, GoesUpToTheLowestCommonTier) {
  const auto tree = make("fat-tree:k=4");
  EXPECT_EQ(stops(*tree, 0, 1), (Names{"device 0 (0,0,0)", "edge 0.0", "device 1 (0,0,1)"}));
  EXPECT_EQ(stops(*tree, 0, 3),
            (Names{"device 0 (0,0,0)", "edge 0.0", "aggregation 0.1", "edge 0.1", "device 3 (0,1,1)"}));
  EXPECT_EQ(stops(*tree, 1, 14), (Names{"device 1 (0,0,1)", "edge 0.0", "aggregation 0.0", "core 0.1",
                                        "aggregation 3.0", "edge 3.1", "device 14 (3,1,0)"}));
}

// Zahavi (2012): D-mod-k routes every shift permutation of a full tree without contention.
TEST(FatTree, DModKRoutesShiftsWithoutContention) {
  const auto tree = make("fat-tree:k=6");
  const int n = tree->devices();
  for (int shift = 1; shift < n; ++shift) {
    std::set<LinkId> used;
    for (int src = 0; src < n; ++src) {
      for (const auto id : route(*tree, src, (src + shift) % n)) ASSERT_TRUE(used.insert(id).second) << shift;
    }
  }
}

TEST(FatTree, DModKIgnoresTheFlowAndEcmpUsesEveryCore) {
  std::set<std::vector<LinkId>> by_destination;
  std::set<std::vector<LinkId>> hashed;
  const auto tree = make("fat-tree:k=4");
  const auto ecmp = make("fat-tree:k=4,routing=ecmp");
  for (FlowHash flow = 0; flow < 100; ++flow) {
    by_destination.insert(route(*tree, 0, 15, flow));
    hashed.insert(route(*ecmp, 0, 15, flow));
  }
  EXPECT_EQ(by_destination.size(), 1U);
  EXPECT_EQ(hashed.size(), 4U);
}

TEST(FatTree, OversubscriptionTakesAwayUpPorts) {
  // Of k=8: 4 devices and 1 up port an edge switch; 2 switch ports a device; an eighth of N links in the bisection.
  const auto closed = make("fat-tree:k=8,oversubscription=4")->characteristics();
  EXPECT_EQ(closed.switches, 32 + 8 + 4);
  EXPECT_DOUBLE_EQ(closed.switch_ports_per_device, 2);
  EXPECT_DOUBLE_EQ(closed.bisection_links, 128 / 8);
  EXPECT_DOUBLE_EQ(closed.mean_path, make("fat-tree:k=8")->characteristics().mean_path);
}

TEST(FatTree, ChoosesTheSmallestTree) {
  EXPECT_EQ(make("fat-tree", 1)->instance(), "fat-tree:k=2,oversubscription=1,planes=1");
  EXPECT_EQ(make("fat-tree", 128)->instance(), "fat-tree:k=8,oversubscription=1,planes=1");
  EXPECT_EQ(make("fat-tree", 129)->instance(), "fat-tree:k=10,oversubscription=1,planes=1");
  // k=10 has 5 devices an edge switch, which 2:1 does not divide.
  EXPECT_EQ(make("fat-tree:oversubscription=2", 129)->instance(), "fat-tree:k=12,oversubscription=2,planes=1");
}

TEST(Torus, CorrectsDimensionsInOrderTheShorterWay) {
  const auto torus = make("torus:dims=5x3");
  EXPECT_EQ(stops(*torus, 0, 14), (Names{"device 0 (0,0)", "device 4 (4,0)", "device 14 (4,2)"}));
  EXPECT_EQ(stops(*torus, 1, 3), (Names{"device 1 (1,0)", "device 2 (2,0)", "device 3 (3,0)"}));
}

TEST(Torus, APairHasOneCable) {
  EXPECT_EQ(make("torus:dims=2")->links().size(), 2U);
  EXPECT_EQ(make("torus:dims=1")->links().size(), 0U);
  EXPECT_EQ(make("torus:dims=2x2x2")->characteristics().links, 12);
}

// Ties are split so that uniform traffic loads all links of a dimension alike.
TEST(Torus, UniformTrafficUsesBothDirectionsEvenly) {
  for (const char* text : {"torus:dims=4", "torus:dims=8x8", "torus:dims=4x4x4", "torus:dims=6x6", "torus:dims=7x7"}) {
    const auto loads = testing::routed_loads(*make(text));
    EXPECT_EQ(loads.least, loads.most) << text;
  }
  const auto eight = make("torus:dims=8x8");
  EXPECT_EQ(testing::routed_loads(*eight).most, 64 * 8 / 8) << "N * size / 8";
}

TEST(Torus, ChoosesTheMostCubeLikeSizes) {
  const std::map<int, std::string> expected{{1, "1x1x1"},   {2, "1x1x2"},   {5, "2x2x2"},      {8, "2x2x2"},
                                            {12, "2x2x3"},  {16, "2x2x4"},  {64, "4x4x4"},     {100, "4x5x5"},
                                            {128, "4x4x8"}, {512, "8x8x8"}, {1000, "10x10x10"}};
  for (const auto& [devices, dims] : expected) {
    EXPECT_EQ(make("torus", devices)->instance(), "torus:dims=" + dims + ",planes=1") << devices;
  }
  EXPECT_EQ(make("torus:dimensions=1", 13)->instance(), "torus:dims=13,planes=1");
  EXPECT_EQ(make("torus:dimensions=2", 12)->instance(), "torus:dims=3x4,planes=1");
  EXPECT_EQ(make("torus:dimensions=6", 64)->instance(), "torus:dims=2x2x2x2x2x2,planes=1");
}

// A search over all sizes finds no smaller product within the same proportions, and no better sum.
TEST(Torus, NoSmallerCubeLikeTorusExists) {
  for (int devices = 1; devices <= 200; ++devices) {
    std::pair<int, int> best{1 << 30, 0};
    for (int a = 1; a <= devices; ++a) {
      for (int b = a; b <= 2 * a; ++b) {
        for (int c = b; c <= 2 * a; ++c) {
          if (a * b * c >= devices) best = std::min(best, {a * b * c, a + b + c});
        }
      }
    }
    const auto radices = make("torus", devices)->radices();
    ASSERT_EQ(radices.size(), 3U);
    EXPECT_EQ(radices[0] * radices[1] * radices[2], best.first) << devices;
    EXPECT_EQ(radices[0] + radices[1] + radices[2], best.second) << devices;
  }
}

TEST(MeshRailCube, AddressesAndRails) {
  // Device s = A*m + j with A = a_1 + n_1 * a_2; position j has its rail at level (j mod 2) + 1.
  const auto cube = make("mesh-rail-cube:m=4,n=3x2");
  EXPECT_EQ(cube->vertex_name(4 * (2 + 3 * 1) + 3), "device 23 (1,2;3)");
  // Position 0 is of level 1: it reaches all a_1 by one switch.
  EXPECT_EQ(stops(*cube, 0, 8), (Names{"device 0 (0,0;0)", "rail switch (0,*;0)", "device 8 (0,2;0)"}));
  // Position 1 is of level 2.
  EXPECT_EQ(stops(*cube, 1, 13), (Names{"device 1 (0,0;1)", "rail switch (*,0;1)", "device 13 (1,0;1)"}));
}

TEST(MeshRailCube, RoutesByHand) {
  const auto cube = make("mesh-rail-cube:m=2,n=3x2");
  // Both digits differ: the level of the source's position first, that of the destination's last.
  EXPECT_EQ(stops(*cube, 0, 11), (Names{"device 0 (0,0;0)", "rail switch (0,*;0)", "device 4 (0,2;0)",
                                        "device 5 (0,2;1)", "rail switch (*,2;1)", "device 11 (1,2;1)"}));
  // The only digit that differs is of the other position's level: over and back.
  EXPECT_EQ(stops(*cube, 1, 5), (Names{"device 1 (0,0;1)", "device 0 (0,0;0)", "rail switch (0,*;0)",
                                       "device 4 (0,2;0)", "device 5 (0,2;1)"}));
  EXPECT_EQ(stops(*cube, 2, 3), (Names{"device 2 (0,1;0)", "device 3 (0,1;1)"}));
}

// Between any two devices there are as many cable-disjoint paths as a device has ports.
TEST(MeshRailCube, MaxFlowIsTheNumberOfPorts) {
  Random random(1);
  for (const char* text : {"mesh-rail-cube:m=8,n=8", "mesh-rail-cube:m=4,n=4x4", "mesh-rail-cube:m=6,n=3x3x3",
                           "mesh-rail-cube:m=8,n=8x8"}) {
    const auto cube = make(text);
    const auto ports = static_cast<std::int64_t>(cube->characteristics().ports_per_device);
    for (int sample = 0; sample < 12; ++sample) {
      const auto src = static_cast<int>(random.below(static_cast<std::uint32_t>(cube->devices())));
      const auto dst = static_cast<int>(random.below(static_cast<std::uint32_t>(cube->devices())));
      if (src == dst) continue;
      EXPECT_EQ(testing::max_flow(*cube, DeviceId{src}, DeviceId{dst}), ports) << text << " " << src << " " << dst;
    }
  }
}

// Three digits differ and both ends are at level 1: levels 2 and 3 in either order, each on either of 2 rails.
TEST(MeshRailCube, FlowsSpreadOverOrdersAndRails) {
  const auto cube = make("mesh-rail-cube:m=6,n=3x3x3");
  std::set<std::vector<LinkId>> paths;
  for (FlowHash flow = 0; flow < 200; ++flow) paths.insert(route(*cube, 0, 6 * 26 + 3, flow));
  EXPECT_EQ(paths.size(), 2U * 2U * 2U);
  EXPECT_EQ(route(*cube, 0, 6 * 26 + 3, 9), route(*cube, 0, 6 * 26 + 3, 9));
}

TEST(MeshRailCube, DiameterIsThreeLinksALevel) {
  EXPECT_EQ(make("mesh-rail-cube:m=4,n=5")->characteristics().diameter, 3);
  EXPECT_EQ(make("mesh-rail-cube:m=4,n=5x4")->characteristics().diameter, 6);
  EXPECT_EQ(make("mesh-rail-cube:m=3,n=2x2x2")->characteristics().diameter, 9);
}

TEST(MeshRailCube, ChoosesTheFewestLevels) {
  const std::map<int, std::string> expected{{1, "m=8,n=1"},      {8, "m=8,n=1"},        {9, "m=8,n=2"},
                                            {64, "m=8,n=8"},     {100, "m=8,n=13"},     {512, "m=8,n=64"},
                                            {513, "m=8,n=11x6"}, {4096, "m=8,n=32x16"}, {32768, "m=8,n=64x64"}};
  for (const auto& [devices, sizes] : expected) {
    EXPECT_EQ(make("mesh-rail-cube", devices)->instance(), "mesh-rail-cube:" + sizes + ",planes=1") << devices;
  }
  EXPECT_EQ(make("mesh-rail-cube:m=4,radix=4", 64)->instance(), "mesh-rail-cube:m=4,n=4x4,planes=1");
}

TEST(MeshRailCube, ALevelOfOneHasNoRails) {
  const auto module = make("mesh-rail-cube:m=4,n=1")->characteristics();
  EXPECT_EQ(module.switches, 0);
  EXPECT_EQ(module.links, 6);
  EXPECT_DOUBLE_EQ(module.ports_per_device, 3);
}

// Instances of the largest size that studies use: sampled routes are shortest, link by link.
TEST(LargeTopology, SampledRoutesAreShortest) {
  Random random(7);
  for (const char* text :
       {"star", "fat-tree", "torus", "mesh-rail-cube", "mesh-rail-cube:m=8,n=64x64,module=ring", "leaf-spine",
        "leaf-spine:oversubscription=4,routing=ecmp", "bcube", "bcube:k=3,routing=rotated", "bcube:routing=parallel",
        "dcell", "ficonn", "hypercube", "hypercube:routing=hashed"}) {
    const auto network = make(text, 32768);
    for (int sample = 0; sample < 3; ++sample) {
      const auto src = static_cast<int>(random.below(32768));
      const auto distance = testing::distances(*network, src);
      for (int i = 0; i < 300; ++i) {
        const auto dst = static_cast<int>(random.below(32768));
        const auto path = route(*network, src, dst, static_cast<FlowHash>(i));
        ASSERT_EQ(testing::walk_fault(*network, DeviceId{src}, DeviceId{dst}, path), "") << text;
        ASSERT_GE(static_cast<int>(path.size()), distance[static_cast<std::size_t>(dst)]) << text;
        if (!network->shortest_routing()) continue;
        ASSERT_EQ(static_cast<int>(path.size()), distance[static_cast<std::size_t>(dst)]) << text;
      }
    }
  }
}

// Random small instances of every kind, random flows.
TEST(TopologyProperties, RoutesAreShortestWalks) {
  const auto sizes = [](int count, int least, int most) {
    return rc::gen::container<std::vector<int>>(static_cast<std::size_t>(count), rc::gen::inRange(least, most + 1));
  };
  const auto joined = [](const std::vector<int>& values) { return fmt::format("{}", fmt::join(values, "x")); };
  EXPECT_TRUE(rc::check("routes are shortest walks", [&] {
    std::string text;
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text = fmt::format("fat-tree:k={},routing=ecmp", 2 * *rc::gen::inRange(1, 5));
        break;
      case 1:
        text = "torus:dims=" + joined(*sizes(*rc::gen::inRange(1, 5), 1, 5));
        break;
      default: {
        const int k = *rc::gen::inRange(1, 5);
        text =
            fmt::format("mesh-rail-cube:m={},n={},t={},module={}", k * *rc::gen::inRange(1, 4), joined(*sizes(k, 1, 4)),
                        *rc::gen::inRange(1, k + 1), *rc::gen::arbitrary<bool>() ? "ring" : "full");
      }
    }
    RC_LOG() << text << "\n";
    const auto network = make(text);
    const int src = *rc::gen::inRange(0, network->devices());
    const auto distance = testing::distances(*network, src);
    const auto flow = *rc::gen::arbitrary<FlowHash>();
    for (int dst = 0; dst < network->devices(); ++dst) {
      const auto path = route(*network, src, dst, flow);
      RC_ASSERT(testing::walk_fault(*network, DeviceId{src}, DeviceId{dst}, path) == "");
      RC_ASSERT(static_cast<int>(path.size()) == distance[static_cast<std::size_t>(dst)]);
    }
  }));
}

TEST(TopologyProperties, TheSmallestInstanceHoldsWhatIsWanted) {
  EXPECT_TRUE(rc::check("left-out sizes hold the devices", [] {
    const int devices = *rc::gen::inRange(1, 3000);
    for (const char* text : {"star",
                             "fat-tree",
                             "fat-tree:oversubscription=2",
                             "torus",
                             "torus:dimensions=2",
                             "mesh-rail-cube",
                             "mesh-rail-cube:m=4,radix=32",
                             "mesh-rail-cube:m=6,t=2,radix=16",
                             "leaf-spine",
                             "leaf-spine:oversubscription=3",
                             "leaf-spine:down=5",
                             "bcube",
                             "bcube:n=4",
                             "bcube:k=2",
                             "dcell",
                             "dcell:n=3",
                             "dcell:k=1",
                             "ficonn",
                             "ficonn:n=4",
                             "ficonn:k=2",
                             "hypercube"}) {
      const auto network = make(text, devices);
      RC_ASSERT(network->devices() >= devices);
      RC_ASSERT(make(network->instance())->devices() == network->devices());
    }
  }));
}

struct BadInput {
  std::string text;
  int devices;
  std::string says;
};

TEST(TopologyErrors, EachMistakeIsOneClearUsageError) {
  const std::vector<BadInput> table{
      {"fat-tre:k=4", 1, "unknown topology 'fat-tre'; did you mean 'fat-tree'?"},
      {"fat-tree:q=4", 1, "no parameter 'q'"},
      {"fat-tree:k=5", 1, "'k' is 5: it must be even"},
      {"fat-tree:k=0", 1, "'k' is '0'"},
      {"fat-tree:k=4", 17, "topology 'fat-tree:k=4,oversubscription=1,planes=1' has 16 devices, but 17 are wanted"},
      {"fat-tree:k=8,oversubscription=3", 1, "4/3 = 1.333 up ports"},
      {"fat-tree:k=4,oversubscription=0.5", 1, "'oversubscription' is 0.5: it must be 1 or more"},
      {"fat-tree:k=4,oversubscription=4", 1, "2/4 = 0.5 up ports"},
      {"fat-tree:k=4,routing=ecnp", 1, "unknown routing 'ecnp'; did you mean 'ecmp'?"},
      {"fat-tree:k=4,planes=0", 1, "'planes' is '0'"},
      {"fat-tree:k=1000", 1, "at most 4194304 devices"},
      {"star:devices=3", 4, "has 3 devices, but 4 are wanted"},
      {"torus:dims=4x0", 1, "'dims' is '0'"},
      {"torus:dims=4xx4", 1, "'dims'"},
      {"torus:dims=4x4", 17, "has 16 devices, but 17 are wanted"},
      {"torus:dims=4x4,dimensions=2", 1, "leave 'dimensions' out"},
      {"torus:dims=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", 1, "23 dimensions are given, at most 22"},
      {"torus:dims=4000000x4000000x4000000", 1, "at most 4194304 devices"},
      {"mesh-rail-cube:m=8,n=4x4x4", 1, "3 levels, which do not divide m=8"},
      {"mesh-rail-cube:m=0", 1, "'m' is '0'"},
      {"mesh-rail-cube:m=4,n=4", 17, "has 16 devices, but 17 are wanted"},
      {"mesh-rail-cube:m=4,n=4,t=2", 1, "t=2 rail ports a device, but n=4 has 1 levels"},
      {"mesh-rail-cube:m=4,n=4,module=rong", 1, "unknown module 'rong'; did you mean 'ring'?"},
      {"mesh-rail-cube:m=16,n=2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2", 1, "16 levels: at most 8"},
      {"mesh-rail-cube:m=256,n=16384", 1, "at most 33554432 cables"},
      {"mesh-rail-cube:m=3,radix=4", 1000, "no number of levels that divides m=3 holds 1000 devices"},
      {"star:devices=4", 0, "0 devices are wanted"},
      {"star:devices=4", -1, "-1 devices are wanted"},
      {"star", 1'000'000'000,
       "1000000000 devices are wanted of a topology: it must be a whole number from 1 to 4194304"},
      {"fat-tree:oversubscription=200", 1, "no k up to 256 holds 1 devices with oversubscription 200"},
  };
  for (const auto& bad : table) {
    try {
      (void)make(bad.text, bad.devices);
      ADD_FAILURE() << bad.text << " for " << bad.devices << " devices is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << bad.text;
      EXPECT_NE(std::string(error.what()).find(bad.says), std::string::npos) << bad.text << ": " << error.what();
    }
  }
}

TEST(TopologyErrors, LinksNeedARateAndALatency) {
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THROW((void)make_topology("star", {1, BytesPerSecond(bad), Seconds(0)}), Error) << bad;
    if (bad != 0) {
      EXPECT_THROW((void)make_topology("star", {1, BytesPerSecond(1), Seconds(bad)}), Error) << bad;
    }
  }
  EXPECT_NO_THROW((void)make_topology("star", {1, BytesPerSecond(1), Seconds(0)}));
}

}  // namespace
}  // namespace tandem
