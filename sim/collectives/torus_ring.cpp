// Multi-dimensional ring all-reduce of a torus of D dimensions: 2D parts, of which each begins with another dimension
// or runs the other way round, so that all 2D ports of a device are busy at any moment (D = 1: a ring both ways). With
// D equal dimensions d, N = d^D: time 2 D (d-1) alpha + 2 (N-1)/N n/(2 D B). Jain and Sabharwal, ICS 2010, describe
// all-reduces on the torus of Blue Gene with all links in use.
#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/collectives/side_by_side.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

class TorusRing final : public CollectiveAlgorithm {
 public:
  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] std::string note(const GroupShape& shape) const override {
    return shape.digits.size() == 1 ? "torus-ring has one dimension here, and is a ring both ways" : "";
  }
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (shape.digits.empty() && shape.workers > 1) {
      throw usage_error(
          fmt::format("torus-ring needs ranks that fill a rectangle of the topology's addresses, which these {} do "
                      "not; choose another number of ranks, or use ring",
                      shape.workers));
    }
    std::vector<NestedDigit> digits;
    int stride = 1;
    for (const auto& digit : shape.digits) {
      digits.push_back({digit.radix, stride, Exchange::ring});
      stride *= digit.radix;
    }
    const int dimensions = std::max(1, static_cast<int>(digits.size()));
    return side_by_side(shape.workers, bytes, 2 * dimensions, [&](int index, Bytes share) {
      auto order = digits;
      std::rotate(order.begin(), order.begin() + index % dimensions, order.end());
      for (auto& digit : order) digit.reversed = index >= dimensions;
      return SchedulePart{nested_all_reduce(shape.workers, share, std::move(order)), {}};
    });
  }
};

TANDEM_REGISTER(
    CollectiveAlgorithm, torus_ring, "torus-ring", "rings in all dimensions of a torus and both ways at once",
    [](const Arguments&, const CollectiveAlgorithm::PluginContext&) { return std::make_unique<TorusRing>(); }, {})

}  // namespace
}  // namespace tandem
