// rail-only, rail-optimized and mesh-clos-rails: routes by hand, tiers and their sizes, what joining the rails adds.
#include <gtest/gtest.h>

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

TEST(RailOnly, CrossesToTheOtherRailInItsOwnNode) {
  const auto rails = make("rail-only:m=4,nodes=3");
  EXPECT_EQ(stops(*rails, 1, 9), (Names{"device 1 (0;1)", "leaf 1.0", "device 9 (2;1)"}));
  EXPECT_EQ(stops(*rails, 1, 2), (Names{"device 1 (0;1)", "NVSwitch 0", "device 2 (0;2)"}));
  EXPECT_EQ(stops(*rails, 1, 11),
            (Names{"device 1 (0;1)", "NVSwitch 0", "device 3 (0;3)", "leaf 3.0", "device 11 (2;3)"}));
}

// Radix 4, 16 nodes: 8 leaves of 2 nodes, 4 pods of 2 leaves and 2 spines, 2 x 2 cores: each rail is a fat-tree of k=4.
TEST(RailOnly, ALargeRailIsAFatTree) {
  const auto rails = make("rail-only:m=2,nodes=16,radix=4");
  EXPECT_EQ(stops(*rails, 1, 3), (Names{"device 1 (0;1)", "leaf 1.0", "device 3 (1;1)"}));
  EXPECT_EQ(stops(*rails, 1, 7), (Names{"device 1 (0;1)", "leaf 1.0", "spine 1.0.1", "leaf 1.1", "device 7 (3;1)"}));
  EXPECT_EQ(stops(*rails, 0, 31), (Names{"device 0 (0;0)", "NVSwitch 0", "device 1 (0;1)", "leaf 1.0", "spine 1.0.1",
                                         "core 1.1.1", "spine 1.3.1", "leaf 1.7", "device 31 (15;1)"}));
  const auto closed = rails->characteristics();
  const auto tree = make("fat-tree:k=4")->characteristics();
  EXPECT_EQ(closed.switches, 16 + 2 * tree.switches);
  EXPECT_EQ(closed.links, 32 * 9 + 2 * tree.links);
}

// D-mod-k spreads the destinations of a pod over its spines and cores: a shift of all nodes along a rail loads no cable
// with more flows than it is wide.
TEST(RailOnly, ShiftsAlongARailAreFreeOfContention) {
  for (const char* text : {"rail-only:m=2,nodes=16,radix=4", "rail-only:m=2,nodes=8,radix=4",
                           "mesh-clos-rails:m=2,n=54,radix=6", "rail-only:m=1,nodes=512,radix=64"}) {
    const auto rails = make(text);
    const int m = rails->radices()[0];
    const int nodes = rails->radices()[1];
    for (int shift = 1; shift < nodes; shift += 1 + nodes / 64) {
      std::vector<int> load(rails->links().size(), 0);
      for (int node = 0; node < nodes; ++node) {
        for (const auto id : route(*rails, node * m, (node + shift) % nodes * m)) {
          ASSERT_LE(++load[id.index()], rails->link(id).width) << text << " shift " << shift;
        }
      }
    }
  }
}

TEST(RailOnly, EcmpUsesEverySpineAndEveryCore) {
  const auto by_destination = make("rail-only:m=2,nodes=16,radix=4");
  const auto hashed = make("rail-only:m=2,nodes=16,radix=4,routing=ecmp");
  std::set<std::vector<LinkId>> one;
  std::set<std::vector<LinkId>> all;
  for (FlowHash flow = 0; flow < 100; ++flow) {
    one.insert(route(*by_destination, 0, 30, flow));
    all.insert(route(*hashed, 0, 30, flow));
  }
  EXPECT_EQ(one.size(), 1U);
  EXPECT_EQ(all.size(), 4U);
}

