#include "sim/cli/topology_files.hpp"

#include <fmt/format.h>

#include <map>

#include "platforms/cables.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"

namespace tandem {
namespace {

constexpr int kMostHosts = 256;
constexpr double kMostRouteLinks = 2e6;

// End points of the fabric of a cluster of nodes are the nodes' NICs.
std::string end_name(const Cluster& cluster, int vertex) {
  const auto& topology = cluster.topology();
  const auto& options = cluster.options();
  if (options.devices_per_node == 1 || vertex >= topology.devices()) return topology.vertex_name(vertex);
  return fmt::format("node {} NIC {}", vertex / options.nics_per_node, vertex % options.nics_per_node);
}

// Two dashes would end it.
std::string comment(const std::string& text) {
  auto result = xml_escaped(text);
  for (auto i = result.find("--"); i != std::string::npos; i = result.find("--", i)) result.insert(i + 1, " ");
  return result;
}

// Link names, escaped; parallel bundles between the same ends are told apart by a number.
std::vector<std::string> link_ids(const Cluster& cluster) {
  std::vector<std::string> ids;
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < cluster.links().size(); ++i) {
    auto name = xml_escaped(cluster.link_name(LinkId{static_cast<std::int32_t>(i)}));
    if (const int before = seen[name]++; before > 0) name += fmt::format(" #{}", before + 1);
    ids.push_back(std::move(name));
  }
  return ids;
}

void check_routes(const Cluster& cluster) {
  const double hosts = cluster.devices();
  const auto links = hosts * (hosts - 1) * cluster.topology().characteristics().mean_path;
  if (cluster.devices() <= kMostHosts && links <= kMostRouteLinks) return;
  throw usage_error(
      fmt::format("--export-xml writes the route of every pair: {} has {} devices and routes of {:.0f} links in all, "
                  "and at most {} devices and {:.0f} links are accepted",
                  cluster.topology().instance(), cluster.devices(), links, kMostHosts, kMostRouteLinks));
}

}  // namespace

std::string cables_csv(const Cluster& cluster) {
  std::vector<Record> rows;
  for (const auto& cable : cables_of(cluster.topology())) {
    const auto& link = cluster.topology().link(cable.link);
    rows.push_back({{"cable", "1", static_cast<std::int64_t>(rows.size())},
                    {"from", "1", end_name(cluster, link.from)},
                    {"from_port", "1", cable.from_port},
                    {"to", "1", end_name(cluster, link.to)},
                    {"to_port", "1", cable.to_port},
                    {"plane", "1", std::int64_t{cable.plane}},
                    {"length", "1", std::string(to_text(cable.length))}});
  }
  return rows.empty() ? "cable,from,from_port,to,to_port,plane,length\n" : to_csv(rows);
}

std::string platform_xml(const Cluster& cluster) {
  check_routes(cluster);
  std::string text =
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n";
  text += fmt::format("  <!-- {}; host speeds are placeholders -->\n", comment(cluster.topology().instance()));
  text += "  <zone id=\"fabric\" routing=\"Full\">\n";
  const auto ids = link_ids(cluster);
  for (int device = 0; device < cluster.devices(); ++device) {
    text += fmt::format("    <host id=\"device-{}\" speed=\"1Gf\"/>\n", device);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& link = cluster.links()[i];
    text += fmt::format("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"SHARED\"/>\n", ids[i],
                        link.bandwidth.count(), link.latency.count());
  }
  std::vector<LinkId> path;
  for (int src = 0; src < cluster.devices(); ++src) {
    for (int dst = 0; dst < cluster.devices(); ++dst) {
      if (src == dst) continue;
      cluster.route(DeviceId{src}, DeviceId{dst}, 0, path);
      text += fmt::format("    <route src=\"device-{}\" dst=\"device-{}\" symmetrical=\"NO\">", src, dst);
      for (const auto id : path) text += fmt::format("<link_ctn id=\"{}\"/>", ids[id.index()]);
      text += "</route>\n";
    }
  }
  return text + "  </zone>\n</platform>\n";
}

}  // namespace tandem
