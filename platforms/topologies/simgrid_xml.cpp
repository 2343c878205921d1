// A platform file of SimGrid (version 4.1): zones, hosts, routers, links and routes. What is read, and what is refused
// because it would be read wrongly, is in platforms/SIMGRID_XML.md; platform_file.hpp reads the file.
//
// SimGrid's links are resources that routes pass, not edges between vertices. Here each resource (a link, or one
// direction of a SPLITDUPLEX link) becomes a directed link between two ends, and ends that follow each other on a route
// are one vertex: a host, a router or a joint without a name. A resource that is passed both ways - a SHARED link,
// whose two directions share its rate - cannot be an edge of a directed graph; it gets ends of its own, and links of
// its rate and no latency lead to it. Those carry no more than it does, so they never limit a flow.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "platforms/topologies/listed_network.hpp"
#include "platforms/topologies/platform_file.hpp"
#include "sim/core/csv_text.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostCheckedPairs = 1 << 16;  // for a route; of larger platforms, some sources' to all others

class UnionFind {
 public:
  explicit UnionFind(int size) : parent_(static_cast<std::size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int find(int x) {
    while (parent_[static_cast<std::size_t>(x)] != x) {
      auto& parent = parent_[static_cast<std::size_t>(x)];
      parent = parent_[static_cast<std::size_t>(parent)];
      x = parent;
    }
    return x;
  }
  void join(int a, int b) { parent_[static_cast<std::size_t>(find(a))] = find(b); }

 private:
  std::vector<int> parent_;
};

// Names of the hosts that are ranks, one a line; '#' starts a comment.
std::vector<int> read_hosts(const std::string& path, const PlatformFile& platform) {
  return with_context(path, [&] {
    std::unordered_map<std::string, int> points;
    for (const int host : platform.hosts) points.emplace(platform.points[static_cast<std::size_t>(host)].name, host);
    std::map<int, std::size_t> taken;
    std::vector<int> hosts;
    const auto lines = split(file_contents(path, kMostNetworkFileBytes), '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto line = lines[i].substr(0, lines[i].find('#'));
      line.erase(0, std::min(line.find_first_not_of(" \t\r"), line.size()));
      line.erase(line.find_last_not_of(" \t\r") + 1);
      if (line.empty()) continue;
      const auto found = points.find(line);
      if (found == points.end()) {
        throw input_error(fmt::format("line {}: the platform has no host {}", i + 1, shown(line)));
      }
      if (const auto [first, is_new] = taken.emplace(found->second, i + 1); !is_new) {
        throw input_error(fmt::format("line {}: {} is on line {} already", i + 1, shown(line), first->second));
      }
      hosts.push_back(found->second);
    }
    if (hosts.empty()) throw input_error("it names no host");
    return hosts;
  });
}

class SimgridXml final : public ListedNetwork {
 public:
  SimgridXml(std::string name, const std::string& file, const std::string& host_file, std::vector<int> radices,
             int planes, const PluginContext& context)
      : ListedNetwork(context, planes), platform_(read_platform(file)) {
    instance_ = std::move(name);
    shortest_ = false;
    if (!host_file.empty()) platform_.hosts = read_hosts(host_file, platform_);
    if (platform_.hosts.size() > static_cast<std::size_t>(kMostDevices)) {
      throw input_error(fmt::format("{}: there are more than {} hosts", file, kMostDevices));
    }
    devices_ = static_cast<int>(platform_.hosts.size());
    radices_ = std::move(radices);
    if (!radices_.empty() && capped_product(radices_) != devices_) {
      throw usage_error(fmt::format("topology 'simgrid-xml': 'dims' is {}, which makes {} devices, but there are {}",
                                    joined(radices_), capped_product(radices_), devices_));
    }
    with_context(file, [&] {
      platform_.check_zones();
      build();
      check_routes();
    });
  }

  void route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const auto stops = platform_.route(platform_.hosts[src.index()], platform_.hosts[dst.index()]);
    for (std::size_t i = 1; i < stops.size(); ++i) {
      if (const auto lead = leads_.find({stops[i - 1], stops[i]}); lead != leads_.end()) path.push_back(lead->second);
      if (platform_.is_resource(stops[i])) path.push_back(LinkId{platform_.resource(stops[i])});
    }
  }

 private:
  using Pair = std::pair<int, int>;

  // Ends of stop x: a point has one, resource r two.
  [[nodiscard]] int points() const { return static_cast<int>(platform_.points.size()); }
  [[nodiscard]] int in_end(int stop) const { return stop < points() ? stop : 2 * stop - points(); }
  [[nodiscard]] int out_end(int stop) const { return stop < points() ? stop : 2 * stop - points() + 1; }

  // Resources that some stop is both before and behind.
  [[nodiscard]] std::vector<bool> passed_both_ways(const std::set<Pair>& neighbours) const {
    std::vector<bool> both(static_cast<std::size_t>(points()) + platform_.resources.size(), false);
    for (const auto& [before, behind] : neighbours) {
      if (!neighbours.contains({behind, before})) continue;
      for (const int stop : {before, behind}) {
        if (platform_.is_resource(stop)) both[static_cast<std::size_t>(stop)] = true;
      }
    }
    return both;
  }

  // Whether two hosts or routers, or the two ends of a resource, have become one vertex.
  [[nodiscard]] bool collapsed(UnionFind& ends) const {
    std::set<int> seen;
    for (int point = 0; point < points(); ++point) {
      if (!seen.insert(ends.find(point)).second) return true;
    }
    for (std::size_t r = 0; r < platform_.resources.size(); ++r) {
      const int stop = platform_.stop_of(static_cast<int>(r));
      if (ends.find(in_end(stop)) == ends.find(out_end(stop))) return true;
    }
    return false;
  }

  [[nodiscard]] UnionFind merge(const std::set<Pair>& neighbours, const std::vector<bool>& apart) const {
    UnionFind ends(points() + 2 * static_cast<int>(platform_.resources.size()));
    for (const auto& [before, behind] : neighbours) {
      if (apart[static_cast<std::size_t>(before)] || apart[static_cast<std::size_t>(behind)]) continue;
      ends.join(out_end(before), in_end(behind));
    }
    return ends;
  }

  void build() {
    const auto neighbours = platform_.neighbours();
    auto apart = passed_both_ways(neighbours);
    auto ends = merge(neighbours, apart);
    if (collapsed(ends)) {
      // Routes pass links in ways that fit no network of cables: every link is passed by itself.
      std::fill(apart.begin() + points(), apart.end(), true);
      ends = merge(neighbours, apart);
    }
    number_vertices(ends);
    for (std::size_t r = 0; r < platform_.resources.size(); ++r) {
      const auto& resource = platform_.resources[r];
      const int stop = platform_.stop_of(static_cast<int>(r));
      const int from = vertex_of_.at(ends.find(in_end(stop)));
      const int to = vertex_of_.at(ends.find(out_end(stop)));
      with_context("link " + shown(resource.name),
                   [&] { list_link(from, to, resource.bandwidth, resource.latency, kind_between(from, to), 1); });
    }
    joints_ = links_.size();
    for (const auto& [before, behind] : neighbours) {
      const int from = vertex_of_.at(ends.find(out_end(before)));
      const int to = vertex_of_.at(ends.find(in_end(behind)));
      if (from == to) continue;
      const int narrow = platform_.is_resource(behind) && apart[static_cast<std::size_t>(behind)] ? behind : before;
      const auto& resource = platform_.resources[static_cast<std::size_t>(platform_.resource(narrow))];
      leads_.emplace(Pair{before, behind},
                     list_link(from, to, resource.bandwidth, Seconds{}, kind_between(from, to), 1));
    }
    vertex_of_.clear();
  }

  // Ranks first, in their order; then the other hosts, routers, and joints.
  void number_vertices(UnionFind& ends) {
    std::set<std::string> taken;
    const auto add = [&](int end, const std::string& name) {
      if (!vertex_of_.emplace(ends.find(end), static_cast<int>(names_.size())).second) return;
      auto unique = name;
      while (!taken.insert(unique).second) unique += "'";
      names_.push_back(unique);
    };
    for (const int host : platform_.hosts) add(host, platform_.points[static_cast<std::size_t>(host)].name);
    for (int point = 0; point < points(); ++point) add(point, platform_.points[static_cast<std::size_t>(point)].name);
    for (std::size_t r = 0; r < platform_.resources.size(); ++r) {
      const int stop = platform_.stop_of(static_cast<int>(r));
      add(in_end(stop), fmt::format("before {}", platform_.resources[r].name));
      add(out_end(stop), fmt::format("behind {}", platform_.resources[r].name));
    }
    vertices_ = static_cast<int>(names_.size());
  }

  void check_routes() const {
    std::vector<LinkId> path;
    const int step = 1 + devices_ / std::max(1, kMostCheckedPairs / devices_ + 1);
    for (int src = 0; src < devices_; src += step) {
      for (int dst = 0; dst < devices_; ++dst) check_route(DeviceId{src}, DeviceId{dst}, path);
    }
  }

  void check_route(DeviceId src, DeviceId dst, std::vector<LinkId>& path) const {
    route(src, dst, 0, path);
    std::sort(path.begin(), path.end());
    const auto twice = std::adjacent_find(path.begin(), path.end());
    if (twice == path.end()) return;
    throw input_error(fmt::format("the route from {} to {} takes {} twice", shown(vertex_name(src.value)),
                                  shown(vertex_name(dst.value)), shown(link_name(*twice))));
  }

  PlatformFile platform_;
  std::unordered_map<int, int> vertex_of_;  // by end, while the network is built
  std::map<Pair, LinkId> leads_;            // links that only lead to or from a resource
};

std::unique_ptr<Topology> make_simgrid_xml(const Arguments& arguments, const Topology::PluginContext& context) {
  refuse_other_rates("simgrid-xml", context);
  const int planes = planes_of(arguments);
  const auto file = arguments.text("file");
  const auto host_file = arguments.has("hostfile") ? arguments.text("hostfile") : std::string();
  const auto radices = arguments.has("dims") ? arguments.integers("dims", 1, kMostDevices) : std::vector<int>();
  const auto name =
      fmt::format("simgrid-xml:file={}{}{},planes={}", file, host_file.empty() ? "" : ",hostfile=" + host_file,
                  radices.empty() ? "" : ",dims=" + joined(radices), planes);
  return std::make_unique<SimgridXml>(name, file, host_file, radices, planes, context);
}

TANDEM_REGISTER(Topology, simgrid_xml, "simgrid-xml",
                "a SimGrid platform file, with the rates and latencies that it states (platforms/SIMGRID_XML.md)",
                make_simgrid_xml,
                {{"file", ParameterType::text, "", "the platform file, version 4.1; it must be given"},
                 {"hostfile", ParameterType::text, "",
                  "names of the hosts that are ranks, one a line (all, as in the file)"},
                 {"dims", ParameterType::integer_list, "",
                  "sizes of a digit-wise address of the ranks, least significant first (none when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
