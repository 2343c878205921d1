// One collective a layer, as soon as the layer's gradients are there.
#include "sim/gradients/gradient_schedule.hpp"

namespace tandem {
namespace {

class PerLayer final : public GradientSchedule {
 public:
  [[nodiscard]] std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const override {
    std::vector<GradientBucket> buckets;
    for (std::size_t i = 0; i < arrival.size(); ++i) {
      if (i == 0 || arrival[i].layer != arrival[i - 1].layer) buckets.emplace_back();
      buckets.back().tensors.push_back(static_cast<std::int32_t>(i));
      buckets.back().bytes += arrival[i].bytes;
      buckets.back().ready_after = static_cast<std::int32_t>(i);
    }
    return buckets;
  }
};

TANDEM_REGISTER(GradientSchedule, per_layer, "per-layer", "one collective a layer, in order of arrival",
                [](const Arguments&, const GradientSchedule::PluginContext&) { return std::make_unique<PerLayer>(); },
                {})

}  // namespace
}  // namespace tandem
