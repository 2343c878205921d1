// Bisection of networks whose cells (devices, or modules of devices) have digit-wise addresses, with a switch for every
// line of cells that differ in one digit only.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// The smallest cut around half of the cells, taken from a corner of the cube: the first cells in lexicographic order of
// a box of digits, for every order of the digits and every size of the box. A switch with x of its n ports on one side
// costs min(x, n-x) cables, so a compact corner can cost less than a whole half along one digit: for 8x8 cells, 28
// switch cuts around 6 columns of 5 and a bit, against 32 between two halves. An upper bound of the bisection.
class BoxCut {
 public:
  // `weights`: parallel switches of a line that are cut alike, by digit.
  BoxCut(const std::vector<int>& radices, std::vector<std::int64_t> weights);

  // Half of the cells, rounded down.
  [[nodiscard]] std::int64_t least();
  // Where the number of cells is odd and the one in the middle is split: `extra[l]` of the parallel switches of digit l
  // count it to the side of the corner.
  [[nodiscard]] std::int64_t least_through_a_cell(std::vector<std::int64_t> extra);

 private:
  [[nodiscard]] std::int64_t search();
  void choose(const std::vector<int>& order, std::size_t i, std::int64_t lines, std::int64_t sum);
  [[nodiscard]] std::int64_t cut(std::size_t digit, std::int64_t lines, std::int64_t slab, int size) const;
  [[nodiscard]] std::int64_t side(std::size_t digit, std::int64_t x) const;

  std::vector<int> radices_;
  std::vector<std::int64_t> weights_;
  std::vector<std::int64_t> extra_;
  std::int64_t half_;
  bool split_ = false;  // the cell behind the first half
  std::int64_t least_ = -1;
};

}  // namespace tandem
