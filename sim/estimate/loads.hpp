// What the estimates share: bytes by link, and channels with their chunks.
#pragma once

#include <algorithm>
#include <vector>

#include "platforms/network.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

// Bytes by link; links that carry nothing cost nothing to look at.
class Loads {
 public:
  explicit Loads(const Network& network) : network_(network), bytes_(network.links().size(), 0) {}

  void add(LinkId link, std::int64_t bytes) {
    if (bytes == 0) return;
    auto& sum = bytes_[link.index()];
    if (sum == 0) loaded_.push_back(link);
    sum += bytes;
  }
  // The longest that a link needs for its load.
  [[nodiscard]] Seconds slowest(double bandwidth_factor) const {
    Seconds longest{};
    for (const auto link : loaded_) {
      longest = std::max(longest, Bytes(bytes_[link.index()]) / (network_.link(link).bandwidth * bandwidth_factor));
    }
    return longest;
  }
  [[nodiscard]] const std::vector<LinkId>& loaded() const { return loaded_; }
  [[nodiscard]] std::int64_t on(LinkId link) const { return bytes_[link.index()]; }
  void clear() {
    for (const auto link : loaded_) bytes_[link.index()] = 0;
    loaded_.clear();
  }

 private:
  const Network& network_;
  std::vector<std::int64_t> bytes_;
  std::vector<LinkId> loaded_;
};

// The first chunk of every channel, which is its largest, and by at most a byte.
struct Channels {
  std::vector<CollectivePiece> first;
  std::vector<int> chunks;
  [[nodiscard]] int most_chunks() const { return *std::max_element(chunks.begin(), chunks.end()); }
};
[[nodiscard]] inline Channels channels_of(const std::vector<CollectivePiece>& pieces) {
  Channels channels;
  for (const auto& piece : pieces) {
    if (channels.first.empty() || channels.first.back().channel != piece.channel) {
      channels.first.push_back(piece);
      channels.chunks.push_back(0);
    }
    ++channels.chunks.back();
  }
  return channels;
}

}  // namespace tandem
