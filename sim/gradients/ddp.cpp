// PyTorch DistributedDataParallel's buckets (torch/csrc/distributed/c10d/reducer.cpp): in its steady state, tensors in
// order of arrival, a first bucket of 1 MiB, 25 MiB after; a bucket closes when it reaches its cap. In the first
// iteration the same rule runs over the order of declaration, and the buckets are launched in reverse.
#include <algorithm>
#include <numeric>

#include "sim/gradients/gradient_schedule.hpp"

namespace tandem {
namespace {

class Ddp final : public GradientSchedule {
 public:
  Ddp(Bytes first, Bytes cap, bool first_iteration) : first_(first), cap_(cap), first_iteration_(first_iteration) {}

  [[nodiscard]] std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const override {
    std::vector<std::int32_t> order(arrival.size());
    std::iota(order.begin(), order.end(), 0);
    if (first_iteration_) std::reverse(order.begin(), order.end());
    auto buckets = fill_buckets(arrival, order, first_, cap_);
    if (first_iteration_) std::reverse(buckets.begin(), buckets.end());
    return buckets;
  }

 private:
  Bytes first_;
  Bytes cap_;
  bool first_iteration_;
};

TANDEM_REGISTER(GradientSchedule, ddp, "ddp", "PyTorch DDP: buckets in order of arrival, launched strictly in order",
                [](const Arguments& arguments, const GradientSchedule::PluginContext& context) {
                  return std::make_unique<Ddp>(arguments.bytes("first"), arguments.bytes("bucket"),
                                               context.first_iteration);
                },
                {{"bucket", ParameterType::bytes, "25MiB", "cap of every bucket but the first"},
                 {"first", ParameterType::bytes, "1MiB", "cap of the first bucket"}})

}  // namespace
}  // namespace tandem
