// Closed forms against a table of values that others measured, read from topology_oracles.csv.
#include <gtest/gtest.h>

#include <algorithm>

#include "platforms/topology.hpp"
#include "tests/platforms/graph.hpp"
#include "tests/platforms/oracle_table.hpp"

namespace tandem {
namespace {

std::vector<std::vector<std::string>> rows() {
  return testing::oracle_rows("topology_oracles.csv");
}

TEST(TopologyOracles, ClosedFormsEqualTheMeasuredTable) {
  const auto table = rows();
  ASSERT_GE(table.size(), 29U);
  for (const auto& row : table) {
    SCOPED_TRACE(row[0]);
    ASSERT_EQ(row.size(), 11U);
    const auto closed = make_topology(row[0], {})->characteristics();
    EXPECT_EQ(closed.devices, std::stoll(row[1]));
    EXPECT_EQ(closed.switches, std::stoll(row[2]));
    EXPECT_EQ(closed.max_switch_radix, std::stoll(row[3]));
    EXPECT_EQ(closed.links, std::stoll(row[4]));
    EXPECT_NEAR(closed.ports_per_device, std::stod(row[5]), 1e-9);
    EXPECT_NEAR(closed.switch_ports_per_device, std::stod(row[6]), 1e-9);
    EXPECT_EQ(closed.diameter, std::stoi(row[7]));
    const testing::Measured mean(row[8]);
    EXPECT_NEAR(closed.mean_path, mean.value, mean.sampled ? 0.003 * mean.value : 0.0006);
  }
}

TEST(TopologyOracles, BisectionLiesInTheMeasuredBracket) {
  for (const auto& row : rows()) {
    if (row[9].empty()) continue;
    SCOPED_TRACE(row[0]);
    const auto topology = make_topology(row[0], {});
    const auto closed = topology->characteristics();
    const testing::Measured lower(row[9]);
    const testing::Measured upper(row[10]);
    const double share = closed.bisection_links / topology->devices();
    const double own_lower = testing::bisection_lower_bound(*topology) / topology->devices();
    if (lower.sampled) {
      EXPECT_NEAR(own_lower, lower.value, testing::kOfRandomGraphs * lower.value);
      EXPECT_NEAR(share, upper.value, testing::kOfRandomGraphs * upper.value);
      EXPECT_GE(share, own_lower);
      continue;
    }
    EXPECT_NEAR(own_lower, lower.value, 0.0006);
    EXPECT_GE(share, lower.value - 0.0006);
    EXPECT_LE(share, upper.value + 0.0006);
    if (closed.bisection_proved) {
      EXPECT_NEAR(share, upper.value, 0.0006);
    }
  }
}

// A corner of the cube costs less than halves along one digit (the N/(2k) of the first derivation) as soon as k > 1 and
// the radices are large enough: 28 switch cuts of each of 4 rails instead of 32.
TEST(TopologyOracles, ACornerOfTheCubeIsCheaperThanAHalf) {
  const auto cube = make_topology("mesh-rail-cube:m=8,n=8x8", {});
  EXPECT_EQ(cube->characteristics().bisection_links, 4 * 28);
  std::vector<bool> half(512, false);
  std::vector<bool> corner(512, false);
  for (int device = 0; device < 512; ++device) {
    const int a1 = device / 8 % 8;
    const int a2 = device / 64;
    half[static_cast<std::size_t>(device)] = a1 < 4;
    corner[static_cast<std::size_t>(device)] = a1 < 6 && a2 < 6 && !(a1 == 5 && a2 >= 2);
  }
  ASSERT_EQ(std::count(corner.begin(), corner.end(), true), 256);
  EXPECT_EQ(testing::min_cut(*cube, half), 512 / 4);
  EXPECT_EQ(testing::min_cut(*cube, corner), 4 * 28);
}

// So it is with the boards of a HammingMesh: 28 switch cuts instead of 32, of two cables each; and of boards of 2x2, in
// 16 rows of 8, 56 cuts of four cables instead of 64.
TEST(TopologyOracles, ACornerOfAHammingMeshIsCheaperThanAHalf) {
  struct Mesh {
    const char* name;
    int board, columns, rows;
    int full_rows, rest;  // of the corner: six columns wide, the rest in the row behind
    int corner, half;
  };
  for (const auto& mesh : {Mesh{"hamming-mesh:a=1,b=1,x=8,y=8", 1, 8, 8, 5, 2, 56, 64},
                           Mesh{"hamming-mesh:a=2,b=2,x=8,y=16", 2, 8, 16, 10, 4, 224, 256}}) {
    const auto network = make_topology(mesh.name, {});
    EXPECT_EQ(network->characteristics().bisection_links, mesh.corner) << mesh.name;
    std::vector<bool> half;
    std::vector<bool> corner;
    for (int device = 0; device < network->devices(); ++device) {
      const int row = device / (mesh.columns * mesh.board) / mesh.board;
      const int column = device % (mesh.columns * mesh.board) / mesh.board;
      half.push_back(row < mesh.rows / 2);
      corner.push_back(row < mesh.full_rows ? column < 6 : row == mesh.full_rows && column < mesh.rest);
    }
    ASSERT_EQ(std::count(half.begin(), half.end(), true), network->devices() / 2);
    ASSERT_EQ(std::count(corner.begin(), corner.end(), true), network->devices() / 2);
    EXPECT_EQ(testing::min_cut(*network, corner), mesh.corner) << mesh.name;
    EXPECT_EQ(testing::min_cut(*network, half), mesh.half) << mesh.name;
  }
}

}  // namespace
}  // namespace tandem
