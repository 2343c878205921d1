// Ring all-reduce: reduce-scatter and all-gather in p-1 steps each, along the order of ranks.
// Time 2(p-1)(alpha + ceil(n/p)/B), half of it for either half alone (Patarasuk and Yuan, JPDC 2009).
//
// Broadcast goes along the ring as a chain from the root: (p-1)(alpha + n/B), and with C equal chunks, which follow
// each other, (p-1 + C-1)(alpha + n/C/B) (the pipelined chain, van de Geijn and Watts, CCPE 1997).
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class Chain final : public CollectiveSchedule {
 public:
  Chain(int members, Bytes bytes, int root) : CollectiveSchedule(members, bytes), root_(root) {}

  [[nodiscard]] int steps() const override { return members() - 1; }
  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    if (behind_root(member) == step) out.push_back({(member + 1) % members(), {0, bytes().count()}, false});
  }
  [[nodiscard]] int receives(int step, int member) const override { return behind_root(member) == step + 1 ? 1 : 0; }

 private:
  [[nodiscard]] int behind_root(int member) const { return (member - root_ + members()) % members(); }

  int root_;
};

class Ring final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool supports(CollectiveOperation operation) const override {
    return is_nested(operation) || operation == CollectiveOperation::broadcast;
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int root) const override {
    if (is_nested(operation)) return nested_schedule(operation, shape.workers, bytes, {{shape.workers}});
    return std::make_shared<Chain>(shape.workers, bytes, root);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, ring, "ring",
                "reduce-scatter and all-gather, or either, around a ring in order of rank; broadcast along a chain",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<Ring>(); },
                {})

}  // namespace
}  // namespace tandem
