#include "sim/engine/queue_backend.hpp"

#include <algorithm>

namespace tandem {

QueueBackend::QueueBackend(const Network& network, double bandwidth_factor) : bandwidth_factor_(bandwidth_factor) {
  bandwidths_.reserve(network.links().size());
  for (const auto& link : network.links()) bandwidths_.push_back(link.bandwidth.count() * bandwidth_factor);
}

void QueueBackend::at(Seconds date, Listener& listener, Token token) {
  queue_.push({std::max(date.count(), now_), order_++, &listener, token, -1});
}

std::int32_t QueueBackend::start_flow(DeviceId, DeviceId, const std::vector<LinkId>& path, Bytes bytes,
                                      Listener& listener, Token token) {
  double narrowest = bandwidths_[path.front().index()];
  for (const auto link : path) narrowest = std::min(narrowest, bandwidths_[link.index()]);
  const auto flow = static_cast<std::int32_t>(cancelled_.size());
  cancelled_.push_back(0);
  queue_.push({now_ + static_cast<double>(bytes.count()) / narrowest, order_++, &listener, token, flow});
  return flow;
}

void QueueBackend::cancel_flow(std::int32_t flow) {
  cancelled_[static_cast<std::size_t>(flow)] = 1;
}

void QueueBackend::set_bandwidth(LinkId link, BytesPerSecond bandwidth) {
  bandwidths_[link.index()] = bandwidth.count() * bandwidth_factor_;
}

void QueueBackend::run() {
  while (!queue_.empty()) {
    const auto entry = queue_.top();
    queue_.pop();
    if (entry.flow >= 0 && cancelled_[static_cast<std::size_t>(entry.flow)] != 0) continue;
    now_ = entry.date;
    if (entry.flow < 0) {
      entry.listener->on_timer(entry.token);
    } else {
      entry.listener->on_flow_done(entry.token);
    }
  }
}

}  // namespace tandem
