#include "platforms/split_search.hpp"

#include <algorithm>
#include <numeric>

namespace tandem {
namespace {

constexpr std::int64_t kMostWork = 200'000'000;  // links looked at

class SplitSearch {
 public:
  SplitSearch(const Network& network, const std::vector<int>& radices)
      : network_(network),
        radices_(radices),
        side_(static_cast<std::size_t>(network.devices())),
        on_side_(static_cast<std::size_t>(network.vertices() - network.devices())),
        ports_(on_side_.size()) {
    std::int64_t stride = 1;
    for (const int radix : radices) {
      stride_.push_back(stride);
      stride *= radix;
    }
    for (const auto& link : network.links()) {
      if (link.from >= network.devices()) ports_[switch_index(link.from)] += link.width;
    }
  }

  std::int64_t least() {
    std::vector<std::size_t> order(radices_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::reverse(order.begin(), order.end());
    const auto natural = order;
    do {
      try_box(order, radices_, false);
      try_box(order, radices_, true);
    } while (affordable() && std::prev_permutation(order.begin(), order.end()));
    order = natural;
    do {
      try_boxes(order);
    } while (affordable() && std::prev_permutation(order.begin(), order.end()));
    return least_;
  }

 private:
  [[nodiscard]] std::size_t switch_index(int vertex) const {
    return static_cast<std::size_t>(vertex - network_.devices());
  }
  [[nodiscard]] bool affordable() const { return work_ < kMostWork; }

  // Every box that is at least half of the space along each digit.
  void try_boxes(const std::vector<std::size_t>& order) {
    std::vector<int> box;
    for (const int radix : radices_) box.push_back((radix + 1) / 2);
    for (bool more = true; more && affordable();) {
      try_box(order, box, false);
      more = false;
      for (std::size_t i = 0; i < box.size() && !more; ++i) {
        more = ++box[i] <= radices_[i];
        if (!more) box[i] = (radices_[i] + 1) / 2;
      }
    }
  }

  // order[0] is the most significant digit; with `turned` all digits below it are counted from the box's far end.
  void try_box(const std::vector<std::size_t>& order, const std::vector<int>& box, bool turned) {
    ++work_;
    const auto half = network_.devices() / 2;
    std::int64_t size = 1;
    for (const int side : box) size *= side;
    if (size < half) return;
    std::fill(side_.begin(), side_.end(), 0);
    std::vector<int> digits(radices_.size(), 0);
    auto step = stride_;
    std::int64_t id = 0;
    for (std::size_t i = 1; turned && i < order.size(); ++i) {
      id += stride_[order[i]] * (box[order[i]] - 1);
      step[order[i]] = -step[order[i]];
    }
    int taken = 0;
    for (std::int64_t cell = 0; cell < size && taken < half; ++cell) {
      if (id < network_.devices()) {
        side_[static_cast<std::size_t>(id)] = 1;
        ++taken;
      }
      for (std::size_t i = order.size(); i-- > 0;) {
        const auto digit = order[i];
        id += step[digit];
        if (++digits[digit] < box[digit]) break;
        id -= step[digit] * digits[digit];
        digits[digit] = 0;
      }
    }
    if (taken < half) return;
    const auto cables = cut();
    if (least_ < 0 || cables < least_) least_ = cables;
  }

  std::int64_t cut() {
    std::fill(on_side_.begin(), on_side_.end(), 0);
    std::int64_t cables = 0;
    for (std::size_t i = 0; i < network_.links().size(); i += 2) {
      const auto& link = network_.links()[i];
      const auto [low, high] = std::minmax(link.from, link.to);
      const auto first = side_[static_cast<std::size_t>(low)];
      if (high < network_.devices()) {
        if (first != side_[static_cast<std::size_t>(high)]) cables += link.width;
      } else if (first != 0) {
        on_side_[switch_index(high)] += link.width;
      }
    }
    for (std::size_t i = 0; i < ports_.size(); ++i) cables += std::min(on_side_[i], ports_[i] - on_side_[i]);
    work_ += static_cast<std::int64_t>(network_.links().size() / 2 + side_.size());
    return cables;
  }

  const Network& network_;
  const std::vector<int>& radices_;
  std::vector<std::int64_t> stride_;   // by digit
  std::vector<char> side_;             // by device
  std::vector<std::int64_t> on_side_;  // by switch: cables to devices on the first side
  std::vector<std::int64_t> ports_;    // by switch
  std::int64_t work_ = 0;
  std::int64_t least_ = -1;
};

}  // namespace

std::int64_t least_split(const Network& network, const std::vector<int>& radices) {
  return network.devices() < 2 ? 0 : SplitSearch(network, radices).least();
}

}  // namespace tandem
