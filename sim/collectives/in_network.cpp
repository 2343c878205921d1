// Reduction in the network: switches add what comes up from below and hand the sum out again, as SHARP (Graham et al.,
// COM-HPC 2016) and SwitchML (Sapio et al., NSDI 2021) do. Every cable of the tree carries the buffer once up and once
// down, whatever hangs below it; with alpha a cable's latency, tree depth d (star 1, leaf-spine 2, fat-tree 3), cables
// of rate B and K chunks of a buffer of S bytes:
//
//   all-reduce                  (K + 2d - 1) (alpha + S/(KB)), against 2(N-1) (alpha + S/(NB)) of a ring
//   reduce-scatter, all-gather  S once up, or down, and a part the other way
//   broadcast                   S once over every cable of the tree
//
// A switch takes in a whole chunk of all that is below it before it hands it on (real ones do so packet by packet), at
// line rate, with as much memory as that takes. Its messages cost no --step-overhead, --reduce-rate or --copy-rate,
// which are those of software. That switches can do it at all is an assumption.
#include <algorithm>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/switch_tree.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

class InSwitches final : public CollectiveSchedule {
 public:
  InSwitches(CollectiveOperation operation, int workers, std::shared_ptr<const SwitchTree> tree, Bytes bytes, int root)
      : CollectiveSchedule(static_cast<int>(tree->nodes.size()), bytes),
        operation_(operation),
        workers_(workers),
        tree_(std::move(tree)),
        children_(tree_->nodes.size()),
        below_(tree_->nodes.size()) {
    for (int member = 0; member < members(); ++member) {
      const auto& node = at(member);
      depth_ = std::max(depth_, node.depth);
      if (node.parent >= 0) children_[static_cast<std::size_t>(node.parent)].push_back(member);
      if (node.parent < 0) top_ = member;
    }
    number_workers(top_);
    if (operation_ == CollectiveOperation::broadcast) measure_from(root);
  }

  [[nodiscard]] int steps() const override {
    if (operation_ == CollectiveOperation::broadcast) return *std::max_element(distance_.begin(), distance_.end());
    return 2 * depth_;
  }
  [[nodiscard]] int stage(int step) const override { return step; }
  [[nodiscard]] int stages() const override { return std::max(1, steps()); }
  [[nodiscard]] bool contributes(int member) const override { return member < workers_; }
  [[nodiscard]] bool eager() const override { return true; }  // switches listen all the time

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const auto& node = at(member);
    if (operation_ == CollectiveOperation::broadcast) {
      if (step != distance_[static_cast<std::size_t>(member)]) return;
      if (leads_on(member, node.parent)) out.push_back({node.parent, whole(), false, node.up});
      for (const int child : children(member)) {
        if (leads_on(member, child)) out.push_back({child, whole(), false, at(child).down});
      }
      return;
    }
    if (step == depth_ - node.depth && node.parent >= 0) {
      const bool gathers = operation_ == CollectiveOperation::all_gather;
      out.push_back({node.parent, gathers ? parts(below(member)) : whole(), !gathers, node.up});
    }
    if (step != depth_ + node.depth) return;
    for (const int child : children(member)) {
      for (const auto range : downwards(child)) out.push_back({child, range, false, at(child).down});
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    const auto& node = at(member);
    if (operation_ == CollectiveOperation::broadcast) {
      return step + 1 == distance_[static_cast<std::size_t>(member)] ? 1 : 0;
    }
    int count = 0;
    if (step == depth_ - node.depth - 1) count += static_cast<int>(children(member).size());
    if (step == depth_ + node.depth - 1 && node.parent >= 0) count += static_cast<int>(downwards(member).size());
    return count;
  }

  // Parts in the order in which the tree holds the workers, so that a subtree's are one range.
  [[nodiscard]] ByteRange own(int member) const override {
    return contributes(member) ? parts(below(member)) : ByteRange{};
  }

 private:
  [[nodiscard]] const SwitchTree::Node& at(int member) const { return tree_->nodes[static_cast<std::size_t>(member)]; }
  [[nodiscard]] const std::vector<int>& children(int member) const {
    return children_[static_cast<std::size_t>(member)];
  }
  // Places in the tree's order of workers.
  [[nodiscard]] ByteRange below(int member) const { return below_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] ByteRange whole() const { return {0, bytes().count()}; }
  [[nodiscard]] ByteRange parts(ByteRange places) const {
    if (places.size() == 0) return {};
    return {part_of(whole(), workers_, places.begin).begin, part_of(whole(), workers_, places.end - 1).end};
  }

  void number_workers(int member) {
    auto& range = below_[static_cast<std::size_t>(member)];
    range = {placed_, placed_};
    if (member < workers_) ++placed_;
    for (const int child : children(member)) number_workers(child);
    range.end = placed_;
  }

  void measure_from(int root) {
    distance_.assign(tree_->nodes.size(), -1);
    std::vector<int> reached{root};
    distance_[static_cast<std::size_t>(root)] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const auto visit = [&](int member) {
        if (member < 0 || distance_[static_cast<std::size_t>(member)] >= 0) return;
        distance_[static_cast<std::size_t>(member)] = distance_[static_cast<std::size_t>(reached[i])] + 1;
        reached.push_back(member);
      };
      visit(at(reached[i]).parent);
      for (const int child : children(reached[i])) visit(child);
    }
  }
  [[nodiscard]] bool leads_on(int from, int to) const {
    return to >= 0 && distance_[static_cast<std::size_t>(to)] > distance_[static_cast<std::size_t>(from)];
  }

  // What a parent hands to `child`: all, the parts of those below it, or those of all others.
  [[nodiscard]] std::vector<ByteRange> downwards(int child) const {
    if (operation_ == CollectiveOperation::all_reduce) return {whole()};
    const auto inside = parts(below(child));
    if (operation_ == CollectiveOperation::reduce_scatter) return {inside};
    std::vector<ByteRange> outside;
    if (below(child).begin > 0) outside.push_back({0, inside.begin});
    if (below(child).end < workers_) outside.push_back({inside.end, bytes().count()});
    return outside;
  }

  CollectiveOperation operation_;
  int workers_;
  std::shared_ptr<const SwitchTree> tree_;
  std::vector<std::vector<int>> children_;
  std::vector<ByteRange> below_;
  std::vector<int> distance_;  // from a broadcast's root
  std::int64_t placed_ = 0;
  int top_ = 0;
  int depth_ = 0;
};

class InNetwork final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool in_switches() const override { return true; }
  [[nodiscard]] bool supports(CollectiveOperation operation) const override {
    return operation == CollectiveOperation::all_reduce || operation == CollectiveOperation::reduce_scatter ||
           operation == CollectiveOperation::all_gather || operation == CollectiveOperation::broadcast;
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int root) const override {
    auto tree = shape.tree;
    if (!tree && shape.workers > 1) {
      throw usage_error("in-network needs a tree of switches that its ranks hang on, and none was laid for them");
    }
    if (!tree) tree = std::make_shared<SwitchTree>(SwitchTree{{}, std::vector<SwitchTree::Node>(1)});
    return std::make_shared<InSwitches>(operation, shape.workers, std::move(tree), bytes, root);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, in_network, "in-network",
                "switches add and hand out (SHARP, SwitchML), which is an assumption about them; made for --chunk, and "
                "nothing that auto picks",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<InNetwork>();
                },
                {})

}  // namespace
}  // namespace tandem
