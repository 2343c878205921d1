// Direct all-reduce: every member sends part j to member j, which sums it and sends it back to all.
// Time 2(alpha + (p-1) ceil(n/p)/B) where each member has one port.
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class Direct final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    return nested_all_reduce(shape.workers, bytes, {{shape.workers, 1, Exchange::direct}});
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, direct, "direct", "every member exchanges with every other at once",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<Direct>(); },
                {})

}  // namespace
}  // namespace tandem
