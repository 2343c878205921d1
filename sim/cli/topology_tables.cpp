#include "sim/cli/topology_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "platforms/graph_analysis.hpp"
#include "sim/cli/progress.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

// Work that takes some seconds: devices x links for a search from every device, links for the search of a split.
constexpr std::int64_t kMostSearch = 4'000'000'000;
constexpr std::int64_t kMostSplitLinks = 100'000;
constexpr std::int64_t kMostFlowLinks = 20'000'000;  // pairs x links
constexpr int kMostPairs = 256;

Field count(const char* name, std::int64_t value) {
  return {name, "1", value};
}
Field real(const char* name, double value) {
  return {name, "1", value};
}
Field text(const char* name, std::string value) {
  return {name, "1", std::move(value)};
}

const char* to_text(Characteristics::Paths paths) {
  switch (paths) {
    case Characteristics::Paths::formula:
      return "formula";
    case Characteristics::Paths::searched:
      return "searched";
    case Characteristics::Paths::sampled:
      break;
  }
  return "sampled";
}

void leave_out(const Topology& topology, const char* what, const std::string& why) {
  fmt::print(stderr, "{}: {} left out: {}\n", topology.instance(), what, why);
}

// Of a search from every device.
std::int64_t work_of(const Topology& topology) {
  return std::int64_t{topology.devices()} * static_cast<std::int64_t>(topology.links().size());
}

void add_diversity(const Topology& topology, Record& row) {
  const auto links = std::max<std::int64_t>(1, static_cast<std::int64_t>(topology.links().size()));
  const auto most = static_cast<int>(std::clamp<std::int64_t>(kMostFlowLinks / links, 4, kMostPairs));
  Progress progress("disjoint paths");
  const auto diversity = path_diversity(topology, most, [&](auto done, auto total) { progress.show(done, total); });
  row.push_back(count("disjoint_paths_min", diversity.least_disjoint));
  row.push_back(real("disjoint_paths_mean", diversity.mean_disjoint));
  row.push_back(real("equal_paths_min", diversity.least_equal));
  row.push_back(real("equal_paths_mean", diversity.mean_equal));
  row.push_back(count("path_pairs", diversity.pairs));
  row.push_back(text("path_pairs_are", diversity.all_pairs ? "all" : "sampled"));
}

void add_bisection(const Topology& topology, Record& row) {
  UniformTraffic traffic{.bisection_lower = kMissing, .all_to_all = kMissing};
  if (work_of(topology) <= kMostSearch) {
    Progress progress("uniform traffic");
    traffic = uniform_traffic(topology, [&](auto done, auto total) { progress.show(done, total); });
  } else {
    leave_out(topology, "the lower bound of the bisection is",
              fmt::format("{} devices x {} links are more than {}", topology.devices(), topology.links().size(),
                          kMostSearch));
  }
  double upper = kMissing;
  std::string found_by = "-";
  if (static_cast<std::int64_t>(topology.links().size()) <= kMostSplitLinks) {
    Progress progress("splits");
    const auto split = bisection_upper(topology, [&](auto done, auto total) { progress.show(done, total); });
    upper = static_cast<double>(split.cables);
    found_by = split.found_by;
    // The topology's own number is a split, too, and of random graphs one from more starts.
    if (const double own = topology.characteristics().bisection_links; own < upper) {
      upper = own;
      found_by = "topology";
    }
  } else {
    leave_out(topology, "the search for a small split is",
              fmt::format("{} links are more than {}", topology.links().size(), kMostSplitLinks));
  }
  row.push_back(real("all_to_all_per_device", traffic.all_to_all));
  row.push_back(real("bisection_at_least", traffic.bisection_lower));
  row.push_back(real("bisection_at_most", upper));
  row.push_back(text("bisection_split", found_by));
}

double parse_share(const std::string& value, const std::string& key) {
  const auto what = fmt::format("'{}' of --random-failures", key);
  if (!value.ends_with('%')) throw usage_error(fmt::format("{} is '{}': it must be a percentage, as 5%", what, value));
  double percent = 0;
  try {
    percent = parse_number(std::string_view(value).substr(0, value.size() - 1), what);
  } catch (const Error&) {
    percent = -1;
  }
  if (!(percent >= 0 && percent <= 100)) {
    throw usage_error(fmt::format("{} is '{}': it must be from 0% to 100%", what, value));
  }
  return percent / 100;
}

void add_spread(Record& row, const std::string& name, const Spread& spread) {
  row.push_back({name, "1", spread.mean});
  row.push_back({name + "_spread", "1", spread.deviation});
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
  const auto& link = cluster.link(id);
  return {{"link", "1", std::int64_t{id.value}},     {"from", "1", cluster.vertex_name(link.from)},
          {"to", "1", cluster.vertex_name(link.to)}, {"kind", "1", std::string(to_text(link.kind))},
          {"cables", "1", std::int64_t{link.width}}, {"bandwidth_bytes_per_s", "bytes/s", link.bandwidth.count()},
          {"latency_s", "s", link.latency.count()}};
}

}  // namespace

