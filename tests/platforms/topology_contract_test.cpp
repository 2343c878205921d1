// The contract of a topology, tested over every registered name: a new plug-in needs only its row in the table below.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "platforms/cables.hpp"
#include "platforms/topology.hpp"
#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

std::string file(const std::string& name) {
  return TANDEM_SOURCE_DIR "/tests/platforms/networks/" + name;
}
std::string network(const std::string& name) {
  return "astra-sim-network:file=" + file(name + ".yml");
}

// Where a file states the rates, others are refused.
bool has_own_rates(const std::string& instance) {
  return instance.find(TANDEM_SOURCE_DIR) != std::string::npos;
}

// Instances small enough for exhaustive checks. A registered name without instances fails a test.
const std::map<std::string, std::vector<std::string>>& instances() {
  static const std::map<std::string, std::vector<std::string>> table{
      {"astra-sim-network",
       {network("ring"), network("fully-connected"), network("switch"), network("ring-fully-connected-switch"),
        network("torus") + ",planes=2", network("pairs"), network("odd"), network("switches") + ",gigabyte=GB",
        network("switch-ring-odd")}},
      {"bcube",
       {"bcube:n=2,k=0", "bcube:n=5,k=0", "bcube:n=2,k=1", "bcube:n=3,k=1", "bcube:n=5,k=1,planes=2", "bcube:n=8,k=1",
        "bcube:n=4,k=2", "bcube:n=3,k=2,routing=rotated", "bcube:n=4,k=2,routing=parallel", "bcube:n=2,k=3",
        "bcube:n=2,k=2,routing=parallel,planes=3", "bcube:n=9,k=1,routing=rotated", "bcube:n=6,k=0,routing=parallel"}},
      {"dcell",
       {"dcell:n=2,k=0", "dcell:n=5,k=0", "dcell:n=2,k=1", "dcell:n=3,k=1", "dcell:n=4,k=1", "dcell:n=7,k=1",
        "dcell:n=10,k=1,planes=2", "dcell:n=2,k=2", "dcell:n=3,k=2,planes=3"}},
      {"ficonn",
       {"ficonn:n=2,k=0", "ficonn:n=6,k=0", "ficonn:n=2,k=1", "ficonn:n=4,k=1", "ficonn:n=8,k=1", "ficonn:n=16,k=1",
        "ficonn:n=10,k=1,planes=2", "ficonn:n=2,k=4", "ficonn:n=4,k=2", "ficonn:n=6,k=2,planes=3"}},
      {"full-mesh",
       {"full-mesh:devices=1", "full-mesh:devices=2", "full-mesh:devices=7", "full-mesh:devices=16",
        "full-mesh:devices=37,planes=2"}},
      {"hypercube",
       {"hypercube:dimensions=0", "hypercube:dimensions=1", "hypercube:dimensions=3,routing=hashed",
        "hypercube:dimensions=4,planes=3", "hypercube:dimensions=5", "hypercube:dimensions=5,routing=hashed"}},
      {"leaf-spine",
       {"leaf-spine:leaves=1,down=1,spines=1,up=1", "leaf-spine:leaves=1,down=5,spines=1,up=2",
        "leaf-spine:leaves=2,down=1,spines=1,up=1", "leaf-spine:leaves=8,down=8,spines=8,up=8",
        "leaf-spine:leaves=8,down=8,spines=2,up=2", "leaf-spine:leaves=8,down=8,spines=2,up=4,routing=ecmp",
        "leaf-spine:leaves=5,down=3,spines=2,up=4,planes=2", "leaf-spine:leaves=7,down=5,spines=1,up=3,routing=ecmp",
        "leaf-spine:leaves=3,down=6,oversubscription=1.5,spines=4",
        "leaf-spine:leaves=6,down=2,spines=4,up=4,routing=ecmp,planes=3"}},
      {"dragonfly",
       {"dragonfly:p=1,a=1,h=1,g=1", "dragonfly:p=2,a=1,h=1,g=2", "dragonfly:p=2,a=4,h=2,g=8",
        "dragonfly:p=2,a=4,h=2,g=4,planes=2", "dragonfly:p=2,a=4,h=2,g=6,routing=valiant", "dragonfly:p=3,a=2,h=2,g=1",
        "dragonfly:p=1,a=2,h=3,g=2,routing=valiant"}},
      {"hamming-mesh",
       {"hamming-mesh:a=1,b=1,x=1,y=1", "hamming-mesh:a=1,b=1,x=4,y=4", "hamming-mesh:a=2,b=2,x=4,y=4",
        "hamming-mesh:a=4,b=4,x=2,y=2", "hamming-mesh:a=2,b=3,x=3,y=2,planes=2", "hamming-mesh:a=5,b=1,x=2,y=1",
        "hamming-mesh:a=2,b=2,x=1,y=1", "hamming-mesh:a=4,b=2,x=2,y=1", "hamming-mesh:a=1,b=1,x=8,y=8",
        "hamming-mesh:a=2,b=1,x=6,y=8", "hamming-mesh:a=2,b=2,x=8,y=4"}},
      {"hyperx",
       {"hyperx:dims=1,t=1", "hyperx:dims=1,t=5", "hyperx:dims=4x4,t=4", "hyperx:dims=8,t=8", "hyperx:dims=3x2,t=2",
        "hyperx:dims=3x3,t=2", "hyperx:dims=4x3x2,t=1,copies=2", "hyperx:dims=4x4,t=2,planes=2,routing=fixed"}},
      {"jellyfish",
       {"jellyfish:switches=1,degree=0,t=3", "jellyfish:switches=2,degree=1,t=2", "jellyfish:switches=16,degree=7,t=4",
        "jellyfish:switches=9,degree=4,t=1,seed=5", "jellyfish:switches=12,degree=3,t=2,planes=2"}},
      {"slim-fly", {"slim-fly:q=3,t=2", "slim-fly:q=5,t=4", "slim-fly:q=5,t=1,planes=2", "slim-fly:q=7,t=1"}},
      {"link-list",
       {"link-list:links=" + file("ladder.links.csv"),
        "link-list:links=" + file("leaves.links.csv") + ",nodes=" + file("leaves.nodes.csv") + ",planes=2"}},
      {"simgrid-xml", {"simgrid-xml:file=" + file("star.xml"), "simgrid-xml:file=" + file("tree.xml") + ",planes=2"}},
      {"star", {"star:devices=1", "star:devices=2", "star:devices=7", "star:devices=16,planes=4"}},
      {"fat-tree",
       {"fat-tree:k=2", "fat-tree:k=4", "fat-tree:k=6", "fat-tree:k=4,oversubscription=2", "fat-tree:k=8",
        "fat-tree:k=8,oversubscription=4", "fat-tree:k=6,oversubscription=1.5,planes=2", "fat-tree:k=4,planes=8",
        "fat-tree:k=4,routing=ecmp", "fat-tree:k=8,oversubscription=2,routing=ecmp"}},
      {"torus",
       {"torus:dims=1", "torus:dims=2", "torus:dims=3", "torus:dims=1x1x4", "torus:dims=5", "torus:dims=64",
        "torus:dims=8x8", "torus:dims=4x4x4", "torus:dims=2x2x2", "torus:dims=2x3x4", "torus:dims=3x3",
        "torus:dims=5x3x3", "torus:dims=2x2x2x2x2", "torus:dims=6x4,planes=3", "torus:dims=3x1x5x2", "torus:dims=7x6"}},
      {"mesh-rail-cube",
       {"mesh-rail-cube:m=1,n=5",
        "mesh-rail-cube:m=4,n=1",
        "mesh-rail-cube:m=8,n=8",
        "mesh-rail-cube:m=4,n=16",
        "mesh-rail-cube:m=4,n=4x4",
        "mesh-rail-cube:m=2,n=4x3",
        "mesh-rail-cube:m=6,n=3x3x3",
        "mesh-rail-cube:m=4,n=5x3,planes=2",
        "mesh-rail-cube:m=3,n=5",
        "mesh-rail-cube:m=5,n=4",
        "mesh-rail-cube:m=4,n=2x1x3x2",
        "mesh-rail-cube:m=4,n=7x6",
        "mesh-rail-cube:m=4,n=8x8",
        "mesh-rail-cube:m=8,n=8,module=ring",
        "mesh-rail-cube:m=4,n=16,module=ring",
        "mesh-rail-cube:m=4,n=4x4,module=ring",
        "mesh-rail-cube:m=2,n=3x3,module=ring",
        "mesh-rail-cube:m=5,n=4,module=ring",
        "mesh-rail-cube:m=6,n=2x3x2,module=ring",
        "mesh-rail-cube:m=8,n=2x2x2x2,module=ring",
        "mesh-rail-cube:m=4,n=4x4,t=2",
        "mesh-rail-cube:m=6,n=3x2x3,t=2",
        "mesh-rail-cube:m=8,n=2x2x2x2,t=3",
        "mesh-rail-cube:m=6,n=2x3x2,t=2,module=ring",
        "mesh-rail-cube:m=3,n=2x3x2,t=3",
        "mesh-rail-cube:m=8,n=8,routing=fixed",
        "mesh-rail-cube:m=6,n=3x3x3,routing=fixed",
        "mesh-rail-cube:m=4,n=4x4,module=ring,routing=fixed",
        "mesh-rail-cube:m=4,n=4x4,modules=13",
        "mesh-rail-cube:m=4,n=3x4,modules=10,planes=2",
        "mesh-rail-cube:m=6,n=3x2x3,modules=17,routing=fixed",
        "mesh-rail-cube:m=6,n=3x3x3,modules=22,t=2",
        "mesh-rail-cube:m=6,n=1x3x2,routing=fixed",
        "mesh-rail-cube:m=16,n=4,module=4x4",
        "mesh-rail-cube:m=6,n=5,module=2x3",
        "mesh-rail-cube:m=15,n=3,module=5x3,routing=fixed",
        "mesh-rail-cube:m=4,n=3x2,t=2,module=4x1"}},
      {"rail-only",
       {"rail-only:m=1,nodes=1", "rail-only:m=1,nodes=5", "rail-only:m=4,nodes=1", "rail-only:m=8,nodes=8",
        "rail-only:m=8,nodes=7,planes=2", "rail-only:m=3,nodes=5", "rail-only:m=4,nodes=6,nvlink=1",
        "rail-only:m=6,nodes=6,nvlink=2", "rail-only:m=2,nodes=8,radix=4", "rail-only:m=2,nodes=16,radix=4",
        "rail-only:m=3,nodes=11,radix=4,planes=2", "rail-only:m=2,nodes=30,radix=6,routing=ecmp",
        "rail-only:m=4,nodes=9,radix=8,routing=ecmp"}},
      {"rail-optimized",
       {"rail-optimized:m=1,nodes=1", "rail-optimized:m=1,nodes=5", "rail-optimized:m=4,nodes=1",
        "rail-optimized:m=8,nodes=8", "rail-optimized:m=8,nodes=7,planes=2", "rail-optimized:m=3,nodes=5,nvlink=2",
        "rail-optimized:m=2,nodes=8,radix=4", "rail-optimized:m=2,nodes=8,radix=4,pxn=no",
        "rail-optimized:m=4,nodes=8,radix=8", "rail-optimized:m=4,nodes=7,radix=8,pxn=no,routing=ecmp",
        "rail-optimized:m=2,nodes=5,radix=4,routing=ecmp", "rail-optimized:m=3,nodes=10,radix=6,nvlink=1",
        "rail-optimized:m=4,nodes=9,radix=8,planes=2"}},
      {"mesh-clos-rails",
       {"mesh-clos-rails:m=1,n=1", "mesh-clos-rails:m=1,n=5", "mesh-clos-rails:m=4,n=1", "mesh-clos-rails:m=8,n=8",
        "mesh-clos-rails:m=3,n=5", "mesh-clos-rails:m=5,n=4,planes=2", "mesh-clos-rails:m=4,n=8,radix=4",
        "mesh-clos-rails:m=4,n=16,radix=4", "mesh-clos-rails:m=2,n=12,radix=4,planes=3",
        "mesh-clos-rails:m=3,n=17,radix=6,routing=ecmp", "mesh-clos-rails:m=2,n=29,radix=6"}},
      {"recursive-full-mesh",
       {"recursive-full-mesh:m=1,g=1", "recursive-full-mesh:m=1,g=2", "recursive-full-mesh:m=4,g=1",
        "recursive-full-mesh:m=8,g=8", "recursive-full-mesh:m=8,g=9", "recursive-full-mesh:m=5,g=3,planes=2",
        "recursive-full-mesh:m=4,g=2", "recursive-full-mesh:m=2,g=3x7", "recursive-full-mesh:m=4,g=4x3",
        "recursive-full-mesh:m=3,g=1x4x2", "recursive-full-mesh:m=2,g=2x3x4,planes=3",
        "recursive-full-mesh:m=4,g=3x5,routing=fixed", "recursive-full-mesh:m=8,g=4x8"}},
      {"mesh-torus",
       {"mesh-torus:m=1,dims=1", "mesh-torus:m=1,dims=5", "mesh-torus:m=1,dims=4,module=switch",
        "mesh-torus:m=4,dims=1", "mesh-torus:m=8,dims=8", "mesh-torus:m=8,dims=8,module=switch",
        "mesh-torus:m=4,dims=4x4", "mesh-torus:m=4,dims=4x4,module=switch", "mesh-torus:m=8,dims=4x2,module=switch",
        "mesh-torus:m=2,dims=5x3,planes=2", "mesh-torus:m=6,dims=3x2x4", "mesh-torus:m=3,dims=2x2x3,module=switch",
        "mesh-torus:m=6,dims=6x2,routing=fixed", "mesh-torus:m=4,dims=6x4,module=switch,routing=fixed",
        "mesh-torus:m=3,dims=4x1x2", "mesh-torus:m=5,dims=7"}},
  };
  return table;
}

