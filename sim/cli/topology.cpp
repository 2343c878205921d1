// tandem topology: what a network is made of, several side by side; routes, links and addresses.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/cluster.hpp"
#include "sim/cli/output.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/cost.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

const std::vector<std::string> kShared{"ranks",           "nodes",          "devices-per-node",
                                       "nics-per-node",   "link-bandwidth", "link-latency",
                                       "intra-bandwidth", "intra-latency",  "host-bandwidth"};

CommandSpec topology_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem topology NAME[:KEY=VALUE,...]... [options]";
  spec.help =
      "Characteristics of topologies, side by side. Where sizes are left out, --ranks chooses the smallest instance "
      "that "
      "holds them.";
  spec.word_name = "topology";
  spec.least_words = 1;
  spec.most_words = 64;
  const std::string what = "What to show";
  const std::string cost = "Prices, US dollars (assumptions: replace them)";
  spec.options = {
      {"route", "SRC DST", "none", "the links from one device to another", what, 0, false, 2},
      {"links", "", "no", "every link, each direction of its own", what},
      {"addresses", "", "no", "every device with its address", what},
      format_option(),
      {"switch-port-price", "USD", fmt::format("{}", Prices{}.switch_port), "of a switch port", cost},
      {"nic-port-price", "USD", fmt::format("{}", Prices{}.device_port), "of a device's network port", cost},
      {"board-link-price", "USD", fmt::format("{}", Prices{}.board_link), "of a link on a board or backplane", cost},
      {"copper-cable-price", "USD", fmt::format("{}", Prices{}.copper_cable), "of a short cable", cost},
      {"optical-cable-price", "USD", fmt::format("{}", Prices{}.optical_cable), "of a long cable", cost}};
  for (auto& option : run_option_specs(kShared)) spec.options.push_back(std::move(option));
  spec.options.push_back({"devices", "N", "as --ranks", "another name of --ranks", "Network"});
  return spec;
}

double price(const CommandLine& line, const char* name) {
  const double value = parse_number(line.text(name), std::string("--") + name);
  if (value < 0) throw usage_error(fmt::format("--{} is '{}': it must not be negative", name, line.text(name)));
  return value;
}

Prices prices_of(const CommandLine& line) {
  return {price(line, "switch-port-price"), price(line, "nic-port-price"), price(line, "board-link-price"),
          price(line, "copper-cable-price"), price(line, "optical-cable-price")};
}

ClusterOptions cluster_options(const CommandLine& line) {
  auto given = given_run_options(line);
  if (line.has("devices")) {
    if (line.has("ranks")) throw usage_error("--ranks and --devices are the same: give one of them");
    (void)parse_integer(line.text("devices"), 1, 1'048'576, "--devices");
    given["ranks"] = line.text("devices");
  }
  return parse_run(given).cluster;
}

Record characteristics_of(const Cluster& cluster, const Prices& prices) {
  const auto& topology = cluster.topology();
  const auto c = topology.characteristics();
  const auto items = topology.cost_items();
  const double end_points = static_cast<double>(cluster.options().nics_per_node) / cluster.options().devices_per_node;
  Record row;
  const auto count = [&](const char* name, std::int64_t value) { row.push_back({name, "1", value}); };
  const auto real = [&](const char* name, double value) { row.push_back({name, "1", value}); };
  row.push_back({"topology", "1", split_plugin_text(topology.instance()).name});
  row.push_back({"instance", "1", topology.instance()});
  count("devices", cluster.options().devices_per_node == 1 ? c.devices : cluster.devices());
  count("nodes", cluster.nodes());
  count("switches", c.switches);
  count("max_switch_radix", c.max_switch_radix);
  count("links", c.links);
  real("ports_per_device", cluster.ports_per_device());
  real("switch_ports_per_device", c.switch_ports_per_device * end_points);
  count("diameter", c.diameter);
  real("mean_path", c.mean_path);
  real("bisection_links", c.bisection_links);
  row.push_back({"bisection_is", "1", std::string(c.bisection_proved ? "proved" : "upper bound")});
  count("switch_ports", items.switch_ports);
  count("device_ports", items.device_ports);
  count("board_links", items.board_links);
  count("copper_cables", items.copper_cables);
  count("optical_cables", items.optical_cables);
  row.push_back({"cost_per_device", "USD", cost_per_device(topology, prices) * end_points});
  return row;
}

std::string digits_of(const Cluster& cluster, int device) {
  std::vector<int> digits;
  for (const int radix : cluster.radices()) {
    digits.push_back(device % radix);
    device /= radix;
  }
  return fmt::format("{}", fmt::join(digits, ","));
}

Record link_row(const Cluster& cluster, LinkId id) {
  static const char* kKinds[]{"device_port", "switch_link", "direct", "intra_node", "host"};
  const auto& link = cluster.link(id);
  return {{"link", "1", std::int64_t{id.value}},     {"from", "1", cluster.vertex_name(link.from)},
          {"to", "1", cluster.vertex_name(link.to)}, {"kind", "1", std::string(kKinds[static_cast<int>(link.kind)])},
          {"cables", "1", std::int64_t{link.width}}, {"bandwidth_bytes_per_s", "bytes/s", link.bandwidth.count()},
          {"latency_s", "s", link.latency.count()}};
}

