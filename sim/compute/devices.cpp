// Named devices. Peaks, bandwidths and memory are the makers' data sheets (NVIDIA Tesla K80, P100, V100, T4, A100, H100
// product briefs); the efficiencies are assumptions of this project, one set for all: about what cuDNN 7 reaches on
// DeepBench's V100 convolutions (3x3 stride 1 above the direct-FLOP peak by Winograd, others near 60 %).
#include "sim/compute/compute_model.hpp"

namespace tandem {
namespace {

std::unique_ptr<DevicePreset> preset(const char* name, double tflops, double gbytes_per_s, double gib) {
  auto device = std::make_unique<DevicePreset>();
  device->name = name;
  device->peak = FlopsPerSecond(tflops * 1e12);
  device->memory_bandwidth = BytesPerSecond(gbytes_per_s * 1e9);
  device->memory = Bytes(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024));
  device->winograd_efficiency = 1.1;
  device->launch_overhead = Seconds(5e-6);
  return device;
}

#define TANDEM_DEVICE(identifier, name, help, tflops, gbytes_per_s, gib)                                            \
  TANDEM_REGISTER(                                                                                                  \
      DevicePreset, identifier, name, help,                                                                         \
      [](const Arguments&, const DevicePreset::PluginContext&) { return preset(name, tflops, gbytes_per_s, gib); }, \
      {})

TANDEM_DEVICE(k80, "k80", "one GK210 die of an NVIDIA Tesla K80, fp32", 4.37, 240, 12)
TANDEM_DEVICE(p100, "p100", "NVIDIA Tesla P100 SXM2, fp32", 10.6, 732, 16)
TANDEM_DEVICE(v100, "v100", "NVIDIA Tesla V100 SXM2, fp32", 15.7, 900, 16)
TANDEM_DEVICE(t4, "t4", "NVIDIA T4, fp32", 8.1, 320, 16)
TANDEM_DEVICE(a100, "a100", "NVIDIA A100 SXM4 80 GB, fp32 without tensor cores", 19.5, 2039, 80)
TANDEM_DEVICE(h100, "h100", "NVIDIA H100 SXM5 80 GB, fp32 without tensor cores", 66.9, 3350, 80)

}  // namespace
}  // namespace tandem
