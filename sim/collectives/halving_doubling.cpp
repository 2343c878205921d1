// Recursive halving (reduce-scatter), then recursive doubling (all-gather): 2 log2(p) alpha + 2(p-1)/p n/B for p a
// power of two (Thakur, Rabenseifner, Gropp, IJHPCA 2005). For other p, with q the largest power of two below, the
// first 2(p-q) members pair up: even ones hand their whole buffer to odd ones before, and get the result after.
#include <bit>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

class FoldedHalvingDoubling final : public CollectiveSchedule {
 public:
  FoldedHalvingDoubling(int members, Bytes bytes)
      : CollectiveSchedule(members, bytes),
        core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))),
        folded_(members - core_),
        inner_(nested_all_reduce(core_, bytes, {{core_, 1, Exchange::halving}})) {}

  [[nodiscard]] int steps() const override { return inner_->steps() + 2; }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const ByteRange whole{0, bytes().count()};
    const bool paired = member < 2 * folded_;
    if (step == 0 || step == steps() - 1) {
      const int sender = step == 0 ? 0 : 1;
      if (paired && member % 2 == sender) out.push_back({member ^ 1, whole, step == 0});
      return;
    }
    if (paired && member % 2 == 0) return;
    inner_->sends(step - 1, to_inner(member), out);
    for (auto& send : out) send.to = to_outer(send.to);
  }

  [[nodiscard]] int receives(int step, int member) const override {
    const bool paired = member < 2 * folded_;
    if (step == 0) return paired && member % 2 == 1 ? 1 : 0;
    if (step == steps() - 1) return paired && member % 2 == 0 ? 1 : 0;
    return paired && member % 2 == 0 ? 0 : inner_->receives(step - 1, to_inner(member));
  }

  [[nodiscard]] int stage(int step) const override {
    if (step == 0) return 0;
    return step == steps() - 1 ? inner_->stages() + 1 : 1 + inner_->stage(step - 1);
  }
  [[nodiscard]] int stages() const override { return inner_->stages() + 2; }

 private:
  [[nodiscard]] int to_inner(int member) const { return member < 2 * folded_ ? member / 2 : member - folded_; }
  [[nodiscard]] int to_outer(int inner) const { return inner < folded_ ? 2 * inner + 1 : inner + folded_; }

  int core_;
  int folded_;
  std::shared_ptr<const CollectiveSchedule> inner_;
};

class HalvingDoubling final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (is_power_of_two(shape.workers)) {
      return nested_all_reduce(shape.workers, bytes, {{shape.workers, 1, Exchange::halving}});
    }
    return std::make_shared<FoldedHalvingDoubling>(shape.workers, bytes);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, halving_doubling, "halving-doubling",
                "recursive halving, then recursive doubling; pairs are folded where p is not a power of two",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<HalvingDoubling>();
                },
                {})

}  // namespace
}  // namespace tandem
