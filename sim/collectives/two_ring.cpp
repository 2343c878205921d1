// Two edge-disjoint Hamiltonian cycles of a grid that closes on itself (a 2-D torus, or the accelerators of a
// HammingMesh), each run both ways: four rings on a quarter of the buffer each keep all four ports busy. Time
// 2(N-1)(alpha + n/(4 N B)) (Hoefler et al., HammingMesh, SC 2022).
//
// With r rows and c columns, c dividing r and gcd(r, c-1) = 1 (Bae, AlBdaiwi, Bose, "Edge-disjoint Hamiltonian cycles
// in two-dimensional torus", IJMMS 2004; HammingMesh uses the same): the first cycle goes c-1 steps along every row and
// then one down, the second takes the edges that are left. Or the same with rows and columns exchanged.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/collectives/side_by_side.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

// A cell is (row, column); rows and columns are cyclic.
struct Grid {
  int rows = 0;
  int columns = 0;
  bool transposed = false;  // members count along columns of this grid

  [[nodiscard]] bool fits() const { return rows % columns == 0 && std::gcd(rows, columns - 1) == 1; }
  [[nodiscard]] int member(int row, int column) const {
    return transposed ? column * rows + row : row * columns + column;
  }
};

std::vector<int> first_cycle(const Grid& grid) {
  std::vector<int> order;
  for (int row = 0; row < grid.rows; ++row) {
    for (int step = 0; step < grid.columns; ++step) {
      order.push_back(grid.member(row, (step + row * (grid.columns - 1)) % grid.columns));
    }
  }
  return order;
}

// In row i the first cycle comes from above into column -i and leaves below from column -i-1. So the second one goes
// down a column until it meets a cell that the first leaves below, steps right, and goes on down.
std::vector<int> second_cycle(const Grid& grid) {
  const int start = grid.columns - 1;
  std::vector<int> order;
  int row = 0;
  int column = start;
  do {
    order.push_back(grid.member(row, column));
    if (column == (row + 1) % grid.rows * (grid.columns - 1) % grid.columns) {
      column = (column + 1) % grid.columns;
      order.push_back(grid.member(row, column));
    }
    row = (row + 1) % grid.rows;
  } while (row != 0 || column != start);
  return order;
}

class TwoRing final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (shape.workers == 1) return nested_all_reduce(1, bytes, {});
    const auto grid = grid_of(shape);
    const std::vector<std::vector<int>> cycles{first_cycle(grid), second_cycle(grid)};
    return side_by_side(shape.workers, bytes, 4, [&](int index, Bytes share) {
      const NestedDigit ring{shape.workers, 1, Exchange::ring, index >= 2};
      return SchedulePart{nested_all_reduce(shape.workers, share, {ring}), cycles[static_cast<std::size_t>(index % 2)]};
    });
  }

 private:
  // Two digits, or the four of a HammingMesh: accelerators of a board along a row, boards in a row, and the same again
  // along a column.
  static Grid grid_of(const GroupShape& shape) {
    auto sides = shape.sides;
    if (sides.empty()) {
      for (const auto& digit : shape.digits) sides.push_back(digit.radix);
    }
    if (sides.size() == 4) sides = {sides[0] * sides[1], sides[2] * sides[3]};
    if (sides.size() != 2 || sides[0] < 3 || sides[1] < 3) {
      throw usage_error(
          fmt::format("two-ring needs ranks that fill a grid of two dimensions, at least 3 x 3, but these {} fill {}",
                      shape.workers, described(shape)));
    }
    const Grid grid{sides[1], sides[0], false};
    const Grid turned{grid.columns, grid.rows, true};
    if (grid.fits()) return grid;
    if (turned.fits()) return turned;
    throw usage_error(fmt::format(
        "two-ring knows two edge-disjoint rings only of grids r x c where c divides r and r has no divisor in common "
        "with c-1 (such as 8x8 or 16x8), not of {}x{}; use torus-ring",
        sides[0], sides[1]));
  }

  static std::string described(const GroupShape& shape) {
    if (shape.digits.empty()) return "none of the topology's addresses";
    std::string text;
    for (const auto& digit : shape.digits) text += fmt::format("{}{}", text.empty() ? "" : "x", digit.radix);
    return text;
  }
};

TANDEM_REGISTER(CollectiveAlgorithm, two_ring, "two-ring",
                "two edge-disjoint rings over a grid that closes on itself, both ways",
                [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<TwoRing>(); },
                {})

}  // namespace
}  // namespace tandem
