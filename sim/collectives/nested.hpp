// Reduce-scatter digit by digit, then all-gather in the opposite order: the common form of ring, direct,
// halving-doubling, hierarchical and BlueConnect all-reduce. After the reduce-scatter over a digit a member owns one
// part of what it held before, chosen by its value of that digit (Cho et al., BlueConnect, MLSys 2019). Either half
// alone is the operation of its name; in both a member's own part is chosen by its digits, the first one first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/operation.hpp"
#include "sim/ir/collective_schedule.hpp"

namespace tandem {

enum class Exchange {
  ring,    // d-1 steps to the next member (Patarasuk and Yuan, JPDC 2009)
  direct,  // 1 step, every member to every other
  halving  // log2 d steps, d a power of two (Rabenseifner; Thakur et al., IJHPCA 2005)
};
[[nodiscard]] Exchange exchange_from_text(const std::string& text);
// CollectiveAlgorithm::note of an algorithm made for several levels that has one: "hrr has one level here, and is
// direct exchange".
[[nodiscard]] std::string one_level_note(const std::string& algorithm, Exchange exchange);

struct NestedDigit {
  int radix = 2;
  int stride = 1;  // distance between members that differ by one in this digit
  Exchange exchange = Exchange::ring;
  bool reversed = false;  // a ring that runs towards lower values
};

// Digits in the order in which they are reduced. Usage error where a halving digit is not a power of two.
[[nodiscard]] std::shared_ptr<const CollectiveSchedule> nested_all_reduce(int members, Bytes bytes,
                                                                          std::vector<NestedDigit> digits);
// The same for any operation that is_nested.
[[nodiscard]] std::shared_ptr<const CollectiveSchedule> nested_schedule(CollectiveOperation operation, int members,
                                                                        Bytes bytes, std::vector<NestedDigit> digits);
// All-reduce, reduce-scatter, all-gather.
[[nodiscard]] bool is_nested(CollectiveOperation operation);

[[nodiscard]] constexpr bool is_power_of_two(int n) {
  return n > 0 && (n & (n - 1)) == 0;
}

}  // namespace tandem
