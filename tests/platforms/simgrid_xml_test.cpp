// SimGrid's platform files: what links and routes become, and what is refused. Whether routes are SimGrid's own is
// tests/engine/simgrid_platform_test.cpp.
#include <gtest/gtest.h>

#include <map>

#include "platforms/cluster.hpp"
#include "sim/core/random.hpp"
#include "tests/platforms/graph.hpp"
#include "tests/platforms/network_files.hpp"

namespace tandem {
namespace {

using testing::TemporaryFolder;
using Names = std::vector<std::string>;

const std::string kFolder = TANDEM_SOURCE_DIR "/tests/platforms/networks/";

std::unique_ptr<Topology> from_text(const std::string& xml, const std::string& hosts = "") {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("p.xml"), xml);
  testing::write_bytes(folder.file("hosts"), hosts);
  return make_topology(
      "simgrid-xml:file=" + folder.file("p.xml") + (hosts.empty() ? "" : ",hostfile=" + folder.file("hosts")), {});
}

std::string message(const std::string& xml, const std::string& hosts = "") {
  try {
    (void)from_text(xml, hosts);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 500U);
    return error.what();
  }
  return "no error";
}

Names stops(const Network& network, int src, int dst) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, 0, path);
  Names names{network.vertex_name(src)};
  for (const auto id : path) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

// Files of one Full zone with two hosts.
std::string zone(const std::string& inside, const char* routing = "Full") {
  return std::string("<platform version=\"4.1\"><zone id=\"w\" routing=\"") + routing +
         "\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>" + inside + "</zone></platform>";
}
const std::string kLink = R"(<link id="l" bandwidth="1GBps" latency="1us"/>)";
const std::string kRoute = R"(<route src="a" dst="b"><link_ctn id="l"/></route>)";

TEST(SimgridXml, SplitDuplexLinksAreTwoAndMeetWhereRoutesDo) {
  const auto star = make_topology("simgrid-xml:file=" + kFolder + "star.xml", {});
  EXPECT_EQ(star->devices(), 3);
  EXPECT_EQ(star->vertices(), 4);  // a joint in the middle
  EXPECT_EQ(star->links().size(), 6U);
  EXPECT_EQ(stops(*star, 0, 2), (Names{"h0", "behind l0_UP", "h2"}));
  EXPECT_EQ(stops(*star, 2, 0), (Names{"h2", "behind l0_UP", "h0"}));
  EXPECT_DOUBLE_EQ(star->links()[4].bandwidth.count(), 5e9);
  EXPECT_DOUBLE_EQ(star->links()[4].latency.count(), 3e-6);
}

TEST(SimgridXml, ShortestRoutesOfAFloydZone) {
  const auto tree = make_topology("simgrid-xml:file=" + kFolder + "tree.xml", {});
  EXPECT_EQ(stops(*tree, 1, 2), (Names{"h1", "leaf0", "spine", "leaf1", "h2"}));
  EXPECT_EQ(stops(*tree, 1, 0), (Names{"h1", "leaf0", "h0"}));
  EXPECT_EQ(tree->characteristics().diameter, 4);
}