Record characteristics_of(const Cluster& cluster, const Prices& prices) {
  const auto& topology = cluster.topology();
  const auto c = topology.characteristics();
  const auto items = topology.cost_items();
  const double end_points = static_cast<double>(cluster.options().nics_per_node) / cluster.options().devices_per_node;
  return {text("topology", split_plugin_text(topology.instance()).name),
          text("instance", topology.instance()),
          count("devices", cluster.options().devices_per_node == 1 ? c.devices : cluster.devices()),
          count("nodes", cluster.nodes()),
          count("switches", c.switches),
          count("max_switch_radix", c.max_switch_radix),
          count("links", c.links),
          real("ports_per_device", cluster.ports_per_device()),
          real("switch_ports_per_device", c.switch_ports_per_device * end_points),
          count("diameter", c.diameter),
          real("mean_path", c.mean_path),
          text("paths", to_text(c.paths)),
          real("bisection_links", c.bisection_links),
          text("bisection_is", c.bisection_proved     ? "proved"
                               : c.bisection_searched ? "searched"
                                                      : "upper bound"),
          count("switch_ports", items.switch_ports),
          count("node_switch_ports", items.node_switch_ports),
          count("device_ports", items.device_ports),
          count("board_links", items.board_links),
          count("copper_cables", items.copper_cables),
          count("optical_cables", items.optical_cables),
          {"cost_per_device", "USD", cost_per_device(topology, prices) * end_points}};
}

Record analysis_of(const Topology& topology) {
  Record row;
  add_diversity(topology, row);
  add_bisection(topology, row);
  return row;
}

FailureShares parse_random_failures(const std::string& given) {
  FailureShares shares;
  std::set<std::string> seen;
  for (const auto& part : split(given, ',')) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    if (equals == std::string::npos) {
      throw usage_error(
          fmt::format("--random-failures: '{}' is not KEY=VALUE; as in links=5%,switches=2%,seed=1,trials=10", part));
    }
    if (!seen.insert(key).second) throw usage_error(fmt::format("--random-failures: '{}' is given twice", key));
    const auto value = part.substr(equals + 1);
    if (key == "links") {
      shares.links = parse_share(value, key);
    } else if (key == "switches") {
      shares.switches = parse_share(value, key);
    } else if (key == "seed") {
      shares.seed = static_cast<std::uint64_t>(
          parse_integer(value, 0, std::numeric_limits<std::int64_t>::max(), "'seed' of --random-failures"));
    } else if (key == "trials") {
      shares.trials = static_cast<int>(parse_integer(value, 1, 10'000, "'trials' of --random-failures"));
    } else {
      throw usage_error(fmt::format("--random-failures: unknown '{}'{}", key,
                                    suggestion(key, {"links", "switches", "seed", "trials"})));
    }
  }
  if (!seen.contains("links") && !seen.contains("switches")) {
    throw usage_error("--random-failures: give links=P%, switches=P% or both");
  }
  return shares;
}

Record failures_of(const Topology& topology, const FailureShares& shares) {
  // Of each source, one search a trial.
  const auto per_source = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(topology.links().size()) * topology.planes() * (shares.trials + 1));
  const auto sources = static_cast<int>(std::clamp<std::int64_t>(kMostSearch / 16 / per_source, 1, topology.devices()));
  Progress progress("failures");
  const auto impact =
      random_failures(topology, shares, sources, [&](auto done, auto total) { progress.show(done, total); });
  Record row;
  row.push_back(real("failed_links", impact.failed_links.mean));
  row.push_back(real("failed_switches", impact.failed_switches.mean));
  add_spread(row, "connected_share", impact.connected_share);
  add_spread(row, "path_stretch", impact.path_stretch);
  add_spread(row, "mean_path_after_failures", impact.mean_path);
  row.push_back(count("failure_trials", shares.trials));
  row.push_back(count("path_sources", impact.sources));
  row.push_back(text("path_sources_are", impact.sources == topology.devices() ? "all" : "sampled"));
  return row;
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

std::vector<Record> route_rows(const Cluster& cluster, const std::string& ends, int flows) {
  const auto words = split(ends, ' ');
  const auto device = [&](const std::string& word) {
    return DeviceId{static_cast<std::int32_t>(parse_integer(word, 0, cluster.devices() - 1, "a device of --route"))};
  };
  const auto src = device(words.at(0));
  const auto dst = device(words.at(1));
  std::vector<std::vector<LinkId>> paths;  // in the order of the first flow that takes each
  std::map<std::vector<LinkId>, std::int64_t> takers;
  for (int flow = 0; flow < flows; ++flow) {
    std::vector<LinkId> path;
    cluster.route(src, dst, static_cast<FlowHash>(flow), path);
    if (++takers[path] == 1) paths.push_back(std::move(path));
  }
  std::vector<Record> rows;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (const auto id : paths[i]) {
      auto row = link_row(cluster, id);
      if (flows > 1) {
        row.insert(row.begin(), {count("path", static_cast<std::int64_t>(i)), count("flows", takers[paths[i]])});
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace tandem
