// BML (Wang et al., NeurIPS 2018), made for BCube: the buffer is cut into as many parts as an address has digits, and
// part d is reduce-scattered and all-gathered digit by digit from digit d on, so that at any moment every part uses a
// port of its own. On BCube(n,k), N = n^(k+1), time 2(k+1) alpha + 2 (N-1)/N n/((k+1) B) with direct exchange.
#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/collectives/side_by_side.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

class Bml final : public CollectiveAlgorithm {
 public:
  explicit Bml(Exchange exchange) : exchange_(exchange) {}

  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] std::string note(const GroupShape& shape) const override {
    return shape.digits.size() == 1 ? one_level_note("bml", exchange_) : "";
  }
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (shape.digits.empty() && shape.workers > 1) {
      throw usage_error(
          fmt::format("bml needs ranks that fill a rectangle of the topology's addresses, which these {} do not; "
                      "choose another number of ranks, or use ring",
                      shape.workers));
    }
    std::vector<NestedDigit> digits;
    int stride = 1;
    for (const auto& digit : shape.digits) {
      digits.push_back({digit.radix, stride, exchange_});
      stride *= digit.radix;
    }
    const int parts = std::max(1, static_cast<int>(digits.size()));
    return side_by_side(shape.workers, bytes, parts, [&](int index, Bytes share) {
      auto order = digits;
      std::rotate(order.begin(), order.begin() + index, order.end());
      return SchedulePart{nested_all_reduce(shape.workers, share, std::move(order)), {}};
    });
  }

 private:
  Exchange exchange_;
};

TANDEM_REGISTER(CollectiveAlgorithm, bml, "bml",
                "BCube's: one part a digit of the address, each beginning with another digit, all ports at once",
                [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<Bml>(exchange_from_text(arguments.text("exchange")));
                },
                {{"exchange", ParameterType::text, "direct", "in each digit: direct, ring or halving"}})

}  // namespace
}  // namespace tandem
