// tandem topology: what networks are made of, side by side; routes, links and addresses; drawings and other files.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/cluster.hpp"
#include "sim/cli/output.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/cli/topology_files.hpp"
#include "sim/cli/topology_tables.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/cost.hpp"
#include "sim/study/price_file.hpp"
#include "traces/atomic_file.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

const std::vector<std::string> kShared{"cluster",       "ranks",          "nodes",        "devices-per-node",
                                       "nics-per-node", "link-bandwidth", "link-latency", "intra-bandwidth",
                                       "intra-latency", "host-bandwidth", "link-override"};

CommandSpec topology_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem topology NAME[:KEY=VALUE,...]... [options]";
  spec.help =
      "Characteristics of topologies, side by side. Where sizes are left out, --ranks chooses the smallest instance "
      "that holds them. With several devices a node, paths, bisection, failures and drawings are those of the "
      "topology, whose end points are the nodes' NICs.";
  spec.word_name = "topology";
  spec.most_words = 64;
  const std::string what = "What to show";
  const std::string files = "Files to write, of one topology";
  const std::string cost = "Prices, US dollars (assumptions: replace them)";
  spec.options = {
      {"route", "SRC DST", "none", "the links from one device to another", what, 0, false, 2},
      {"flows", "N", "1", "with --route: the different paths that flows 0 to N-1 take", what},
      {"links", "", "no", "every link, each direction of its own", what},
      {"addresses", "", "no", "every device with its address", what},
      {"analyse", "", "no",
       "disjoint and equal paths between devices (sampled pairs), all-to-all throughput in rates of a cable, and "
       "bounds "
       "of the bisection; minutes for tens of thousands of devices",
       what},
      {"random-failures", "links=P%,switches=P%,seed=S,trials=T", "none",
       "each cable and switch fails with this probability: the share of devices in the largest connected part and the "
       "stretch of paths in it, means over trials (10) and their spread (standard deviation of one trial)",
       what},
      {"draw", "FILE.svg", "none", "a picture; up to a few hundred devices and switches", files},
      {"cables", "FILE.csv", "none", "one line a cable: end, port, end, port, plane, length class", files},
      {"export-xml", "FILE.xml", "none", "a platform of SimGrid with the routes of all pairs; up to 256 devices",
       files},
      format_option(),
      {"prices", "FILE", "none", "a file of NAME = PRICE lines, as in sim/study/prices; the options below go before it",
       cost},
      {"switch-port-price", "USD", fmt::format("{}", Prices{}.switch_port), "of a switch port", cost},
      {"node-switch-port-price", "USD", fmt::format("{}", Prices{}.node_switch_port),
       "of a port of a switch inside a node (NVSwitch)", cost},
      {"nic-port-price", "USD", fmt::format("{}", Prices{}.device_port), "of a device's network port", cost},
      {"board-link-price", "USD", fmt::format("{}", Prices{}.board_link), "of a link on a board or backplane", cost},
      {"copper-cable-price", "USD", fmt::format("{}", Prices{}.copper_cable), "of a short cable", cost},
      {"optical-cable-price", "USD", fmt::format("{}", Prices{}.optical_cable), "of a long cable", cost}};
  for (auto& option : run_option_specs(kShared)) spec.options.push_back(std::move(option));
  spec.options.push_back({"devices", "N", "as --ranks", "another name of --ranks", "Network"});
  return spec;
}

// An option that is given, or what the file (or the assumption) says.
double price(const CommandLine& line, const char* name, double otherwise) {
  if (!line.has(name)) return otherwise;
  const double value = parse_number(line.text(name), std::string("--") + name);
  if (value < 0) throw usage_error(fmt::format("--{} is '{}': it must not be negative", name, line.text(name)));
  return value;
}