std::vector<Record> link_rows(const Cluster& cluster) {
  std::vector<Record> rows;
  for (std::size_t i = 0; i < cluster.links().size(); ++i) {
    rows.push_back(link_row(cluster, LinkId{static_cast<std::int32_t>(i)}));
  }
  return rows;
}

std::vector<Record> address_rows(const Cluster& cluster) {
  std::vector<Record> rows;
  for (int device = 0; device < cluster.devices(); ++device) {
    rows.push_back({{"device", "1", std::int64_t{device}},
                    {"name", "1", cluster.vertex_name(device)},
                    {"address", "1", digits_of(cluster, device)}});
  }
  return rows;
}

std::vector<Record> route_rows(const Cluster& cluster, const std::string& ends) {
  const auto words = split(ends, ' ');
  const auto device = [&](const std::string& text) {
    return DeviceId{static_cast<std::int32_t>(parse_integer(text, 0, cluster.devices() - 1, "a device of --route"))};
  };
  std::vector<LinkId> path;
  cluster.route(device(words.at(0)), device(words.at(1)), 0, path);
  std::vector<Record> rows;
  for (const auto id : path) rows.push_back(link_row(cluster, id));
  return rows;
}

// Names of the tables asked for, and their rows.
std::vector<std::pair<std::string, std::vector<Record>>> extra_tables(const CommandLine& line, const Cluster& cluster) {
  std::vector<std::pair<std::string, std::vector<Record>>> tables;
  if (line.has("route")) tables.emplace_back("route", route_rows(cluster, line.text("route")));
  if (line.has("links")) tables.emplace_back("link_list", link_rows(cluster));
  if (line.has("addresses")) tables.emplace_back("addresses", address_rows(cluster));
  return tables;
}

std::string side_by_side(const std::vector<Record>& rows, const Prices& prices) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t f = 0; f < rows.front().size(); ++f) {
    lines.push_back({rows.front()[f].name});
    for (const auto& row : rows) lines.back().push_back(to_text(row[f]));
  }
  return aligned(lines) +
         fmt::format(
             "\nassumed prices: switch port {:g}, NIC port {:g}, board link {:g}, copper cable {:g}, optical cable "
             "{:g} USD\n",
             prices.switch_port, prices.device_port, prices.board_link, prices.copper_cable, prices.optical_cable);
}

std::string as_text(const CommandLine& line, const std::vector<std::unique_ptr<Cluster>>& clusters,
                    const std::vector<Record>& rows, const Prices& prices) {
  auto text = side_by_side(rows, prices);
  for (const auto& cluster : clusters) {
    for (const auto& [name, table] : extra_tables(line, *cluster)) {
      text += fmt::format("\n{} of {}{}\n", name == "link_list" ? "links" : name, cluster->topology().instance(),
                          name == "route" ? fmt::format(", {} links", table.size()) : "");
      text += to_table(table);
    }
  }
  return text;
}

json as_json(const CommandLine& line, const std::vector<std::unique_ptr<Cluster>>& clusters,
             const std::vector<Record>& rows) {
  auto array = json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto object = to_json_value(rows[i]);
    for (const auto& [name, table] : extra_tables(line, *clusters[i])) {
      auto& list = object[name] = json::array();
      for (const auto& row : table) list.push_back(to_json_value(row));
    }
    array.push_back(std::move(object));
  }
  return array;
}

// One table in CSV: the list asked for, or the characteristics.
std::string as_csv(const CommandLine& line, const std::vector<std::unique_ptr<Cluster>>& clusters,
                   const std::vector<Record>& rows) {
  std::vector<Record> all;
  for (const auto& cluster : clusters) {
    const auto tables = extra_tables(line, *cluster);
    if (tables.size() > 1)
      throw usage_error("--format csv prints one table: give one of --route, --links, --addresses");
    if (tables.empty()) continue;
    for (auto row : tables.front().second) {
      row.insert(row.begin(), {"instance", "1", cluster->topology().instance()});
      all.push_back(std::move(row));
    }
  }
  return to_csv(all.empty() ? rows : all);
}

int topology_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(topology_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto prices = prices_of(*line);
  auto options = cluster_options(*line);
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<Record> rows;
  for (const auto& name : line->words()) {
    options.topology = name;
    clusters.push_back(std::make_unique<Cluster>(options));
    rows.push_back(characteristics_of(*clusters.back(), prices));
  }
  switch (format) {
    case Format::json:
      print(as_json(*line, clusters, rows).dump(2) + "\n");
      break;
    case Format::csv:
      print(as_csv(*line, clusters, rows));
      break;
    case Format::table:
      print(as_text(*line, clusters, rows, prices));
      break;
  }
  return 0;
}

}  // namespace

Subcommand topology_subcommand() {
  return {"topology", "counts, diameter, mean path, bisection and cost; routes and links", topology_command};
}

}  // namespace tandem
