// Networks given as CSV: what the tables become, routes by hand, built-in networks written and read again, mistakes.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "platforms/cluster.hpp"
#include "sim/core/random.hpp"
#include "tests/platforms/graph.hpp"
#include "tests/platforms/network_files.hpp"

namespace tandem {
namespace {

using testing::TemporaryFolder;
using Names = std::vector<std::string>;

const std::string kFolder = TANDEM_SOURCE_DIR "/tests/platforms/networks/";

// Files in a folder of their own; "" is no file.
std::unique_ptr<Topology> from_text(const std::string& links, const std::string& nodes = "",
                                    const std::string& routes = "") {
  const TemporaryFolder folder;
  std::string name = "link-list:links=" + folder.file("l.csv");
  testing::write_bytes(folder.file("l.csv"), links);
  if (!nodes.empty()) {
    testing::write_bytes(folder.file("n.csv"), nodes);
    name += ",nodes=" + folder.file("n.csv");
  }
  if (!routes.empty()) {
    testing::write_bytes(folder.file("r.csv"), routes);
    name += ",routes=" + folder.file("r.csv");
  }
  return make_topology(name, {});
}

std::string message(const std::string& links, const std::string& nodes = "", const std::string& routes = "") {
  try {
    (void)from_text(links, nodes, routes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 500U);
    return error.what();
  }
  return "no error";
}

Names stops(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, flow, path);
  Names names{network.vertex_name(src)};
  for (const auto id : path) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

const Link& link(const Network& network, const std::string& name) {
  for (std::size_t id = 0; id < network.links().size(); ++id) {
    if (network.link_name(LinkId{static_cast<std::int32_t>(id)}) == name) return network.links()[id];
  }
  throw internal_error("no link is called " + name);
}

TEST(LinkList, WithoutNodesEveryVertexIsADeviceInOrderOfAppearance) {
  const auto ladder = make_topology("link-list:links=" + kFolder + "ladder.links.csv", {});
  EXPECT_EQ(ladder->devices(), 6);
  EXPECT_EQ(ladder->vertices(), 6);
  Names names;
  for (int device = 0; device < 6; ++device) names.push_back(ladder->vertex_name(device));
  EXPECT_EQ(names, (Names{"a", "b", "c", "d", "e", "f"}));
  EXPECT_TRUE(ladder->radices().empty());
  EXPECT_DOUBLE_EQ(link(*ladder, "c -> a").bandwidth.count(), 2.5e9);
  EXPECT_DOUBLE_EQ(link(*ladder, "c -> a").latency.count(), 2e-6);
  EXPECT_EQ(link(*ladder, "b -> a").kind, LinkKind::direct);
  EXPECT_TRUE(ladder->shortest_routing());
}

// Addresses 0.0 1.0 0.1 1.1, the least significant digit first, whatever the order of the lines.
TEST(LinkList, AddressesNumberDevices) {
  const auto network =
      make_topology("link-list:links=" + kFolder + "leaves.links.csv,nodes=" + kFolder + "leaves.nodes.csv", {});
  EXPECT_EQ(network->radices(), (std::vector<int>{2, 2}));
  for (int device = 0; device < 4; ++device) EXPECT_EQ(network->vertex_name(device), "gpu" + std::to_string(device));
  EXPECT_EQ(stops(*network, 1, 2), (Names{"gpu1", "leaf0", "leaf1", "gpu2"}));
  const auto& trunk = link(*network, "leaf1 -> leaf0");
  EXPECT_EQ(trunk.width, 3);
  EXPECT_DOUBLE_EQ(trunk.bandwidth.count(), 3 * 12.5e9);
  EXPECT_EQ(trunk.kind, LinkKind::switch_link);
  EXPECT_EQ(link(*network, "gpu3 -> leaf1").kind, LinkKind::device_port);
  EXPECT_DOUBLE_EQ(link(*network, "gpu3 -> leaf1").bandwidth.count(), 25e9 / 8);
}

TEST(LinkList, DirectionsMayDiffer) {
  const auto network = from_text(
      "from,to,bandwidth,latency,direction\n"
      "a,b,10Gbps,1us,one\n"
      "b,c,8Gbps,1us,both\n"
      "b,a,1Gbps,3us,one\n");
  EXPECT_EQ(network->links().size(), 4U);
  EXPECT_DOUBLE_EQ(link(*network, "a -> b").bandwidth.count(), 1.25e9);
  EXPECT_DOUBLE_EQ(link(*network, "b -> a").bandwidth.count(), 0.125e9);
  EXPECT_DOUBLE_EQ(link(*network, "b -> a").latency.count(), 3e-6);
  EXPECT_EQ(network->characteristics().links, 2);
  EXPECT_EQ(network->link_name(LinkId{1}), "b -> a");  // the opposite directly follows
  // A ring that only turns one way: there in one link, back in two.
  const auto ring =
      from_text("from,to,bandwidth,latency,direction\na,b,1Gbps,0s,one\nb,c,1Gbps,0s,one\nc,a,1Gbps,0s,one\n");
  EXPECT_EQ(stops(*ring, 0, 1), (Names{"a", "b"}));
  EXPECT_EQ(stops(*ring, 1, 0), (Names{"b", "c", "a"}));
}

// Three ways of two links; two of them have the least latency, and flows use both of those.
TEST(LinkList, TiesGoByLatencyThenByHash) {
  const auto network = from_text(
      "from,to,bandwidth,latency\n"
      "a,x,1Gbps,1us\nx,b,1Gbps,5us\n"
      "a,y,1Gbps,3us\ny,b,1Gbps,3us\n"
      "a,z,1Gbps,3us\nz,b,1Gbps,4us\n",
      "name,kind\na,device\nb,device\nx,switch\ny,switch\nz,switch\n");
  std::map<std::string, int> through;
  for (FlowHash flow = 0; flow < 1000; ++flow) ++through[stops(*network, 0, 1, flow)[1]];
  EXPECT_EQ(through.size(), 2U);
  EXPECT_NEAR(through["x"], 500, 100);  // six standard deviations
  EXPECT_NEAR(through["y"], 500, 100);
  EXPECT_EQ(stops(*network, 0, 1, 7), stops(*network, 0, 1, 7));
  // Fewest links come first, whatever their latency.
  const auto slow = from_text("from,to,bandwidth,latency\na,b,1Gbps,1s\na,c,1Gbps,0s\nc,b,1Gbps,0s\n");
  EXPECT_EQ(stops(*slow, 0, 1), (Names{"a", "b"}));
}

TEST(LinkList, RoutesFileComesFirst) {
  const std::string links = "from,to,bandwidth,latency\na,b,1Gbps,1us\nb,c,1Gbps,1us\nc,d,1Gbps,1us\nd,a,1Gbps,1us\n";
  const auto network = from_text(links, "", "src,dst,path\na,b,d c\nb,a,b > c > d > a\nc,d,\na,c,b\na,c,d\n");
  EXPECT_FALSE(network->shortest_routing());
  EXPECT_EQ(stops(*network, 0, 1), (Names{"a", "d", "c", "b"}));
  EXPECT_EQ(stops(*network, 1, 0), (Names{"b", "c", "d", "a"}));
  EXPECT_EQ(stops(*network, 2, 3), (Names{"c", "d"}));
  EXPECT_EQ(stops(*network, 3, 0), (Names{"d", "a"}));  // not in the file
  std::set<std::string> through;
  for (FlowHash flow = 0; flow < 64; ++flow) through.insert(stops(*network, 0, 2, flow)[1]);
  EXPECT_EQ(through, (std::set<std::string>{"b", "d"}));
}

// A built-in network written as tables is the same network: every link of every route has the same rate and latency,
// and two routes share a link in one where they share it in the other.
TEST(LinkList, BuiltInNetworksSurviveTheTables) {
  for (const char* name :
       {"star:devices=7", "torus:dims=4x4", "fat-tree:k=4,oversubscription=2", "mesh-rail-cube:m=4,n=4x4"}) {
    const auto built = make_topology(name, {});
    const TemporaryFolder folder;
    const auto read = make_topology(testing::write_link_list(*built, folder, true), {});
    ASSERT_EQ(read->devices(), built->devices());
    EXPECT_EQ(read->radices(), built->radices());
    std::vector<LinkId> path, path_read;
    for (int src = 0; src < built->devices(); ++src) {
      for (int dst = 0; dst < built->devices(); ++dst) {
        built->route(DeviceId{src}, DeviceId{dst}, 0, path);
        read->route(DeviceId{src}, DeviceId{dst}, 0, path_read);
        ASSERT_EQ(path_read, path) << name << ' ' << src << ' ' << dst;
      }
    }
    for (std::size_t id = 0; id < built->links().size(); ++id) {
      ASSERT_EQ(read->links()[id].bandwidth, built->links()[id].bandwidth);
      ASSERT_EQ(read->links()[id].latency, built->links()[id].latency);
      ASSERT_EQ(read->links()[id].kind, built->links()[id].kind);
    }
  }
}

// Without the routes, paths are as long as the closed forms of the built-in networks say.
TEST(LinkList, SearchedCharacteristicsEqualTheClosedForms) {
  for (const char* name :
       {"star:devices=7", "torus:dims=4x4", "torus:dims=5x3", "fat-tree:k=4", "mesh-rail-cube:m=4,n=4x4"}) {
    const auto built = make_topology(name, {});
    const TemporaryFolder folder;
    const auto searched = make_topology(testing::write_link_list(*built, folder, false), {})->characteristics();
    const auto closed = built->characteristics();
    EXPECT_EQ(searched.links, closed.links) << name;
    EXPECT_EQ(searched.switches, closed.switches) << name;
    EXPECT_EQ(searched.max_switch_radix, closed.max_switch_radix) << name;
    EXPECT_EQ(searched.diameter, closed.diameter) << name;
    EXPECT_NEAR(searched.mean_path, closed.mean_path, 1e-9) << name;
    EXPECT_GE(searched.bisection_links, closed.bisection_links) << name;
    EXPECT_EQ(searched.paths, Characteristics::Paths::searched);
  }
}

// 4,096 devices with every destination asked for: 4,096 x 5,376 x 12 bytes would be 264 MB if all were kept.
TEST(LinkList, RoutesOfManyDestinationsAreForgottenAndFoundAgain) {
  const auto built = make_topology("fat-tree:k=16", {});
  const TemporaryFolder folder;
  const auto read = make_topology(testing::write_link_list(*built, folder, false), {});
  std::vector<LinkId> path, again;
  for (int dst = 0; dst < built->devices(); ++dst) {
    read->route(DeviceId{(dst + 512) % built->devices()}, DeviceId{dst}, 3, path);
    ASSERT_EQ(testing::walk_fault(*read, DeviceId{(dst + 512) % built->devices()}, DeviceId{dst}, path), "");
    ASSERT_EQ(path.size(), 6U);
  }
  read->route(DeviceId{512}, DeviceId{0}, 3, path);
  read->route(DeviceId{512}, DeviceId{0}, 3, again);
  EXPECT_EQ(path, again);
}

TEST(LinkList, AsAClusterOfNodes) {
  ClusterOptions options;
  options.topology = "link-list:links=" + kFolder + "leaves.links.csv,nodes=" + kFolder + "leaves.nodes.csv";
  options.ranks = 8;
  options.devices_per_node = 2;
  const Cluster cluster(options);
  EXPECT_EQ(cluster.nodes(), 4);
  EXPECT_EQ(cluster.radices(), (std::vector<int>{2, 2, 2}));
  options.ranks = 9;
  EXPECT_THROW(Cluster{options}, Error);
  options.ranks = 8;
  options.link_bandwidth = BytesPerSecond(1e9);
  EXPECT_THROW(Cluster{options}, Error);
}

TEST(LinkList, MistakesAreOneLine) {
  const std::string head = "from,to,bandwidth,latency\n";
  const std::string pair = head + "a,b,1Gbps,1us\n";
  const std::string nodes = "name,kind,address\n";
  struct Case {
    std::string links, nodes, routes;
    const char* expected;
  };
  const Case cases[] = {
      {pair + "c,d,1Gbps,1us\n", "", "", "the network is disconnected: no links lead from 'a' to 'c'"},
      {pair, nodes + "a,device,\nb,device,\nc,device,\n", "", "disconnected: no links lead from 'a' to 'c'"},
      {"from,to,bandwidth,latency,direction\na,b,1Gbps,1us,one\n", "", "",
       "disconnected: no links lead from 'b' to 'a'"},
      {head + "a,b,0Gbps,1us\n", "", "", "line 2: bandwidth is 0 B/s: it must be above 0"},
      {head + "a,b,-1Gbps,1us\n", "", "", "line 2: bandwidth is '-1Gbps'"},
      {head + "a,b,1e300TBps,1us\n", "", "", "line 2: bandwidth is"},
      {head + "a,b,nan,1us\n", "", "", "line 2: bandwidth is 'nan'"},
      {head + "a,b,1000000000,1us\n", "", "", "bandwidth is '1000000000': it must be a number with its unit"},
      {head + "a,b,1Gbps,-1us\n", "", "", "line 2: latency is '-1us'"},
      {head + "a,b,1Gbps,\n", "", "", "line 2: latency is missing"},
      {pair + "a,b,1Gbps,1us\n", "", "", "line 3: 'a' -> 'b' is a link of line 2 already"},
      {pair + "b,a,1Gbps,1us\n", "", "", "line 3: 'b' -> 'a' is a link of line 2 already"},
      {"from,to,bandwidth,latency,direction\na,b,1Gbps,0s,one\nb,a,1Gbps,0s,one\nb,a,1Gbps,0s,one\n", "", "",
       "line 4: 'b' -> 'a' is a link of line 3 already"},
      {pair + "a,a,1Gbps,1us\n", "", "", "line 3: 'a' is linked to itself"},
      {pair + "a,c\n", "", "", "line 3: bandwidth is missing"},
      {pair + "a,c,1Gbps,1us,3\n", "", "", "line 3 has 5 cells under a header of 4"},
      {"from,to,bandwith,latency\n", "", "", "line 1: unknown column 'bandwith'; did you mean 'bandwidth'?"},
      {"from,to,bandwidth\n", "", "", "the header has no column 'latency'"},
      {"from,from,bandwidth,latency\n", "", "", "column 'from' is there twice"},
      {"", "", "", "the file has no header"},
      {head, "", "", "the file has no links"},
      {head + "[links]\n", "", "", "line 2: there are no sections here: '[links]'"},
      {head + ",b,1Gbps,1us\n", "", "", "the name of 'from' is missing"},
      {head + "a>b,b,1Gbps,1us\n", "", "", "'a>b' is no name"},
      {head + "\"a\nc\",b,1Gbps,1us\n", "", "", "'a?c' is no name"},
      {"from,to,bandwidth,latency,cables\na,b,1Gbps,1us,0\n", "", "",
       "cables is '0': it must be a whole number from 1"},
      {"from,to,bandwidth,latency,kind\na,b,1Gbps,1us,fast\n", "", "", "kind is 'fast': it must be one of device_port"},
      {"from,to,bandwidth,latency,kind\na,b,1Gbps,1us,switch_link\n", "", "",
       "a link between device 'a' and device 'b' is 'direct'"},
      {"from,to,bandwidth,latency,direction\na,b,1Gbps,1us,up\n", "", "", "direction is 'up': it must be both or one"},
      {head + "gpu1,gpu22,1Gbps,1us\n", nodes + "gpu1,device,\ngpu2,device,\n", "", "'gpu22' is not in "},
      {pair, nodes + "a,host,\n", "", "line 2: kind is 'host': it must be device or switch"},
      {pair, nodes + "a,switch,\nb,switch,\n", "", "no node is a device"},
      {pair, nodes + "a,device,\na,device,\n", "", "line 3: 'a' is on line 2 already"},
      {pair, nodes + "a,device,0\nb,device,\n", "", "line 3: 'b' has an address of 0 digits where 'a' has one of 1"},
      {pair, nodes + "a,device,0\nb,device,0\n", "", "addresses up to 1 make 1 devices, but there are 2"},
      {pair, nodes + "a,device,1\nb,device,1\n", "", "line 3: 'b' has the address of 'a' on line 2"},
      {pair, nodes + "a,device,0.0.0\nb,device,4000000.4000000.1\n", "", "make 67108865 devices, but there are 2"},
      {pair, nodes + "a,device,x\nb,device,1\n", "", "a digit of the address is 'x'"},
      {pair, nodes + "a,device,0\nb,switch,1\n", "", "line 3: a switch has no address"},
      {pair, "", "src,dst,path\na,c,\n", "line 2: 'c' is not in the file of links"},
      {pair, "", "src,dst,path\na,a,\n", "line 2: 'a' has a route to itself"},
      {pair + "b,c,1Gbps,1us\n", "", "src,dst,path\na,c,\n", "line 2: there is no link 'a' -> 'c'"},
      {pair + "b,c,1Gbps,1us\n", "", "src,dst,path\na,c,b a b\n", "line 2: the path passes 'a' twice"},
      {pair, nodes + "a,device,\nb,switch,\n", "src,dst,path\na,b,\n", "line 2: dst 'b' is a switch"},
      {head + "\"a,b,1Gbps\n", "", "", "line 2 opens a quote that is never closed"},
  };
  for (const auto& [links, node_text, routes, expected] : cases) {
    const auto seen = message(links, node_text, routes);
    EXPECT_NE(seen.find(expected), std::string::npos) << seen << " / " << expected;
  }
  EXPECT_THROW((void)make_topology("link-list:links=/nonexistent.csv", {}), Error);
  EXPECT_THROW((void)make_topology("link-list", {}), Error);
  EXPECT_THROW((void)make_topology("link-list:links=/", {}), Error);
}

TEST(LinkList, MoreRanksThanDevices) {
  ClusterOptions options;
  options.topology = "link-list:links=" + kFolder + "ladder.links.csv";
  options.ranks = 7;
  try {
    const Cluster cluster(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has 6 devices, but 7 are wanted"), std::string::npos) << error.what();
  }
}

TEST(LinkList, CutAndGarbledFilesNeverCrash) {
  const auto links = testing::read_bytes(kFolder + "leaves.links.csv");
  const auto nodes = testing::read_bytes(kFolder + "leaves.nodes.csv");
  const auto survive = [](const std::string& link_text, const std::string& node_text) {
    try {
      (void)from_text(link_text, node_text)->characteristics();
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    }
  };
  for (std::size_t length = 0; length < links.size(); length += 3) survive(links.substr(0, length), nodes);
  Random random(29);
  for (int i = 0; i < 500; ++i) {
    std::string garbled_links = links;
    std::string garbled_nodes = nodes;
    for (auto* text : {&garbled_links, &garbled_nodes}) {
      (*text)[random.below(static_cast<std::uint32_t>(text->size()))] = "0,\"\n.-#[9ab"[random.below(11)];
    }
    survive(garbled_links, garbled_nodes);
  }
}

}  // namespace
}  // namespace tandem
