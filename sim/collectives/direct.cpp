// Everything at once, over as many flows as there are pairs. One port a member; where other flows of the network are
// in the way, they share.
//   all-reduce      every member sends part j to member j, which sums it and sends it back: 2(alpha + (p-1)
//   ceil(n/p)/B) reduce-scatter, all-gather, all-to-all: alpha + (p-1) ceil(n/p)/B gather, scatter: alpha + (p-1)
//   ceil(n/p)/B at the root's port
#include "sim/collectives/all_to_all.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class DirectAllToAll final : public AllToAllSchedule {
 public:
  using AllToAllSchedule::AllToAllSchedule;

  [[nodiscard]] int steps() const override { return members() > 1 ? 1 : 0; }
  void sends(int, int member, std::vector<Send>& out) const override {
    out.clear();
    for (int k = 1; k < members(); ++k) {
      const int to = (member + k) % members();  // rotated, so that no receiver is everybody's first
      out.push_back({to, block(member, to), false});
    }
  }
  [[nodiscard]] int receives(int, int) const override { return members() - 1; }
};

// Gather or scatter.
class DirectWithRoot final : public CollectiveSchedule {
 public:
  DirectWithRoot(int members, Bytes bytes, int root, bool scatters)
      : CollectiveSchedule(members, bytes), root_(root), scatters_(scatters) {}

  [[nodiscard]] int steps() const override { return members() > 1 ? 1 : 0; }
  void sends(int, int member, std::vector<Send>& out) const override {
    out.clear();
    if (!scatters_ && member != root_) out.push_back({root_, own(member), false});
    if (!scatters_ || member != root_) return;
    for (int other = 0; other < members(); ++other) {
      if (other != root_) out.push_back({other, own(other), false});
    }
  }
  [[nodiscard]] int receives(int, int member) const override {
    if (scatters_) return member == root_ ? 0 : 1;
    return member == root_ ? members() - 1 : 0;
  }

 private:
  int root_;
  bool scatters_;
};

class Direct final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool supports(CollectiveOperation operation) const override {
    return operation != CollectiveOperation::broadcast;
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int root) const override {
    const int p = shape.workers;
    if (is_nested(operation)) return nested_schedule(operation, p, bytes, {{p, 1, Exchange::direct}});
    if (operation == CollectiveOperation::all_to_all) return std::make_shared<DirectAllToAll>(p, bytes);
    return std::make_shared<DirectWithRoot>(p, bytes, root, operation == CollectiveOperation::scatter);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, direct, "direct",
                "every member exchanges with every other at once; gather and scatter with the root",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<Direct>(); },
                {})

}  // namespace
}  // namespace tandem
