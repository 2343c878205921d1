// Ring all-reduce: reduce-scatter and all-gather in p-1 steps each, along the order of ranks.
// Time 2(p-1)(alpha + ceil(n/p)/B) (Patarasuk and Yuan, JPDC 2009).
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class Ring final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    return nested_all_reduce(shape.workers, bytes, {{shape.workers, 1, Exchange::ring}});
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, ring, "ring", "reduce-scatter and all-gather around a ring in order of rank",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<Ring>(); },
                {})

}  // namespace
}  // namespace tandem
