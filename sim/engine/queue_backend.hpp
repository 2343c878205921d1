// The clock of the analytic fidelity: dates in a queue, and transfers that share nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/engine/backend.hpp"

namespace tandem {

class QueueBackend final : public Backend {
 public:
  QueueBackend(const Network& network, double bandwidth_factor);

  [[nodiscard]] Seconds now() const override { return Seconds(now_); }
  void at(Seconds date, Listener& listener, Token token) override;
  // Takes its bytes over the narrowest link of the path, whatever else there is on it.
  std::int32_t start_flow(DeviceId from, DeviceId to, const std::vector<LinkId>& path, Bytes bytes, Listener& listener,
                          Token token) override;
  void cancel_flow(std::int32_t flow) override;
  void set_bandwidth(LinkId link, BytesPerSecond bandwidth) override;

  void run();  // until nothing is left

 private:
  struct Entry {
    double date = 0;
    std::uint64_t order = 0;  // of being asked for: equal dates are served in it
    Listener* listener = nullptr;
    Token token = 0;
    std::int32_t flow = -1;
    bool operator>(const Entry& other) const { return date != other.date ? date > other.date : order > other.order; }
  };

  std::vector<double> bandwidths_;  // by link
  double bandwidth_factor_;
  double now_ = 0;
  std::uint64_t order_ = 0;
  std::vector<char> cancelled_;  // by flow
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace tandem
