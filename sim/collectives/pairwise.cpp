// Pairwise all-to-all: in round k of p-1 every member sends one block and receives one, to and from its exclusive or
// with k where p is a power of two, k places on and back otherwise (Thakur, Rabenseifner, Gropp, IJHPCA 2005).
// Time (p-1)(alpha + ceil(n/p)/B): one flow a port at a time.
#include "sim/collectives/all_to_all.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class PairwiseSchedule final : public AllToAllSchedule {
 public:
  using AllToAllSchedule::AllToAllSchedule;

  [[nodiscard]] int steps() const override { return members() - 1; }
  void sends(int step, int member, std::vector<Send>& out) const override {
    const int round = step + 1;
    const int to = is_power_of_two(members()) ? member ^ round : (member + round) % members();
    out.assign(1, {to, block(member, to), false});
  }
  [[nodiscard]] int receives(int, int) const override { return 1; }
};

class Pairwise final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool supports(CollectiveOperation operation) const override {
    return operation == CollectiveOperation::all_to_all;
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation, const GroupShape& shape,
                                                                   Bytes bytes, int) const override {
    return std::make_shared<PairwiseSchedule>(shape.workers, bytes);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, pairwise, "pairwise", "all-to-all in p-1 rounds, one partner a round",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<Pairwise>();
                },
                {})

}  // namespace
}  // namespace tandem