// Sizes of the design's table of costs: 8-GPU nodes, 64-port switches; switch ports a device with the 9 of NVSwitch.
TEST(RailOnly, TiersOfTheTableOfCosts) {
  struct Row {
    int devices, diameter;
    double switch_ports;
  };
  for (const auto& row : {Row{64, 4, 10}, Row{512, 4, 10}, Row{4096, 6, 12}, Row{32768, 8, 14}}) {
    const auto closed = make("rail-only", row.devices)->characteristics();
    EXPECT_EQ(closed.devices, row.devices);
    EXPECT_EQ(closed.diameter, row.diameter) << row.devices;
    EXPECT_DOUBLE_EQ(closed.switch_ports_per_device, row.switch_ports) << row.devices;
    EXPECT_DOUBLE_EQ(closed.bisection_links, row.devices / 2.0) << row.devices;
  }
}

TEST(MeshClosRails, TiersOfTheTableOfCosts) {
  struct Row {
    int devices, diameter;
    double switch_ports;
  };
  for (const auto& row : {Row{64, 3, 1}, Row{512, 3, 1}, Row{4096, 5, 3}, Row{32768, 7, 5}}) {
    const auto closed = make("mesh-clos-rails", row.devices)->characteristics();
    EXPECT_EQ(closed.devices, row.devices);
    EXPECT_EQ(closed.diameter, row.diameter) << row.devices;
    EXPECT_DOUBLE_EQ(closed.switch_ports_per_device, row.switch_ports) << row.devices;
    EXPECT_DOUBLE_EQ(closed.ports_per_device, 8) << row.devices;
    EXPECT_DOUBLE_EQ(closed.bisection_links, row.devices / 2.0) << row.devices;
  }
}

// A full Clos of R-port switches over all N ports: 3N/R switches of two tiers, 5N/R of three.
TEST(RailOptimized, IsAFullClosOverAllRails) {
  const auto two = make("rail-optimized:m=8,nodes=256,radix=64")->characteristics();
  EXPECT_EQ(two.switches, 256 + 3 * 2048 / 64);
  EXPECT_EQ(two.diameter, 4);
  const auto three = make("rail-optimized:m=8,nodes=512,radix=64")->characteristics();
  EXPECT_EQ(three.switches, 512 + 5 * 4096 / 64);
  EXPECT_EQ(three.links, 4096 * (9 + 3));
  EXPECT_EQ(three.diameter, 6);
  EXPECT_EQ(three.max_switch_radix, 72);
  EXPECT_TRUE(three.bisection_proved);
  EXPECT_DOUBLE_EQ(three.bisection_links, 2048);
}

// What rail-only saves of it is the top tier: without NVSwitches, 704 - 512 = 192 of 320 switches are left.
TEST(RailOptimized, RailOnlyLeavesOutTheTopTier) {
  const auto joined = make("rail-optimized:m=8,nodes=512,radix=64")->characteristics();
  const auto apart = make("rail-only:m=8,nodes=512,radix=64")->characteristics();
  EXPECT_EQ(joined.switches - apart.switches, 128);
  EXPECT_DOUBLE_EQ(joined.switch_ports_per_device - apart.switch_ports_per_device, 2);
  EXPECT_DOUBLE_EQ(joined.bisection_links, apart.bisection_links);
}

// All devices of one rail against another's, a split that rail-only pays for only inside of nodes.
TEST(RailOptimized, RailsAreJoinedAboveTheNodes) {
  const auto cut_between_rails = [](const std::string& text) {
    const auto network = make(text);
    std::vector<bool> side;
    for (int device = 0; device < network->devices(); ++device) side.push_back(device % 2 == 0);
    return testing::min_cut(*network, side);
  };
  EXPECT_EQ(cut_between_rails("rail-only:m=2,nodes=8,radix=4,nvlink=3"), 8 * 3);
  EXPECT_EQ(cut_between_rails("rail-optimized:m=2,nodes=8,radix=4,nvlink=3"), 8 * 3 + 8);
}

