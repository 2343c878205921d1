// Nodes of eight H100 on NVSwitch, each GPU with a 400 Gbit/s adapter of its own: the node of a DGX SuperPOD.
#include "platforms/clusters/named_cluster.hpp"

namespace tandem {
namespace {

std::unique_ptr<NamedCluster> make_dgx_h100(const Arguments& arguments, const NamedCluster::PluginContext&) {
  return std::make_unique<NamedCluster>(std::vector<NamedCluster::Setting>{
      {"topology", "rail-optimized:m=8,nvlink=9",
       "NVIDIA DGX SuperPOD H100 reference architecture: GPU j of all nodes on leaves of rail j; NVLink 4 is 18 links "
       "of "
       "25 GB/s a direction (H100 white paper), 450 GB/s: 9 cables of 400 Gbps"},
      {"ranks", std::to_string(8 * nodes_of(arguments)), "8 GPUs a node (DGX H100 data sheet)"},
      {"link-bandwidth", "400Gbps", "8 single-port ConnectX-7 adapters of 400 Gbit/s a node (DGX H100 data sheet)"},
      {"link-latency", "500ns", "assumed: an adapter's or switch's passage and some metres of cable"}});
}

TANDEM_REGISTER(NamedCluster, dgx_h100, "dgx-h100", "nodes of 8 H100 on NVSwitch with eight 400G rails", make_dgx_h100,
                {nodes_parameter("4", "nodes of 8 GPUs")})

}  // namespace
}  // namespace tandem
