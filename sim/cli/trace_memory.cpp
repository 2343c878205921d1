#include "sim/cli/trace_memory.hpp"

#include <algorithm>

#include "sim/compute/device.hpp"

namespace tandem {
namespace {

// Activations grow with the batch and the rest does not.
std::int64_t largest_batch(const Trace& trace, PartitionOptions options, Bytes memory) {
  constexpr std::int64_t most = 1'048'576;
  options.batch = most;
  const auto use = replica_memory(trace, options);
  const auto fixed = use.total() - use.activations;
  if (fixed >= memory) return 0;
  if (use.activations.count() == 0) return most;
  const double a_sample = static_cast<double>(use.activations.count()) / static_cast<double>(most);
  return std::min(most, static_cast<std::int64_t>(static_cast<double>((memory - fixed).count()) / a_sample));
}

}  // namespace

MemoryReport memory_report(const Trace& trace, const PartitionOptions& options) {
  const auto use = replica_memory(trace, options);
  MemoryReport report;
  report.use = {{"batch", "samples", options.batch},
                {"optimizer", "1", options.optimizer},
                {"parameter_bytes", "bytes", use.parameters.count()},
                {"gradient_bytes", "bytes", use.gradients.count()},
                {"optimizer_state_bytes", "bytes", use.optimizer_state.count()},
                {"activation_bytes", "bytes", use.activations.count()},
                {"total_bytes", "bytes", use.total().count()}};
  const auto& devices = Registry<DevicePreset>::instance();
  for (const auto& name : devices.names()) {
    const auto device = devices.make(name);
    if (device->memory.count() == 0) continue;  // not stated
    report.devices.push_back({{"device", "1", name},
                              {"memory_bytes", "bytes", device->memory.count()},
                              {"fits", "1", std::string(use.total() <= device->memory ? "yes" : "no")},
                              {"largest_batch", "samples", largest_batch(trace, options, device->memory)}});
  }
  return report;
}

}  // namespace tandem
