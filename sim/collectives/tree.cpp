// Binomial trees, ceil(log2 p) rounds (Thakur, Rabenseifner, Gropp, IJHPCA 2005). Members are numbered from the root
// on, v = (member - root) mod p; v's parent is v without its lowest set bit, and v's subtree are the members before
// v + that bit. Down the tree the far half goes first, up the tree it comes last.
//   broadcast        ceil(log2 p) (alpha + n/B)
//   gather, scatter  log2(p) alpha + (p-1)/p n/B for p a power of two: a message is a whole subtree's parts
#include <algorithm>
#include <bit>

#include "sim/collectives/collective.hpp"

namespace tandem {
namespace {

class Tree final : public CollectiveSchedule {
 public:
  Tree(CollectiveOperation operation, int members, Bytes bytes, int root)
      : CollectiveSchedule(members, bytes), operation_(operation), root_(root) {}

  [[nodiscard]] int steps() const override { return std::bit_width(static_cast<unsigned>(members() - 1)); }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const int bit = bit_of(step);
    const int v = from_root(member);
    if (up() && is_child(v, bit)) out.push_back({at(v - bit), subtree(v, bit), false});
    if (!up() && is_parent(v, bit)) out.push_back({at(v + bit), subtree(v + bit, bit), false});
  }
  [[nodiscard]] int receives(int step, int member) const override {
    const int bit = bit_of(step);
    const int v = from_root(member);
    return (up() ? is_parent(v, bit) : is_child(v, bit)) ? 1 : 0;
  }
  // Parts in order from the root on, so that a subtree's are one range.
  [[nodiscard]] ByteRange own(int member) const override { return part(from_root(member)); }

 private:
  [[nodiscard]] bool up() const { return operation_ == CollectiveOperation::gather; }
  [[nodiscard]] int bit_of(int step) const { return 1 << (up() ? step : steps() - 1 - step); }
  [[nodiscard]] bool is_parent(int v, int bit) const { return v % (2 * bit) == 0 && v + bit < members(); }
  [[nodiscard]] static bool is_child(int v, int bit) { return v % (2 * bit) == bit; }
  [[nodiscard]] int from_root(int member) const { return (member - root_ + members()) % members(); }
  [[nodiscard]] int at(int v) const { return (v + root_) % members(); }
  [[nodiscard]] ByteRange part(int v) const { return part_of({0, bytes().count()}, members(), v); }
  [[nodiscard]] ByteRange subtree(int v, int bit) const {
    if (operation_ == CollectiveOperation::broadcast) return {0, bytes().count()};
    return {part(v).begin, part(std::min(v + bit, members()) - 1).end};
  }

  CollectiveOperation operation_;
  int root_;
};

class TreeAlgorithm final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool supports(CollectiveOperation operation) const override { return has_root(operation); }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int root) const override {
    return std::make_shared<Tree>(operation, shape.workers, bytes, root);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, tree, "tree", "binomial tree: broadcast, gather, scatter",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<TreeAlgorithm>();
                },
                {})

}  // namespace
}  // namespace tandem
