// Which port a cable is plugged into, by hand.
#include "platforms/cables.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tandem {
namespace {

// topologies with stated port rules: position i of a module has port j (j-1 beyond itself) to position j, its last port
// to the rail, and on the rail switch it has the port of its own digit.
TEST(Cables, PortsOfAMeshRailCube) {
  const auto cube = make_topology("mesh-rail-cube:m=4,n=3x2", {});
  int mesh = 0;
  int rails = 0;
  for (const auto& cable : cables_of(*cube)) {
    const auto& link = cube->link(cable.link);
    const int module = link.from / 4;
    const int i = link.from % 4;
    if (link.kind == LinkKind::direct) {
      const int j = link.to % 4;
      EXPECT_EQ(cable.from_port, j < i ? j : j - 1);
      EXPECT_EQ(cable.to_port, i < j ? i : i - 1);
      EXPECT_EQ(cable.length, LengthClass::board);
      ++mesh;
      continue;
    }
    const int digit = i % 2 == 0 ? module % 3 : module / 3;
    EXPECT_EQ(cable.from_port, 3);
    EXPECT_EQ(cable.to_port, digit);
    EXPECT_EQ(cable.length, LengthClass::optical);
    ++rails;
  }
  EXPECT_EQ(mesh, 6 * 6);
  EXPECT_EQ(rails, 24);
}

TEST(Cables, PlanesAreFabricsOfTheirOwn) {
  const auto star = make_topology("star:devices=3,planes=2", {});
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> ports;
  for (const auto& cable : cables_of(*star)) {
    ports[{star->link(cable.link).from, cable.plane}] = {cable.from_port, cable.to_port};
  }
  ASSERT_EQ(ports.size(), 6U);
  for (int device = 0; device < 3; ++device) {
    for (int plane = 0; plane < 2; ++plane) {
      EXPECT_EQ((ports[{device, plane}]), (std::pair<std::int64_t, std::int64_t>(plane, device)));
    }
  }
}

// A ring of nine in racks of four: 3-4, 7-8 and 8-0 leave a rack. A ring of four stays in one.
TEST(Cables, TorusCablesBetweenRacksAreOptical) {
  const auto torus = make_topology("torus:dims=9x4", {});
  int optical = 0;
  for (const auto& cable : cables_of(*torus)) {
    const auto& link = torus->link(cable.link);
    const int from = link.from % 9;
    const bool first_dimension = link.from / 9 == link.to / 9;
    EXPECT_EQ(cable.length == LengthClass::optical, first_dimension && (from == 3 || from == 7 || from == 8));
    if (cable.length == LengthClass::optical) ++optical;
  }
  EXPECT_EQ(optical, 3 * 4);
}

// A link without its opposite next to it is a bundle of its own.
TEST(Cables, OneDirection) {
  class OneWay : public Network {
   public:
    OneWay() {
      devices_ = 3;
      vertices_ = 3;
      add_link({0, 1, BytesPerSecond(1), Seconds(0), LinkKind::direct, 1});
      add_cable(1, 2, BytesPerSecond(1), Seconds(0), LinkKind::direct, 2);
      add_link({2, 0, BytesPerSecond(1), Seconds(0), LinkKind::direct, 1});
    }
    void route(DeviceId, DeviceId, FlowHash, std::vector<LinkId>&) const override {}
    [[nodiscard]] std::string vertex_name(int vertex) const override { return std::to_string(vertex); }
    [[nodiscard]] std::vector<int> radices() const override { return {}; }
  };
  const auto bundles = bundles_of(OneWay());
  ASSERT_EQ(bundles.size(), 3U);
  EXPECT_EQ(bundles[0].back.value, -1);
  EXPECT_EQ(bundles[1].back.value, 2);
  EXPECT_EQ(bundles[1].width, 2);
  EXPECT_EQ(bundles[2].there.value, 3);
}

}  // namespace
}  // namespace tandem