Prices prices_of(const CommandLine& line) {
  const auto base = line.has("prices") ? read_prices(line.text("prices")) : Prices{};
  return {price(line, "switch-port-price", base.switch_port),
          price(line, "node-switch-port-price", base.node_switch_port),
          price(line, "nic-port-price", base.device_port),
          price(line, "board-link-price", base.board_link),
          price(line, "copper-cable-price", base.copper_cable),
          price(line, "optical-cable-price", base.optical_cable)};
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

int flows_of(const CommandLine& line) {
  if (line.has("flows") && !line.has("route")) throw usage_error("--flows is for --route, which is not given");
  return static_cast<int>(parse_integer(line.text("flows"), 1, 100'000, "--flows"));
}

// Names of the tables asked for, and their rows.
std::vector<std::pair<std::string, std::vector<Record>>> extra_tables(const CommandLine& line, const Cluster& cluster) {
  std::vector<std::pair<std::string, std::vector<Record>>> tables;
  if (line.has("route")) tables.emplace_back("route", route_rows(cluster, line.text("route"), flows_of(line)));
  if (line.has("links")) tables.emplace_back("link_list", link_rows(cluster));
  if (line.has("addresses")) tables.emplace_back("addresses", address_rows(cluster));
  return tables;
}

std::string side_by_side(const std::vector<Record>& rows, const Prices& prices, const std::string& source) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t f = 0; f < rows.front().size(); ++f) {
    lines.push_back({rows.front()[f].name});
    for (const auto& row : rows) lines.back().push_back(to_text(row[f]));
  }
  return aligned(lines) + fmt::format(
                              "\n{}: switch port {:g}, node switch port {:g}, NIC port {:g}, board link {:g}, copper "
                              "cable {:g}, optical cable "
                              "{:g} USD\n",
                              source, prices.switch_port, prices.node_switch_port, prices.device_port,
                              prices.board_link, prices.copper_cable, prices.optical_cable);
}

std::string route_note(const std::vector<Record>& table) {
  const auto* path = table.empty() ? nullptr : find_field(table.back(), "path");
  if (path == nullptr) return fmt::format(", {} links", table.size());
  return fmt::format(", {} different paths", std::get<std::int64_t>(path->value) + 1);
}

std::string as_text(const CommandLine& line, const std::vector<std::unique_ptr<Cluster>>& clusters,
                    const std::vector<Record>& rows, const Prices& prices) {
  const auto source = line.has("prices") ? "prices of " + line.text("prices") : std::string("assumed prices");
  auto text = side_by_side(rows, prices, source);
  for (const auto& cluster : clusters) {
    for (const auto& [name, table] : extra_tables(line, *cluster)) {
      text += fmt::format("\n{} of {}{}\n", name == "link_list" ? "links" : name, cluster->topology().instance(),
                          name == "route" ? route_note(table) : "");
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

// Options that name files to write, and what makes their content.
struct FileOption {
  const char* name;
  std::string (*content)(const Cluster& cluster);
};
const FileOption kFiles[]{
    {"draw", [](const Cluster& cluster) { return drawing(cluster.topology()); }},
    {"cables", cables_csv},
    {"export-xml", platform_xml},
};

// Files that the command reads: prices, and whatever a topology's parameters name.
std::vector<std::string> inputs_of(const CommandLine& line) {
  std::vector<std::string> inputs;
  if (line.has("prices")) inputs.push_back(line.text("prices"));
  for (const auto& word : line.words()) {
    for (const auto& part : split(split_plugin_text(word).arguments, ',')) {
      inputs.push_back(part.substr(part.find('=') + 1));
    }
  }
  return inputs;
}

void check_files(const CommandLine& line) {
  std::map<std::string, std::string> options;  // by the file they name
  for (const auto& [name, content] : kFiles) {
    if (!line.has(name)) continue;
    const auto& path = line.text(name);
    if (line.words().size() > 1) {
      throw usage_error(fmt::format("--{} is for one topology: {} are given", name, line.words().size()));
    }
    check_output(path);
    check_not_an_input(path, inputs_of(line), std::string("--") + name);
    const auto [other, is_new] =
        options.emplace(std::filesystem::weakly_canonical(std::filesystem::absolute(path)), name);
    if (!is_new) throw usage_error(fmt::format("--{} and --{} name the same file: {}", other->second, name, path));
  }
}

// All contents before any file, so that a refusal leaves none.
void write_files(const CommandLine& line, const Cluster& cluster) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, content] : kFiles) {
    if (line.has(name)) files.emplace_back(line.text(name), content(cluster));
  }
  for (const auto& [path, content] : files) write_atomically(path, content);
}

void append(Record& row, Record more) {
  for (auto& field : more) row.push_back(std::move(field));
}

int topology_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(topology_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto prices = prices_of(*line);
  const auto failures =
      line->has("random-failures") ? parse_random_failures(line->text("random-failures")) : FailureShares{};
  (void)flows_of(*line);
  check_files(*line);
  auto options = cluster_options(*line);
  std::vector<std::unique_ptr<Cluster>> clusters;
  auto names = line->words();
  if (names.empty() && line->has("cluster")) names.push_back(options.topology);
  if (names.empty()) throw usage_error(fmt::format("topology is missing: {}", topology_spec().synopsis));
  for (const auto& name : names) {
    options.topology = name;
    clusters.push_back(std::make_unique<Cluster>(options));
  }
  std::vector<Record> rows;
  for (const auto& cluster : clusters) {
    rows.push_back(characteristics_of(*cluster, prices));
    if (line->has("analyse")) append(rows.back(), analysis_of(cluster->topology()));
    if (line->has("random-failures")) append(rows.back(), failures_of(cluster->topology(), failures));
  }
  // Before anything is written: what is asked for may be impossible.
  const auto text = format == Format::json  ? as_json(*line, clusters, rows).dump(2) + "\n"
                    : format == Format::csv ? as_csv(*line, clusters, rows)
                                            : as_text(*line, clusters, rows, prices);
  write_files(*line, *clusters.front());
  print(text);
  return 0;
}

}  // namespace

Subcommand topology_subcommand() {
  return {"topology", "counts, diameter, mean path, bisection and cost; routes and links", topology_command};
}

}  // namespace tandem
