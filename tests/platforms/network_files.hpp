// Any network written as files of the two formats that users bring: CSV tables and SimGrid's XML.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "platforms/topology.hpp"
#include "tests/traces/temporary_folder.hpp"

namespace tandem::testing {

[[nodiscard]] inline std::string csv_name(const Network& network, int vertex) {
  return fmt::format("\"{}\"", network.vertex_name(vertex));
}

// links.csv, nodes.csv (with addresses where there are any) and, with `routes`, routes.csv of all pairs. Names the
// topology that reads them.
[[nodiscard]] inline std::string write_link_list(const Topology& network, const TemporaryFolder& folder, bool routes) {
  std::string links = "from,to,bandwidth,latency,cables\n";
  for (std::size_t id = 0; id < network.links().size(); id += 2) {
    const auto& link = network.links()[id];
    links += fmt::format("{},{},{}Bps,{}s,{}\n", csv_name(network, link.from), csv_name(network, link.to),
                         link.bandwidth.count() / link.width, link.latency.count(), link.width);
  }
  std::string nodes = "name,kind,address\n";
  for (int vertex = 0; vertex < network.vertices(); ++vertex) {
    const bool device = vertex < network.devices();
    std::vector<int> digits;
    int rest = vertex;
    for (const int radix : network.radices()) {
      digits.push_back(rest % radix);
      rest /= radix;
    }
    nodes += fmt::format("{},{},{}\n", csv_name(network, vertex), device ? "device" : "switch",
                         device ? fmt::format("{}", fmt::join(digits, ".")) : "");
  }
  std::string pairs = "src,dst,path\n";
  std::vector<LinkId> path;
  for (int src = 0; src < network.devices(); ++src) {
    for (int dst = 0; dst < network.devices(); ++dst) {
      if (src == dst) continue;
      network.route(DeviceId{src}, DeviceId{dst}, 0, path);
      std::vector<std::string> names;
      for (const auto id : path) names.push_back(network.vertex_name(network.link(id).to));
      pairs += fmt::format("{},{},\"{}\"\n", csv_name(network, src), csv_name(network, dst), fmt::join(names, " > "));
    }
  }
  write_bytes(folder.file("links.csv"), links);
  write_bytes(folder.file("nodes.csv"), nodes);
  write_bytes(folder.file("routes.csv"), pairs);
  return fmt::format("link-list:links={},nodes={}{}", folder.file("links.csv"), folder.file("nodes.csv"),
                     routes ? ",routes=" + folder.file("routes.csv") : "");
}

// One Full zone: a SPLITDUPLEX link a cable, a route an ordered pair. Names the topology that reads it.
[[nodiscard]] inline std::string write_simgrid_xml(const Topology& network, const TemporaryFolder& folder) {
  std::string xml = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";
  xml += "<platform version=\"4.1\">\n<zone id=\"world\" routing=\"Full\">\n";
  for (int device = 0; device < network.devices(); ++device) {
    xml += fmt::format("<host id=\"{}\" speed=\"1Gf\"/>\n", network.vertex_name(device));
  }
  for (std::size_t id = 0; id < network.links().size(); id += 2) {
    const auto& link = network.links()[id];
    xml += fmt::format("<link id=\"l{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"SPLITDUPLEX\"/>\n",
                       id / 2, link.bandwidth.count(), link.latency.count());
  }
  std::vector<LinkId> path;
  for (int src = 0; src < network.devices(); ++src) {
    for (int dst = 0; dst < network.devices(); ++dst) {
      if (src == dst) continue;
      network.route(DeviceId{src}, DeviceId{dst}, 0, path);
      xml += fmt::format("<route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">", network.vertex_name(src),
                         network.vertex_name(dst));
      for (const auto id : path) {
        xml += fmt::format("<link_ctn id=\"l{}\" direction=\"{}\"/>", id.value / 2, id.value % 2 == 0 ? "UP" : "DOWN");
      }
      xml += "</route>\n";
    }
  }
  write_bytes(folder.file("platform.xml"), xml + "</zone>\n</platform>\n");
  std::vector<std::string> sizes;
  for (const int radix : network.radices()) sizes.push_back(std::to_string(radix));
  return fmt::format("simgrid-xml:file={},dims={}", folder.file("platform.xml"), fmt::join(sizes, "x"));
}

}  // namespace tandem::testing
