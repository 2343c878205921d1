// One collective a parameter tensor, as soon as the gradients of its layer are there. Tensors are those of the trace:
// weight and bias apart, as frameworks register them. An importer that cannot tell a layer's tensors apart keeps the
// layer as one, and says so in the trace's notes; nothing is split here.
//
// A layer's tensors become ready together and leave in the order of arrival, the reverse of registration (bias before
// weight), in which PyTorch's DDP numbers its buckets, too.
#include <numeric>

#include "sim/gradients/gradient_schedule.hpp"

namespace tandem {
namespace {

class PerTensor final : public GradientSchedule {
 public:
  [[nodiscard]] std::vector<GradientBucket> buckets(const std::vector<GradientTensor>& arrival) const override {
    std::vector<std::int32_t> order(arrival.size());
    std::iota(order.begin(), order.end(), 0);
    return fill_buckets(arrival, order, Bytes(0), Bytes(0));
  }
};

TANDEM_REGISTER(GradientSchedule, per_tensor, "per-tensor",
                "one collective a parameter tensor of the trace, in order of arrival (bias before weight)",
                [](const Arguments&, const GradientSchedule::PluginContext&) { return std::make_unique<PerTensor>(); },
                {})

}  // namespace
}  // namespace tandem
