// Ways round what has failed, against breadth-first search on a network that never had it.
#include "platforms/failures.hpp"

#include <gtest/gtest.h>

#include <set>

#include "platforms/cluster.hpp"
#include "tests/platforms/graph.hpp"

namespace tandem {
namespace {

// The same network without some links.
class Remains final : public Network {
 public:
  Remains(const Network& whole, const std::set<int>& gone) {
    devices_ = whole.devices();
    vertices_ = whole.vertices();
    for (int id = 0; id < static_cast<int>(whole.links().size()); ++id) {
      if (!gone.contains(id)) add_link(whole.link(LinkId{id}));
    }
  }
  void route(DeviceId, DeviceId, FlowHash, std::vector<LinkId>&) const override {}
  [[nodiscard]] std::string vertex_name(int vertex) const override { return std::to_string(vertex); }
  [[nodiscard]] std::vector<int> radices() const override { return {}; }
};

ClusterOptions machine(const std::string& topology, int ranks, const std::string& failures) {
  ClusterOptions options;
  options.topology = topology;
  options.ranks = ranks;
  if (!failures.empty()) options.failures = parse_failures(failures);
  return options;
}

std::set<int> links_of(const Network& network, int vertex) {
  std::set<int> ids;
  for (int id = 0; id < static_cast<int>(network.links().size()); ++id) {
    if (network.link(LinkId{id}).from == vertex || network.link(LinkId{id}).to == vertex) ids.insert(id);
  }
  return ids;
}

// All pairs that search still joins are routed, by as few links, over nothing that failed; the others are refused.
void expect_ways_round(const Cluster& cluster, const std::set<int>& gone) {
  const Remains left(cluster, gone);
  std::vector<LinkId> path;
  for (int src = 0; src < cluster.devices(); ++src) {
    const auto distance = testing::distances(left, src);
    for (int dst = 0; dst < cluster.devices(); ++dst) {
      if (src == dst) continue;
      const int hops = distance[static_cast<std::size_t>(dst)];
      if (hops < 0) {
        EXPECT_THROW(cluster.route(DeviceId{src}, DeviceId{dst}, 0, path), Error) << src << " to " << dst;
        continue;
      }
      for (const FlowHash flow : {0U, 5U}) {
        cluster.route(DeviceId{src}, DeviceId{dst}, flow, path);
        ASSERT_EQ(testing::walk_fault(cluster, DeviceId{src}, DeviceId{dst}, path), "");
        ASSERT_EQ(static_cast<int>(path.size()), hops) << src << " to " << dst;
        for (const auto id : path) ASSERT_FALSE(gone.contains(id.value)) << cluster.link_name(id);
      }
    }
  }
}

TEST(Failures, TrafficGoesRoundAFailedCable) {
  for (const char* topology : {"torus:dims=4x4", "torus:dims=5", "mesh-rail-cube:m=4,n=4", "fat-tree:k=4,planes=2"}) {
    SCOPED_TRACE(topology);
    const Cluster healthy(machine(topology, 1, ""));
    // The last cable: between switches where there are any.
    const int last = static_cast<int>(healthy.links().size()) - 1;
    const Cluster cluster(machine(topology, 1, "link:" + healthy.link_name(LinkId{last})));
    expect_ways_round(cluster, {last - 1, last});
  }
}

TEST(Failures, TrafficGoesRoundAFailedSwitchOrDevice) {
  for (const char* topology :
       {"mesh-rail-cube:m=4,n=4", "mesh-rail-cube:m=4,n=3x2", "fat-tree:k=4", "torus:dims=4x3"}) {
    SCOPED_TRACE(topology);
    Cluster cluster(machine(topology, 1, ""));
    cluster.fail_device(DeviceId{1});
    expect_ways_round(cluster, links_of(cluster, 1));
    if (cluster.vertices() == cluster.devices()) continue;
    const int last = cluster.vertices() - 1;
    const Cluster broken(machine(topology, 1, "switch:" + cluster.vertex_name(last)));
    expect_ways_round(broken, links_of(cluster, last));
  }
}

// topologies.md 4.1: m-2 detours of two hops round a mesh link; the flow hash spreads over all of them.
TEST(Failures, DetoursSpreadOverEqualWays) {
  const Cluster cluster(machine("mesh-rail-cube:m=8,n=2", 16, "link:device 0 (0;0) -> device 1 (0;1)"));
  std::set<int> middles;
  std::vector<LinkId> path;
  for (FlowHash flow = 0; flow < 200; ++flow) {
    cluster.route(DeviceId{0}, DeviceId{1}, flow, path);
    ASSERT_EQ(path.size(), 2U);
    middles.insert(cluster.link(path[0]).to);
  }
  EXPECT_EQ(middles, (std::set<int>{2, 3, 4, 5, 6, 7}));
}

TEST(Failures, RoutesThatAvoidThemStayAsTheyWere) {
  const Cluster healthy(machine("fat-tree:k=4", 16, ""));
  const Cluster cluster(machine("fat-tree:k=4", 16, "switch:core 0.0,link:edge 3.0 -> aggregation 3.1"));
  std::vector<LinkId> before, after;
  int changed = 0;
  for (int src = 0; src < 16; ++src) {
    for (int dst = 0; dst < 16; ++dst) {
      healthy.route(DeviceId{src}, DeviceId{dst}, 0, before);
      cluster.route(DeviceId{src}, DeviceId{dst}, 0, after);
      bool hit = false;
      for (const auto id : before) {
        const auto name = healthy.link_name(id);
        hit = hit || name.find("core 0.0") != std::string::npos || name == "edge 3.0 -> aggregation 3.1" ||
              name == "aggregation 3.1 -> edge 3.0";
      }
      EXPECT_EQ(before != after, hit) << src << " to " << dst;
      changed += hit ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 0);
}

TEST(Failures, AreParsedWithTheirCommas) {
  const auto failures = parse_failures("link:device 0 (0,0) -> device 1 (1,0),switch:core 0.0,rank:3,link:7");
  ASSERT_EQ(failures.size(), 4U);
  EXPECT_EQ(failures[0].name, "device 0 (0,0) -> device 1 (1,0)");
  EXPECT_EQ(to_text(failures[1]), "switch:core 0.0");
  EXPECT_EQ(failures[2].kind, Failure::Kind::rank);
  EXPECT_EQ(to_text(failures[3]), "link:7");
}

TEST(Failures, MistakesAreRefused) {
  for (const char* text : {"", "link", "link:", "core 0.0", "wire:3", "link:0,"}) {
    EXPECT_THROW((void)parse_failures(text).size(), Error) << text;
  }
  EXPECT_THROW((void)Cluster(machine("torus:dims=4", 4, "link:99")), Error);
  EXPECT_THROW((void)Cluster(machine("torus:dims=4", 4, "link:device 0 (0) -> device 2 (2)")), Error);
  EXPECT_THROW((void)Cluster(machine("torus:dims=4", 4, "switch:core 0.0")), Error);
  EXPECT_THROW((void)Cluster(machine("fat-tree:k=4", 4, "switch:device 0 (0,0,0)")), Error);
}

}  // namespace
}  // namespace tandem
