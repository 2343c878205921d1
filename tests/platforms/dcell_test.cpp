// dcell: wiring and routes by hand, lengths of routes, splits, choice of sizes, refused parameters.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

// Figure 1 of the paper: DCell(4,1), five cells; server [i,j-1] has a link to [j,i].
TEST(DCell, WiringOfThePapersFigure) {
  const auto cell = make("dcell:n=4,k=1");
  std::set<std::string> direct;
  for (std::size_t id = 0; id < cell->links().size(); id += 2) {
    const auto& link = cell->links()[id];
    if (link.kind == LinkKind::direct) direct.insert(cell->link_name(LinkId{static_cast<int>(id)}));
  }
  EXPECT_EQ(direct.size(), 10U);
  for (const char* name : {"device 0 (0,0) -> device 4 (1,0)", "device 1 (0,1) -> device 8 (2,0)",
                           "device 3 (0,3) -> device 16 (4,0)", "device 5 (1,1) -> device 9 (2,1)",
                           "device 11 (2,3) -> device 18 (4,2)", "device 15 (3,3) -> device 19 (4,3)"}) {
    EXPECT_TRUE(direct.contains(name)) << name;
  }
}

TEST(DCell, RoutesByHand) {
  const auto one = make("dcell:n=4,k=1");
  EXPECT_EQ(stops(*one, 1, 3), (Names{"device 1 (0,1)", "switch (0)", "device 3 (0,3)"}));
  // From cell 0 to cell 3 over [0,2]-[3,0].
  EXPECT_EQ(stops(*one, 0, 14), (Names{"device 0 (0,0)", "switch (0)", "device 2 (0,2)", "device 12 (3,0)",
                                       "switch (3)", "device 14 (3,2)"}));
  EXPECT_EQ(stops(*one, 14, 2), (Names{"device 14 (3,2)", "switch (3)", "device 12 (3,0)", "device 2 (0,2)"}));
  // DCell(2,2): 7 units of 6. From unit 0 to unit 6 over device 5 of unit 0 and device 0 of unit 6; inside of unit 0,
  // from cell 0 to cell 2 over [0,1]-[2,0].
  const auto two = make("dcell:n=2,k=2");
  EXPECT_EQ(stops(*two, 0, 36), (Names{"device 0 (0,0,0)", "switch (0,0)", "device 1 (0,0,1)", "device 4 (0,2,0)",
                                       "switch (0,2)", "device 5 (0,2,1)", "device 36 (6,0,0)"}));
}

// The paper's bound on DCellRouting: 2^(k+1) - 1 hops between servers, so that a switch hop is 2 links; reached.
TEST(DCell, RoutesAreAtMostTheDiameterOfThePaper) {
  for (const auto& [text, most] : std::vector<std::pair<std::string, std::size_t>>{
           {"dcell:n=4,k=0", 2}, {"dcell:n=4,k=1", 5}, {"dcell:n=3,k=2", 11}, {"dcell:n=4,k=2", 11}}) {
    const auto cell = make(text);
    std::size_t longest = 0;
    for (int src = 0; src < cell->devices(); ++src) {
      for (int dst = 0; dst < cell->devices(); ++dst) longest = std::max(longest, route(*cell, src, dst).size());
    }
    EXPECT_EQ(longest, most) << text;
  }
}

// Two devices whose own cables lead to the same third cell are nearer over it.
TEST(DCell, AThirdCellIsShorterNowAndThen) {
  const auto cell = make("dcell:n=4,k=1");
  EXPECT_FALSE(cell->shortest_routing());
  // [0,0] leads to cell 1, and [2,1] comes from cell 1: 1 + 2 + 1 over [1,0] and [1,1].
  EXPECT_EQ(distances(*cell, 0)[2 * 4 + 1], 4);
  EXPECT_EQ(route(*cell, 0, 2 * 4 + 1).size(), 5U);
}

