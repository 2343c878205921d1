#include "sim/collectives/operation.hpp"

#include <fmt/format.h>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {

const std::vector<CollectiveOperation>& collective_operations() {
  using enum CollectiveOperation;
  static const std::vector<CollectiveOperation> all{all_reduce, reduce_scatter, all_gather, all_to_all,
                                                    broadcast,  gather,         scatter};
  return all;
}

std::string to_text(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return "all-reduce";
    case CollectiveOperation::reduce_scatter:
      return "reduce-scatter";
    case CollectiveOperation::all_gather:
      return "all-gather";
    case CollectiveOperation::all_to_all:
      return "all-to-all";
    case CollectiveOperation::broadcast:
      return "broadcast";
    case CollectiveOperation::gather:
      return "gather";
    case CollectiveOperation::scatter:
      return "scatter";
  }
  throw internal_error("a collective operation without a name");
}

CollectiveOperation collective_operation_from_text(const std::string& text) {
  std::vector<std::string> names;
  for (const auto operation : collective_operations()) {
    names.push_back(to_text(operation));
    if (names.back() == text) return operation;
  }
  throw usage_error(fmt::format("'{}' is not a collective operation{}", text, suggestion(text, names)));
}

bool has_root(CollectiveOperation operation) {
  return operation == CollectiveOperation::broadcast || operation == CollectiveOperation::gather ||
         operation == CollectiveOperation::scatter;
}

}  // namespace tandem
