// Routes of a topology as tests write them down.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/topology.hpp"

namespace tandem::testing {

[[nodiscard]] inline std::unique_ptr<Topology> make(const std::string& text, int devices = 1) {
  return make_topology(text, {devices});
}

[[nodiscard]] inline std::vector<LinkId> route(const Network& network, int src, int dst, FlowHash flow = 0) {
  std::vector<LinkId> path;
  network.route(DeviceId{src}, DeviceId{dst}, flow, path);
  return path;
}

using Names = std::vector<std::string>;

// The vertices a route passes, by name.
[[nodiscard]] inline Names stops(const Network& network, int src, int dst, FlowHash flow = 0) {
  Names names{network.vertex_name(src)};
  for (const auto id : route(network, src, dst, flow)) names.push_back(network.vertex_name(network.link(id).to));
  return names;
}

// "" where making the topology is refused as a usage error that says so in one line; otherwise what happened.
[[nodiscard]] inline std::string refusal_fault(const std::string& text, int devices, const std::string& says) {
  try {
    (void)make(text, devices);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (error.kind() != ErrorKind::usage) return "not a usage error: " + what;
    if (what.find('\n') != std::string::npos) return "more than one line: " + what;
    return what.find(says) != std::string::npos ? "" : what;
  }
  return "it is accepted";
}

}  // namespace tandem::testing
