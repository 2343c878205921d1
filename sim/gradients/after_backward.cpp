// No overlap: everything is shipped after the whole backward pass, in one collective or in buckets.
#include <numeric>

#include "sim/gradients/gradient_schedule.hpp"

namespace tandem {
namespace {

class AfterBackward final : public GradientSchedule {
 public:
  explicit AfterBackward(Bytes cap) : cap_(cap) {}

  [[nodiscard]] std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const override {
    std::vector<std::int32_t> order(arrival.size());
    std::iota(order.begin(), order.end(), 0);
    auto buckets = fill_buckets(arrival, order, cap_, cap_);
    for (auto& bucket : buckets) bucket.ready_after = static_cast<std::int32_t>(arrival.size()) - 1;
    return buckets;
  }

 private:
  Bytes cap_;
};

TANDEM_REGISTER(GradientSchedule, after_backward, "after-backward", "no overlap: ships after the whole backward pass",
                [](const Arguments& arguments, const GradientSchedule::PluginContext&) {
                  return std::make_unique<AfterBackward>(arguments.has("bucket") ? arguments.bytes("bucket")
                                                                                 : Bytes(INT64_MAX));
                },
                {{"bucket", ParameterType::bytes, "", "cap of a bucket; unset: everything in one collective"}})

}  // namespace
}  // namespace tandem
