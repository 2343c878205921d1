#include "platforms/cluster.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>

#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

std::vector<LinkId> route(const Cluster& cluster, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  cluster.route(DeviceId{src}, DeviceId{dst}, flow, path);
  return path;
}

std::vector<std::string> stops(const Cluster& cluster, int src, int dst) {
  std::vector<std::string> names{cluster.vertex_name(src)};
  for (const auto id : route(cluster, src, dst)) names.push_back(cluster.vertex_name(cluster.link(id).to));
  return names;
}

using Names = std::vector<std::string>;

ClusterOptions two_nodes() {
  ClusterOptions options;
  options.ranks = 8;
  options.devices_per_node = 4;
  options.nics_per_node = 2;
  options.link_bandwidth = BytesPerSecond(10e9);
  options.link_latency = Seconds(1e-6);
  options.intra_bandwidth = BytesPerSecond(100e9);
  options.intra_latency = Seconds(2e-7);
  options.host_bandwidth = BytesPerSecond(16e9);
  return options;
}

TEST(Cluster, OfSingleDevicesIsTheTopologyItself) {
  ClusterOptions options;
  options.topology = "fat-tree:k=4,planes=2";
  options.ranks = 16;
  const Cluster cluster(options);
  const auto& topology = cluster.topology();
  EXPECT_EQ(cluster.devices(), 16);
  EXPECT_EQ(cluster.nodes(), 16);
  EXPECT_EQ(cluster.vertices(), topology.vertices());
  EXPECT_EQ(cluster.links().size(), topology.links().size());
  EXPECT_EQ(cluster.radices(), topology.radices());
  EXPECT_EQ(cluster.vertex_name(17), topology.vertex_name(17));
  EXPECT_DOUBLE_EQ(cluster.ports_per_device(), 2);
  std::vector<LinkId> path;
  for (int dst = 0; dst < 16; ++dst) {
    topology.route(DeviceId{3}, DeviceId{dst}, 0, path);
    EXPECT_EQ(route(cluster, 3, dst), path);
  }
}

TEST(Cluster, PathsAcrossNodesPassSwitchHostLinkAndNic) {
  const Cluster cluster(two_nodes());
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(cluster.nodes(), 2);
  EXPECT_EQ(stops(cluster, 1, 6), (Names{"device 1 (node 0, 1)", "node 0", "NIC 0.0", "switch", "NIC 1.1", "node 1",
                                         "device 6 (node 1, 2)"}));
  EXPECT_EQ(stops(cluster, 1, 3), (Names{"device 1 (node 0, 1)", "node 0", "device 3 (node 0, 3)"}));
  EXPECT_TRUE(route(cluster, 5, 5).empty());
}

TEST(Cluster, LinksHaveTheRateOfTheirKind) {
  const Cluster cluster(two_nodes());
  const auto path = route(cluster, 1, 6);
  const std::vector<LinkKind> kinds{LinkKind::intra_node,  LinkKind::host, LinkKind::device_port,
                                    LinkKind::device_port, LinkKind::host, LinkKind::intra_node};
  const std::vector<double> rates{100e9, 16e9, 10e9, 10e9, 16e9, 100e9};
  const std::vector<double> latencies{2e-7, 2e-7, 1e-6, 1e-6, 2e-7, 2e-7};
  ASSERT_EQ(path.size(), kinds.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    EXPECT_EQ(cluster.link(path[i]).kind, kinds[i]) << i;
    EXPECT_DOUBLE_EQ(cluster.link(path[i]).bandwidth.count(), rates[i]) << i;
    EXPECT_DOUBLE_EQ(cluster.link(path[i]).latency.count(), latencies[i]) << i;
  }
  EXPECT_NEAR(cluster.route_latency(path).count(), 2.8e-6, 1e-15);
}