std::vector<std::string> all_instances() {
  std::vector<std::string> all;
  for (const auto& [name, list] : instances()) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::unique_ptr<Topology> make(const std::string& text) {
  return make_topology(text, {});
}

TEST(TopologyContract, EveryRegisteredNameHasInstances) {
  for (const auto& name : Registry<Topology>::instance().names()) {
    EXPECT_TRUE(instances().contains(name)) << "add instances of '" << name << "' to the table of this test";
  }
  for (const auto& [name, list] : instances()) EXPECT_EQ(Registry<Topology>::instance().info(name).name, name);
}

class TopologyContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { topology_ = make(GetParam()); }
  std::unique_ptr<Topology> topology_;
};

TEST_P(TopologyContract, LinksAreCablesOfTheGivenRate) {
  const Topology::PluginContext context{1, BytesPerSecond(3e9), Seconds(7e-7)};
  const bool own_rates = has_own_rates(GetParam());
  if (own_rates) {
    EXPECT_THROW((void)make_topology(GetParam(), context), Error);
  }
  const auto topology = own_rates ? make(GetParam()) : make_topology(GetParam(), context);
  ASSERT_EQ(topology->links().size() % 2, 0U);
  for (std::size_t id = 0; id < topology->links().size(); id += 2) {
    const auto& there = topology->links()[id];
    const auto& back = topology->links()[id + 1];
    ASSERT_EQ(there.from, back.to);
    ASSERT_EQ(there.to, back.from);
    ASSERT_NE(there.from, there.to);
    ASSERT_TRUE(there.from >= 0 && there.from < topology->vertices());
    ASSERT_TRUE(there.to >= 0 && there.to < topology->vertices());
    ASSERT_GE(there.width, 1);
    ASSERT_EQ(there.width % topology->planes(), 0);
    ASSERT_EQ(there.width, back.width);
    ASSERT_EQ(there.bandwidth, back.bandwidth);
    ASSERT_EQ(there.latency, back.latency);
    if (!own_rates) {
      ASSERT_DOUBLE_EQ(there.bandwidth.count(), 3e9 * there.width);
      ASSERT_EQ(there.latency, Seconds(7e-7));
    }
    ASSERT_EQ(there.kind == LinkKind::direct, there.from < topology->devices() && there.to < topology->devices());
    ASSERT_EQ(there.kind == LinkKind::switch_link,
              there.from >= topology->devices() && there.to >= topology->devices());
  }
}

