// Whether a model and its batch fit the memory of one device: tandem trace show --memory.
#pragma once

#include <string>
#include <vector>

#include "partitioners/partitioner.hpp"
#include "sim/results/record.hpp"

namespace tandem {

struct MemoryReport {
  Record use;                   // bytes by what holds them
  std::vector<Record> devices;  // each named device: its memory, whether the use fits, the largest batch that would
};
[[nodiscard]] MemoryReport memory_report(const Trace& trace, const PartitionOptions& options);

}  // namespace tandem
