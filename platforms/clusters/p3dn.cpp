// Nodes of eight V100 behind one 100 Gbit/s adapter: Amazon's p3dn.24xlarge of December 2018.
#include "platforms/clusters/named_cluster.hpp"

namespace tandem {
namespace {

std::unique_ptr<NamedCluster> make_p3dn(const Arguments& arguments, const NamedCluster::PluginContext&) {
  return std::make_unique<NamedCluster>(std::vector<NamedCluster::Setting>{
      {"topology", "star", "assumed: a placement group's network is not blocking; Amazon does not publish it"},
      {"nodes", std::to_string(nodes_of(arguments)), "asked for"},
      {"devices-per-node", "8", "8 Tesla V100 (Amazon EC2 P3 instances, p3dn.24xlarge)"},
      {"nics-per-node", "1", "one network of 100 Gbps (Amazon EC2 P3 instances, p3dn.24xlarge)"},
      {"link-bandwidth", "100Gbps", "Amazon EC2 P3 instances, p3dn.24xlarge; a single flow may get less"},
      {"link-latency", "500ns", "assumed; what software adds is --step-overhead"},
      {"intra-bandwidth", "150GBps",
       "NVLink 2: 6 links of 25 GB/s a direction (V100 white paper); the hybrid cube mesh is taken for a switch"},
      {"intra-latency", "500ns", "assumed"}});
}

TANDEM_REGISTER(NamedCluster, p3dn, "p3dn", "nodes of 8 V100 with one 100G adapter (Amazon p3dn.24xlarge)", make_p3dn,
                {nodes_parameter("4", "nodes of 8 GPUs")})

}  // namespace
}  // namespace tandem
