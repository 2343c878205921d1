// BlueConnect (Cho et al., MLSys 2019): nested reduce-scatter over the digits of the network's addresses, lowest digit
// first, then all-gather in the opposite order, so that each phase stays on the links of one digit. On a
// mesh-rail-cube of one level this is the hierarchical rotating-rails all-reduce. With `rotate` and two channels a
// dimension it is the multi-dimensional ring all-reduce of a torus.
#include <fmt/format.h>

#include <algorithm>

#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

// The exchange that loads the digit's links evenly: all links of a full mesh at once, neighbours only on a ring, few
// steps behind a switch.
Exchange native_exchange(const Digit& digit) {
  switch (digit.kind) {
    case DigitKind::full_mesh:
      return Exchange::direct;
    case DigitKind::ring:
      return Exchange::ring;
    case DigitKind::switched:
      break;
  }
  return is_power_of_two(digit.radix) ? Exchange::halving : Exchange::ring;
}

class BlueConnect final : public CollectiveAlgorithm {
 public:
  BlueConnect(std::string exchange, bool rotate) : exchange_(std::move(exchange)), rotate_(rotate) {
    if (exchange_ != "native") (void)exchange_from_text(exchange_);
  }

  [[nodiscard]] bool by_address() const override { return true; }
  [[nodiscard]] std::string note(const GroupShape& shape) const override {
    return shape.digits.size() == 1 ? one_level_note("blueconnect", exchange_in(shape.digits[0])) : "";
  }
  [[nodiscard]] bool supports(CollectiveOperation operation) const override { return is_nested(operation); }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int) const override {
    if (shape.digits.empty() && shape.workers > 1) {
      throw usage_error(
          fmt::format("blueconnect needs ranks that fill a rectangle of the topology's addresses, which these {} do "
                      "not; choose another number of ranks, or use ring",
                      shape.workers));
    }
    std::vector<NestedDigit> digits;
    int stride = 1;
    for (const auto& digit : shape.digits) {
      digits.push_back({digit.radix, stride, exchange_in(digit)});
      stride *= digit.radix;
    }
    if (rotate_ && !digits.empty()) {
      const auto turn = shape.channel % static_cast<int>(digits.size());
      const bool reversed = shape.channel / static_cast<int>(digits.size()) % 2 == 1;
      std::rotate(digits.begin(), digits.begin() + turn, digits.end());
      for (auto& digit : digits) digit.reversed = reversed;
    }
    return nested_schedule(operation, shape.workers, bytes, std::move(digits));
  }

 private:
  [[nodiscard]] Exchange exchange_in(const Digit& digit) const {
    return exchange_ == "native" ? native_exchange(digit) : exchange_from_text(exchange_);
  }

  std::string exchange_;
  bool rotate_;
};

TANDEM_REGISTER(
    CollectiveAlgorithm, blueconnect, "blueconnect",
    "reduce-scatter over the digits of the topology's addresses, one after the other, then all-gather; or either",
    [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
      return std::make_unique<BlueConnect>(arguments.text("exchange"), arguments.boolean("rotate"));
    },
    {{"exchange", ParameterType::text, "native",
      "in each digit: native (direct in a mesh, ring on a ring, halving or ring behind a switch), ring, "
      "direct or halving"},
     {"rotate", ParameterType::boolean, "no",
      "channel c starts with digit c (modulo their number), the next round of channels runs rings the other "
      "way: with two channels a dimension, all ports of a torus are busy at once"}})

}  // namespace
}  // namespace tandem
