#include "platforms/split_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "platforms/graph_search.hpp"
#include "sim/core/random.hpp"

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

namespace {

class SwitchExchanges {
 public:
  explicit SwitchExchanges(const Network& network)
      : network_(network), adjacency_(network), switches_(network.vertices() - network.devices()) {}

  // Cables between the two sides once no exchange makes them fewer. The first half of `order` begins on one side.
  std::int64_t run(const std::vector<int>& order) {
    side_.assign(static_cast<std::size_t>(switches_), 0);
    for (int i = 0; i < switches_ / 2; ++i) side_[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = 1;
    gain_.assign(side_.size(), 0);
    for (int s = 0; s < switches_; ++s) gain_[static_cast<std::size_t>(s)] = gain_of(s);
    while (exchange_best()) {
    }
    std::int64_t twice = 0;
    for (int s = 0; s < switches_; ++s) {
      each_neighbour(s, [&](int other, std::int64_t cables) { twice += same(s, other) ? 0 : cables; });
    }
    return twice / 2;
  }

 private:
  [[nodiscard]] bool same(int a, int b) const {
    return side_[static_cast<std::size_t>(a)] == side_[static_cast<std::size_t>(b)];
  }

  template <class Visit>
  void each_neighbour(int s, Visit&& visit) const {
    adjacency_.for_each(network_.devices() + s, [&](LinkId id, int to) {
      if (to >= network_.devices()) visit(to - network_.devices(), network_.link(id).width);
    });
  }

  // Cables that are no longer cut, less those that are then, if `s` alone changed sides.
  [[nodiscard]] std::int64_t gain_of(int s) const {
    std::int64_t gain = 0;
    each_neighbour(s, [&](int other, std::int64_t cables) { gain += same(s, other) ? -cables : cables; });
    return gain;
  }

  // Switches of a side with the largest gains: the best pair is among them unless they are all joined to each other.
  [[nodiscard]] std::vector<int> candidates(char side) const {
    constexpr std::size_t kMost = 32;
    std::vector<int> all;
    for (int s = 0; s < switches_; ++s) {
      if (side_[static_cast<std::size_t>(s)] == side) all.push_back(s);
    }
    const auto before = [this](int a, int b) {
      return std::pair(-gain_[static_cast<std::size_t>(a)], a) < std::pair(-gain_[static_cast<std::size_t>(b)], b);
    };
    const auto most = std::min(kMost, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(), before);
    all.resize(most);
    return all;
  }

  bool exchange_best() {
    std::int64_t best = 0;
    std::pair<int, int> pair;
    const auto there = candidates(0);
    for (const int a : candidates(1)) {
      std::map<int, std::int64_t> joined;
      each_neighbour(a, [&](int other, std::int64_t cables) { joined[other] += cables; });
      for (const int b : there) {
        const auto known = joined.find(b);
        const auto gain = gain_[static_cast<std::size_t>(a)] + gain_[static_cast<std::size_t>(b)] -
                          (known == joined.end() ? 0 : 2 * known->second);
        if (gain <= best) continue;
        best = gain;
        pair = {a, b};
      }
    }
    if (best == 0) return false;
    for (const int s : {pair.first, pair.second}) side_[static_cast<std::size_t>(s)] ^= 1;
    for (const int s : {pair.first, pair.second}) {
      gain_[static_cast<std::size_t>(s)] = gain_of(s);
      each_neighbour(s, [&](int other, std::int64_t) { gain_[static_cast<std::size_t>(other)] = gain_of(other); });
    }
    return true;
  }

  const Network& network_;
  Adjacency adjacency_;
  int switches_;
  std::vector<char> side_;
  std::vector<std::int64_t> gain_;
};

}  // namespace

std::int64_t exchanged_split(const Network& network, int per_switch) {
  constexpr int kStarts = 6;
  const int switches = network.vertices() - network.devices();
  const std::int64_t width = network.links().empty() ? 0 : network.links().front().width;
  std::vector<int> order(static_cast<std::size_t>(switches));
  std::iota(order.begin(), order.end(), 0);
  SwitchExchanges exchanges(network);
  Random random(1);
  auto least = width * (network.devices() / 2);  // half of the devices of every switch
  for (int start = 0; start < kStarts; ++start) {
    least = std::min(least, exchanges.run(order) + switches % 2 * (per_switch / 2) * width);
    random.shuffle(order);
  }
  return least;
}

}  // namespace tandem