// Shortest ones, but for routings that say that they are not.
TEST_P(TopologyContract, RoutesAreShortestWalks) {
  std::vector<LinkId> path{LinkId{0}};
  for (int src = 0; src < topology_->devices(); ++src) {
    const auto distance = testing::distances(*topology_, src);
    for (int dst = 0; dst < topology_->devices(); ++dst) {
      for (const FlowHash flow : {0U, 1U, 77U}) {
        topology_->route(DeviceId{src}, DeviceId{dst}, flow, path);
        ASSERT_EQ(testing::walk_fault(*topology_, DeviceId{src}, DeviceId{dst}, path), "")
            << topology_->vertex_name(src) << " to " << topology_->vertex_name(dst);
        const int shortest = distance[static_cast<std::size_t>(dst)];
        ASSERT_GE(static_cast<int>(path.size()), shortest);
        if (topology_->shortest_routing()) {
          ASSERT_EQ(static_cast<int>(path.size()), shortest)
              << topology_->vertex_name(src) << " to " << topology_->vertex_name(dst);
        }
      }
    }
  }
}

TEST_P(TopologyContract, CharacteristicsAgreeWithBreadthFirstSearch) {
  const auto counts = testing::measure(*topology_, topology_->planes());
  const auto closed = topology_->characteristics();
  EXPECT_TRUE(counts.connected);
  EXPECT_EQ(closed.devices, topology_->devices());
  EXPECT_EQ(closed.switches, counts.switches);
  EXPECT_EQ(closed.max_switch_radix, counts.max_switch_radix);
  EXPECT_EQ(closed.links, counts.links);
  EXPECT_DOUBLE_EQ(closed.ports_per_device * topology_->devices(), static_cast<double>(counts.device_ports));
  EXPECT_DOUBLE_EQ(closed.switch_ports_per_device * topology_->devices(), static_cast<double>(counts.switch_ports));
  EXPECT_EQ(closed.diameter, counts.diameter);
  EXPECT_NEAR(closed.mean_path, counts.mean_path, 1e-12 * counts.mean_path);
}

