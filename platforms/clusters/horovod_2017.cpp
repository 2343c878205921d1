// The testbed of Horovod's published measurements: 4 servers of 4 Pascal GPUs. scripts/studies/horovod/validate.py
// holds predictions for it against them.
#include "platforms/clusters/named_cluster.hpp"

namespace tandem {
namespace {

std::unique_ptr<NamedCluster> make_horovod(const Arguments& arguments, const NamedCluster::PluginContext&) {
  return std::make_unique<NamedCluster>(std::vector<NamedCluster::Setting>{
      {"topology", "star", "assumed: four servers on one switch"},
      {"nodes", std::to_string(nodes_of(arguments)), "4 servers (Horovod's README, September 2017)"},
      {"devices-per-node", "4", "4 Pascal GPUs a server (Horovod's README, September 2017)"},
      {"nics-per-node", "1", "assumed: one adapter a server"},
      {"link-bandwidth", "25Gbps", "RoCE-capable 25 Gbit/s network (Horovod's README, September 2017)"},
      {"link-latency", "2us", "assumed"},
      {"intra-bandwidth", "12GBps", "assumed: what PCIe 3.0 x16 (15.75 GB/s) gives to large copies"},
      {"intra-latency", "2us", "assumed"}});
}

TANDEM_REGISTER(NamedCluster, horovod_2017, "horovod-2017", "4 servers of 4 Pascal GPUs, 25 Gbit/s (Horovod, 2017)",
                make_horovod, {nodes_parameter("4", "servers of 4 GPUs")})

}  // namespace
}  // namespace tandem
