// ficonn: wiring and routes by hand, backup ports, splits, choice of sizes, refused parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

// The paper's figure of FiConn(4,2): 4 units of 12; level 1 takes devices 0, 2 of a cell, level 2 devices 1, 5, 9 of a
// unit.
TEST(FiConn, WiringOfThePapersFigure) {
  const auto network = make("ficonn:n=4,k=2");
  ASSERT_EQ(network->devices(), 48);
  std::map<int, int> peer;
  for (const auto& link : network->links()) {
    if (link.kind != LinkKind::direct) continue;
    EXPECT_TRUE(peer.emplace(link.from, link.to).second) << "device " << link.from << " has two backup cables";
  }
  EXPECT_EQ(peer.size(), 2U * (4 * 3 + 6));
  EXPECT_EQ(peer[0], 4);    // [0,0,0] - [0,1,0]
  EXPECT_EQ(peer[2], 8);    // [0,0,2] - [0,2,0]
  EXPECT_EQ(peer[6], 10);   // [0,1,2] - [0,2,2]
  EXPECT_EQ(peer[1], 13);   // [0,0,1] - [1,0,1]
  EXPECT_EQ(peer[5], 25);   // [0,1,1] - [2,0,1]
  EXPECT_EQ(peer[9], 37);   // [0,2,1] - [3,0,1]
  EXPECT_EQ(peer[17], 29);  // [1,1,1] - [2,1,1]
  EXPECT_EQ(peer[33], 45);  // [2,2,1] - [3,2,1]
  EXPECT_FALSE(peer.contains(3));
}

// Of a FiConn_k, N / 2^k backup ports stay free.
TEST(FiConn, FreeBackupPorts) {
  for (const auto& [text, k] : std::vector<std::pair<std::string, int>>{
           {"ficonn:n=8,k=1", 1}, {"ficonn:n=8,k=2", 2}, {"ficonn:n=4,k=3", 3}, {"ficonn:n=2,k=5", 5}}) {
    const auto network = make(text);
    std::vector<int> ports(static_cast<std::size_t>(network->devices()), 0);
    for (const auto& link : network->links()) {
      if (link.from < network->devices()) ++ports[static_cast<std::size_t>(link.from)];
    }
    EXPECT_EQ(std::count(ports.begin(), ports.end(), 1), network->devices() >> k) << text;
    EXPECT_EQ(std::count(ports.begin(), ports.end(), 2), network->devices() - (network->devices() >> k)) << text;
  }
}

TEST(FiConn, RoutesByHand) {
  const auto network = make("ficonn:n=4,k=2");
  EXPECT_EQ(stops(*network, 3, 0), (Names{"device 3 (0,0,3)", "switch (0,0)", "device 0 (0,0,0)"}));
  // Cell 0 to cell 2 of unit 0 over [0,0,2]-[0,2,0].
  EXPECT_EQ(stops(*network, 3, 11), (Names{"device 3 (0,0,3)", "switch (0,0)", "device 2 (0,0,2)", "device 8 (0,2,0)",
                                           "switch (0,2)", "device 11 (0,2,3)"}));
  // Unit 0 to unit 3 over device 9 of unit 0 and device 1 of unit 3.
  EXPECT_EQ(stops(*network, 8, 36), (Names{"device 8 (0,2,0)", "switch (0,2)", "device 9 (0,2,1)", "device 37 (3,0,1)",
                                           "switch (3,0)", "device 36 (3,0,0)"}));
}

// As in DCell, at most 2^(k+1) - 1 hops between devices (Li et al., section III): 3 * 2^k - 1 links.
TEST(FiConn, RoutesAreAtMostTheDiameterOfThePaper) {
  for (const auto& [text, most] : std::vector<std::pair<std::string, std::size_t>>{
           {"ficonn:n=4,k=0", 2}, {"ficonn:n=8,k=1", 5}, {"ficonn:n=8,k=2", 11}}) {
    const auto network = make(text);
    std::size_t longest = 0;
    for (int src = 0; src < network->devices(); ++src) {
      for (int dst = 0; dst < network->devices(); ++dst) longest = std::max(longest, route(*network, src, dst).size());
    }
    EXPECT_EQ(longest, most) << text;
  }
}

// n=2 makes a chain: every split of two units cuts one cable.
TEST(FiConn, SplitsCutWhatIsSaid) {
  EXPECT_EQ(make("ficonn:n=2,k=4")->characteristics().bisection_links, 1);
  for (const char* text :
       {"ficonn:n=6,k=1", "ficonn:n=8,k=1", "ficonn:n=16,k=1", "ficonn:n=32,k=1", "ficonn:n=8,k=2", "ficonn:n=4,k=3"}) {
    const auto network = make(text);
    const auto side = network->bisection_split();
    ASSERT_EQ(std::count(side.begin(), side.end(), true), network->devices() / 2) << text;
    EXPECT_EQ(static_cast<double>(min_cut(*network, side)), network->characteristics().bisection_links) << text;
  }
}

TEST(FiConn, ChoosesSizes) {
  const auto chosen = [](const std::string& text, int devices) { return make(text, devices)->instance(); };
  EXPECT_EQ(chosen("ficonn", 1), "ficonn:n=2,k=1,planes=1");
  EXPECT_EQ(chosen("ficonn", 40), "ficonn:n=8,k=1,planes=1");
  EXPECT_EQ(chosen("ficonn", 440), "ficonn:n=8,k=2,planes=1");
  EXPECT_EQ(chosen("ficonn:n=4", 13), "ficonn:n=4,k=2,planes=1");
  EXPECT_EQ(chosen("ficonn:k=2", 49), "ficonn:n=6,k=2,planes=1");
}

TEST(FiConn, RefusesWhatDoesNotFit) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"ficonn:n=7,k=1", "topology 'ficonn': 'n' is 7: it must be even"},
      {"ficonn:n=0", "'n' is '0'"},
      {"ficonn:n=4,k=-2", "'k' is '-2'"},
      {"ficonn:n=65536,k=21", "at most 4194304 devices"},
  };
  for (const auto& [text, says] : table) EXPECT_EQ(refusal_fault(text, 1, says), "") << text;
  EXPECT_EQ(refusal_fault("ficonn:n=8,k=1", 41, "has 40 devices, but 41 are wanted"), "");
  EXPECT_EQ(refusal_fault("ficonn", 4'194'304, "with switches of 64 ports holds 4194304 devices"), "");
}

}  // namespace
}  // namespace tandem
