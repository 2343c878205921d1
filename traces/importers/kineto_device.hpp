// What the device did in a profiled run, and for whom: every kernel, copy and fill with the layer, the pass or the
// purpose that it was launched for. Without a device in the file the host's operators are the work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/importers/kineto_host.hpp"

namespace tandem::kineto {

enum class Use : std::uint8_t {
  layer,          // of the layer `Work::layer`, in one of its passes
  optimizer,      // clearing of gradients and update
  copy,           // copies and fills
  communication,  // collectives
  unmatched,      // of no layer
  not_of_steps,   // launched before the first step, between or behind the steps
};
// Of a layer's work.
enum class Share : std::uint8_t { forward, backward_data, backward_weight, backward_unknown };

struct Work {
  std::uint32_t event = 0;   // index among events
  std::uint32_t op = kNone;  // the innermost operator that launched it
  Nanoseconds start = 0, end = 0;
  std::int32_t step = -1, layer = -1;
  Use use = Use::unmatched;
  Share share = Share::forward;
  std::int32_t priority = 0;  // as an Activity's
};

struct DeviceWork {
  std::vector<Work> work;  // by start
  bool on_host = false;    // no device in the file
  std::int64_t device = -1;
  std::int64_t other_devices = 0;  // events left out
  double other_devices_time = 0;   // nanoseconds
  // Kernels at the file's head that were launched before it begins, taken for those at its end that are missing: then
  // they stand one period later, behind the last step. 0: none.
  std::int64_t carried = 0;
  Nanoseconds period = 0;
  std::int64_t launches_without_kernel = 0;  // in the last step, where nothing was carried
};

// `device` -1: the only one. Input error where there are several, or not that one.
[[nodiscard]] DeviceWork device_work(const Events& events, const Host& host, std::int64_t device);

}  // namespace tandem::kineto
