// mesh-torus: routes by hand, multipath, what it shares with the mesh-rail-cube, refused parameters.
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

TEST(MeshTorus, RoutesByHand) {
  // Position 0 owns rings of the first dimension, position 1 of the second.
  const auto torus = make("mesh-torus:m=2,dims=5x3");
  EXPECT_EQ(stops(*torus, 0, 6), (Names{"device 0 (0,0;0)", "device 8 (0,4;0)", "device 6 (0,3;0)"}));
  EXPECT_EQ(stops(*torus, 0, 23),
            (Names{"device 0 (0,0;0)", "device 2 (0,1;0)", "device 3 (0,1;1)", "device 23 (2,1;1)"}));
  // The only dimension that differs is the other position's: over and back.
  EXPECT_EQ(stops(*torus, 1, 3),
            (Names{"device 1 (0,0;1)", "device 0 (0,0;0)", "device 2 (0,1;0)", "device 3 (0,1;1)"}));
  const auto switched = make("mesh-torus:m=2,dims=5x3,module=switch");
  EXPECT_EQ(stops(*switched, 1, 2),
            (Names{"device 1 (0,0;1)", "module switch (0,0)", "device 0 (0,0;0)", "device 2 (0,1;0)"}));
}

// Two coordinates on the other side of even rings, each either way round; both ends own the first dimension's rings, so
// that the second is on either of two rows.
TEST(MeshTorus, FlowsSpreadOverDirectionsAndRows) {
  const auto hashed = make("mesh-torus:m=4,dims=4x4");
  const auto fixed = make("mesh-torus:m=4,dims=4x4,routing=fixed");
  const int src = 0;
  const int dst = 4 * (2 + 4 * 2) + 2;
  std::set<std::vector<LinkId>> paths;
  std::set<std::vector<LinkId>> one;
  for (FlowHash flow = 0; flow < 200; ++flow) {
    paths.insert(route(*hashed, src, dst, flow));
    one.insert(route(*fixed, src, dst, flow));
  }
  EXPECT_EQ(paths.size(), 2U * 2U * 2U);
  EXPECT_EQ(one.size(), 1U);
}

// The design's figures: diameter sum of floor(d/2) + k, 5, 10 and 15 at 64, 512 and 4096 devices.
TEST(MeshTorus, DiametersOfTheDesign) {
  EXPECT_EQ(make("mesh-torus:m=8,dims=8")->characteristics().diameter, 5);
  EXPECT_EQ(make("mesh-torus:m=8,dims=8x8")->characteristics().diameter, 10);
  EXPECT_EQ(make("mesh-torus:m=9,dims=8x8x8")->characteristics().diameter, 15);
}

TEST(MeshTorus, OfSingleDevicesIsARing) {
  const auto modules = make("mesh-torus:m=1,dims=7")->characteristics();
  const auto ring = make("torus:dims=7")->characteristics();
  EXPECT_EQ(modules.links, ring.links);
  EXPECT_EQ(modules.diameter, ring.diameter);
  EXPECT_DOUBLE_EQ(modules.mean_path, ring.mean_path);
  EXPECT_DOUBLE_EQ(modules.bisection_links, ring.bisection_links);
}

// m + 1 ports, and as many disjoint paths.
TEST(MeshTorus, MaxFlowIsTheNumberOfPorts) {
  for (const char* text : {"mesh-torus:m=8,dims=8", "mesh-torus:m=4,dims=4x4"}) {
    const auto torus = make(text);
    const auto ports = static_cast<std::int64_t>(torus->characteristics().ports_per_device);
    for (int dst = 1; dst < torus->devices(); dst += 5) {
      EXPECT_EQ(testing::max_flow(*torus, DeviceId{0}, DeviceId{dst}), ports) << text << " " << dst;
    }
  }
}

// Three quarters of the rings' cables stay inside blocks of four modules.
TEST(MeshTorus, MostOfARingIsCopper) {
  const auto items = make("mesh-torus:m=8,dims=8x8")->cost_items();
  EXPECT_EQ(items.board_links, 512 * 7 / 2);
  EXPECT_EQ(items.copper_cables, 512 * 3 / 4);
  EXPECT_EQ(items.optical_cables, 512 / 4);
}

TEST(MeshTorus, ChoosesTheMostCubeLikeSizes) {
  const std::map<int, std::string> expected{{1, "1x1"},   {9, "1x2"},    {64, "2x4"},
                                            {512, "8x8"}, {513, "6x11"}, {4096, "16x32"}};
  for (const auto& [devices, dims] : expected) {
    EXPECT_EQ(make("mesh-torus", devices)->instance(), "mesh-torus:m=8,dims=" + dims + ",planes=1") << devices;
  }
  EXPECT_EQ(make("mesh-torus:m=3", 30)->instance(), "mesh-torus:m=3,dims=10,planes=1");
  EXPECT_EQ(make("mesh-torus:dimensions=1", 64)->instance(), "mesh-torus:m=8,dims=8,planes=1");
  for (int devices = 1; devices < 3000; devices += 7) {
    EXPECT_GE(make("mesh-torus", devices)->devices(), devices);
    EXPECT_GE(make("mesh-torus:m=3,module=switch", devices)->devices(), devices);
  }
}

TEST(MeshTorus, RefusesWhatItCannotBuild) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"mesh-torus:m=0", "'m' is '0'"},
      {"mesh-torus:m=8,dims=0x4", "'dims' is '0'"},
      {"mesh-torus:m=8,dims=2x2x2", "3 dimensions do not divide m=8"},
      {"mesh-torus:m=9,dims=2x2x2x2x2x2x2x2x2", "9 dimensions: at most 8"},
      {"mesh-torus:m=8,dims=8,dimensions=1", "leave 'dimensions' out"},
      {"mesh-torus:m=8,dims=8,module=swich", "unknown module 'swich'; did you mean 'switch'?"},
      {"mesh-torus:m=8,dims=8,routing=any", "unknown routing 'any'"},
      {"mesh-torus:m=8,dims=4000000x4000000", "at most 4194304 devices"},
      {"mesh-torus:m=256,dims=16384", "at most 33554432 cables"},
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
