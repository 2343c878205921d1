// Fitted by scripts/studies/devices/fit.py, which prints these tables and how far off they are where they were not
// fitted. cuDNN: 94 convolutions of DeepBench on a V100 (baidu-research/DeepBench da81ba7, CUDA 10.1, cuDNN 7.6.2,
// fp32).
#include "sim/compute/device.hpp"

namespace tandem {

const RateTable& cudnn_rates() {
  // clang-format off
  static const RateTable table{{
      // 1x1, 1x1 strided, 3x3, other: overhead, efficiency, memory efficiency, k_half, m_half
      {{{Seconds(1.19e-05), 0.978, 0.753, 19.2, 3.61e+05}, {Seconds(1.54e-05), 0.85, 0.847, 18.1, 2.44e+05},
        {Seconds(1.62e-05), 1.92, 0.752, 53.9, 4.05e+05}, {Seconds(1.97e-05), 0.869, 0.791, 12.7, 5.2e+04}}},
      {{{Seconds(1.23e-05), 0.956, 0.72, 18.4, 4.49e+05}, {Seconds(5.18e-05), 0.587, 0.6, 30.5, 4.28e+04},
        {Seconds(1.8e-05), 1.85, 0.308, 45.4, 2.71e+05}, {Seconds(2.28e-05), 0.703, 0.6, 200, 6.53e+04}}},
      {{{Seconds(2.62e-05), 0.628, 0.6, 186, 9.76e+03}, {Seconds(2.1e-05), 0.648, 0.6, 257, 2.82e+04},
        {Seconds(2.49e-05), 2.19, 0.106, 33.5, 1.21e+04}, {Seconds(3.12e-05), 0.823, 0.6, 31.3, 3.38e+03}}},
  }};
  // clang-format on
  return table;
}

const RateTable& onednn_rates() {
  // clang-format off
  static const RateTable table{{
      {{{Seconds(5.27e-06), 1.42, 0.41, 3.41, 108}, {Seconds(5.01e-06), 1.37, 0.6, 8.47, 100},
        {Seconds(5.81e-06), 1.62, 0.6, 11, 107}, {Seconds(5.02e-06), 1.24, 0.6, 6.5, 101}}},
      {{{Seconds(5.23e-06), 1.41, 0.269, 3.05, 102}, {Seconds(5.03e-06), 1.32, 0.6, 7.91, 100},
        {Seconds(5.33e-06), 1.95, 0.6, 11.7, 8.73e+04}, {Seconds(5.07e-06), 1.18, 0.6, 12.2, 99.9}}},
      {{{Seconds(4.56e-06), 1.34, 0.424, 4.16, 1.84e+03}, {Seconds(5e-06), 1.29, 0.6, 9.16, 100},
        {Seconds(0.00183), 2.9, 0.554, 86.1, 1.22e+04}, {Seconds(5.05e-06), 1.22, 0.6, 62.3, 121}}},
  }};
  // clang-format on
  return table;
}

}  // namespace tandem
