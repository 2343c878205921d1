// The network file of ASTRA-sim: what its numbers become, its routes by hand, and files that are none.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "platforms/cluster.hpp"
#include "sim/core/random.hpp"
#include "tests/traces/temporary_folder.hpp"

namespace tandem {
namespace {

using testing::TemporaryFolder;

const std::string kFolder = TANDEM_SOURCE_DIR "/tests/platforms/networks/";

std::unique_ptr<Topology> make(const std::string& text) {
  return make_topology("astra-sim-network:" + text, {});
}

std::unique_ptr<Topology> from_text(const std::string& yaml) {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("network.yml"), yaml);
  return make("file=" + folder.file("network.yml"));
}

std::string message(const std::string& yaml) {
  try {
    (void)from_text(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(error.what()).size(), 400U);
    return error.what();
  }
  return "no error";
}

std::vector<std::string> stops(const Network& network, int src, int dst) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, 0, path);
  std::vector<std::string> names{network.vertex_name(src)};
  for (const auto id : path) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}
using Names = std::vector<std::string>;

// The seconds of a message over an idle network: latencies of all links and the bytes at the slowest one's rate.
double alone(const Topology& network, int src, int dst, double bytes) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, 0, path);
  double slowest = 1e300;
  for (const auto id : path) slowest = std::min(slowest, network.link(id).bandwidth.count());
  return network.route_latency(path).count() + bytes / slowest;
}

