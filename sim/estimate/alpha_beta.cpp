#include "sim/estimate/alpha_beta.hpp"

#include <algorithm>
#include <map>

namespace tandem {
namespace {

// Loads of one step.
class StepCost {
 public:
  StepCost(const Network& network, const std::vector<DeviceId>& devices, const AlphaBetaOptions& options)
      : network_(network), devices_(devices), options_(options) {}

  void add(const CollectiveSchedule& schedule, int step) {
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends_);
      for (const auto& send : sends_) {
        network_.route(devices_[static_cast<std::size_t>(member)], devices_[static_cast<std::size_t>(send.to)], 0,
                       path_);
        if (path_.empty()) continue;
        latency_ = std::max(latency_, network_.route_latency(path_) * options_.latency_factor + options_.overhead);
        first_loads_[path_.front()] += send.range.size();
        last_loads_[path_.back()] += send.range.size();
        for (const auto id : path_) slowest_ = std::max(slowest_, Bytes(send.range.size()) / bandwidth(id));
      }
    }
  }

  [[nodiscard]] Seconds total() const {
    auto slowest = slowest_;
    for (const auto* loads : {&first_loads_, &last_loads_}) {
      for (const auto& [id, bytes] : *loads) slowest = std::max(slowest, Bytes(bytes) / bandwidth(id));
    }
    return latency_ + slowest;
  }

 private:
  [[nodiscard]] BytesPerSecond bandwidth(LinkId id) const {
    return network_.link(id).bandwidth * options_.bandwidth_factor;
  }

  const Network& network_;
  const std::vector<DeviceId>& devices_;
  const AlphaBetaOptions& options_;
  std::vector<Send> sends_;
  std::vector<LinkId> path_;
  std::map<LinkId, std::int64_t> first_loads_;
  std::map<LinkId, std::int64_t> last_loads_;
  Seconds latency_{};
  Seconds slowest_{};  // one message over the narrowest link of its route
};

}  // namespace

Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                        const std::vector<DeviceId>& devices, const AlphaBetaOptions& options) {
  int steps = 0;
  for (const auto& piece : pieces) steps = std::max(steps, piece.schedule->steps());
  Seconds total{};
  for (int step = 0; step < steps; ++step) {
    StepCost cost(network, devices, options);
    for (const auto& piece : pieces) {
      if (step < piece.schedule->steps()) cost.add(*piece.schedule, step);
    }
    total += cost.total();
  }
  return total;
}

}  // namespace tandem
