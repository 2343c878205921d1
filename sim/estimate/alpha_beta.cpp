#include "sim/estimate/alpha_beta.hpp"

#include <algorithm>
#include <map>

namespace tandem {

Seconds alpha_beta_time(const CollectiveSchedule& schedule, const Network& network,
                        const std::vector<DeviceId>& devices, Seconds overhead) {
  Seconds total{};
  std::vector<Send> sends;
  std::vector<LinkId> path;
  for (int step = 0; step < schedule.steps(); ++step) {
    Seconds latency{};
    double slowest = 0;  // s
    std::map<LinkId, std::int64_t> first_loads;
    std::map<LinkId, std::int64_t> last_loads;
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends);
      for (const auto& send : sends) {
        network.route(devices[static_cast<std::size_t>(member)], devices[static_cast<std::size_t>(send.to)], 0, path);
        if (path.empty()) continue;
        latency = std::max(latency, network.route_latency(path) + overhead);
        first_loads[path.front()] += send.range.size();
        last_loads[path.back()] += send.range.size();
        for (const auto id : path)
          slowest = std::max(slowest, static_cast<double>(send.range.size()) / network.link(id).bandwidth.count());
      }
    }
    for (const auto* loads : {&first_loads, &last_loads}) {
      for (const auto& [id, bytes] : *loads) {
        slowest = std::max(slowest, static_cast<double>(bytes) / network.link(id).bandwidth.count());
      }
    }
    total += latency + Seconds(slowest);
  }
  return total;
}

}  // namespace tandem
