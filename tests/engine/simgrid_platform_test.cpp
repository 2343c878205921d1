// Platform files of SimGrid, read by Tandem and by SimGrid itself: every route between two hosts passes the same links.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simgrid/s4u.hpp>

#include <map>
#include <set>

#include "platforms/topology.hpp"
#include "sim/engine/process.hpp"
#include "tests/platforms/network_files.hpp"

namespace tandem {
namespace {

// "a b: 1e9 Bps 1e-6 s, ..." a line. Links are sorted: SimGrid's Floyd zones turn the links of one edge round, which a
// flow does not feel. The files give every link a rate of its own and a latency.
std::string simgrid_routes(const std::string& file) {
  return run_in_child([&] {
    simgrid::s4u::Engine engine("test");
    engine.load_platform(file);
    engine.get_netzone_root()->seal();  // Floyd and Dijkstra compute their tables only then
    std::map<std::string, std::string> lines;
    for (const auto* src : engine.get_all_hosts()) {
      for (const auto* dst : engine.get_all_hosts()) {
        if (src == dst) continue;
        std::vector<simgrid::s4u::Link*> links;
        double latency = 0;
        src->route_to(dst, links, &latency);
        auto& line = lines[src->get_name() + " " + dst->get_name()];
        std::multiset<std::string> passed;
        for (const auto* link : links) {
          passed.insert(fmt::format(" {:.9g} {:.9g},", link->get_bandwidth(), link->get_latency()));
        }
        for (const auto& link : passed) line += link;
        line += fmt::format(" {:.9g}", latency);
      }
    }
    std::string text;
    for (const auto& [ends, line] : lines) text += ends + ":" + line + "\n";
    return text;
  });
}

std::string tandem_routes(const std::string& file) {
  const auto topology = make_topology("simgrid-xml:file=" + file, {});
  std::map<std::string, std::string> lines;
  std::vector<LinkId> path;
  for (int src = 0; src < topology->devices(); ++src) {
    for (int dst = 0; dst < topology->devices(); ++dst) {
      if (src == dst) continue;
      topology->route(DeviceId{src}, DeviceId{dst}, 0, path);
      auto& line = lines[topology->vertex_name(src) + " " + topology->vertex_name(dst)];
      std::multiset<std::string> passed;
      for (const auto id : path) {
        const auto& link = topology->link(id);
        if (link.latency == Seconds{}) continue;  // only leads to a link that both directions share
        passed.insert(fmt::format(" {:.9g} {:.9g},", link.bandwidth.count(), link.latency.count()));
      }
      for (const auto& link : passed) line += link;
      line += fmt::format(" {:.9g}", topology->route_latency(path).count());
    }
  }
  std::string text;
  for (const auto& [ends, line] : lines) text += ends + ":" + line + "\n";
  return text;
}

class SimgridPlatform : public ::testing::TestWithParam<const char*> {};

TEST_P(SimgridPlatform, RoutesAreSimgridsOwn) {
  const auto file = std::string(TANDEM_SOURCE_DIR "/tests/platforms/networks/") + GetParam();
  const auto routes = simgrid_routes(file);
  EXPECT_GT(routes.size(), 100U);
  EXPECT_EQ(tandem_routes(file), routes);
}

INSTANTIATE_TEST_SUITE_P(All, SimgridPlatform,
                         ::testing::Values("star.xml", "tree.xml", "half-duplex.xml", "nested.xml"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (auto& c : name) c = c == '.' || c == '-' ? '_' : c;
                           return name;
                         });

// What Tandem's own tests write, SimGrid reads as the network that was written.
TEST(WrittenPlatform, IsReadAlike) {
  for (const char* name : {"torus:dims=4x4", "fat-tree:k=4"}) {
    const testing::TemporaryFolder folder;
    (void)testing::write_simgrid_xml(*make_topology(name, {}), folder);
    EXPECT_EQ(tandem_routes(folder.file("platform.xml")), simgrid_routes(folder.file("platform.xml"))) << name;
  }
}

}  // namespace
}  // namespace tandem