TEST(Cluster, WithoutAHostLinkTheNodeIsTheEndPoint) {
  auto options = two_nodes();
  options.host_bandwidth = BytesPerSecond{};
  const Cluster cluster(options);
  EXPECT_EQ(stops(cluster, 1, 6),
            (Names{"device 1 (node 0, 1)", "node 0", "switch", "node 1", "device 6 (node 1, 2)"}));
  EXPECT_EQ(cluster.vertices(), 8 + 2 + 1);
  EXPECT_EQ(cluster.links().size(), 2U * (8 + 4));
}

// Devices 0 and 1 share NIC 0, devices 2 and 3 NIC 1: host and fabric links are common within a pair only.
TEST(Cluster, DevicesShareNics) {
  for (const double host : {16e9, 0.0}) {
    auto options = two_nodes();
    options.host_bandwidth = BytesPerSecond(host);
    const Cluster cluster(options);
    const auto outbound = [&](int device) { return std::vector(route(cluster, device, 4)); };
    const std::size_t fabric = host > 0 ? 2 : 1;
    EXPECT_EQ(outbound(0)[1], outbound(1)[1]);
    EXPECT_EQ(outbound(0)[fabric], outbound(1)[fabric]);
    EXPECT_EQ(outbound(2)[fabric], outbound(3)[fabric]);
    EXPECT_NE(outbound(1)[1], outbound(2)[1]);
    EXPECT_NE(outbound(1)[fabric], outbound(2)[fabric]);
    EXPECT_NE(outbound(0)[0], outbound(1)[0]);
  }
}

TEST(Cluster, IsTheWholeMachineAsBuilt) {
  auto options = two_nodes();
  options.topology = "fat-tree:k=4";
  options.ranks = 9;  // three nodes with six NICs; the tree has 16
  const Cluster cluster(options);
  EXPECT_EQ(cluster.nodes(), 8);
  EXPECT_EQ(cluster.devices(), 32);
  EXPECT_EQ(cluster.radices(), (std::vector<int>{4, 2, 4}));
  EXPECT_DOUBLE_EQ(cluster.ports_per_device(), 0.5);
}

TEST(Cluster, LeftOverNicsAreUnused) {
  for (const double host : {16e9, 0.0}) {
    auto options = two_nodes();
    options.topology = "star:devices=5";
    options.host_bandwidth = BytesPerSecond(host);
    const Cluster cluster(options);
    EXPECT_EQ(cluster.nodes(), 2);
    EXPECT_TRUE(cluster.radices().empty());
    const int unused = cluster.devices() + 2 + (host > 0 ? 4 : 0);
    EXPECT_EQ(cluster.vertex_name(unused), "unused NIC 4");
    EXPECT_EQ(cluster.vertex_name(unused + 1), "switch");
    EXPECT_EQ(cluster.vertices(), unused + 2);
  }
}

TEST(Cluster, RadicesNestNodesAndNics) {
  const auto radices = [](const std::string& topology, int devices, int nics) {
    ClusterOptions options;
    options.topology = topology;
    options.ranks = 1;
    options.devices_per_node = devices;
    options.nics_per_node = nics;
    return Cluster(options).radices();
  };
  using Radices = std::vector<int>;
  EXPECT_EQ(radices("star:devices=6", 4, 1), (Radices{4, 6}));
  EXPECT_EQ(radices("star:devices=6", 4, 2), (Radices{4, 3}));
  EXPECT_EQ(radices("torus:dims=4x4", 4, 2), (Radices{4, 2, 4}));
  EXPECT_EQ(radices("torus:dims=2x4", 4, 4), (Radices{4, 2}));
  EXPECT_EQ(radices("torus:dims=2x4", 4, 2), (Radices{4, 4}));
  EXPECT_EQ(radices("torus:dims=3x2", 4, 2), Radices{});
  EXPECT_EQ(radices("mesh-rail-cube:m=4,n=3x2", 8, 4), (Radices{8, 3, 2}));
}

