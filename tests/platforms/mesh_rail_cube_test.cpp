// The mesh-rail-cube's claims (mean paths, disjoint paths), and its rarer forms: torus modules, a top level that is
// partly filled, fixed routing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "platforms/topology.hpp"
#include "sim/core/random.hpp"
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

// The four mean paths that the design states, beside breadth-first search from every position of some modules.
TEST(MeshRailCube, MeanPathsOfTheDesign) {
  struct Row {
    const char* text;
    int m;
    double mean;
  };
  for (const auto& row : {Row{"mesh-rail-cube:m=8,n=64", 8, 2.849}, Row{"mesh-rail-cube:m=8,n=64x8", 8, 5.176},
                          Row{"mesh-rail-cube:m=8,n=64x64", 8, 5.428}, Row{"mesh-rail-cube:m=4,n=32x32", 4, 5.353}}) {
    const auto cube = make(row.text);
    EXPECT_NEAR(cube->characteristics().mean_path, row.mean, 0.0005) << row.text;
    // All modules are alike, so the positions of one module stand for all devices.
    double total = 0;
    for (int position = 0; position < row.m; ++position) {
      const auto distance = testing::distances(*cube, position);
      for (int device = 0; device < cube->devices(); ++device) total += distance[static_cast<std::size_t>(device)];
    }
    EXPECT_NEAR(cube->characteristics().mean_path, total / row.m / (cube->devices() - 1), 1e-9) << row.text;
  }
}

// m disjoint paths between any two devices, on the design's K-module instances up to 4096 devices.
TEST(MeshRailCube, MaxFlowIsTheModulesSize) {
  struct Row {
    const char* text;
    int m;
  };
  Random random(3);
  for (const auto& row :
       {Row{"mesh-rail-cube:m=4,n=16", 4}, Row{"mesh-rail-cube:m=8,n=64", 8}, Row{"mesh-rail-cube:m=4,n=16x8", 4},
        Row{"mesh-rail-cube:m=8,n=64x8", 8}, Row{"mesh-rail-cube:m=4,n=32x32", 4}}) {
    const auto cube = make(row.text);
    for (int sample = 0; sample < 6; ++sample) {
      const auto count = static_cast<std::uint32_t>(cube->devices());
      const auto src = static_cast<int>(random.below(count));
      const auto dst = static_cast<int>((static_cast<std::uint32_t>(src) + 1 + random.below(count - 1)) % count);
      EXPECT_EQ(testing::max_flow(*cube, DeviceId{src}, DeviceId{dst}), row.m) << row.text << " " << src << " " << dst;
    }
  }
}

TEST(MeshRailCube, FixedRoutingIgnoresTheFlow) {
  const auto fixed = make("mesh-rail-cube:m=6,n=3x3x3,routing=fixed");
  std::set<std::vector<LinkId>> paths;
  for (FlowHash flow = 0; flow < 50; ++flow) paths.insert(route(*fixed, 0, 6 * 26 + 3, flow));
  EXPECT_EQ(paths.size(), 1U);
  // Levels go up, on the rails of the destination's row.
  EXPECT_EQ(stops(*fixed, 0, 6 * 26 + 3),
            (Names{"device 0 (0,0,0;0)", "rail switch (0,0,*;0)", "device 12 (0,0,2;0)", "device 16 (0,0,2;4)",
                   "rail switch (0,*,2;4)", "device 52 (0,2,2;4)", "device 53 (0,2,2;5)", "rail switch (*,2,2;5)",
                   "device 161 (2,2,2;5)", "device 159 (2,2,2;3)"}));
}

// Different destinations spread over the rails although flows do not.
TEST(MeshRailCube, FixedRoutingUsesAllRails) {
  const auto fixed = make("mesh-rail-cube:m=8,n=4x4,routing=fixed");
  std::vector<int> load(fixed->links().size(), 0);
  for (int src = 0; src < fixed->devices(); ++src) {
    for (int dst = 0; dst < fixed->devices(); ++dst) {
      for (const auto id : route(*fixed, src, dst)) ++load[id.index()];
    }
  }
  EXPECT_GT(*std::min_element(load.begin(), load.end()), 0);
}

