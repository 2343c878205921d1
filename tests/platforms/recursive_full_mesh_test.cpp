// recursive-full-mesh: its wiring rule, routes by hand, choice of sizes, refused parameters.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "platforms/topology.hpp"
#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

using Names = std::vector<std::string>;

std::unique_ptr<Topology> make(const std::string& text, int devices = 1) {
  return make_topology(text, {devices});
}

std::vector<LinkId> route(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, flow, path);
  return path;
}

Names stops(const Network& network, int src, int dst, FlowHash flow = 0) {
  Names names{network.vertex_name(src)};
  for (const auto id : route(network, src, dst, flow)) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

// m=4, g=5: device u of group x leads to group x + 1 + u, whose device 3 - u leads back.
TEST(RecursiveFullMesh, RoutesByHand) {
  const auto mesh = make("recursive-full-mesh:m=4,g=5");
  EXPECT_EQ(stops(*mesh, 0, 7), (Names{"device 0 (0;0)", "device 7 (1;3)"}));
  EXPECT_EQ(stops(*mesh, 1, 3), (Names{"device 1 (0;1)", "device 3 (0;3)"}));
  // From group 0 to group 3: device 2, whose cable ends at device 1 of group 3.
  EXPECT_EQ(stops(*mesh, 0, 14), (Names{"device 0 (0;0)", "device 2 (0;2)", "device 13 (3;1)", "device 14 (3;2)"}));
  EXPECT_EQ(stops(*mesh, 14, 0), (Names{"device 14 (3;2)", "device 13 (3;1)", "device 2 (0;2)", "device 0 (0;0)"}));
}

// Each level adds at most one cable to a device, and every pair of groups of a block has as many as any other.
TEST(RecursiveFullMesh, EveryPairOfGroupsHasItsCables) {
  const auto mesh = make("recursive-full-mesh:m=4,g=3x5");
  std::map<std::pair<int, int>, int> between;
  std::map<std::pair<int, int>, int> of_level;
  for (std::size_t id = 0; id < mesh->links().size(); ++id) {
    const auto& link = mesh->links()[id];
    const int level = link.from / 12 != link.to / 12 ? 2 : link.from / 4 != link.to / 4 ? 1 : 0;
    if (level == 2) ++between[{link.from / 12, link.to / 12}];
    if (level > 0) {
      EXPECT_EQ((++of_level[{link.from, level}]), 1);
    }
  }
  EXPECT_EQ(between.size(), 5U * 4U);
  for (const auto& [groups, cables] : between) EXPECT_EQ(cables, 12 / 4) << groups.first << " " << groups.second;
  EXPECT_EQ(mesh->characteristics().links, 15 * 6 + 5 * 3 * 2 + 10 * 3);
}

// DCell's bound on the length of routes: at most 2^(L+1) - 1 links.
TEST(RecursiveFullMesh, RoutesAreAtMostDCells) {
  for (const auto& [text, most] : std::map<std::string, std::size_t>{{"recursive-full-mesh:m=8,g=9", 3},
                                                                     {"recursive-full-mesh:m=4,g=3x5", 7},
                                                                     {"recursive-full-mesh:m=2,g=3x3x4", 15}}) {
    const auto mesh = make(text);
    std::size_t longest = 0;
    for (int src = 0; src < mesh->devices(); ++src) {
      for (int dst = 0; dst < mesh->devices(); ++dst) longest = std::max(longest, route(*mesh, src, dst, 3).size());
    }
    EXPECT_LE(longest, most) << text;
    EXPECT_GT(longest, most / 2) << text;
  }
}

TEST(RecursiveFullMesh, FlowsSpreadOverTheCablesBetweenGroups) {
  std::set<std::vector<LinkId>> hashed;
  std::set<std::vector<LinkId>> fixed;
  const auto mesh = make("recursive-full-mesh:m=8,g=3");
  const auto by_destination = make("recursive-full-mesh:m=8,g=3,routing=fixed");
  for (FlowHash flow = 0; flow < 100; ++flow) {
    hashed.insert(route(*mesh, 1, 8, flow));  // device 1 of group 0 has its own cable to group 2
    fixed.insert(route(*by_destination, 1, 8, flow));
  }
  EXPECT_EQ(hashed.size(), 4U);
  EXPECT_EQ(fixed.size(), 1U);
  // Devices that a cable joins use it.
  for (FlowHash flow = 0; flow < 20; ++flow) EXPECT_EQ(route(*mesh, 2, 11, flow).size(), 1U);
}

// Searched from one group of the top level only; here from all devices.
TEST(RecursiveFullMesh, MeanPathOfOneGroupIsTheMeanOfAll) {
  const auto mesh = make("recursive-full-mesh:m=8,g=8x64");
  double total = 0;
  int diameter = 0;
  for (int src = 0; src < mesh->devices(); ++src) {
    for (const int hops : testing::distances(*mesh, src)) {
      total += hops;
      diameter = std::max(diameter, hops);
    }
  }
  const auto closed = mesh->characteristics();
  EXPECT_EQ(closed.paths, Characteristics::Paths::searched);
  EXPECT_EQ(closed.diameter, diameter);
  EXPECT_NEAR(closed.mean_path, total / 4096 / 4095, 1e-9);
}

// At least m - 1 disjoint paths (the design's claim for its fault tolerance).
TEST(RecursiveFullMesh, MaxFlowIsAtLeastTheModulesPorts) {
  const auto mesh = make("recursive-full-mesh:m=8,g=8x4");
  for (int dst = 1; dst < mesh->devices(); dst += 37) {
    EXPECT_GE(testing::max_flow(*mesh, DeviceId{0}, DeviceId{dst}), 7) << dst;
  }
}

TEST(RecursiveFullMesh, ChoosesTheFewestLevels) {
  const std::map<int, std::string> expected{{1, "1"},    {8, "1"},         {9, "2"},       {64, "8"},
                                            {72, "9"},   {512, "8x8"},     {4096, "8x64"}, {5256, "9x73"},
                                            {73, "5x2"}, {32768, "8x64x8"}};
  for (const auto& [devices, groups] : expected) {
    EXPECT_EQ(make("recursive-full-mesh", devices)->instance(), "recursive-full-mesh:m=8,g=" + groups + ",planes=1")
        << devices;
  }
}

TEST(RecursiveFullMesh, HoldsWhatIsWanted) {
  for (const int m : {1, 2, 3, 8, 100}) {
    for (int devices = 1; devices < 3000; devices += 41) {
      EXPECT_GE(make(fmt::format("recursive-full-mesh:m={}", m), devices)->devices(), devices) << m;
    }
  }
}

TEST(RecursiveFullMesh, RefusesWhatItCannotBuild) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"recursive-full-mesh:m=0", "'m' is '0'"},
      {"recursive-full-mesh:m=8,g=0", "'g' is '0'"},
      {"recursive-full-mesh:m=8,g=10", "10 groups of 8 devices cannot be joined in pairs: at most 9 groups"},
      {"recursive-full-mesh:m=2,g=2x6", "6 groups of 4 devices cannot be joined in pairs: at most 5 groups"},
      {"recursive-full-mesh:m=2,g=1x1x1x1x1x1x1x1x1", "9 levels: at most 8"},
      {"recursive-full-mesh:m=8,g=9x4000000", "at most 4194304 devices"},
      {"recursive-full-mesh:m=8,g=4000000x4000000x4000000x4000000", "at most 4194304 devices"},
      {"recursive-full-mesh:m=8,g=8,routing=fixd", "unknown routing 'fixd'; did you mean 'fixed'?"},
  };
  for (const auto& [text, says] : table) {
    try {
      (void)make(text);
      ADD_FAILURE() << text << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << text;
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace tandem
