#include "partitioners/partitioner.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

int look_up(const std::map<std::string, int>& table, const std::string& name, const char* what) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : table) names.push_back(known);
  throw usage_error(fmt::format("unknown {} '{}'{}", what, name, suggestion(name, names)));
}

// Bytes of an element of the recorded activations; traces of types that no option names count as single precision.
int recorded_width(const std::string& dtype) {
  for (const char* known : {"float64", "float16", "bfloat16"}) {
    if (dtype == known) return dtype_bytes(dtype);
  }
  return 4;
}

}  // namespace

int dtype_bytes(const std::string& dtype) {
  return look_up({{"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}}, dtype, "data type");
}

int optimizer_copies(const std::string& optimizer) {
  return look_up({{"sgd", 0}, {"momentum", 1}, {"adam", 2}}, optimizer, "optimizer");
}

MemoryUse replica_memory(const Trace& trace, const PartitionOptions& options) {
  const auto parameters = trace.parameter_count();
  MemoryUse use;
  use.parameters = Bytes(parameters * 4);
  use.gradients = Bytes(parameters * dtype_bytes(options.gradient_dtype));
  use.optimizer_state = Bytes(parameters * 4 * optimizer_copies(options.optimizer));
  double outputs = 0;
  double workspaces = 0;
  for (const auto& layer : trace.layers) {
    outputs += static_cast<double>(layer.activation_bytes.count());
    workspaces += static_cast<double>(layer.workspace_bytes.count());
  }
  const double batches = static_cast<double>(options.batch) / static_cast<double>(trace.batch);
  const double widths = static_cast<double>(dtype_bytes(options.activation_dtype)) / recorded_width(trace.dtype);
  use.activations = Bytes(std::llround((outputs * widths + workspaces) * batches));
  return use;
}

}  // namespace tandem
