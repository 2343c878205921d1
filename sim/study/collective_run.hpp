// One collective alone, as a benchmark such as nccl-tests would measure it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/run.hpp"
#include "sim/lowering/lower.hpp"

namespace tandem {

struct CollectiveBenchOptions {
  ClusterOptions cluster;  // ranks: the workers; dedicated servers are added
  std::string placement = "packed";
  std::string algorithm = "ring";
  int channels = 1;
  Bytes chunk{};  // 0: not cut
  Seconds step_overhead{};
  BytesPerSecond reduce_rate{};  // 0: free
  BytesPerSecond copy_rate{};    // 0: free
  NetworkModelOptions network;
  std::string fidelity = "auto";  // refuses what would take more than minutes; "flow" does not
};

struct CollectivePoint {
  Bytes size{};            // of the buffer that every worker holds
  Seconds time{};          // until the last member is done
  Seconds alpha_beta{};    // what a spreadsheet says of the whole buffer
  BytesPerSecond algbw{};  // size / time
  BytesPerSecond busbw{};  // of all-reduce: algbw x 2(n-1)/n, as nccl-tests defines it (PERFORMANCE.md)
  std::int64_t flows = 0;
};

// Builds the cluster once; all-reduces of several sizes run on it, each in a process of its own.
class CollectiveBench {
 public:
  explicit CollectiveBench(const CollectiveBenchOptions& options);  // usage errors

  [[nodiscard]] CollectivePoint all_reduce(Bytes size) const;
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

 private:
  CollectiveBenchOptions options_;
  std::unique_ptr<CollectiveAlgorithm> algorithm_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<DeviceId> placement_;  // workers, then servers
  CollectiveGroup group_;
};

// first, first x factor, ... up to and with `last` where it is met.
[[nodiscard]] std::vector<Bytes> size_range(Bytes first, Bytes last, double factor);

}  // namespace tandem
