#include "platforms/topologies/box_cut.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "platforms/topologies/build.hpp"

namespace tandem {

BoxCut::BoxCut(const std::vector<int>& radices, std::vector<std::int64_t> weights)
    : radices_(radices), weights_(std::move(weights)), half_(capped_product(radices) / 2) {}

std::int64_t BoxCut::least() {
  extra_.assign(radices_.size(), 0);
  split_ = false;
  return search();
}

std::int64_t BoxCut::least_through_a_cell(std::vector<std::int64_t> extra) {
  extra_ = std::move(extra);
  split_ = true;
  return search();
}

std::int64_t BoxCut::search() {
  least_ = -1;
  std::vector<int> order(radices_.size());
  std::iota(order.begin(), order.end(), 0);
  // Digits that are alike (same radix and switches) need no second order.
  const auto key = [&](int l) {
    const auto digit = static_cast<std::size_t>(l);
    return std::tuple(radices_[digit], weights_[digit], extra_[digit]);
  };
  const auto before = [&](int a, int b) { return key(a) < key(b); };
  std::sort(order.begin(), order.end(), before);
  do {
    choose(order, 0, 1, 0);
  } while (std::next_permutation(order.begin(), order.end(), before));
  return least_;
}

std::int64_t BoxCut::side(std::size_t digit, std::int64_t x) const {
  return std::min(x, radices_[digit] - x);
}

// Takes the box's size along the i-th digit of the order, from half to all; `lines` is the product of those before.
void BoxCut::choose(const std::vector<int>& order, std::size_t i, std::int64_t lines, std::int64_t sum) {
  const auto digit = static_cast<std::size_t>(order[i]);
  const bool last = i + 1 == order.size();
  for (int size = last ? radices_[digit] : (radices_[digit] + 1) / 2; size <= radices_[digit]; ++size) {
    const auto total = sum + cut(digit, lines, lines * size, size);
    if (!last) {
      choose(order, i + 1, lines * size, total);
    } else if (lines * size >= half_ + (split_ ? 1 : 0) && (least_ < 0 || total < least_)) {
      least_ = total;
    }
  }
}

// Cables cut at one digit by the first half_ cells of the box in lexicographic order. `lines` are the cells below one
// cell of this digit, `slab` those of a whole turn of it. A full turn has `size` cells on each of its lines; in the
// turn that is begun, the first `more` lines have one more than the others.
std::int64_t BoxCut::cut(std::size_t digit, std::int64_t lines, std::int64_t slab, int size) const {
  const auto begun = half_ % slab;
  const auto x = begun / lines;
  const auto more = begun % lines;
  const auto per_switch =
      half_ / slab * lines * side(digit, size) + more * side(digit, x + 1) + (lines - more) * side(digit, x);
  const auto middle = split_ ? extra_[digit] * (side(digit, x + 1) - side(digit, x)) : 0;
  return weights_[digit] * per_switch + middle;
}

}  // namespace tandem
