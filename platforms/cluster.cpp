#include "platforms/cluster.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tandem {
namespace {

void check_count(const char* what, int value) {
  if (value < 1 || value > kMostDevices) {
    throw usage_error(fmt::format("{} is {}: it must be a whole number from 1 to {}", what, value, kMostDevices));
  }
}

void check_nodes(const ClusterOptions& options) {
  if (options.devices_per_node == 1) {
    if (options.nics_per_node != 1) {
      throw usage_error(fmt::format(
          "NICs per node is {} with one device per node: give the topology planes={} for a device with several ports",
          options.nics_per_node, options.nics_per_node));
    }
    if (options.host_bandwidth != BytesPerSecond{}) {
      throw usage_error("a host bandwidth needs more than one device per node: with one, a device is its own NIC");
    }
    return;
  }
  if (options.devices_per_node % options.nics_per_node != 0) {
    throw usage_error(fmt::format("{} NICs per node do not divide {} devices per node evenly", options.nics_per_node,
                                  options.devices_per_node));
  }
  const auto intra = options.intra_bandwidth.count();
  if (!(intra > 0) || !std::isfinite(intra)) {
    throw usage_error(fmt::format("intra-node bandwidth is {} B/s: it must be above 0", intra));
  }
  const auto latency = options.intra_latency.count();
  if (!(latency >= 0) || !std::isfinite(latency)) {
    throw usage_error(fmt::format("intra-node latency is {} s: it must be 0 or more", latency));
  }
  const auto host = options.host_bandwidth.count();
  if (!(host >= 0) || !std::isfinite(host)) {
    throw usage_error(fmt::format("host bandwidth is {} B/s: it must be above 0, or 0 for no host link", host));
  }
}

std::unique_ptr<Topology> make_fabric(const ClusterOptions& options) {
  const auto nodes = (options.ranks + options.devices_per_node - 1) / options.devices_per_node;
  const auto end_points = std::int64_t{nodes} * options.nics_per_node;
  const Topology::PluginContext context{static_cast<int>(end_points), options.link_bandwidth, options.link_latency};
  if (options.devices_per_node == 1) return make_topology(options.topology, context);
  return with_context(
      fmt::format("{} nodes of {} devices and {} NICs", nodes, options.devices_per_node, options.nics_per_node),
      [&] { return make_topology(options.topology, context); });
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options) : options_(options) {
  check_count("the number of ranks", options_.ranks);
  check_count("devices per node", options_.devices_per_node);
  check_count("NICs per node", options_.nics_per_node);
  check_nodes(options_);
  topology_ = make_fabric(options_);
  if (bare()) {
    devices_ = topology_->devices();
    vertices_ = topology_->vertices();
    links_ = topology_->links();
  } else {
    build_nodes();
  }
  for (const auto& override : options_.link_overrides) overridden_links_.push_back(apply(override));
  for (const auto& failure : options_.failures) fail(failure);
}

std::int64_t Cluster::apply(const LinkOverride& override) {
  std::int64_t count = 0;
  for (std::size_t id = 0; id < links_.size(); ++id) {
    auto& link = links_[id];
    if (!reaches(override, to_text(link.kind)) &&
        !reaches(override, link_name(LinkId{static_cast<std::int32_t>(id)}))) {
      continue;
    }
    ++count;
    if (override.bandwidth) link.bandwidth = *override.bandwidth * link.width;
    if (override.latency) link.latency = *override.latency;
  }
  if (count == 0 && options_.overrides_must_match) {
    throw usage_error(
        fmt::format("no link's name or kind matches '{}' ('tandem topology --links' lists them; kinds: {})",
                    override.pattern, fmt::join(kLinkKindNames, ", ")));
  }
  return count;
}

void Cluster::fail(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::link:
      failed_.fail_link(*this, find_link(*this, failure.name));
      break;
    case Failure::Kind::vertex:
      failed_.fail_vertex(*this, find_switch(*this, failure.name));
      break;
    case Failure::Kind::rank:  // not known before ranks are placed
      break;
  }
}