TEST_P(TopologyContract, CostItemsCountEveryPortAndCableOnce) {
  const auto counts = testing::measure(*topology_, topology_->planes());
  const auto cost = topology_->cost_items();
  EXPECT_EQ(cost.switch_ports, counts.switch_ports);
  EXPECT_EQ(cost.device_ports, counts.device_ports);
  EXPECT_EQ(cost.board_links + cost.copper_cables + cost.optical_cables, counts.links);
}

// Cable by cable the same lengths as in the counts that prices are applied to; every port of a device, and of a switch
// of every plane, has one cable.
TEST_P(TopologyContract, CablesHaveTheLengthsOfTheCostItems) {
  const auto cost = topology_->cost_items();
  std::map<LengthClass, std::int64_t> cables;
  std::int64_t node_switch_ports = 0;
  std::map<std::pair<int, int>, std::vector<std::int64_t>> ports;  // by vertex and plane; a device is in all planes
  for (const auto& cable : cables_of(*topology_)) {
    ++cables[cable.length];
    const auto& link = topology_->link(cable.link);
    for (const int end : {link.from, link.to}) {
      node_switch_ports += cable.length == LengthClass::board && end >= topology_->devices() ? 1 : 0;
    }
    ASSERT_TRUE(cable.plane >= 0 && cable.plane < topology_->planes());
    EXPECT_EQ(cable.length, topology_->length_class(LinkId{cable.link.value + 1})) << "differs by direction";
    ports[{link.from, link.from < topology_->devices() ? 0 : cable.plane}].push_back(cable.from_port);
    ports[{link.to, link.to < topology_->devices() ? 0 : cable.plane}].push_back(cable.to_port);
  }
  EXPECT_EQ(cables[LengthClass::board], cost.board_links);
  EXPECT_EQ(cables[LengthClass::copper], cost.copper_cables);
  EXPECT_EQ(cables[LengthClass::optical], cost.optical_cables);
  EXPECT_EQ(node_switch_ports, cost.node_switch_ports);
  for (auto& [vertex, numbers] : ports) {
    std::sort(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_EQ(numbers[i], static_cast<std::int64_t>(i)) << topology_->vertex_name(vertex.first);
    }
  }
}

