#include "sim/study/collective_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/study/effort.hpp"
#include "sim/study/machine.hpp"

namespace tandem {
namespace {

ExecutorOptions executor_options(const CollectiveBenchOptions& options) {
  ExecutorOptions result;
  result.step_overhead = options.step_overhead;
  result.reduce_rate = options.reduce_rate;
  result.copy_rate = options.copy_rate;
  return result;
}

// Before anything failed; ranks are numbered with those that are lost.
CollectiveBenchOptions without_failures(CollectiveBenchOptions options) {
  auto lost = options.cluster.lost_ranks;
  std::sort(lost.begin(), lost.end());
  for (const int rank : lost) options.root += rank <= options.root ? 1 : 0;
  options.cluster = without_failures(std::move(options.cluster));
  return options;
}

}  // namespace

CollectiveBench::CollectiveBench(const CollectiveBenchOptions& options)
    : options_(options), algorithm_(Registry<CollectiveAlgorithm>::instance().make(options.algorithm)) {
  const int workers = options.cluster.ranks;
  auto machine = make_machine(options.cluster, options.placement, *algorithm_);
  cluster_ = std::move(machine.cluster);
  placement_ = std::move(machine.placement);
  group_ = collective_group(*algorithm_, *cluster_, placement_, workers);
  if (options.root < 0 || options.root >= workers) {
    throw usage_error(fmt::format("the root is rank {}: it must be one of 0 to {}", options.root, workers - 1));
  }
  if (has_failures(options.cluster)) healthy_ = std::make_unique<CollectiveBench>(without_failures(options));
}

AlphaBetaOptions CollectiveBench::costs() const {
  return {options_.step_overhead, options_.network.bandwidth_factor, options_.network.latency_factor, {}, {}};
}

CollectiveRequest CollectiveBench::request(Bytes size) const {
  return {options_.operation, group_.shape,   size,
          options_.channels,  options_.chunk, group_.ranks.index_of(Rank{options_.root})};
}

PlannedCollective CollectiveBench::plan(Bytes size) const {
  return with_context(options_.algorithm, [&] {
    return plan_collective(*algorithm_, request(size), {*cluster_, group_.devices, costs()});
  });
}

Efforts CollectiveBench::efforts(const std::vector<CollectivePiece>& pieces) const {
  auto efforts = efforts_of(pieces);
  if (!may_fold(executor_options(options_))) efforts.phase = efforts.flow;
  return efforts;
}

void CollectiveBench::settle_fidelity(const std::vector<Bytes>& sizes) {
  if (options_.fidelity != "auto") return;
  auto coarsest = Fidelity::flow;
  for (const auto size : sizes)
    coarsest = std::max(coarsest, fidelity_for("auto", efforts(plan(size).pieces), options_.network));
  options_.fidelity = to_text(coarsest);
  if (healthy_) healthy_->options_.fidelity = options_.fidelity;  // one level on both sides of a comparison
}

CollectivePoint CollectiveBench::run(Bytes size) const {
  auto planned = plan(size);
  const auto& name = planned.choice ? planned.choice->picked() : options_.algorithm;

  Op op;
  op.kind = Op::Kind::collective;
  op.name = fmt::format("{} {}", to_text(options_.operation), to_text(size));
  op.ranks = group_.ranks;
  op.pieces = std::move(planned.pieces);
  const auto fidelity =
      fidelity_for(options_.fidelity, options_.fidelity == "auto" ? efforts(op.pieces) : Efforts{}, options_.network);
  StaticProgram program(static_cast<int>(placement_.size()),
                        {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  RunOptions run_options;
  run_options.network = options_.network;
  run_options.fidelity = fidelity;
  const auto result =
      tandem::run({{&program, placement_, Seconds{}, executor_options(options_), {}}}, *cluster_, run_options);

  CollectivePoint point;
  point.size = size;
  point.time = result.jobs.at(0).makespan;
  point.healthy = healthy_ ? healthy_->run(size).time : point.time;
  auto whole = request(size);
  whole.chunk = Bytes(0);
  point.alpha_beta = alpha_beta_time(collective_pieces(*Registry<CollectiveAlgorithm>::instance().make(name), whole),
                                     *cluster_, group_.devices, costs());
  if (point.time > Seconds{}) point.algbw = size / point.time;
  point.busbw = point.algbw * busbw_factor(options_.operation, options_.cluster.ranks);
  point.flows = result.flows;
  point.fidelity = fidelity;
  point.choice = std::move(planned.choice);
  return point;
}

double busbw_factor(CollectiveOperation operation, int ranks) {
  if (operation == CollectiveOperation::broadcast) return 1;
  const double share = (ranks - 1.0) / ranks;
  return operation == CollectiveOperation::all_reduce ? 2 * share : share;
}

std::vector<Bytes> size_range(Bytes first, Bytes last, double factor) {
  if (last < first) throw usage_error(fmt::format("sizes begin at {} and end at {}", to_text(first), to_text(last)));
  if (!(factor > 1)) throw usage_error(fmt::format("sizes grow by a factor of {}: it must be above 1", factor));
  if (first.count() == 0) return {first};
  std::vector<Bytes> sizes;
  auto size = static_cast<double>(first.count());
  constexpr double kBeyond = 0x1p63;  // more than 64 bits hold
  while (size < kBeyond && std::llround(size) <= last.count()) {
    const Bytes next(std::llround(size));
    if (sizes.empty() || sizes.back() < next) sizes.push_back(next);
    size *= factor;
  }
  return sizes;
}

}  // namespace tandem