// What astra-network-analytical's own tests (test/test_congestion_unaware.cpp, commit 599a047) state for a message of
// 1 MiB on its four sample networks; whole nanoseconds, rounded down.
TEST(AstraSimNetwork, AMessageTakesAsLongAsInAstraSim) {
  const auto nanoseconds = [](const Topology& network, int src, int dst) {
    return std::floor(alone(network, src, dst, 1 << 20) * 1e9 + 1e-6);
  };
  const auto sample = [](const std::string& block) {
    return from_text("topology: [ " + block + " ]\nnpus_count: [ 16 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  };
  EXPECT_EQ(nanoseconds(*sample("Ring"), 1, 4), 21'031);
  EXPECT_EQ(nanoseconds(*sample("FullyConnected"), 1, 4), 20'031);
  EXPECT_EQ(nanoseconds(*sample("Switch"), 1, 4), 20'531);
  const auto three = from_text(
      "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 2, 8, 4 ]\n"
      "bandwidth: [ 200.0, 100.0, 50.0 ]\nlatency: [ 50.0, 500.0, 2000.0 ]\n");
  EXPECT_EQ(nanoseconds(*three, 0, 1), 4'932);
  EXPECT_EQ(nanoseconds(*three, 37, 41), 10'265);
  EXPECT_EQ(nanoseconds(*three, 26, 42), 23'531);
}

TEST(AstraSimNetwork, EachDimensionHasItsRateAndLatency) {
  const auto network = make("file=" + kFolder + "ring-fully-connected-switch.yml");
  EXPECT_EQ(network->devices(), 24);
  EXPECT_EQ(network->radices(), (std::vector<int>{4, 3, 2}));
  std::map<std::pair<double, double>, int> links;
  for (const auto& link : network->links()) ++links[{link.bandwidth.count() / (1 << 30), link.latency.count()}];
  const std::map<std::pair<double, double>, int> expected{{{200.0, 50.0 * 1e-9}, 2 * 24},   // rings of 4: 6 of 4 cables
                                                          {{100.0, 500.0 * 1e-9}, 2 * 24},  // triangles: 8 of 3
                                                          {{50.0, 2000.0 * 1e-9}, 2 * 24}};  // a port a device
  EXPECT_EQ(links, expected);
}

TEST(AstraSimNetwork, AGigabyteIsWhatOneChooses) {
  const auto decimal = make("file=" + kFolder + "ring.yml,gigabyte=GB");
  EXPECT_DOUBLE_EQ(decimal->links()[0].bandwidth.count(), 50e9);
  EXPECT_THROW((void)make("file=" + kFolder + "ring.yml,gigabyte=Gb"), Error);
  const auto planes = make("file=" + kFolder + "ring.yml,planes=3");
  EXPECT_DOUBLE_EQ(planes->links()[0].bandwidth.count(), 3 * 50.0 * (1 << 30));
}

TEST(AstraSimNetwork, RoutesGoDimensionByDimension) {
  const auto network = make("file=" + kFolder + "ring-fully-connected-switch.yml");
  EXPECT_EQ(stops(*network, 0, 3 + 4 * 2 + 12), (Names{"device 0 (0,0,0)", "device 3 (3,0,0)", "device 11 (3,2,0)",
                                                       "switch (3,2,*)", "device 23 (3,2,1)"}));
  EXPECT_EQ(stops(*network, 1, 3),
            (Names{"device 1 (1,0,0)", "device 2 (2,0,0)", "device 3 (3,0,0)"}));  // a tie goes up
  EXPECT_EQ(stops(*network, 3, 1), (Names{"device 3 (3,0,0)", "device 0 (0,0,0)", "device 1 (1,0,0)"}));
}

TEST(AstraSimNetwork, BisectionsOfSingleBlocks) {
  const auto bisection = [](const char* name) { return make("file=" + kFolder + name)->characteristics(); };
  EXPECT_EQ(bisection("ring.yml").bisection_links, 2);
  EXPECT_EQ(bisection("fully-connected.yml").bisection_links, 12);
  EXPECT_EQ(bisection("switch.yml").bisection_links, 4);
  for (const char* name : {"ring.yml", "fully-connected.yml", "switch.yml", "torus.yml"}) {
    EXPECT_EQ(bisection(name).bisection_proved, std::string(name) != "torus.yml") << name;
  }
}

TEST(AstraSimNetwork, ClustersRefuseRatesThatWouldChangeNothing) {
  ClusterOptions options;
  options.topology = "astra-sim-network:file=" + kFolder + "switch.yml";
  options.ranks = 8;
  EXPECT_DOUBLE_EQ(Cluster(options).links()[0].latency.count(), 936.25 * 1e-9);
  options.link_bandwidth = BytesPerSecond(1e9);
  EXPECT_THROW(Cluster{options}, Error);
  options.link_bandwidth = ClusterOptions{}.link_bandwidth;
  options.link_latency = Seconds(0);
  EXPECT_THROW(Cluster{options}, Error);
  options.link_latency = ClusterOptions{}.link_latency;
  options.ranks = 9;
  EXPECT_THROW(Cluster{options}, Error);
}

TEST(AstraSimNetwork, MistakesAreOneLine) {
  const auto file = [](const char* topology, const char* count, const char* bandwidth, const char* latency) {
    return std::string("topology: ") + topology + "\nnpus_count: " + count + "\nbandwidth: " + bandwidth +
           "\nlatency: " + latency + "\n";
  };
  const std::pair<std::string, const char*> cases[] = {
      {file("[ Rong ]", "[ 4 ]", "[ 1 ]", "[ 1 ]"), "'topology' has 'Rong'; accepted are Ring, FullyConnected, Switch"},
      {file("[ Ring ]", "[ 4, 4 ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has 2 entries where 'topology' has 1"},
      {file("[ Ring ]", "[ 4 ]", "[ 1, 2 ]", "[ 1 ]"), "'bandwidth' has 2 entries"},
      {file("[ Ring ]", "[ 4 ]", "[ 1 ]", "1"), "'latency' is missing, or is no list"},
      {file("[ Ring ]", "[ 1 ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has '1'; a whole number from 2"},
      {file("[ Ring ]", "[ -4 ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has '-4'"},
      {file("[ Ring ]", "[ 4.5 ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has '4.5'"},
      {file("[ Ring ]", "[ 1e99 ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has '1e99'"},
      {file("[ Ring ]", "[ [4] ]", "[ 1 ]", "[ 1 ]"), "'npus_count' has a list or a map where a number"},
      {file("[ Ring ]", "[ 4 ]", "[ 0 ]", "[ 1 ]"), "'bandwidth' has '0'"},
      {file("[ Ring ]", "[ 4 ]", "[ .inf ]", "[ 1 ]"), "'bandwidth' has '.inf'"},
      {file("[ Ring ]", "[ 4 ]", "[ nan ]", "[ 1 ]"), "'bandwidth' has 'nan'"},
      {file("[ Ring ]", "[ 4 ]", "[ 1 ]", "[ -1 ]"), "'latency' has '-1'"},
      {file("[ Ring ]", "[ 4 ]", "[ 1 ]", "[ ]"), "'latency' has 0 entries"},
      {file("[ Ring, Ring ]", "[ 4000000, 4000000 ]", "[ 1, 1 ]", "[ 1, 1 ]"), "at most 4194304 devices"},
      {file("[ FullyConnected ]", "[ 4000000 ]", "[ 1 ]", "[ 1 ]"), "at most 33554432 cables"},
      {"topology: [ Ring ]\n", "'npus_count' is missing"},
      {file("[ Ring ]", "[ 4 ]", "[ 1 ]", "[ 1 ]") + "bandwith: [ 1 ]\n", "unknown key 'bandwith'; did you mean"},
      {"", "it is not a YAML map"},
      {"- 1\n", "it is not a YAML map"},
      {"topology: [ Ring\n", "not YAML"},
      {"topology: *nowhere\n", "not YAML"},
      // yaml-cpp shows the character that it stumbles over as it is.
      {std::string("topology: [ Ring ]\1\0\nbandwidth: [ 1 ]\n", 38), "line 2: not YAML: "},
      {std::string(60000, '['), "not YAML"},
      {std::string(100000, ' '), "more than the 65536 bytes"},
  };
  for (const auto& [yaml, expected] : cases) {
    const auto seen = message(yaml);
    EXPECT_NE(seen.find(expected), std::string::npos) << seen << " / " << expected;
  }
  EXPECT_THROW((void)make("file=/nonexistent.yml"), Error);
  EXPECT_THROW((void)make("file=/"), Error);
  EXPECT_THROW((void)make_topology("astra-sim-network", {}), Error);
}

// A network or one clear line, wherever the file is cut and whatever is changed in it.
TEST(AstraSimNetwork, CutAndGarbledFilesNeverCrash) {
  const auto whole = testing::read_bytes(kFolder + "ring-fully-connected-switch.yml");
  const auto survive = [](const std::string& yaml) {
    try {
      (void)from_text(yaml)->characteristics();
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) survive(whole.substr(0, length));
  Random random(13);
  for (int i = 0; i < 1000; ++i) {
    std::string yaml = whole;
    for (int k = 0; k < 3; ++k) {
      yaml[random.below(static_cast<std::uint32_t>(yaml.size()))] = "0[]{}:,-#&*!|>'\" \t\n?%@x"[random.below(24)];
    }
    survive(yaml);
  }
}

// Anchors that would multiply on every use, deep nesting of every kind.
TEST(AstraSimNetwork, FilesMadeToExhaustAreRefusedAtOnce) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 30; ++i) {
    const auto last = std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k > 0 ? ",*a" : "*a") + last;
    bomb += "]\n";
  }
  EXPECT_NE(message(bomb + "topology: [ *a29 ]\n").find("unknown key"), std::string::npos);
  std::string maps;
  for (int i = 0; i < 20000; ++i) maps += "{a: ";
  EXPECT_NE(message(maps), "no error");
  std::string indented;
  for (int i = 0; i < 300; ++i) indented += std::string(static_cast<std::size_t>(i), ' ') + "-\n";
  EXPECT_NE(message(indented), "no error");
  std::string questions;
  for (int i = 0; i < 30000; ++i) questions += "? ";
  EXPECT_NE(message(questions), "no error");
}

}  // namespace
}  // namespace tandem