TEST_P(TopologyContract, BisectionLiesBetweenItsBounds) {
  const auto closed = topology_->characteristics();
  const auto lower = testing::bisection_lower_bound(*topology_);
  EXPECT_GE(closed.bisection_links, lower * (1 - 1e-9));
  // The closed form names a split that exists: no smaller than the best of the structural splits, and no larger.
  if (topology_->devices() > 1) {
    auto upper = static_cast<double>(testing::bisection_upper_bound(*topology_));
    if (const auto own = topology_->bisection_split(); !own.empty()) {
      ASSERT_EQ(own.size(), static_cast<std::size_t>(topology_->devices()));
      ASSERT_LE(std::abs(2 * std::count(own.begin(), own.end(), true) - topology_->devices()), 1);
      upper = std::min(upper, static_cast<double>(testing::min_cut(*topology_, own)));
    }
    // The best of a few splits is an upper bound that this test's splits may lie below, or above.
    if (closed.bisection_searched) {
      EXPECT_LE(closed.bisection_links, 1.1 * upper);
      return;
    }
    EXPECT_LE(closed.bisection_links, upper);
    // What is proved may be less than the splits that this test knows of.
    if (!closed.bisection_proved) {
      EXPECT_DOUBLE_EQ(closed.bisection_links, upper);
    }
  } else {
    EXPECT_EQ(closed.bisection_links, 0);
  }
}

