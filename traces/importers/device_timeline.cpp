#include "traces/importers/device_timeline.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace tandem {

Timeline timeline_of(const std::vector<Activity>& activities, std::size_t accounts) {
  struct Edge {
    std::int64_t time;
    bool begins;
    std::uint32_t activity;
  };
  std::vector<Edge> edges;
  edges.reserve(2 * activities.size());
  for (std::uint32_t i = 0; i < activities.size(); ++i) {
    if (activities[i].end <= activities[i].start) continue;
    edges.push_back({activities[i].start, true, i});
    edges.push_back({activities[i].end, false, i});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(a.time, a.begins, a.activity) < std::tuple(b.time, b.begins, b.activity);
  });
  Timeline timeline;
  timeline.charged.assign(accounts, 0);
  std::set<std::tuple<std::int32_t, std::int64_t, std::uint32_t>> running;  // the first one is charged
  std::int64_t last = edges.empty() ? 0 : edges.front().time;
  for (const auto& edge : edges) {
    if (edge.time > last) {
      if (running.empty()) {
        timeline.gaps.emplace_back(last, edge.time);
      } else {
        timeline.charged[activities[std::get<2>(*running.begin())].account] += edge.time - last;
      }
      last = edge.time;
    }
    const auto& activity = activities[edge.activity];
    const std::tuple key(activity.priority, activity.start, edge.activity);
    if (edge.begins) {
      running.insert(key);
    } else {
      running.erase(key);
    }
  }
  return timeline;
}

}  // namespace tandem
