// Short ways to run one collective or a static program, for tests.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "platforms/cluster.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/engine/run.hpp"

namespace tandem {

inline std::unique_ptr<Topology> star(int devices, double bandwidth, double latency) {
  return make_topology("star", {devices, BytesPerSecond(bandwidth), Seconds(latency)});
}

inline std::vector<DeviceId> in_order(int ranks) {
  std::vector<DeviceId> devices;
  for (int r = 0; r < ranks; ++r) devices.push_back(DeviceId{r});
  return devices;
}

inline int devices_per_node(const Network& network) {
  const auto* cluster = dynamic_cast<const Cluster*>(&network);
  return cluster == nullptr ? 1 : cluster->options().devices_per_node;
}

// tests/mutation_test.py sets TANDEM_MUTATION and expects the closed-form tests to turn red.
inline RunOptions mutated_options() {
  const char* name = std::getenv("TANDEM_MUTATION");
  const std::string mutation = name == nullptr ? "" : name;
  RunOptions options;
  if (mutation == "bandwidth") options.network.bandwidth_factor = 0.5;
  if (mutation == "latency") options.network.latency_factor = 10;
  return options;
}

// The first `workers` devices, and behind them what the algorithm has besides: dedicated servers or switches.
inline std::vector<DeviceId> members_of(const Network& network, const CollectiveAlgorithm& algorithm, int workers) {
  auto members = in_order(workers + algorithm.servers(workers));
  if (algorithm.in_switches()) {
    for (const int vertex : switch_tree(network, in_order(workers)).switches) members.push_back(DeviceId{vertex});
  }
  return members;
}

inline GroupShape shape_of(const Network& network, const CollectiveAlgorithm& algorithm, int workers) {
  auto shape = group_shape(network, in_order(workers), devices_per_node(network));
  if (algorithm.in_switches()) shape.tree = std::make_shared<SwitchTree>(switch_tree(network, in_order(workers)));
  return shape;
}

// An operation of the members_of. `request` lacks a shape.
inline Op collective_op(const Network& network, const std::string& algorithm, CollectiveRequest request, int workers,
                        const ExecutorOptions& options = {}) {
  const auto plugin = Registry<CollectiveAlgorithm>::instance().make(algorithm);
  const auto members = members_of(network, *plugin, workers);
  request.shape = shape_of(network, *plugin, workers);
  Op op;
  op.kind = Op::Kind::collective;
  op.name = algorithm;
  op.ranks = RankSet::range(0, static_cast<int>(members.size()));
  op.pieces = plan_collective(*plugin, request, {network, members, {options.step_overhead}}).pieces;
  return op;
}

inline RunResult run_collective(const Network& network, const std::string& algorithm, const CollectiveRequest& request,
                                int workers, const ExecutorOptions& options = {}) {
  const auto op = collective_op(network, algorithm, request, workers, options);
  const auto members = members_of(network, *Registry<CollectiveAlgorithm>::instance().make(algorithm), workers);
  StaticProgram program(op.ranks.size(), {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}},
                        {op});
  return run({{&program, members, Seconds(0), options, {}}}, network, mutated_options());
}

inline double collective_time(const Network& network, const std::string& algorithm, const CollectiveRequest& request,
                              int workers, const ExecutorOptions& options = {}) {
  return run_collective(network, algorithm, request, workers, options).jobs[0].makespan.count();
}

inline double all_reduce_time(const Network& network, const std::string& algorithm, Bytes bytes,
                              const ExecutorOptions& options, int workers = 0, Bytes chunk = Bytes(0),
                              int channels = 1) {
  return collective_time(network, algorithm, {CollectiveOperation::all_reduce, {}, bytes, channels, chunk, 0},
                         workers == 0 ? network.devices() : workers, options);
}

inline double all_reduce_time(const Network& network, const std::string& algorithm, Bytes bytes, double overhead) {
  ExecutorOptions options;
  options.step_overhead = Seconds(overhead);
  return all_reduce_time(network, algorithm, bytes, options);
}

inline double all_reduce_time(const std::string& topology, const std::string& algorithm, int workers, Bytes bytes,
                              double bandwidth, double latency, double overhead, Bytes chunk = Bytes(0)) {
  const int servers = Registry<CollectiveAlgorithm>::instance().make(algorithm)->servers(workers);
  const auto network = make_topology(topology, {workers + servers, BytesPerSecond(bandwidth), Seconds(latency)});
  ExecutorOptions options;
  options.step_overhead = Seconds(overhead);
  return all_reduce_time(*network, algorithm, bytes, options, workers, chunk);
}

}  // namespace tandem
