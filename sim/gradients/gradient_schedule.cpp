#include "sim/gradients/gradient_schedule.hpp"

#include <algorithm>

namespace tandem {

std::vector<GradientBucket> fill_buckets(const std::vector<GradientTensor>& arrival,
                                         const std::vector<std::int32_t>& order, Bytes first_cap, Bytes cap) {
  std::vector<GradientBucket> buckets;
  bool open = false;
  for (const auto index : order) {
    if (!open) buckets.emplace_back();
    open = true;
    auto& bucket = buckets.back();
    bucket.tensors.push_back(index);
    bucket.bytes += arrival[static_cast<std::size_t>(index)].bytes;
    bucket.ready_after = std::max(bucket.ready_after, index);
    if (bucket.bytes >= (buckets.size() == 1 ? first_cap : cap)) open = false;
  }
  return buckets;
}

}  // namespace tandem