TEST(ClusterProperties, RoutesAreWalksBetweenDevices) {
  EXPECT_TRUE(rc::check("routes of clusters are valid walks", [] {
    ClusterOptions options;
    options.topology =
        *rc::gen::element<std::string>("star", "fat-tree", "torus", "mesh-rail-cube:m=4,radix=3", "torus:dimensions=1");
    options.nics_per_node = *rc::gen::inRange(1, 4);
    options.devices_per_node = options.nics_per_node * *rc::gen::inRange(1, 4);
    if (options.devices_per_node == 1) options.devices_per_node = 2;
    options.ranks = *rc::gen::inRange(1, 60);
    options.host_bandwidth = BytesPerSecond(*rc::gen::element(0.0, 16e9));
    const Cluster cluster(options);
    RC_ASSERT(cluster.devices() >= options.ranks);
    const auto radices = cluster.radices();
    if (!radices.empty()) {
      int product = 1;
      for (const int radix : radices) product *= radix;
      RC_ASSERT(product == cluster.devices());
    }
    const int src = *rc::gen::inRange(0, cluster.devices());
    for (int dst = 0; dst < cluster.devices(); ++dst) {
      const auto path = route(cluster, src, dst, *rc::gen::arbitrary<FlowHash>());
      RC_ASSERT(testing::walk_fault(cluster, DeviceId{src}, DeviceId{dst}, path) == "");
      RC_ASSERT(path.empty() == (src == dst));
      const bool local = cluster.node_of(DeviceId{src}) == cluster.node_of(DeviceId{dst});
      if (src != dst) RC_ASSERT((path.size() == 2) == local);
    }
  }));
}

TEST(ClusterErrors, EachMistakeIsOneClearUsageError) {
  const auto message = [](auto change) -> std::string {
    auto options = two_nodes();
    change(options);
    try {
      const Cluster cluster(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "accepted";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << text;
  };
  EXPECT_TRUE(has(message([](auto& o) { o.ranks = 0; }), "the number of ranks is 0: it must be a whole number from 1"));
  EXPECT_TRUE(has(message([](auto& o) { o.ranks = 1'000'000'000; }), "the number of ranks is 1000000000"));
  EXPECT_TRUE(has(message([](auto& o) { o.devices_per_node = -1; }), "devices per node is -1"));
  EXPECT_TRUE(has(message([](auto& o) { o.nics_per_node = 0; }), "NICs per node is 0"));
  EXPECT_TRUE(has(message([](auto& o) { o.nics_per_node = 3; }), "3 NICs per node do not divide 4 devices per node"));
  EXPECT_TRUE(has(message([](auto& o) { o.nics_per_node = 8; }), "8 NICs per node do not divide 4 devices per node"));
  EXPECT_TRUE(has(message([](auto& o) { o.intra_bandwidth = BytesPerSecond(0); }), "intra-node bandwidth is 0 B/s"));
  EXPECT_TRUE(has(message([](auto& o) { o.intra_latency = Seconds(-1); }), "intra-node latency is -1 s"));
  EXPECT_TRUE(has(message([](auto& o) { o.host_bandwidth = BytesPerSecond(-1); }), "host bandwidth is -1 B/s"));
  EXPECT_TRUE(has(message([](auto& o) { o.link_bandwidth = BytesPerSecond(0); }), "link bandwidth is 0 B/s"));
  EXPECT_TRUE(has(message([](auto& o) { o.link_latency = Seconds(-1); }), "link latency is -1 s"));
  EXPECT_TRUE(
      has(message([](auto& o) { o.topology = "star:devices=3"; }),
          "2 nodes of 4 devices and 2 NICs: topology 'star:devices=3,planes=1' has 3 devices, but 4 are wanted"));
  EXPECT_TRUE(has(message([](auto& o) { o.devices_per_node = 1; }), "give the topology planes=2"));
  EXPECT_TRUE(has(message([](auto& o) { o.devices_per_node = o.nics_per_node = 1; }), "a host bandwidth needs more"));
  EXPECT_TRUE(has(message([](auto& o) {
                    o.topology = "star:devices=4000000";
                    o.nics_per_node = 1;
                  }),
                  "4000000 nodes of 4 devices are too many"));
}

}  // namespace
}  // namespace tandem
