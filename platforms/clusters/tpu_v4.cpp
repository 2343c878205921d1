// TPU v4: a 3D torus of chips (Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer", ISCA 2023).
#include "platforms/clusters/named_cluster.hpp"

namespace tandem {
namespace {

std::unique_ptr<NamedCluster> make_tpu_v4(const Arguments& arguments, const NamedCluster::PluginContext&) {
  return std::make_unique<NamedCluster>(std::vector<NamedCluster::Setting>{
      {"topology", "torus:dimensions=3",
       "3D torus; blocks of 4x4x4 chips, whose faces optical switches join (Jouppi et al., ISCA 2023)"},
      {"ranks", std::to_string(4 * nodes_of(arguments)), "4 chips a host (Jouppi et al., ISCA 2023)"},
      {"link-bandwidth", "50GBps", "6 interconnect links of 50 GB/s a chip (Jouppi et al., ISCA 2023)"},
      {"link-latency", "500ns", "assumed; not published"}});
}

TANDEM_REGISTER(NamedCluster, tpu_v4, "tpu-v4", "3D torus of TPU v4 chips, six 50 GB/s links each", make_tpu_v4,
                {nodes_parameter("16", "hosts of 4 chips; 16 are one 4x4x4 block")})

}  // namespace
}  // namespace tandem
