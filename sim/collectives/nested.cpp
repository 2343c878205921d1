#include "sim/collectives/nested.hpp"

#include <fmt/format.h>

#include <bit>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

int steps_of(const NestedDigit& digit) {
  switch (digit.exchange) {
    case Exchange::ring:
      return digit.radix - 1;
    case Exchange::direct:
      return digit.radix > 1 ? 1 : 0;
    case Exchange::halving:
      return std::bit_width(static_cast<unsigned>(digit.radix)) - 1;
  }
  return 0;
}

class Nested final : public CollectiveSchedule {
 public:
  Nested(CollectiveOperation operation, int members, Bytes bytes, std::vector<NestedDigit> digits)
      : CollectiveSchedule(members, bytes),
        digits_(std::move(digits)),
        reduces_(operation != CollectiveOperation::all_gather),
        gathers_(operation != CollectiveOperation::reduce_scatter) {
    for (const auto& digit : digits_) half_ += steps_of(digit);
  }

  [[nodiscard]] int steps() const override { return (reduces_ && gathers_ ? 2 : 1) * half_; }
  [[nodiscard]] ByteRange own(int member) const override { return range_before(member, digits_.size()); }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const auto where = locate(step);
    const auto& digit = digits_[where.digit];
    const auto range = range_before(member, where.digit);
    const int own = member / digit.stride % digit.radix;
    const auto to = [&](int value) { return member + (value - own) * digit.stride; };
    const auto parts = [&](int first, int count) {
      return ByteRange{part_of(range, digit.radix, first).begin, part_of(range, digit.radix, first + count - 1).end};
    };
    const int d = digit.radix;
    switch (digit.exchange) {
      case Exchange::ring: {
        // Shifted so that after d-1 steps member c holds the sum of part c.
        const int way = digit.reversed ? d - 1 : 1;  // modulo d
        const int passed = (where.gather ? where.step : where.step + 1) % d;
        const int behind = digit.reversed ? passed : (d - passed) % d;
        out.push_back({to((own + way) % d), parts((own + behind) % d, 1), !where.gather});
        break;
      }
      case Exchange::direct:
        for (int k = 1; k < d; ++k) {
          const int other = (own + k) % d;  // rotated, so that no receiver is everybody's first
          out.push_back({to(other), parts(where.gather ? own : other, 1), !where.gather});
        }
        break;
      case Exchange::halving: {
        const int half = where.gather ? 1 << where.step : d >> (where.step + 1);
        const int partner = own ^ half;
        const int base = (where.gather ? own : partner) & ~(half - 1);
        out.push_back({to(partner), parts(base, half), !where.gather});
        break;
      }
    }
  }

  [[nodiscard]] int receives(int step, int) const override {
    const auto& digit = digits_[locate(step).digit];
    return digit.exchange == Exchange::direct ? digit.radix - 1 : 1;
  }

  // Reduce-scatter and all-gather of one digit are different stages: they use the same links in a pipeline, and share.
  [[nodiscard]] int stage(int step) const override {
    const auto where = locate(step);
    const auto digit = static_cast<int>(where.digit);
    return where.gather ? stages() - 1 - digit : digit;
  }
  [[nodiscard]] int stages() const override {
    return (reduces_ && gathers_ ? 2 : 1) * static_cast<int>(digits_.size());
  }

 private:
  struct Where {
    std::size_t digit;
    int step;  // within the digit's exchange
    bool gather;
  };

  [[nodiscard]] Where locate(int step) const {
    if (reduces_ && step < half_) {
      for (std::size_t l = 0; l < digits_.size(); ++l) {
        if (step < steps_of(digits_[l])) return {l, step, false};
        step -= steps_of(digits_[l]);
      }
    } else {
      if (reduces_) step -= half_;
      for (std::size_t l = digits_.size(); l-- > 0;) {
        if (step < steps_of(digits_[l])) return {l, step, true};
        step -= steps_of(digits_[l]);
      }
    }
    throw internal_error("a collective was asked for a step that it does not have");
  }

  // What the member still reduces when the digits before `digit` are done.
  [[nodiscard]] ByteRange range_before(int member, std::size_t digit) const {
    ByteRange range{0, bytes().count()};
    for (std::size_t l = 0; l < digit; ++l) {
      range = part_of(range, digits_[l].radix, member / digits_[l].stride % digits_[l].radix);
    }
    return range;
  }

  std::vector<NestedDigit> digits_;
  bool reduces_;
  bool gathers_;
  int half_ = 0;  // steps of either
};

}  // namespace

Exchange exchange_from_text(const std::string& text) {
  if (text == "ring") return Exchange::ring;
  if (text == "direct") return Exchange::direct;
  if (text == "halving") return Exchange::halving;
  throw usage_error(fmt::format("'{}' is not an exchange: known are ring, direct and halving", text));
}

std::string one_level_note(const std::string& algorithm, Exchange exchange) {
  return fmt::format("{} has one level here, and is {}", algorithm,
                     exchange == Exchange::ring     ? "a ring"
                     : exchange == Exchange::direct ? "direct exchange"
                                                    : "halving and doubling");
}

bool is_nested(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_reduce || operation == CollectiveOperation::reduce_scatter ||
         operation == CollectiveOperation::all_gather;
}

std::shared_ptr<const CollectiveSchedule> nested_schedule(CollectiveOperation operation, int members, Bytes bytes,
                                                          std::vector<NestedDigit> digits) {
  if (!is_nested(operation)) throw internal_error(fmt::format("{} is not nested", to_text(operation)));
  std::erase_if(digits, [](const auto& digit) { return digit.radix <= 1; });
  for (const auto& digit : digits) {
    if (digit.exchange == Exchange::halving && !is_power_of_two(digit.radix)) {
      throw usage_error(fmt::format("halving needs a power of two, but a digit has {} members", digit.radix));
    }
  }
  return std::make_shared<Nested>(operation, members, bytes, std::move(digits));
}

std::shared_ptr<const CollectiveSchedule> nested_all_reduce(int members, Bytes bytes, std::vector<NestedDigit> digits) {
  return nested_schedule(CollectiveOperation::all_reduce, members, bytes, std::move(digits));
}

}  // namespace tandem
