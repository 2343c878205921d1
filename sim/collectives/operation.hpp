// The operations of collective communication, by their names in the field.
#pragma once

#include <string>
#include <vector>

namespace tandem {

// p members, buffers of n bytes; n is the larger of what a member sends and receives, as in nccl-tests.
enum class CollectiveOperation {
  all_reduce,      // every member ends with the sum of all
  reduce_scatter,  // every member ends with its part of the sum
  all_gather,      // every member brings a part and ends with all
  all_to_all,      // every member sends a part of its buffer to every other
  broadcast,       // the root's buffer goes to all
  gather,          // every member brings a part, the root ends with all
  scatter          // every member ends with its part of the root's buffer
};

[[nodiscard]] const std::vector<CollectiveOperation>& collective_operations();
[[nodiscard]] std::string to_text(CollectiveOperation operation);  // "all-reduce"
// Usage error with "did you mean".
[[nodiscard]] CollectiveOperation collective_operation_from_text(const std::string& text);
[[nodiscard]] bool has_root(CollectiveOperation operation);

}  // namespace tandem
