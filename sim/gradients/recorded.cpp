// The buckets of the recorded run: the sizes of its all-reduces, in their order.
#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.hpp"
#include "sim/gradients/gradient_schedule.hpp"

namespace tandem {
namespace {

// The recording may have shipped gradients of another width: sizes are scaled so that they add up.
class Recorded final : public GradientSchedule {
 public:
  explicit Recorded(std::vector<Bytes> sizes) : sizes_(std::move(sizes)) {}

  [[nodiscard]] std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const override {
    if (sizes_.empty()) throw input_error("gradients 'recorded': the trace has no recorded all-reduce");
    Bytes recorded{};
    Bytes present{};
    for (const auto size : sizes_) recorded += size;
    for (const auto& tensor : arrival) present += tensor.bytes;
    const double scale =
        recorded.count() > 0 ? static_cast<double>(present.count()) / static_cast<double>(recorded.count()) : 0;
    std::vector<GradientBucket> buckets;
    std::size_t next = 0;
    double due = 0;  // bytes that the buckets so far should hold
    std::int64_t held = 0;
    for (const auto size : sizes_) {
      due += static_cast<double>(size.count()) * scale;
      GradientBucket bucket;
      while (next < arrival.size() && static_cast<double>(held + arrival[next].bytes.count()) <= due + 0.5) {
        held += arrival[next].bytes.count();
        bucket.bytes += arrival[next].bytes;
        bucket.ready_after = static_cast<std::int32_t>(next);
        bucket.tensors.push_back(static_cast<std::int32_t>(next++));
      }
      // Within a bucket gradients may arrive in another order than the layers' one; between buckets they do not.
      if (std::abs(static_cast<double>(held) - due) > 1) {
        throw input_error(
            fmt::format("gradients 'recorded': no gradients in order of arrival fill {} buckets of the "
                        "recorded sizes (bucket {} ends inside a tensor)",
                        sizes_.size(), buckets.size()));
      }
      if (!bucket.tensors.empty()) buckets.push_back(std::move(bucket));
    }
    return buckets;
  }

 private:
  std::vector<Bytes> sizes_;
};

TANDEM_REGISTER(GradientSchedule, recorded, "recorded", "the buckets of the recorded run, by the sizes in the trace",
                [](const Arguments&, const GradientSchedule::PluginContext& context) {
                  return std::make_unique<Recorded>(context.recorded);
                },
                {})

}  // namespace
}  // namespace tandem