TEST_P(TopologyContract, TheInstanceNameBuildsItAgain) {
  const auto again = make(topology_->instance());
  EXPECT_EQ(again->instance(), topology_->instance());
  EXPECT_EQ(again->planes(), topology_->planes());
  ASSERT_EQ(again->devices(), topology_->devices());
  ASSERT_EQ(again->vertices(), topology_->vertices());
  ASSERT_EQ(again->links().size(), topology_->links().size());
  for (std::size_t id = 0; id < again->links().size(); ++id) {
    const auto& a = again->links()[id];
    const auto& b = topology_->links()[id];
    ASSERT_TRUE(a.from == b.from && a.to == b.to && a.bandwidth == b.bandwidth && a.latency == b.latency &&
                a.kind == b.kind && a.width == b.width);
  }
  std::vector<LinkId> path;
  std::vector<LinkId> path_again;
  for (int dst = 0; dst < topology_->devices(); ++dst) {
    topology_->route(DeviceId{0}, DeviceId{dst}, 5, path);
    again->route(DeviceId{0}, DeviceId{dst}, 5, path_again);
    ASSERT_EQ(path, path_again);
  }
}

TEST_P(TopologyContract, PlanesMultiplyCountsAndRateButNotTheGraph) {
  // The canonical name ends in ",planes=P".
  const auto sizes = topology_->instance().substr(0, topology_->instance().rfind(",planes="));
  const auto single = make(sizes + ",planes=1");
  const auto tripled = make(sizes + ",planes=3");
  const auto one = single->characteristics();
  const auto three = tripled->characteristics();
  ASSERT_EQ(tripled->links().size(), single->links().size());
  EXPECT_EQ(three.switches, 3 * one.switches);
  EXPECT_EQ(three.links, 3 * one.links);
  EXPECT_DOUBLE_EQ(three.ports_per_device, 3 * one.ports_per_device);
  EXPECT_DOUBLE_EQ(three.bisection_links, 3 * one.bisection_links);
  EXPECT_EQ(three.devices, one.devices);
  EXPECT_EQ(three.max_switch_radix, one.max_switch_radix);
  EXPECT_EQ(three.diameter, one.diameter);
  EXPECT_DOUBLE_EQ(three.mean_path, one.mean_path);
  const auto cost = single->cost_items();
  const auto cost_three = tripled->cost_items();
  EXPECT_EQ(cost_three.switch_ports, 3 * cost.switch_ports);
  EXPECT_EQ(cost_three.node_switch_ports, 3 * cost.node_switch_ports);
  EXPECT_EQ(cost_three.device_ports, 3 * cost.device_ports);
  EXPECT_EQ(cost_three.board_links, 3 * cost.board_links);
  EXPECT_EQ(cost_three.copper_cables, 3 * cost.copper_cables);
  EXPECT_EQ(cost_three.optical_cables, 3 * cost.optical_cables);
}

TEST_P(TopologyContract, RadicesAddressEveryDevice) {
  const auto radices = topology_->radices();
  if (radices.empty()) GTEST_SKIP() << "no digit-wise address";
  std::int64_t product = 1;
  for (const int radix : radices) product *= radix;
  EXPECT_EQ(product, topology_->devices());
}

TEST_P(TopologyContract, VertexNamesAreDifferent) {
  std::map<std::string, int> names;
  for (int vertex = 0; vertex < topology_->vertices(); ++vertex) {
    const auto [first, is_new] = names.emplace(topology_->vertex_name(vertex), vertex);
    ASSERT_TRUE(is_new) << first->first << " names both " << first->second << " and " << vertex;
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  for (auto folder = name.find(TANDEM_SOURCE_DIR); folder != std::string::npos; folder = name.find(TANDEM_SOURCE_DIR)) {
    name.erase(folder, name.find("networks/") + 9 - folder);
  }
  for (auto& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, TopologyContract, ::testing::ValuesIn(all_instances()), test_name);

}  // namespace
}  // namespace tandem
