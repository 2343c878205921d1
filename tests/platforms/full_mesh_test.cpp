// full-mesh: every cable is where the formula of its number looks for it; sizes.
#include <gtest/gtest.h>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

TEST(FullMesh, RoutesByHand) {
  const auto mesh = make("full-mesh:devices=5");
  EXPECT_EQ(stops(*mesh, 1, 4), (Names{"device 1", "device 4"}));
  EXPECT_EQ(stops(*mesh, 4, 1), (Names{"device 4", "device 1"}));
  EXPECT_EQ(route(*mesh, 2, 2).size(), 0U);
}

TEST(FullMesh, EveryDeviceIsADisjointPath) {
  const auto mesh = make("full-mesh:devices=9");
  EXPECT_EQ(max_flow(*mesh, DeviceId{2}, DeviceId{7}), 8);
  EXPECT_EQ(mesh->characteristics().bisection_links, 4 * 5);
}

// Two racks of 16 and one of 5: 2 * 120 + 10 short cables.
TEST(FullMesh, CablesInsideOfARackAreShort) {
  const auto cost = make("full-mesh:devices=37")->cost_items();
  EXPECT_EQ(cost.copper_cables, 250);
  EXPECT_EQ(cost.optical_cables, 37 * 36 / 2 - 250);
}

TEST(FullMesh, HasAsManyDevicesAsWantedUntilThereAreTooManyCables) {
  EXPECT_EQ(make("full-mesh", 37)->instance(), "full-mesh:devices=37,planes=1");
  EXPECT_EQ(refusal_fault("full-mesh", 8193, "'full-mesh:devices=8193,planes=1' is too large"), "");
  EXPECT_EQ(refusal_fault("full-mesh", 4'194'304, "at most 33554432 cables"), "");
  EXPECT_EQ(refusal_fault("full-mesh:devices=0", 1, "'devices' is '0'"), "");
  EXPECT_EQ(refusal_fault("full-mesh:devices=3", 4, "has 3 devices, but 4 are wanted"), "");
}

}  // namespace
}  // namespace tandem
