// Named devices. Peaks, bandwidths and memory are the makers' data sheets: NVIDIA Tesla K80 (one of its two dies, base
// boost 875 MHz), P100 SXM2, V100 SXM2, T4, A100 SXM4 80 GB, H100 SXM5 80 GB, H200 SXM5. Only the V100's rates are
// fitted; the others are assumed to reach the same shares of their own peaks and bandwidths, and to need as many more
// sums to fill them as they have more cores.
#include "sim/compute/device.hpp"

namespace tandem {
namespace {

constexpr double kV100Cores = 5120;

struct DataSheet {
  const char* name;
  double tflops, gbytes_per_s, gib, cores;
};

std::unique_ptr<DevicePreset> gpu(const DataSheet& sheet) {
  auto device = std::make_unique<DevicePreset>();
  device->name = sheet.name;
  device->peak = FlopsPerSecond(sheet.tflops * 1e12);
  device->memory_bandwidth = BytesPerSecond(sheet.gbytes_per_s * 1e9);
  device->memory = Bytes(static_cast<std::int64_t>(sheet.gib * 1024 * 1024 * 1024));
  device->rates = cudnn_rates();
  for (auto& pass : device->rates) {
    for (auto& rates : pass) rates.sums_half *= sheet.cores / kV100Cores;
  }
  device->fitted_to = "cuDNN 7.6 on a V100 (DeepBench)";
  device->launch_overhead = Seconds(5e-6);
  return device;
}

#define TANDEM_GPU(identifier, name, help, ...)                              \
  TANDEM_REGISTER(DevicePreset, identifier, name, help,                      \
                  [](const Arguments&, const DevicePreset::PluginContext&) { \
                    return gpu(DataSheet{name, __VA_ARGS__});                \
                  },                                                         \
                  {})

TANDEM_GPU(k80, "k80", "one GK210 die of an NVIDIA Tesla K80, fp32", 4.37, 240, 12, 2496)
TANDEM_GPU(p100, "p100", "NVIDIA Tesla P100 SXM2, fp32", 10.6, 732, 16, 3584)
TANDEM_GPU(v100, "v100", "NVIDIA Tesla V100 SXM2, fp32", 15.7, 900, 16, 5120)
TANDEM_GPU(t4, "t4", "NVIDIA T4, fp32", 8.1, 320, 16, 2560)
TANDEM_GPU(a100, "a100", "NVIDIA A100 SXM4 80 GB, fp32 without tensor cores", 19.5, 2039, 80, 6912)
TANDEM_GPU(h100, "h100", "NVIDIA H100 SXM5 80 GB, fp32 without tensor cores", 66.9, 3350, 80, 16896)
TANDEM_GPU(h200, "h200", "NVIDIA H200 SXM5 141 GB, fp32 without tensor cores", 66.9, 4800, 131, 16896)

// The processor of the shipped traces: 64 FLOP a cycle (two 512-bit multiply-adds) at its nominal 2.096 GHz, which it
// exceeds; the bandwidth is what its element-wise layers reach at best. Its memory is not a device's: it is not stated.
std::unique_ptr<DevicePreset> recorded_core() {
  auto device = std::make_unique<DevicePreset>();
  device->name = "epyc-core";
  device->peak = FlopsPerSecond(134.1e9);
  device->memory_bandwidth = BytesPerSecond(40e9);
  device->rates = onednn_rates();
  device->fitted_to = "oneDNN 2.6 in the shipped traces of ResNet-50, VGG-16 and AlexNet";
  device->launch_overhead = Seconds(1e-6);
  return device;
}

TANDEM_REGISTER(DevicePreset, epyc_core, "epyc-core",
                "one core of the processor of the shipped traces, AMD EPYC (family 26, model 2), fp32",
                [](const Arguments&, const DevicePreset::PluginContext&) { return recorded_core(); }, {})

}  // namespace
}  // namespace tandem
