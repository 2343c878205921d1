// Fitted by scripts/studies/devices/fit.py, which prints these tables and how far off they are where they were not
// fitted. cuDNN: 94 convolutions of DeepBench on a V100 (baidu-research/DeepBench da81ba7, CUDA 10.1, cuDNN 7.6.2,
// fp32).
#include "sim/compute/device.hpp"

namespace tandem {

const RateTable& cudnn_rates() {
  // clang-format off
  static const RateTable table{{
      // 1x1, 1x1 strided, 3x3, other: overhead, efficiency, memory efficiency, k_half, m_half
      {{{Seconds(1.18e-05), 0.977, 0.746, 19.3, 3.62e+05}, {Seconds(1.53e-05), 0.846, 0.843, 18.3, 2.43e+05},
        {Seconds(1.60e-05), 1.92, 0.746, 54.8, 4.06e+05}, {Seconds(1.95e-05), 0.869, 0.777, 12.8, 5.19e+04}}},
      {{{Seconds(1.22e-05), 0.955, 0.713, 18.5, 4.5e+05}, {Seconds(5.18e-05), 0.587, 0.5, 30.5, 4.28e+04},
        {Seconds(1.75e-05), 1.85, 0.299, 46.9, 2.74e+05}, {Seconds(2.28e-05), 0.703, 0.5, 200, 6.53e+04}}},
      {{{Seconds(2.62e-05), 0.629, 0.5, 186, 9.76e+03}, {Seconds(2.10e-05), 0.648, 0.5, 257, 2.82e+04},
        {Seconds(2.64e-05), 2.2, 0.108, 11, 1.2e+04}, {Seconds(2.72e-05), 0.809, 0.327, 31, 2.84e+03}}},
  }};
  // clang-format on
  return table;
}

const RateTable& onednn_rates() {
  return cudnn_rates();
}

}  // namespace tandem
