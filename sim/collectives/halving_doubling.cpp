// Recursive halving (reduce-scatter), then recursive doubling (all-gather): 2 log2(p) alpha + 2(p-1)/p n/B for p a
// power of two, half of it for either alone (Thakur, Rabenseifner, Gropp, IJHPCA 2005). For other p, with q the largest
// power of two below, the first 2(p-q) members pair up: even ones hand what they bring to odd ones before, and get
// their result after.
#include <bit>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"

namespace tandem {
namespace {

// What members do between the two steps of folded pairs: q of them take part, numbered 0 .. q-1.
class Folded : public CollectiveSchedule {
 public:
  Folded(int members, Bytes bytes)
      : CollectiveSchedule(members, bytes),
        core_(static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))),
        folded_(members - core_) {}

  [[nodiscard]] int receives(int step, int member) const override {
    const bool paired = member < 2 * folded_;
    if (step == 0) return paired && member % 2 == 1 ? 1 : 0;
    if (step == steps() - 1) return paired && member % 2 == 0 ? 1 : 0;
    return paired && member % 2 == 0 ? 0 : 1;
  }

 protected:
  [[nodiscard]] bool is_outer(int step) const { return step == 0 || step == steps() - 1; }
  // Whether the member has a message for its partner, member ^ 1, in the first or last step.
  [[nodiscard]] bool hands_over(int step, int member) const {
    return member < 2 * folded_ && member % 2 == (step == 0 ? 0 : 1);
  }
  [[nodiscard]] bool waits(int member) const { return member < 2 * folded_ && member % 2 == 0; }
  [[nodiscard]] int to_inner(int member) const { return member < 2 * folded_ ? member / 2 : member - folded_; }
  [[nodiscard]] int to_outer(int inner) const { return inner < folded_ ? 2 * inner + 1 : inner + folded_; }
  [[nodiscard]] int core() const { return core_; }
  // The first member that inner member `inner` stands for; that of `core()` is the end.
  [[nodiscard]] int first_of(int inner) const { return inner < folded_ ? 2 * inner : inner + folded_; }

 private:
  int core_;
  int folded_;
};

class FoldedHalvingDoubling final : public Folded {
 public:
  FoldedHalvingDoubling(int members, Bytes bytes)
      : Folded(members, bytes), inner_(nested_all_reduce(core(), bytes, {{core(), 1, Exchange::halving}})) {}

  [[nodiscard]] int steps() const override { return inner_->steps() + 2; }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    if (is_outer(step)) {
      if (hands_over(step, member)) out.push_back({member ^ 1, {0, bytes().count()}, step == 0});
    } else if (!waits(member)) {
      inner_->sends(step - 1, to_inner(member), out);
      for (auto& send : out) send.to = to_outer(send.to);
    }
  }

  [[nodiscard]] int stage(int step) const override {
    if (step == 0) return 0;
    return step == steps() - 1 ? inner_->stages() + 1 : 1 + inner_->stage(step - 1);
  }
  [[nodiscard]] int stages() const override { return inner_->stages() + 2; }

 private:
  std::shared_ptr<const CollectiveSchedule> inner_;
};

// Reduce-scatter or all-gather alone: halves are cut between members' parts, of which a folded pair has two.
class FoldedHalf final : public Folded {
 public:
  FoldedHalf(int members, Bytes bytes, bool gathers) : Folded(members, bytes), gathers_(gathers) {}

  [[nodiscard]] int steps() const override { return std::bit_width(static_cast<unsigned>(core())) + 1; }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const ByteRange whole{0, bytes().count()};
    if (is_outer(step)) {
      if (!hands_over(step, member)) return;
      const bool before = step == 0;
      const auto bringing = gathers_ ? own(member) : whole;
      const auto returning = gathers_ ? whole : own(member ^ 1);
      out.push_back({member ^ 1, before ? bringing : returning, before && !gathers_});
    } else if (!waits(member)) {
      const int inner = to_inner(member);
      const int half = gathers_ ? 1 << (step - 1) : core() >> step;
      const int partner = inner ^ half;
      const int base = (gathers_ ? inner : partner) & ~(half - 1);
      out.push_back({to_outer(partner), parts(base, half), !gathers_});
    }
  }

  [[nodiscard]] int stage(int step) const override { return step == 0 ? 0 : step == steps() - 1 ? 2 : 1; }
  [[nodiscard]] int stages() const override { return 3; }

 private:
  [[nodiscard]] ByteRange parts(int inner, int count) const {
    return {own(first_of(inner)).begin, own(first_of(inner + count) - 1).end};
  }

  bool gathers_;
};

class HalvingDoubling final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool supports(CollectiveOperation operation) const override { return is_nested(operation); }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int) const override {
    const int p = shape.workers;
    if (is_power_of_two(p)) return nested_schedule(operation, p, bytes, {{p, 1, Exchange::halving}});
    if (operation == CollectiveOperation::all_reduce) return std::make_shared<FoldedHalvingDoubling>(p, bytes);
    return std::make_shared<FoldedHalf>(p, bytes, operation == CollectiveOperation::all_gather);
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, halving_doubling, "halving-doubling",
                "recursive halving, then recursive doubling, or either; pairs are folded where p is no power of two",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<HalvingDoubling>();
                },
                {})

}  // namespace
}  // namespace tandem