// The two directions of a SHARED link are one resource: both routes pass the same link.
TEST(SimgridXml, SharedLinksAreHalfDuplex) {
  const auto pair = from_text(zone(kLink + kRoute));
  std::vector<LinkId> there, back;
  pair->route(DeviceId{0}, DeviceId{1}, 0, there);
  pair->route(DeviceId{1}, DeviceId{0}, 0, back);
  EXPECT_EQ(testing::walk_fault(*pair, DeviceId{0}, DeviceId{1}, there), "");
  EXPECT_EQ(testing::walk_fault(*pair, DeviceId{1}, DeviceId{0}, back), "");
  ASSERT_EQ(there.size(), 3U);
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(there[1], back[1]);
  EXPECT_NE(there[0], back[2]);
  EXPECT_DOUBLE_EQ(pair->route_latency(there).count(), 1e-6);
  for (const auto id : there) EXPECT_DOUBLE_EQ(pair->link(id).bandwidth.count(), 1e9);
  EXPECT_EQ(pair->characteristics().links, 1);
  EXPECT_EQ(pair->characteristics().diameter, 1);
  // One way each: two links, and no more than that.
  const auto two = from_text(zone(kLink + R"(<link id="m" bandwidth="1GBps"/>
      <route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>
      <route src="b" dst="a" symmetrical="NO"><link_ctn id="m"/></route>)"));
  EXPECT_EQ(two->links().size(), 2U);
  EXPECT_EQ(stops(*two, 1, 0), (Names{"b", "a"}));
}

TEST(SimgridXml, RanksAreTheHostsOfTheHostFile) {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("hosts"), "# two of four\nh3\r\n\n  h1  # the second\n");
  const auto tree =
      make_topology("simgrid-xml:file=" + kFolder + "tree.xml,hostfile=" + folder.file("hosts") + ",dims=2x1", {});
  EXPECT_EQ(tree->devices(), 2);
  EXPECT_EQ(tree->vertex_name(0), "h3");
  EXPECT_EQ(tree->radices(), (std::vector<int>{2, 1}));
  EXPECT_EQ(stops(*tree, 0, 1), (Names{"h3", "leaf1", "spine", "leaf0", "h1"}));
  EXPECT_THROW((void)make_topology("simgrid-xml:file=" + kFolder + "tree.xml,dims=2x3", {}), Error);
  const auto text = testing::read_bytes(kFolder + "tree.xml");
  EXPECT_NE(message(text, "h1\nh9\n").find("line 2: the platform has no host 'h9'"), std::string::npos);
  EXPECT_NE(message(text, "h1\nleaf0\n").find("no host 'leaf0'"), std::string::npos);
  EXPECT_NE(message(text, "h1\nh1\n").find("line 2: 'h1' is on line 1 already"), std::string::npos);
  EXPECT_NE(message(text, "# none\n").find("it names no host"), std::string::npos);
  ClusterOptions options;
  options.topology = "simgrid-xml:file=" + kFolder + "tree.xml";
  options.ranks = 5;
  EXPECT_THROW(Cluster{options}, Error);
  options.ranks = 4;
  options.link_latency = Seconds(0);
  EXPECT_THROW(Cluster{options}, Error);
}

// A built-in network written as XML: the links of every route have the same rates and latencies, and two routes share
// a link in one where they share it in the other.
TEST(SimgridXml, BuiltInNetworksSurviveTheFile) {
  for (const char* name : {"star:devices=7", "torus:dims=4x4", "fat-tree:k=4", "mesh-rail-cube:m=4,n=4x4"}) {
    const auto built = make_topology(name, {});
    const TemporaryFolder folder;
    const auto read = make_topology(testing::write_simgrid_xml(*built, folder), {});
    ASSERT_EQ(read->devices(), built->devices());
    EXPECT_EQ(read->radices(), built->radices());
    std::map<LinkId, LinkId> same, back;
    std::vector<LinkId> path, path_read;
    for (int src = 0; src < built->devices(); ++src) {
      for (int dst = 0; dst < built->devices(); ++dst) {
        built->route(DeviceId{src}, DeviceId{dst}, 0, path);
        read->route(DeviceId{src}, DeviceId{dst}, 0, path_read);
        ASSERT_EQ(path_read.size(), path.size()) << name << ' ' << src << ' ' << dst;
        ASSERT_EQ(testing::walk_fault(*read, DeviceId{src}, DeviceId{dst}, path_read), "");
        for (std::size_t i = 0; i < path.size(); ++i) {
          ASSERT_EQ(read->link(path_read[i]).bandwidth, built->link(path[i]).bandwidth);
          ASSERT_EQ(read->link(path_read[i]).latency, built->link(path[i]).latency);
          ASSERT_EQ(same.emplace(path[i], path_read[i]).first->second, path_read[i]);
          ASSERT_EQ(back.emplace(path_read[i], path[i]).first->second, path[i]);
        }
      }
    }
  }
}

