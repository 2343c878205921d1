// A cluster: a topology whose end points are single devices, or nodes of several devices behind NICs.
//
//   device -> intra-node switch -> NIC -> fabric -> NIC -> intra-node switch -> device
//
// With one device a node the cluster is the topology itself. Otherwise the topology's end points are the NICs: node
// n holds NICs n*nics_per_node .. and devices n*devices_per_node ..; device i of a node uses NIC
// i*nics_per_node/devices_per_node of its node. The link between the internal switch and a NIC is a PCIe link
// (kind `host`), shared by all devices that use that NIC. Devices of one node talk through the internal switch.
// Where the host link is not modelled, the node's internal switch takes the place of its NICs in the fabric.
//
// Vertices: devices, internal switches, NICs (only where there are host links), then the topology's own switches. The
// cluster is the whole machine as built, so it may have more nodes than the ranks need; NICs of a topology whose size
// is no multiple of nics_per_node are left over and unused.
#pragma once

#include <memory>
#include <string>

#include "platforms/failures.hpp"
#include "platforms/link_override.hpp"
#include "platforms/network.hpp"
#include "platforms/topology.hpp"

namespace tandem {

struct ClusterOptions {
  std::string topology = "star";
  int ranks = 8;  // devices wanted in all (besides those of lost_ranks)
  int devices_per_node = 1;
  int nics_per_node = 1;  // must divide devices_per_node
  BytesPerSecond link_bandwidth{12.5e9};
  Seconds link_latency{500e-9};
  BytesPerSecond intra_bandwidth{150e9};  // device <-> internal switch, each direction
  Seconds intra_latency{500e-9};
  BytesPerSecond host_bandwidth{};  // internal switch <-> NIC (latency as intra); 0: not modelled, no such link
  std::vector<LinkOverride> link_overrides;  // in order: later ones hold where several match; routes stay as they are
  bool overrides_must_match = true;          // an override without a link is a usage error
  std::vector<Failure> failures;             // links and switches that are gone
  std::vector<int> lost_ranks;               // gone with their devices; whoever places ranks calls fail_device
};

class Cluster : public Network {
 public:
  explicit Cluster(const ClusterOptions& options);  // usage errors for impossible combinations

  // Goes round what has failed; model error where there is no way left.
  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override;
  void route_as_built(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override;
  [[nodiscard]] bool has_failures() const override { return !failed_.empty(); }
  [[nodiscard]] bool works(LinkId id) const override { return !failed_.failed(id); }
  [[nodiscard]] bool works(DeviceId device) const override { return !failed_.failed(device.value); }
  [[nodiscard]] std::string vertex_name(int vertex) const override;
  // devices_per_node (when above 1) followed by the topology's radices; with several NICs a node the NIC digit is
  // part of the node's: empty where the two do not nest.
  [[nodiscard]] std::vector<int> radices() const override;

  // The device and all of its links are gone, for other devices' traffic too.
  void fail_device(DeviceId device) { failed_.fail_vertex(*this, device.value); }

  // Links that each of the options' overrides matches.
  [[nodiscard]] const std::vector<std::int64_t>& overridden_links() const { return overridden_links_; }

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] const ClusterOptions& options() const { return options_; }
  [[nodiscard]] int nodes() const;
  [[nodiscard]] int node_of(DeviceId device) const { return device.value / options_.devices_per_node; }
  // Network ports a device has to the fabric: the topology's ports (all planes) x nics_per_node / devices_per_node.
  [[nodiscard]] double ports_per_device() const;

 private:
  void build_nodes();
  std::int64_t apply(const LinkOverride& override);
  void fail(const Failure& failure);
  [[nodiscard]] bool bare() const { return options_.devices_per_node == 1; }
  [[nodiscard]] bool has_host_links() const { return options_.host_bandwidth > BytesPerSecond{}; }
  [[nodiscard]] int nic_of(DeviceId device) const;
  [[nodiscard]] int vertex_of_fabric(int vertex) const;

  ClusterOptions options_;
  std::unique_ptr<Topology> topology_;
  FailedParts failed_;
  std::vector<std::int64_t> overridden_links_;
  int first_nic_ = 0;          // vertex; NICs used by nodes, then left over ones
  int first_host_link_ = 0;    // link id; two a NIC
  int first_fabric_link_ = 0;  // link id of the topology's link 0
};

}  // namespace tandem
