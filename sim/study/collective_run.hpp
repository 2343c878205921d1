// One collective alone, as a benchmark such as nccl-tests would measure it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/run.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/study/effort.hpp"

namespace tandem {

struct CollectiveBenchOptions {
  ClusterOptions cluster;  // ranks: the workers; dedicated servers are added
  std::string placement = "packed";
  std::string algorithm = "ring";
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int root = 0;  // rank, of operations that have one
  int channels = 1;
  Bytes chunk{};  // 0: not cut
  Seconds step_overhead{};
  BytesPerSecond reduce_rate{};  // 0: free
  BytesPerSecond copy_rate{};    // 0: free
  NetworkModelOptions network;
  std::optional<Fidelity> fidelity;  // nothing: `auto`
};

struct CollectivePoint {
  Bytes size{};            // the larger of what a rank sends and receives
  Seconds time{};          // until the last member is done
  Seconds healthy{};       // the same before anything failed, by all ranks; `time` where nothing has
  Seconds alpha_beta{};    // what a spreadsheet says of the whole buffer
  BytesPerSecond algbw{};  // size / time
  BytesPerSecond busbw{};  // algbw x busbw_factor
  std::int64_t flows = 0;
  Fidelity fidelity = Fidelity::flow;
  FidelityError fidelity_error;
  std::string note;                        // CollectiveAlgorithm::note of the algorithm that does the work
  std::optional<CollectiveChoice> choice;  // where the algorithm is `auto`
};

// What makes an algorithm's bandwidth comparable with a port's, by nccl-tests (doc/PERFORMANCE.md; src/gather.cu and
// src/scatter.cu): 2(n-1)/n for all-reduce, 1 for broadcast, (n-1)/n for the others.
[[nodiscard]] double busbw_factor(CollectiveOperation operation, int ranks);

// Builds the cluster once; operations of several sizes run on it, each in a process of its own.
class CollectiveBench {
 public:
  explicit CollectiveBench(const CollectiveBenchOptions& options);  // usage errors

  [[nodiscard]] CollectivePoint run(Bytes size);
  // Settles `auto` fidelity on a level at which all sizes fit: one level along a curve.
  void settle_fidelity(const std::vector<Bytes>& sizes);
  // What these sizes will cost, all together.
  [[nodiscard]] Efforts efforts(const std::vector<Bytes>& sizes) const;
  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }

 private:
  [[nodiscard]] CollectiveRequest request(Bytes size) const;
  [[nodiscard]] AlphaBetaOptions costs() const;
  [[nodiscard]] const PlannedCollective& plan(Bytes size) const;
  [[nodiscard]] Efforts efforts(const std::vector<CollectivePiece>& pieces) const;
  [[nodiscard]] Fidelity level_of(const std::vector<CollectivePiece>& pieces) const;
  [[nodiscard]] RunResult simulate(const std::vector<CollectivePiece>& pieces, Fidelity level) const;
  [[nodiscard]] Seconds time_of(Bytes size) const;
  [[nodiscard]] FidelityError fidelity_error(Bytes size, const CollectiveAlgorithm& algorithm, Fidelity level);
  // The same machine with this many ranks, where they are fewer before anything failed; nothing where there is no such
  // machine.
  [[nodiscard]] const CollectiveBench* with_ranks(int ranks);

  CollectiveBenchOptions options_;
  std::unique_ptr<CollectiveAlgorithm> algorithm_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<DeviceId> placement_;  // workers, then servers and switches (Machine)
  CollectiveGroup group_;
  mutable std::map<std::int64_t, PlannedCollective> planned_;  // by size: `auto` takes time to pick
  std::unique_ptr<CollectiveBench> healthy_;                   // where something has failed
  std::map<int, std::unique_ptr<CollectiveBench>> smaller_;    // with_ranks, once built
};

// first, first x factor, ... up to and with `last` where it is met.
[[nodiscard]] std::vector<Bytes> size_range(Bytes first, Bytes last, double factor);

}  // namespace tandem