TEST(RailOptimized, PxnKeepsMessagesOnTheirRail) {
  const auto pxn = make("rail-optimized:m=4,nodes=8,radix=16");
  EXPECT_EQ(stops(*pxn, 1, 30),
            (Names{"device 1 (0;1)", "NVSwitch 0", "device 2 (0;2)", "leaf 2.0", "device 30 (7;2)"}));
  EXPECT_TRUE(pxn->shortest_routing());
  const auto over_spines = make("rail-optimized:m=4,nodes=8,radix=16,pxn=no");
  EXPECT_EQ(stops(*over_spines, 1, 30),
            (Names{"device 1 (0;1)", "leaf 1.0", "spine 1", "leaf 2.0", "device 30 (7;2)"}));
  // With two leaves a rail, PXN takes six links where the spines take four.
  EXPECT_FALSE(make("rail-optimized:m=4,nodes=16,radix=16")->shortest_routing());
  EXPECT_TRUE(make("rail-optimized:m=4,nodes=16,radix=16,pxn=no")->shortest_routing());
}

TEST(MeshClosRails, GoesAlongItsOwnRailFirst) {
  const auto rails = make("mesh-clos-rails:m=4,n=3");
  EXPECT_EQ(stops(*rails, 1, 11), (Names{"device 1 (0;1)", "leaf 1.0", "device 9 (2;1)", "device 11 (2;3)"}));
  EXPECT_EQ(stops(*rails, 1, 3), (Names{"device 1 (0;1)", "device 3 (0;3)"}));
}

// With one tier it is mesh-rail-cube of one level: the same cables in the same order, the same routes and figures.
TEST(MeshClosRails, OfOneTierIsTheMeshRailCubeOfOneLevel) {
  for (const auto& [m, n] : {std::pair{8, 8}, {4, 16}, {3, 5}, {1, 4}, {5, 1}, {8, 64}}) {
    const auto cube = make(fmt::format("mesh-rail-cube:m={},n={}", m, n));
    const auto rails = make(fmt::format("mesh-clos-rails:m={},n={}", m, n));
    SCOPED_TRACE(cube->instance());
    ASSERT_EQ(rails->devices(), cube->devices());
    ASSERT_EQ(rails->vertices(), cube->vertices());
    ASSERT_EQ(rails->links().size(), cube->links().size());
    for (std::size_t id = 0; id < cube->links().size(); ++id) {
      const auto& a = rails->links()[id];
      const auto& b = cube->links()[id];
      ASSERT_TRUE(a.from == b.from && a.to == b.to && a.kind == b.kind && a.width == b.width &&
                  a.bandwidth == b.bandwidth && a.latency == b.latency)
          << id;
    }
    for (int src = 0; src < cube->devices(); src += 7) {
      for (int dst = 0; dst < cube->devices(); ++dst) ASSERT_EQ(route(*rails, src, dst), route(*cube, src, dst));
    }
    EXPECT_EQ(rails->radices(), cube->radices());
    const auto a = rails->characteristics();
    const auto b = cube->characteristics();
    EXPECT_DOUBLE_EQ(a.mean_path, b.mean_path);
    EXPECT_DOUBLE_EQ(a.bisection_links, b.bisection_links);
    EXPECT_EQ(rails->cost_items().optical_cables, cube->cost_items().optical_cables);
    EXPECT_EQ(rails->cost_items().board_links, cube->cost_items().board_links);
  }
}

TEST(Rails, ChooseNodesAndRadix) {
  EXPECT_EQ(make("rail-only", 1)->instance(), "rail-only:m=8,nodes=1,radix=64,nvlink=9,planes=1");
  EXPECT_EQ(make("rail-only", 65)->instance(), "rail-only:m=8,nodes=9,radix=64,nvlink=9,planes=1");
  EXPECT_EQ(make("mesh-clos-rails:m=4", 100)->instance(), "mesh-clos-rails:m=4,n=25,radix=64,planes=1");
  // Three tiers of 64 ports hold 65,536 devices where rails are joined.
  EXPECT_EQ(make("rail-optimized", 65536)->instance(), "rail-optimized:m=8,nodes=8192,radix=64,nvlink=9,planes=1");
  EXPECT_EQ(make("rail-optimized", 65537)->instance(), "rail-optimized:m=8,nodes=8193,radix=128,nvlink=9,planes=1");
}