TEST(DCell, MaxFlowIsTheNumberOfPorts) {
  for (const auto& [text, ports] :
       std::vector<std::pair<std::string, int>>{{"dcell:n=7,k=1", 2}, {"dcell:n=3,k=2", 3}}) {
    const auto cell = make(text);
    for (const int dst : {1, cell->devices() / 2 + 1, cell->devices() - 1}) {
      EXPECT_EQ(max_flow(*cell, DeviceId{0}, DeviceId{dst}), ports) << text << " " << dst;
    }
  }
}

// Over every number of units and of devices kept in each, counted by max-flow: the closed form is the least of them.
TEST(DCell, BisectionIsTheBestOfUnitsThatKeepTheirFirstDevices) {
  for (const int n : {3, 4, 6, 7, 9}) {
    const auto cell = make(fmt::format("dcell:n={},k=1", n));
    const int half = cell->devices() / 2;
    std::vector<bool> first(static_cast<std::size_t>(cell->devices()), false);
    std::fill_n(first.begin(), half, true);
    auto least = min_cut(*cell, first);
    for (int units = (n + 2) / 2; units <= n; ++units) {
      std::vector<bool> side(static_cast<std::size_t>(cell->devices()), false);
      for (int unit = 0; unit < units; ++unit) {
        const int kept = half / units + (unit < half % units ? 1 : 0);
        std::fill_n(side.begin() + unit * n, kept, true);
      }
      least = std::min(least, min_cut(*cell, side));
    }
    EXPECT_EQ(cell->characteristics().bisection_links, static_cast<double>(least)) << n;
  }
}

// What max-flow counts of the split that a topology names; two levels are not in the contract test at this size.
TEST(DCell, TheSplitCutsWhatIsSaid) {
  for (const char* text : {"dcell:n=5,k=1", "dcell:n=16,k=1", "dcell:n=22,k=1", "dcell:n=4,k=2", "dcell:n=5,k=2"}) {
    const auto cell = make(text);
    const auto side = cell->bisection_split();
    ASSERT_EQ(std::count(side.begin(), side.end(), true), cell->devices() / 2) << text;
    EXPECT_EQ(static_cast<double>(min_cut(*cell, side)), cell->characteristics().bisection_links) << text;
  }
}

TEST(DCell, ChoosesSizes) {
  const auto chosen = [](const std::string& text, int devices) { return make(text, devices)->instance(); };
  EXPECT_EQ(chosen("dcell", 1), "dcell:n=2,k=1,planes=1");
  EXPECT_EQ(chosen("dcell", 64), "dcell:n=8,k=1,planes=1");
  EXPECT_EQ(chosen("dcell", 506), "dcell:n=22,k=1,planes=1");
  EXPECT_EQ(chosen("dcell", 4161), "dcell:n=8,k=2,planes=1");
  EXPECT_EQ(chosen("dcell", 32768), "dcell:n=13,k=2,planes=1");
  EXPECT_EQ(chosen("dcell:n=4", 21), "dcell:n=4,k=2,planes=1");
  EXPECT_EQ(chosen("dcell:k=3", 100), "dcell:n=2,k=3,planes=1");
}

TEST(DCell, RefusesWhatDoesNotFit) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"dcell:n=1,k=1", "'n' is '1'"},
      {"dcell:n=-4", "'n' is '-4'"},
      {"dcell:n=4,k=99", "'k' is '99'"},
      {"dcell:n=2,k=5", "at most 4194304 devices"},
      {"dcell:n=65536,k=21", "at most 4194304 devices"},
      {"dcell:n=4,levels=1", "no parameter 'levels'"},
  };
  for (const auto& [text, says] : table) EXPECT_EQ(refusal_fault(text, 1, says), "") << text;
  EXPECT_EQ(refusal_fault("dcell:n=4,k=1", 21, "has 20 devices, but 21 are wanted"), "");
  EXPECT_EQ(refusal_fault("dcell:n=7", 4'000'000, "with n=7 holds 4000000 devices"), "");
  EXPECT_EQ(refusal_fault("dcell", 4'194'304, "with switches of 64 ports holds 4194304 devices"), "");
}

}  // namespace
}  // namespace tandem
