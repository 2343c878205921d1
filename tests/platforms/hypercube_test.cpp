// hypercube: routes by hand, hashed orders, against the torus of the same graph, choice of sizes.
#include <gtest/gtest.h>

#include <set>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

TEST(Hypercube, CorrectsTheLowestBitFirst) {
  const auto cube = make("hypercube:dimensions=4");
  EXPECT_EQ(stops(*cube, 0, 13), (Names{"device 0 (0000)", "device 1 (0001)", "device 5 (0101)", "device 13 (1101)"}));
  EXPECT_EQ(stops(*cube, 13, 0), (Names{"device 13 (1101)", "device 12 (1100)", "device 8 (1000)", "device 0 (0000)"}));
}

TEST(Hypercube, HashedUsesEveryOrder) {
  const auto cube = make("hypercube:dimensions=5,routing=hashed");
  std::set<std::vector<LinkId>> paths;
  std::set<std::vector<LinkId>> fixed;
  const auto e_cube = make("hypercube:dimensions=5");
  for (FlowHash flow = 0; flow < 500; ++flow) {
    paths.insert(route(*cube, 3, 3 ^ 0b10111, flow));
    fixed.insert(route(*e_cube, 3, 3 ^ 0b10111, flow));
  }
  EXPECT_EQ(paths.size(), 24U) << "4 bits differ: 4! orders";
  EXPECT_EQ(fixed.size(), 1U);
}

// Uniform traffic loads every link with N/2 pairs, which proves the bisection.
TEST(Hypercube, UniformTrafficLoadsAllLinksAlike) {
  const auto loads = routed_loads(*make("hypercube:dimensions=6"));
  EXPECT_EQ(loads.least, 32);
  EXPECT_EQ(loads.most, 32);
}

// The torus of q dimensions of two is the same graph, and says the same of it.
TEST(Hypercube, IsATorusOfTwos) {
  const auto cube = make("hypercube:dimensions=6")->characteristics();
  const auto torus = make("torus:dims=2x2x2x2x2x2")->characteristics();
  EXPECT_EQ(cube.links, torus.links);
  EXPECT_EQ(cube.diameter, torus.diameter);
  EXPECT_DOUBLE_EQ(cube.mean_path, torus.mean_path);
  EXPECT_EQ(cube.bisection_links, torus.bisection_links);
}

TEST(Hypercube, ChoosesTheSmallestCube) {
  const auto chosen = [](int devices) { return make("hypercube", devices)->instance(); };
  EXPECT_EQ(chosen(1), "hypercube:dimensions=0,planes=1");
  EXPECT_EQ(chosen(2), "hypercube:dimensions=1,planes=1");
  EXPECT_EQ(chosen(64), "hypercube:dimensions=6,planes=1");
  EXPECT_EQ(chosen(65), "hypercube:dimensions=7,planes=1");
}

TEST(Hypercube, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal_fault("hypercube:dimensions=-1", 1, "'dimensions' is '-1'"), "");
  EXPECT_EQ(refusal_fault("hypercube:dimensions=23", 1, "'dimensions' is '23'"), "");
  EXPECT_EQ(refusal_fault("hypercube:dimensions=22", 1, "at most 33554432 cables"), "");
  EXPECT_EQ(refusal_fault("hypercube:routing=ecube", 1, "unknown routing 'ecube'; did you mean 'e-cube'?"), "");
  EXPECT_EQ(refusal_fault("hypercube:dimensions=3", 9, "has 8 devices, but 9 are wanted"), "");
}

}  // namespace
}  // namespace tandem