// The largest sizes that studies use, of three tiers.
TEST(Rails, SampledRoutesOfLargeOnesAreShortest) {
  Random random(11);
  for (const char* text : {"rail-only", "rail-optimized", "mesh-clos-rails:routing=ecmp", "mesh-torus"}) {
    const auto network = make(text, 32768);
    const auto count = static_cast<std::uint32_t>(network->devices());
    EXPECT_TRUE(network->shortest_routing() || std::string(text) == "rail-optimized");
    for (int sample = 0; sample < 3; ++sample) {
      const auto src = static_cast<int>(random.below(count));
      const auto distance = testing::distances(*network, src);
      for (int i = 0; i < 300; ++i) {
        const auto dst = static_cast<int>(random.below(count));
        const auto path = route(*network, src, dst, static_cast<FlowHash>(i));
        ASSERT_EQ(testing::walk_fault(*network, DeviceId{src}, DeviceId{dst}, path), "") << text;
        const int longer = static_cast<int>(path.size()) - distance[static_cast<std::size_t>(dst)];
        ASSERT_LE(longer, network->shortest_routing() ? 0 : 2) << text;
      }
    }
  }
}

TEST(Rails, RefuseWhatTheyCannotBuild) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"rail-only:m=0", "'m' is '0'"},
      {"rail-only:nodes=0", "'nodes' is '0'"},
      {"rail-only:nvlink=0", "'nvlink' is '0'"},
      {"rail-only:radix=1", "'radix' is '1'"},
      {"rail-only:nodes=-3", "'nodes' is '-3'"},
      {"rail-only:m=1024,nodes=4194304", "at most 4194304 devices"},
      {"rail-only:m=2,nodes=17,radix=4", "three tiers of switches with 4 ports do not join 17 nodes of 2"},
      {"rail-optimized:m=2,nodes=9,radix=4", "three tiers of switches with 4 ports do not join 9 nodes of 2"},
      {"rail-optimized:m=8,nodes=2,radix=4", "do not join 2 nodes of 8"},
      {"rail-only:m=8,nodes=8,routing=ecnp", "unknown routing 'ecnp'; did you mean 'ecmp'?"},
      {"rail-optimized:m=8,nodes=8,pxn=perhaps", "'pxn'"},
      {"mesh-clos-rails:m=1024,n=4096", "at most 33554432 cables"},
      {"mesh-clos-rails:nodes=4", "no parameter 'nodes'"},
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

// Every number of nodes and several radices: the fabric is there, connected, within its radix, and never blocks.
TEST(Rails, EveryNumberOfNodesIsWiredWithinTheRadix) {
  for (const char* name : {"rail-only", "rail-optimized", "mesh-clos-rails"}) {
    for (const int radix : {4, 6, 7}) {
      for (int nodes = 1; nodes <= 32; ++nodes) {
        const auto size = std::string(name) == "mesh-clos-rails" ? "n" : "nodes";
        const auto text = fmt::format("{}:m=2,{}={},radix={}", name, size, nodes, radix);
        const int half = radix / 2;
        const int most = std::string(name) == "rail-optimized" ? radix / 2 * half * half : radix * half * half;
        if (nodes > most) {
          EXPECT_THROW((void)make(text), Error) << text;
          continue;
        }
        const auto network = make(text);
        const auto counts = testing::measure(*network, 1);
        EXPECT_TRUE(counts.connected) << text;
        // NVSwitches have m x nvlink = 18 ports.
        EXPECT_LE(counts.max_switch_radix, std::string(name) == "mesh-clos-rails" ? radix : 18) << text;
        for (int vertex = network->devices(); vertex < network->vertices(); ++vertex) {
          std::int64_t ports = 0;
          for (const auto& link : network->links()) ports += link.from == vertex ? link.width : 0;
          if (network->vertex_name(vertex).starts_with("NVSwitch")) continue;
          EXPECT_LE(ports, radix) << text << " " << network->vertex_name(vertex);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem
