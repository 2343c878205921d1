#include "platforms/topologies/platform_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostTreeBytes = std::size_t{256} << 20;  // of one zone

}  // namespace

std::vector<int> PlatformFile::route(int src, int dst) const {
  std::vector<int> stops{src};
  append(src, dst, stops);
  return stops;
}

// The innermost zone that holds both ends joins the two of its members that hold one each; what leads from an end to
// its member's gateway is a route inside of that member.
void PlatformFile::append(int src, int dst, std::vector<int>& stops) const {
  if (src == dst) return;
  int a = points[static_cast<std::size_t>(src)].zone;
  int b = points[static_cast<std::size_t>(dst)].zone;
  int from = member_index[static_cast<std::size_t>(src)];
  int to = member_index[static_cast<std::size_t>(dst)];
  const auto up = [&](int& zone, int& member) {
    member = zones[static_cast<std::size_t>(zone)].member_of_parent;
    zone = zones[static_cast<std::size_t>(zone)].parent;
  };
  while (a != b) {
    const bool deeper = zones[static_cast<std::size_t>(a)].depth >= zones[static_cast<std::size_t>(b)].depth;
    deeper ? up(a, from) : up(b, to);
  }
  const auto& zone = zones[static_cast<std::size_t>(a)];
  if (zone.routing == Routing::cluster) return append_spokes(zone, src, dst, stops);
  int at = src;
  for (const auto h : hops(zone, from, to)) {
    const auto& hop = zone.hops[h];
    append(at, hop.gate_from, stops);
    for (const int r : hop.resources) stops.push_back(stop_of(r));
    stops.push_back(hop.gate_to);
    at = hop.gate_to;
  }
  append(at, dst, stops);
}

void PlatformFile::append_spokes(const Zone& zone, int src, int dst, std::vector<int>& stops) const {
  if (const auto spoke = zone.spokes.find(src); spoke != zone.spokes.end()) stops.push_back(stop_of(spoke->second.up));
  if (zone.backbone >= 0) {
    stops.push_back(stop_of(zone.backbone));
  } else if (zone.hub != src && zone.hub != dst) {
    stops.push_back(zone.hub);
  }
  if (const auto spoke = zone.spokes.find(dst); spoke != zone.spokes.end()) {
    stops.push_back(stop_of(spoke->second.down));
  }
  stops.push_back(dst);
}

Error PlatformFile::no_route(const Zone& zone, int from, int to) const {
  const auto name = [&](int member) {
    const int id = zone.members[static_cast<std::size_t>(member)];
    return shown(id >= 0 ? points[static_cast<std::size_t>(id)].name : zones[static_cast<std::size_t>(-1 - id)].name);
  };
  return input_error(fmt::format("the network is disconnected: zone {} has no route from {} to {}", shown(zone.name),
                                 name(from), name(to)));
}

// Of each zone, members that hold hosts; every pair of them has to be joined.
void PlatformFile::check_zones() const {
  std::vector<std::set<int>> needed(zones.size());
  for (const int host : hosts) {
    int zone = points[static_cast<std::size_t>(host)].zone;
    int member = member_index[static_cast<std::size_t>(host)];
    while (zone >= 0 && needed[static_cast<std::size_t>(zone)].insert(member).second) {
      member = zones[static_cast<std::size_t>(zone)].member_of_parent;
      zone = zones[static_cast<std::size_t>(zone)].parent;
    }
  }
  for (std::size_t z = 0; z < zones.size(); ++z) check_zone(zones[z], {needed[z].begin(), needed[z].end()});
}

void PlatformFile::check_zone(const Zone& zone, const std::vector<int>& needed) const {
  if (needed.size() < 2 || zone.routing == Routing::cluster) return;
  if (zone.routing == Routing::full) {
    for (const int from : needed) {
      for (const int to : needed) {
        if (from != to && !joined(zone, from, to)) throw no_route(zone, from, to);
      }
    }
    return;
  }
  // All are joined where the first reaches each, and each the first.
  const int first = needed.front();
  std::vector<std::vector<int>> before(zone.members.size());
  for (const auto& hop : zone.hops) before[static_cast<std::size_t>(hop.to)].push_back(hop.from);
  std::vector<bool> back(zone.members.size(), false);
  std::vector<int> open{first};
  back[static_cast<std::size_t>(first)] = true;
  while (!open.empty()) {
    const auto at = static_cast<std::size_t>(open.back());
    open.pop_back();
    for (const int from : before[at]) {
      if (back[static_cast<std::size_t>(from)]) continue;
      back[static_cast<std::size_t>(from)] = true;
      open.push_back(from);
    }
  }
  for (const int member : needed) {
    if (member == first) continue;
    if (!joined(zone, first, member)) throw no_route(zone, first, member);
    if (!back[static_cast<std::size_t>(member)]) throw no_route(zone, member, first);
  }
}

bool PlatformFile::joined(const Zone& zone, int from, int to) const {
  if (zone.routing == Routing::shortest) return tree(zone, from)[static_cast<std::size_t>(to)] >= 0;
  return zone.hop_between.contains((static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to));
}

std::vector<std::size_t> PlatformFile::hops(const Zone& zone, int from, int to) const {
  if (zone.routing == Routing::full) {
    const auto pair = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
    const auto found = zone.hop_between.find(pair);
    if (found == zone.hop_between.end()) throw no_route(zone, from, to);
    return {found->second};
  }
  const auto& last = tree(zone, from);
  std::vector<std::size_t> path;
  for (int at = to; at != from;) {
    const auto hop = last[static_cast<std::size_t>(at)];
    if (hop < 0) throw no_route(zone, from, to);
    path.push_back(static_cast<std::size_t>(hop));
    at = zone.hops[path.back()].from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// Dijkstra's algorithm by the number of links, as SimGrid's Floyd and Dijkstra zones count.
const std::vector<std::int64_t>& PlatformFile::tree(const Zone& zone, int from) const {
  if (const auto known = zone.trees.find(from); known != zone.trees.end()) return known->second;
  std::vector<std::int64_t> last(zone.members.size(), -1);
  std::vector<std::size_t> distance(zone.members.size(), SIZE_MAX);
  using Entry = std::pair<std::size_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  distance[static_cast<std::size_t>(from)] = 0;
  open.emplace(0, from);
  while (!open.empty()) {
    const auto [links, at] = open.top();
    open.pop();
    if (links > distance[static_cast<std::size_t>(at)]) continue;
    for (const auto h : zone.hops_from[static_cast<std::size_t>(at)]) {
      const auto to = static_cast<std::size_t>(zone.hops[h].to);
      const auto there = links + zone.hops[h].resources.size();
      if (there >= distance[to]) continue;
      distance[to] = there;
      last[to] = static_cast<std::int64_t>(h);
      open.emplace(there, zone.hops[h].to);
    }
  }
  if ((zone.trees.size() + 1) * last.size() * sizeof(last[0]) > kMostTreeBytes) zone.trees.clear();
  return zone.trees.emplace(from, std::move(last)).first->second;
}

std::set<std::pair<int, int>> PlatformFile::neighbours() const {
  std::set<std::pair<int, int>> pairs;
  for (const auto& zone : zones) {
    for (const auto& hop : zone.hops) {
      int before = hop.gate_from;
      for (const int r : hop.resources) {
        pairs.emplace(before, stop_of(r));
        before = stop_of(r);
      }
      pairs.emplace(before, hop.gate_to);
    }
    if (zone.routing != Routing::cluster) continue;
    const int middle = zone.backbone >= 0 ? stop_of(zone.backbone) : zone.hub;
    for (const auto& [point, spoke] : zone.spokes) {
      pairs.emplace(point, stop_of(spoke.up));
      pairs.emplace(stop_of(spoke.up), middle);
      pairs.emplace(middle, stop_of(spoke.down));
      pairs.emplace(stop_of(spoke.down), point);
    }
    if (zone.backbone < 0) continue;
    for (const int point : zone.members) {
      if (zone.spokes.contains(point)) continue;
      pairs.emplace(point, middle);
      pairs.emplace(middle, point);
    }
  }
  return pairs;
}

}  // namespace tandem