TEST(SimgridXml, MistakesAreOneLine) {
  const auto one_host = [](const std::string& inside) {
    return "<platform version=\"4.1\"><zone id=\"w\" routing=\"Full\"><host id=\"a\"/>" + inside + "</zone></platform>";
  };
  const std::pair<std::string, const char*> cases[] = {
      {zone(kLink + R"(<route src="a" dst="c"><link_ctn id="l"/></route>)"),
       "route: zone 'w' has no host, router or zone 'c'"},
      {zone(kLink + R"(<route src="a" dst="b"><link_ctn id="k"/></route>)"), "unknown link 'k'"},
      {zone(kLink), "the network is disconnected: zone 'w' has no route from 'a' to 'b'"},
      {zone(kLink + R"(<route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>)"),
       "no route from 'b' to 'a'"},
      {zone(kLink, "Floyd"), "disconnected: zone 'w' has no route"},
      {zone(R"(<link id="l" bandwidth="0Gbps"/>)"), "link 'l': bandwidth must be above 0"},
      {zone(R"(<link id="l" bandwidth="-1Gbps"/>)"), "link 'l': bandwidth must be above 0"},
      {zone(R"(<link id="l" bandwidth="nan"/>)"), "bandwidth is 'nan'"},
      {zone(R"(<link id="l" bandwidth="1Gbit"/>)"), "bandwidth is '1Gbit': it must be a number with a unit"},
      {zone(R"(<link id="l" bandwidth="1Gbps" latency="-1us"/>)"), "link 'l': latency must be 0 or more"},
      {zone(R"(<link id="l"/>)"), "attribute 'bandwidth' is missing"},
      {zone(kLink + kLink), "link 'l' is there twice"},
      {zone(R"(<host id="a" speed="1f"/>)"), "host 'a' is there twice"},
      {zone(kLink + kRoute + kRoute), "there is such a route already"},
      {zone(kLink + R"(<route src="a" dst="b"/>)"), "the route passes no link"},
      {zone(kLink + R"(<route src="a" dst="b"><link_ctn id="l"/><link_ctn id="l"/></route>)"), "passes link 'l' twice"},
      {zone(R"(<link id="l" bandwidth="1GBps" sharing_policy="FATPIPE"/>)" + kRoute),
       "link 'l' is FATPIPE, which is not"},
      {zone(R"(<link id="l" bandwidth="1GBps" sharing_policy="SPLITDUPLEX"/>)" + kRoute), "say which direction"},
      {zone(R"(<link id="l" bandwidth="1GBps" sharing_policy="FAST"/>)"), "sharing_policy is 'FAST'"},
      {zone(R"(<link id="l" bandwidth="1GBps" bandwidth_file="x"/>)"), "change over time"},
      {zone(kLink + R"(<route src="a" dst="b" symmetrical="MAYBE"><link_ctn id="l"/></route>)"),
       "symmetrical is 'MAYBE'"},
      {zone(kLink + R"(<route src="a" dst="b"><link_ctn id="l" direction="LEFT"/></route>)"), "direction is 'LEFT'"},
      {zone(R"(<cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us"/>)"),
       "<'cluster'> is not read"},
      {zone(R"(<bypassRoute src="a" dst="b"/>)"), "<'bypassRoute'> is not read"},
      {zone("", "Vivaldi"), "routing is 'Vivaldi'; accepted are Full"},
      {zone(R"(<backbone id="bb" bandwidth="1GBps"/>)"), "<backbone> belongs into a zone with routing 'Cluster'"},
      {zone("", "Cluster"), "host 'a' has no host_link"},
      {one_host("<route src=\"a\" dst=\"a\"><link_ctn id=\"k\"/></route>"), "unknown link 'k'"},
      {"<platform version=\"3\"/>", "the platform's version is '3'; accepted are 4 and 4.1"},
      {"<platform version=\"4.1\"/>", "the platform has no zone"},
      {"<platform version=\"4.1\"><zone id=\"w\" routing=\"Full\"/></platform>", "the platform has no host"},
      {"<platform version=\"4.1\"><config><prop id=\"network/model\" value=\"CM02\"/></config></platform>",
       "the file configures 'network/model'"},
      {"<platform version=\"4.1\"><host id=\"a\"/></platform>", "<host> does not belong into <platform>"},
      {"<zone id=\"w\" routing=\"Full\"/>", "<zone> does not belong into the file by itself"},
      {zone(R"(<zone id="z" routing="Full"><host id="c"/></zone>)" + kLink +
            R"(<zoneRoute src="z" dst="a" gw_src="c" gw_dst="a"><link_ctn id="l"/></zoneRoute>)"),
       "<zoneRoute> joins zones"},
      {zone(R"(<zone id="z" routing="Full"><host id="c"/></zone>)" + kLink +
            R"(<route src="z" dst="a"><link_ctn id="l"/></route>)"),
       "<route> joins hosts and routers"},
      {zone(R"(<zone id="y" routing="Full"><host id="c"/></zone><zone id="z" routing="Full"><host id="d"/></zone>)" +
            kLink + R"(<zoneRoute src="y" dst="z" gw_src="a" gw_dst="d"><link_ctn id="l"/></zoneRoute>)"),
       "gw_src: zone 'y' has no host or router 'a'"},
      {"", "not XML"},
      {"<platform", "line 1: not XML: "},
      {"<platform version=\"4.1\"><zone id=\"w&nowhere;\" routing=\"Full\"/></platform>", "not XML"},
  };
  for (const auto& [xml, expected] : cases) {
    const auto seen = message(xml);
    EXPECT_NE(seen.find(expected), std::string::npos) << seen << " / " << expected;
  }
  EXPECT_THROW((void)make_topology("simgrid-xml:file=/nonexistent.xml", {}), Error);
  EXPECT_THROW((void)make_topology("simgrid-xml", {}), Error);
}