// Links in this order: device cables, host cables, the topology's links; ids of the first two are 2*device and
// first_host_link_ + 2*NIC away from the device, and one more towards it.
void Cluster::build_nodes() {
  const int all_nodes = topology_->devices() / options_.nics_per_node;
  const auto all_devices = std::int64_t{all_nodes} * options_.devices_per_node;
  if (all_devices > kMostDevices) {
    throw usage_error(fmt::format("{} nodes of {} devices are too many: a cluster may have at most {} devices",
                                  all_nodes, options_.devices_per_node, kMostDevices));
  }
  devices_ = static_cast<int>(all_devices);
  first_nic_ = devices_ + all_nodes;
  const int nics = has_host_links() ? topology_->devices() : topology_->devices() % options_.nics_per_node;
  vertices_ = first_nic_ + nics + topology_->vertices() - topology_->devices();
  for (int device = 0; device < devices_; ++device) {
    add_cable(device, devices_ + node_of(DeviceId{device}), options_.intra_bandwidth, options_.intra_latency,
              LinkKind::intra_node, 1);
  }
  first_host_link_ = static_cast<int>(links_.size());
  if (has_host_links()) {
    for (int nic = 0; nic < all_nodes * options_.nics_per_node; ++nic) {
      add_cable(devices_ + nic / options_.nics_per_node, first_nic_ + nic, options_.host_bandwidth,
                options_.intra_latency, LinkKind::host, 1);
    }
  }
  first_fabric_link_ = static_cast<int>(links_.size());
  for (auto link : topology_->links()) {
    link.from = vertex_of_fabric(link.from);
    link.to = vertex_of_fabric(link.to);
    add_link(link);
  }
}

int Cluster::vertex_of_fabric(int vertex) const {
  if (has_host_links()) return first_nic_ + vertex;
  const int used = nodes() * options_.nics_per_node;
  return vertex < used ? devices_ + vertex / options_.nics_per_node : first_nic_ + vertex - used;
}

int Cluster::nodes() const {
  return devices_ / options_.devices_per_node;
}

int Cluster::nic_of(DeviceId device) const {
  const int within = device.value % options_.devices_per_node;
  return node_of(device) * options_.nics_per_node + within * options_.nics_per_node / options_.devices_per_node;
}

void Cluster::route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const {
  route_as_built(src, dst, flow, path);
  if (failed_.empty() || (!failed_.hits(path) && !failed_.failed(src.value) && !failed_.failed(dst.value))) return;
  constexpr FlowHash kOtherChoices = 8;
  for (FlowHash choice = 1; choice <= kOtherChoices; ++choice) {
    route_as_built(src, dst, flow + choice * 0x9e3779b9U, path);
    if (!failed_.hits(path)) return;
  }
  auto way = failed_.detour(*this, src, dst, flow);
  if (!way) {
    throw model_error(fmt::format("after the failures there is no way from {} to {}", vertex_name(src.value),
                                  vertex_name(dst.value)));
  }
  path = std::move(*way);
}

void Cluster::route_as_built(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const {
  if (bare()) {
    topology_->route(src, dst, flow, path);
    return;
  }
  path.clear();
  if (src == dst) return;
  const int from = nic_of(src);
  const int to = nic_of(dst);
  if (node_of(src) != node_of(dst)) {
    topology_->route(DeviceId{from}, DeviceId{to}, flow, path);
    for (auto& id : path) id.value += first_fabric_link_;
    if (has_host_links()) {
      path.insert(path.begin(), LinkId{first_host_link_ + 2 * from});
      path.push_back(LinkId{first_host_link_ + 2 * to + 1});
    }
  }
  path.insert(path.begin(), LinkId{2 * src.value});
  path.push_back(LinkId{2 * dst.value + 1});
}

std::string Cluster::vertex_name(int vertex) const {
  if (bare()) return topology_->vertex_name(vertex);
  if (vertex < devices_) {
    return fmt::format("device {} (node {}, {})", vertex, vertex / options_.devices_per_node,
                       vertex % options_.devices_per_node);
  }
  if (vertex < first_nic_) return fmt::format("node {}", vertex - devices_);
  const int used = nodes() * options_.nics_per_node;
  const int end_point = vertex - first_nic_ + (has_host_links() ? 0 : used);
  if (end_point >= topology_->devices()) return topology_->vertex_name(end_point);
  if (end_point >= used) return fmt::format("unused NIC {}", end_point);
  return fmt::format("NIC {}.{}", end_point / options_.nics_per_node, end_point % options_.nics_per_node);
}

std::vector<int> Cluster::radices() const {
  auto fabric = topology_->radices();
  if (bare() || fabric.empty()) return fabric;
  std::vector<int> result{options_.devices_per_node};
  int nics = options_.nics_per_node;  // still to be taken out of the low digits of the fabric's address
  for (const int radix : fabric) {
    if (radix % nics == 0) {
      if (radix != nics || nics == 1) result.push_back(radix / nics);
      nics = 1;
    } else if (nics % radix == 0) {
      nics /= radix;
    } else {
      return {};
    }
  }
  return nics == 1 ? result : std::vector<int>{};
}

double Cluster::ports_per_device() const {
  return topology_->characteristics().ports_per_device * options_.nics_per_node / options_.devices_per_node;
}

}  // namespace tandem