TEST(MeshRailCube, TorusModule) {
  const auto cube = make("mesh-rail-cube:m=16,n=4,module=4x4");
  EXPECT_EQ(stops(*cube, 0, 16 + 7),
            (Names{"device 0 (0;0)", "rail switch (*;0)", "device 16 (1;0)", "device 19 (1;3)", "device 23 (1;7)"}));
  EXPECT_EQ(cube->characteristics().ports_per_device, 5);
  // A row or column of two has one cable: 6 positions with 3 columns' and 6 rows' cables.
  EXPECT_EQ(make("mesh-rail-cube:m=6,n=1,module=2x3")->characteristics().links, 3 + 6);
  EXPECT_EQ(make("mesh-rail-cube:m=4,n=3,module=4x1")->characteristics().links,
            make("mesh-rail-cube:m=4,n=3,module=ring")->characteristics().links);
}

// 13 of 4 x 4 modules: three whole cubes of level 1, and one module of the fourth.
TEST(MeshRailCube, PartlyFilledTopLevel) {
  const auto cube = make("mesh-rail-cube:m=4,n=4x4,modules=13");
  EXPECT_EQ(cube->devices(), 52);
  EXPECT_TRUE(cube->radices().empty());
  const auto closed = cube->characteristics();
  // Level 1: 4 lines, level 2: 4 lines, two rails each; one of the first is a module alone.
  EXPECT_EQ(closed.switches, (4 + 4) * 2);
  EXPECT_EQ(closed.links, 13 * (6 + 4));
  // From (3,0) to (1,2): the top digit falls, so it goes first although the source's position is of level 1; module
  // (3,2) does not exist.
  EXPECT_EQ(stops(*cube, 48, 4 * (2 + 4 * 1) + 3).front(), "device 48 (3,0;0)");
  for (FlowHash flow = 0; flow < 20; ++flow) {
    const auto names = stops(*cube, 48, 4 * (2 + 4 * 1) + 3, flow);
    ASSERT_GE(names.size(), 4U);
    EXPECT_TRUE(names[2].starts_with("rail switch (*,0;")) << names[2];
  }
  // Whole cubes are those of a smaller radix, with ports to spare.
  EXPECT_EQ(make("mesh-rail-cube:m=4,n=4x4,modules=16")->instance(), "mesh-rail-cube:m=4,n=4x4,planes=1");
}

// Most routes of a partly filled cube are shortest all the same, and none is longer by more than two moves.
TEST(MeshRailCube, PartlyFilledRoutesAreNearlyShortest) {
  const auto cube = make("mesh-rail-cube:m=4,n=5x4,modules=17");
  int longer = 0;
  int pairs = 0;
  for (int src = 0; src < cube->devices(); ++src) {
    const auto distance = testing::distances(*cube, src);
    for (int dst = 0; dst < cube->devices(); ++dst) {
      const int extra = static_cast<int>(route(*cube, src, dst, 1).size()) - distance[static_cast<std::size_t>(dst)];
      ASSERT_LE(extra, 2);
      longer += extra > 0 ? 1 : 0;
      ++pairs;
    }
  }
  EXPECT_LT(longer, pairs / 2);
}

TEST(MeshRailCube, RefusesRarerFormsThatItCannotBuild) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"mesh-rail-cube:m=4,n=4x4,modules=12", "modules=12, but n=4x4 holds 13 to 16"},
      {"mesh-rail-cube:m=4,n=4x4,modules=17", "modules=17, but n=4x4 holds 13 to 16"},
      {"mesh-rail-cube:m=4,n=4x1,modules=3", "modules=3, but n=4x1 holds 4 to 4"},
      {"mesh-rail-cube:m=4,modules=3", "'modules' needs the sizes of the cube, 'n'"},
      {"mesh-rail-cube:m=4,n=4x4,modules=0", "'modules' is '0'"},
      {"mesh-rail-cube:m=4,n=4x4,modules=13,module=ring", "only with module=full"},
      {"mesh-rail-cube:m=16,n=4,module=4x5", "module=4x5 has 20 positions, but m=16"},
      {"mesh-rail-cube:m=16,n=4,module=4x", "unknown module '4x'"},
      {"mesh-rail-cube:m=16,n=4,module=99999999999x4", "unknown module '99999999999x4'"},
      {"mesh-rail-cube:m=16,n=4x4,module=4x4", "needs rails of all levels at every position: t=1, but n=4x4"},
      {"mesh-rail-cube:m=4,n=4,routing=random", "unknown routing 'random'"},
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