TEST(SimgridXml, FilesMadeToExhaustAreRefusedAtOnce) {
  std::string bomb = "<!DOCTYPE platform [<!ENTITY a \"aaaaaaaaaa\">";
  for (char c = 'b'; c <= 'k'; ++c) {
    bomb += std::string("<!ENTITY ") + c + " \"";
    for (int i = 0; i < 10; ++i) bomb += std::string("&") + static_cast<char>(c - 1) + ";";
    bomb += "\">";
  }
  EXPECT_NE(message(bomb + "]><platform version=\"4.1\">&k;</platform>").find("DOCTYPE"), std::string::npos);
  EXPECT_NE(message("<!DOCTYPE p [<!ENTITY x SYSTEM \"/etc/passwd\">]><platform version=\"4.1\">&x;</platform>")
                .find("declarations inside of DOCTYPE"),
            std::string::npos);
  // Declared by a DTD that is not read, so it may stand for anything.
  EXPECT_NE(message("<!DOCTYPE platform SYSTEM \"file:///etc/passwd\"><platform version=\"4.1\">&x;</platform>")
                .find("entity 'x' is not declared"),
            std::string::npos);
  std::string deep = "<platform version=\"4.1\">";
  for (int i = 0; i < 100'000; ++i) deep += "<zone id=\"z" + std::to_string(i) + "\" routing=\"Full\">";
  EXPECT_NE(message(deep).find("nested more than 64 deep"), std::string::npos);
}

TEST(SimgridXml, CutAndGarbledFilesNeverCrash) {
  for (const char* name : {"nested.xml", "tree.xml"}) {
    const auto whole = testing::read_bytes(kFolder + name);
    const auto survive = [](const std::string& xml) {
      try {
        (void)from_text(xml)->characteristics();
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
      }
    };
    for (std::size_t length = 0; length < whole.size(); length += 17) survive(whole.substr(0, length));
    Random random(31);
    for (int i = 0; i < 500; ++i) {
      std::string xml = whole;
      xml[random.below(static_cast<std::uint32_t>(xml.size()))] = "0abcl<>\"= /&"[random.below(12)];
      survive(xml);
    }
  }
}

}  // namespace
}  // namespace tandem
