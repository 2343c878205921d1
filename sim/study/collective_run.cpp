#include "sim/study/collective_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

CollectiveBenchOptions fewer_ranks(CollectiveBenchOptions options, int ranks) {
  options.cluster = without_failures(std::move(options.cluster));
  options.cluster.ranks = ranks;
  options.cluster.overrides_must_match = false;  // a smaller network may not have those links
  options.root = std::min(options.root, ranks - 1);
  return options;
}

}  // namespace

CollectiveBench::CollectiveBench(const CollectiveBenchOptions& options)
    : options_(options), algorithm_(Registry<CollectiveAlgorithm>::instance().make(options.algorithm)) {
  const int workers = options.cluster.ranks;
  auto machine = make_machine(options.cluster, options.placement, *algorithm_);
  cluster_ = std::move(machine.cluster);
  placement_ = std::move(machine.placement);
  group_ = std::move(machine.group);
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

const PlannedCollective& CollectiveBench::plan(Bytes size) const {
  if (const auto found = planned_.find(size.count()); found != planned_.end()) return found->second;
  auto planned = with_context(options_.algorithm, [&] {
    return plan_collective(*algorithm_, request(size), {*cluster_, group_.devices, costs()});
  });
  return planned_.emplace(size.count(), std::move(planned)).first->second;
}

Efforts CollectiveBench::efforts(const std::vector<CollectivePiece>& pieces) const {
  auto efforts = efforts_of(pieces);
  if (!may_fold(executor_options(options_))) efforts.phase = efforts.flow;
  return efforts;
}

Efforts CollectiveBench::efforts(const std::vector<Bytes>& sizes) const {
  Efforts sum;
  for (const auto size : sizes) sum += efforts(plan(size).pieces);
  return sum;
}

void CollectiveBench::settle_fidelity(const std::vector<Bytes>& sizes) {
  if (options_.fidelity) return check_configuration(*options_.fidelity, options_.network);
  auto coarsest = Fidelity::flow;
  for (const auto size : sizes) coarsest = std::max(coarsest, level_of(plan(size).pieces));
  options_.fidelity = coarsest;
  check_configuration(coarsest, options_.network);
  if (healthy_) healthy_->options_.fidelity = coarsest;  // one level on both sides of a comparison
}

Fidelity CollectiveBench::level_of(const std::vector<CollectivePiece>& pieces) const {
  return options_.fidelity ? *options_.fidelity : fidelity_for({}, efforts(pieces), options_.network);
}

RunResult CollectiveBench::simulate(const std::vector<CollectivePiece>& pieces, Fidelity level) const {
  Op op;
  op.kind = Op::Kind::collective;
  op.name = to_text(options_.operation);
  op.ranks = group_.ranks;
  op.pieces = pieces;
  StaticProgram program(static_cast<int>(placement_.size()),
                        {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  RunOptions run_options;
  run_options.network = options_.network;
  run_options.fidelity = level;
  return tandem::run({{&program, placement_, Seconds{}, executor_options(options_), {}}}, *cluster_, run_options);
}

Seconds CollectiveBench::time_of(Bytes size) const {
  const auto& pieces = plan(size).pieces;
  return simulate(pieces, level_of(pieces)).jobs.at(0).makespan;
}

const CollectiveBench* CollectiveBench::with_ranks(int ranks) {
  if (ranks == options_.cluster.ranks) return this;
  const auto [entry, is_new] = smaller_.try_emplace(ranks);
  if (is_new) {
    try {
      entry->second = std::make_unique<CollectiveBench>(fewer_ranks(options_, ranks));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
    }
  }
  return entry->second.get();
}

// `algorithm` does the work: what `auto` picked for all ranks is what is judged.
FidelityError CollectiveBench::fidelity_error(Bytes size, const CollectiveAlgorithm& algorithm, Fidelity level) {
  if (level == Fidelity::flow || options_.cluster.ranks == 1) return {0, options_.cluster.ranks};
  // Halves rounded down: powers of two have no remainders, which are what some algorithms are slow at.
  for (int ranks = options_.cluster.ranks; ranks >= 2; ranks /= 2) {
    if (!is_small({ranks - 1.0, 0, 0})) continue;  // all but one send something: nothing to build a cluster for
    const auto* bench = with_ranks(ranks);
    if (bench == nullptr) continue;
    std::vector<CollectivePiece> pieces;
    try {
      pieces = collective_pieces(algorithm, bench->request(size));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      continue;
    }
    if (!is_small(bench->efforts(pieces).flow)) continue;
    const auto flow = bench->simulate(pieces, Fidelity::flow).jobs.at(0).makespan;
    const auto time = bench->simulate(pieces, level).jobs.at(0).makespan;
    return {time == flow ? 0 : std::abs(time / flow - 1), ranks};
  }
  return {std::numeric_limits<double>::quiet_NaN(), 0};
}

CollectivePoint CollectiveBench::run(Bytes size) {
  const auto& planned = plan(size);
  const auto worker =
      planned.choice ? Registry<CollectiveAlgorithm>::instance().make(planned.choice->picked()) : nullptr;
  const auto& algorithm = worker ? *worker : *algorithm_;
  const auto level = level_of(planned.pieces);
  const auto result = simulate(planned.pieces, level);

  CollectivePoint point;
  point.size = size;
  point.time = result.jobs.at(0).makespan;
  point.healthy = healthy_ ? healthy_->time_of(size) : point.time;
  auto whole = request(size);
  whole.chunk = Bytes(0);
  point.alpha_beta = alpha_beta_time(collective_pieces(algorithm, whole), *cluster_, group_.devices, costs());
  if (point.time > Seconds{}) point.algbw = size / point.time;
  point.busbw = point.algbw * busbw_factor(options_.operation, options_.cluster.ranks);
  point.flows = result.flows;
  point.fidelity = level;
  point.fidelity_error = fidelity_error(size, algorithm, level);
  point.note = algorithm.note(group_.shape);
  point.choice = planned.choice;
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
