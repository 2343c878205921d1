// The contract of a partitioner: (trace, ranks, data types) -> Plan. A pure function: no clock, no input or output.
#pragma once

#include <memory>
#include <string>

#include "sim/core/registry.hpp"
#include "sim/ir/plan.hpp"
#include "traces/trace.hpp"

namespace tandem {

// Bytes of one element on the wire or in memory.
[[nodiscard]] int dtype_bytes(const std::string& dtype);  // float32, float16, bfloat16, float64; usage error otherwise

// Copies of the parameters that an optimizer keeps besides the parameters themselves.
[[nodiscard]] int optimizer_copies(const std::string& optimizer);  // sgd 0, momentum 1, adam 2; usage error otherwise

struct PartitionOptions {
  int ranks = 1;
  std::int64_t batch = 1;  // per replica
  std::string gradient_dtype = "float32";
  std::string activation_dtype = "float32";
  std::string optimizer = "momentum";
};

// Memory of one whole replica: parameters and optimizer state in single precision, gradients, and what forward keeps
// for backward (every output that is not in place, and pooling indices, masks and statistics where they were recorded).
// What a library needs for itself (its context, workspaces of its kernels, fragmentation) is not in it.
[[nodiscard]] MemoryUse replica_memory(const Trace& trace, const PartitionOptions& options);

class Partitioner {
 public:
  static constexpr const char* plugin_kind = "partitioner";
  static constexpr const char* plugin_help = "who holds which shard of which layer";
  struct PluginContext {};

  virtual ~Partitioner() = default;
  [[nodiscard]] virtual Plan partition(const Trace& trace, const PartitionOptions& options) const = 0;
};

}  // namespace tandem
