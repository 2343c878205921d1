#include "platforms/topology.hpp"

#include <cmath>

namespace tandem {
namespace {

void check_context(const Topology::PluginContext& context) {
  const auto bandwidth = context.link_bandwidth.count();
  if (!(bandwidth > 0) || !std::isfinite(bandwidth)) {
    throw usage_error(fmt::format("link bandwidth is {} B/s: it must be above 0", bandwidth));
  }
  const auto latency = context.link_latency.count();
  if (!(latency >= 0) || !std::isfinite(latency)) {
    throw usage_error(fmt::format("link latency is {} s: it must be 0 or more", latency));
  }
  if (context.devices < 1 || context.devices > kMostDevices) {
    throw usage_error(fmt::format("{} devices are wanted of a topology: it must be a whole number from 1 to {}",
                                  context.devices, kMostDevices));
  }
}

}  // namespace

LengthClass Topology::length_class(LinkId id) const {
  switch (link(id).kind) {
    case LinkKind::switch_link:
      return LengthClass::optical;
    case LinkKind::device_port:
    case LinkKind::direct:
      return LengthClass::copper;
    case LinkKind::intra_node:
    case LinkKind::host:
      break;
  }
  return LengthClass::board;
}

std::unique_ptr<Topology> make_topology(std::string_view text, const Topology::PluginContext& context) {
  check_context(context);
  auto topology = Registry<Topology>::instance().make(text, context);
  if (topology->devices() < context.devices) {
    throw usage_error(fmt::format("topology '{}' has {} devices, but {} are wanted", topology->instance(),
                                  topology->devices(), context.devices));
  }
  return topology;
}

}  // namespace tandem
