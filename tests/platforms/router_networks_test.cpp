// Routes of hyperx, dragonfly, hamming-mesh, slim-fly and jellyfish, and sizes that are refused.
#include <gtest/gtest.h>

#include <set>

#include "platforms/topology.hpp"
#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make(const std::string& text, int devices = 1) {
  return make_topology(text, {devices, BytesPerSecond(1e9), Seconds(1e-6)});
}

using Names = std::vector<std::string>;

Names stops(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, flow, path);
  Names names;
  for (const auto id : path) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

TEST(Dragonfly, MinimalRoutesCrossOneGlobalCable) {
  const auto network = make("dragonfly:p=2,a=4,h=2,g=9");
  for (int src = 0; src < network->devices(); ++src) {
    for (int dst = 0; dst < network->devices(); ++dst) {
      if (src == dst) continue;
      const auto names = stops(*network, src, dst);
      std::set<std::string> groups;
      for (std::size_t i = 0; i + 1 < names.size(); ++i) groups.insert(names[i].substr(0, names[i].find('.')));
      EXPECT_EQ(groups.size(), src / 8 == dst / 8 ? 1U : 2U);
      EXPECT_LE(names.size(), 5U);
    }
  }
  // Group 0's port u = v leads to group 1 + v: port 0 of router 0 to group 1, whose port g-2-0 = 7 is at router 3.
  EXPECT_EQ(stops(*network, 0, 8 + 7), (Names{"router 0.0", "router 1.3", "device 15 (1,3,1)"}));
  EXPECT_EQ(stops(*network, 2, 8), (Names{"router 0.1", "router 0.0", "router 1.3", "router 1.0", "device 8 (1,0,0)"}));
}

TEST(Dragonfly, ValiantSpreadsOverAllOtherGroups) {
  const auto network = make("dragonfly:p=2,a=4,h=2,g=9,routing=valiant");
  std::set<std::string> groups;
  for (FlowHash flow = 0; flow < 300; ++flow) {
    for (const auto& name : stops(*network, 0, 8, flow)) {
      if (name.starts_with("router")) groups.insert(name.substr(0, name.find('.')));
    }
  }
  EXPECT_EQ(groups.size(), 9U);
}

TEST(HyperX, CorrectsOneDigitACable) {
  const auto fixed = make("hyperx:dims=4x3,t=2,routing=fixed");
  // Router 1 = (0,1) to router 10 = (2,2): the lower digit first.
  EXPECT_EQ(stops(*fixed, 2, 20), (Names{"router (0,1)", "router (0,2)", "router (2,2)", "device 20 (2,2;0)"}));
  const auto hashed = make("hyperx:dims=4x3,t=2");
  std::set<Names> ways;
  for (FlowHash flow = 0; flow < 50; ++flow) ways.insert(stops(*hashed, 2, 20, flow));
  EXPECT_EQ(ways.size(), 2U);
}

TEST(HammingMesh, GoesAlongTheRowThenAlongTheColumn) {
  const auto network = make("hamming-mesh:a=2,b=2,x=2,y=2");
  // (column 0, row 0) to (column 3, row 3): by the west edge into the row's switch, in at the east edge of the other
  // board; the same along the column.
  EXPECT_EQ(stops(*network, 0, 15),
            (Names{"row switch 0", "device 3 (board 1,0; 1,0)", "column switch 3", "device 15 (board 1,1; 1,1)"}));
  EXPECT_EQ(stops(*network, 0, 1), (Names{"device 1 (board 0,0; 1,0)"}));
}

TEST(SlimFly, RoutersAreAtMostTwoHopsApart) {
  for (const char* text : {"slim-fly:q=3,t=1", "slim-fly:q=7,t=1", "slim-fly:q=11,t=1", "slim-fly:q=13,t=1"}) {
    const auto counts = testing::measure(*make(text), 1);
    EXPECT_TRUE(counts.connected) << text;
    EXPECT_EQ(counts.diameter, 4) << text;
  }
}

TEST(Jellyfish, TheSeedIsTheGraph) {
  const auto one = make("jellyfish:switches=16,degree=7,t=4,seed=1");
  const auto same = make("jellyfish:switches=16,degree=7,t=4,seed=1");
  const auto other = make("jellyfish:switches=16,degree=7,t=4,seed=2");
  const auto ends = [](const Topology& topology) {
    std::vector<std::pair<int, int>> all;
    for (const auto& link : topology.links()) all.emplace_back(link.from, link.to);
    return all;
  };
  EXPECT_EQ(ends(*one), ends(*same));
  EXPECT_NE(ends(*one), ends(*other));
  const auto closed = one->characteristics();
  EXPECT_EQ(closed.links, 120);  // topologies.md's row; its graph was another one: mean path 3.460
  EXPECT_EQ(closed.max_switch_radix, 11);
  EXPECT_NEAR(closed.mean_path, 3.460, 0.05);
}

TEST(RouterNetworks, SizesThatAreLeftOutHoldTheDevices) {
  for (const char* name : {"hyperx", "dragonfly", "hamming-mesh", "slim-fly", "jellyfish"}) {
    for (const int devices : {1, 2, 3, 5, 9, 17, 40, 64, 100, 257, 1000}) {
      const auto network = make(name, devices);
      EXPECT_GE(network->devices(), devices) << network->instance();
      EXPECT_LE(network->devices(), 54 + 4 * devices) << network->instance();
    }
  }
}

TEST(RouterNetworks, ImpossibleSizesAreRefused) {
  for (const char* text : {"hyperx:dims=0x4",
                           "hyperx:dims=4x4,t=0",
                           "hyperx:dims=4096x4096,t=4",
                           "hyperx:dims=4,routing=torus",
                           "hyperx:dims=1x1x1x1x1x1x1x1x1",
                           "dragonfly:p=1,a=2,h=1,g=9",
                           "dragonfly:p=0",
                           "dragonfly:routing=ugal",
                           "dragonfly:p=4096,a=4096,h=1,g=2",
                           "hamming-mesh:a=0",
                           "hamming-mesh:x=65536,y=65536",
                           "slim-fly:q=4",
                           "slim-fly:q=9",
                           "slim-fly:q=997,t=60000",
                           "jellyfish:switches=4,degree=4",
                           "jellyfish:switches=5,degree=3",
                           "jellyfish:switches=6,degree=1",
                           "jellyfish:switches=2,degree=0",
                           "jellyfish:t=0",
                           "jellyfish:seed=-1"}) {
    EXPECT_THROW((void)make(text), Error) << text;
  }
  EXPECT_THROW((void)make("dragonfly:p=1,a=1,h=1", 1000), Error);
}

}  // namespace
}  // namespace tandem
