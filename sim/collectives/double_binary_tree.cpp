// Two binary trees, each for half of the buffer: a member that is inside of one is a leaf of the other, so that nobody
// sends or receives more than twice the buffer (Sanders, Speck, Traff, Parallel Computing 2009; NCCL from 2.4 on).
// The halves are summed up the tree and sent down again.
//
// Tree of p members: 0 is the root; any other v has its lowest set bit b, and hangs under v with b cleared and 2b set,
// or, where that is none of the p, under v with b cleared. Odd members are leaves. The other tree is the same read
// backwards (p even) or one member further (p odd), which turns odd into even members.
//
// Every step is a stage: with chunks, all levels of both trees work at once, and time goes to 2n/B with all ports busy.
#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/side_by_side.hpp"

namespace tandem {
namespace {

class BinaryTree final : public CollectiveSchedule {
 public:
  BinaryTree(int members, Bytes bytes) : CollectiveSchedule(members, bytes), nodes_(static_cast<std::size_t>(members)) {
    // A parent's lowest bit is above its children's.
    for (auto bit = std::bit_floor(static_cast<unsigned>(std::max(1, members - 1))); bit > 0; bit /= 2) {
      for (auto v = bit; v < static_cast<unsigned>(members); v += 2 * bit) hang(static_cast<int>(v));
    }
  }

  [[nodiscard]] int steps() const override { return 2 * depth_; }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const auto& node = at(member);
    const ByteRange whole{0, bytes().count()};
    if (member != 0 && step == depth_ - node.depth) out.push_back({node.parent, whole, true});
    if (step == depth_ + node.depth) {
      for (const int child : node.children) {
        if (child >= 0) out.push_back({child, whole, false});
      }
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    const auto& node = at(member);
    if (step == depth_ - node.depth - 1) return (node.children[0] >= 0 ? 1 : 0) + (node.children[1] >= 0 ? 1 : 0);
    return member != 0 && step == depth_ + node.depth - 1 ? 1 : 0;
  }

  [[nodiscard]] int stage(int step) const override { return step; }
  [[nodiscard]] int stages() const override { return std::max(1, steps()); }

 private:
  struct Node {
    int parent = -1;
    int depth = 0;
    int children[2] = {-1, -1};
  };

  void hang(int v) {
    const int bit = v & -v;
    const int wide = (v - bit) | (2 * bit);
    const int parent = wide < members() ? wide : v - bit;
    auto& above = nodes_[static_cast<std::size_t>(parent)];
    above.children[above.children[0] < 0 ? 0 : 1] = v;
    auto& node = nodes_[static_cast<std::size_t>(v)];
    node.parent = parent;
    node.depth = above.depth + 1;
    depth_ = std::max(depth_, node.depth);
  }
  [[nodiscard]] const Node& at(int member) const { return nodes_[static_cast<std::size_t>(member)]; }

  std::vector<Node> nodes_;
  int depth_ = 0;
};

class DoubleBinaryTree final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    const int p = shape.workers;
    return side_by_side(p, bytes, 2, [p](int index, Bytes share) {
      SchedulePart part{std::make_shared<BinaryTree>(p, share), {}};
      if (index == 1) {
        part.order.resize(static_cast<std::size_t>(p));
        std::iota(part.order.begin(), part.order.end(), 0);
        if (p % 2 == 0) std::reverse(part.order.begin(), part.order.end());
        if (p % 2 == 1) std::rotate(part.order.begin(), part.order.begin() + 1 % p, part.order.end());
      }
      return part;
    });
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, double_binary_tree, "double-binary-tree",
                "two complementary binary trees, half of the buffer each; made for --chunk",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<DoubleBinaryTree>();
                },
                {})

}  // namespace
}  // namespace tandem
