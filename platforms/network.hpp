// What the rest of Tandem sees of an interconnect: devices, directed links, and routes computed from addresses.
// Pure description: nothing here is simulated.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/core/units.hpp"

namespace tandem {

enum class LinkKind {
  device_port,  // between a device (or a node's NIC) and a switch
  switch_link,  // between two switches
  direct,       // between two devices (torus, mesh module)
  intra_node,   // between a device and its node's internal switch
  host,         // between a node's internal switch and a NIC (PCIe)
};
// As files and outputs call them, in the order of LinkKind.
inline constexpr std::array<std::string_view, 5> kLinkKindNames{"device_port", "switch_link", "direct", "intra_node",
                                                                "host"};
[[nodiscard]] constexpr std::string_view to_text(LinkKind kind) {
  return kLinkKindNames[static_cast<std::size_t>(kind)];
}

// One direction of a cable. Vertices 0 .. devices-1 are devices; switches, NICs and internal switches follow.
// With `planes=P` one Link stands for the P equal parallel cables (one a plane) between two vertices: transfers are
// striped evenly over planes, so the cables of a bundle always carry equal loads and are stored once.
struct Link {
  std::int32_t from = 0;
  std::int32_t to = 0;
  BytesPerSecond bandwidth{};  // of the whole bundle: width x one cable's rate
  Seconds latency{};
  LinkKind kind = LinkKind::device_port;
  std::int32_t width = 1;  // parallel cables in the bundle
};

// Path choice of one flow. Networks with several equal paths hash (src, dst, flow).
using FlowHash = std::uint32_t;

// The choice of all flows from src to dst in one channel of a collective.
[[nodiscard]] constexpr FlowHash flow_hash(DeviceId src, DeviceId dst, std::int32_t channel) {
  return static_cast<FlowHash>(mix((static_cast<std::uint64_t>(src.value) << 32) ^
                                   static_cast<std::uint64_t>(dst.value) ^
                                   (static_cast<std::uint64_t>(channel) << 56)));
}

class Network {
 public:
  virtual ~Network() = default;

  [[nodiscard]] int devices() const { return devices_; }
  [[nodiscard]] int vertices() const { return vertices_; }  // devices, switches, NICs
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.index()]; }

  // Replaces `path` by the links from src to dst in order: a valid walk, empty where src == dst.
  virtual void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const = 0;

  // Whether anything has failed, what failures have left, and the route as it was before.
  [[nodiscard]] virtual bool has_failures() const { return false; }
  [[nodiscard]] virtual bool works(LinkId) const { return true; }
  [[nodiscard]] virtual bool works(DeviceId) const { return true; }
  virtual void route_as_built(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const {
    route(src, dst, flow, path);
  }

  // Name of a vertex in the network's own terms, e.g. "device 3 (0,0;3)", "edge 1.0".
  [[nodiscard]] virtual std::string vertex_name(int vertex) const = 0;
  [[nodiscard]] std::string link_name(LinkId id) const {
    return vertex_name(link(id).from) + " -> " + vertex_name(link(id).to);
  }

  // Radices of a device's address, least significant digit first: id = sum of digit[l] * product of radices below l.
  // Empty where devices have no digit-wise address. Digit-wise collectives run on it.
  [[nodiscard]] virtual std::vector<int> radices() const = 0;

  [[nodiscard]] Seconds route_latency(const std::vector<LinkId>& path) const {
    Seconds sum{};
    for (const auto id : path) sum += link(id).latency;
    return sum;
  }

 protected:
  LinkId add_link(Link description) {
    links_.push_back(description);
    return LinkId{static_cast<std::int32_t>(links_.size()) - 1};
  }
  // Both directions of a cable; returns the id of from -> to, and the opposite direction is the next id.
  LinkId add_cable(int from, int to, BytesPerSecond bandwidth, Seconds latency, LinkKind kind, int width) {
    const auto id = add_link({from, to, bandwidth, latency, kind, width});
    add_link({to, from, bandwidth, latency, kind, width});
    return id;
  }

  int devices_ = 0;
  int vertices_ = 0;
  std::vector<Link> links_;
};

}  // namespace tandem
