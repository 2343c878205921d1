#include "sim/engine/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "sim/engine/analytic_network.hpp"
#include "sim/engine/breakdown.hpp"
#include "sim/engine/process.hpp"
#include "sim/engine/queue_backend.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {

using nlohmann::json;

// The wire form between child and parent; CBOR keeps doubles exactly.
static void to_json(json& j, const Seconds& s) {
  j = s.count();
}
static void from_json(const json& j, Seconds& s) {
  s = Seconds(j.get<double>());
}
static void to_json(json& j, const Rank& r) {
  j = r.value;
}
static void from_json(const json& j, Rank& r) {
  r.value = j.get<std::int32_t>();
}
static void to_json(json& j, const LinkId& l) {
  j = l.value;
}
static void from_json(const json& j, LinkId& l) {
  l.value = j.get<std::int32_t>();
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Breakdown, compute, exposed_comm, bubble, idle, input)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkUse, link, bytes, flows, busy, saturated)
// There are as many spans as operations times ranks: the names of four fields would be most of their memory.
static void to_json(json& j, const Span& s) {
  j = json::array({s.op, s.rank, s.start, s.end});
}
static void from_json(const json& j, Span& s) {
  j.at(0).get_to(s.op);
  j.at(1).get_to(s.rank);
  j.at(2).get_to(s.start);
  j.at(3).get_to(s.end);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpSummary, name, kind, layer, pass, bucket, iteration, bytes, first_start, last_end,
                                   mean_duration, active)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobResult, makespan, iteration_ends, communication, ranks, ops, spans)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunResult, jobs, links, end, flows, bytes_injected)

namespace {

std::int64_t payload(const Op& op) {
  if (op.kind == Op::Kind::transfer) return op.bytes.count();
  std::int64_t sum = 0;
  for (const auto& piece : op.pieces) sum += piece.schedule->bytes().count();
  return sum;
}

OpSummary summarize(const OpRecord& record, double job_start, const std::vector<int>& weights) {
  OpSummary summary;
  const auto& op = record.op;
  summary.name = op.name;
  summary.kind = static_cast<std::int32_t>(op.kind);
  summary.layer = op.layer;
  summary.pass = op.pass;
  summary.bucket = op.bucket;
  summary.iteration = op.iteration;
  summary.bytes = payload(op);
  double first = -1;
  double last = 0;
  double total = 0;
  int done = 0;
  for (std::size_t i = 0; i < record.on.size(); ++i) {
    const auto& on = record.on[i];
    if (on.status != OpStatus::done) continue;
    const int weight = weights.empty() ? 1 : weights[op.ranks.at(static_cast<int>(i)).index()];
    first = first < 0 ? on.start : std::min(first, on.start);
    last = std::max(last, on.end);
    total += weight * (on.end - on.start);
    done += weight;
  }
  if (done > 0) {
    summary.first_start = Seconds(first - job_start);
    summary.last_end = Seconds(last - job_start);
    summary.mean_duration = Seconds(total / done);
  }
  double active = 0;
  for (const auto& interval : record.active) active += interval.end - interval.begin;
  summary.active = Seconds(active);
  return summary;
}

// Length of the union of all operations' activity: buckets may overlap where ranks differ.
Seconds communication_time(const History& history) {
  std::vector<Interval> active;
  for (const auto& record : history.ops) active.insert(active.end(), record.active.begin(), record.active.end());
  std::sort(active.begin(), active.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  double total = 0;
  double end = history.start;
  for (const auto& interval : active) {
    total += std::max(0.0, interval.end - std::max(end, interval.begin));
    end = std::max(end, interval.end);
  }
  return Seconds(total);
}

JobResult job_result(const History& history, bool keep_spans, const std::vector<int>& weights) {
  JobResult result;
  result.makespan = Seconds(history.end - history.start);
  result.communication = communication_time(history);
  result.ranks = break_down(history);
  for (std::size_t id = 0; id < history.ops.size(); ++id) {
    const auto& record = history.ops[id];
    result.ops.push_back(summarize(record, history.start, weights));
    const auto iteration = static_cast<std::size_t>(std::max(0, record.op.iteration));
    if (result.iteration_ends.size() <= iteration) result.iteration_ends.resize(iteration + 1);
    result.iteration_ends[iteration] = std::max(result.iteration_ends[iteration], result.ops.back().last_end);
    if (!keep_spans) continue;
    for (std::size_t i = 0; i < record.on.size(); ++i) {
      const auto& on = record.on[i];
      if (on.status != OpStatus::done) continue;
      result.spans.push_back({static_cast<std::int32_t>(id), record.op.ranks.at(static_cast<int>(i)),
                              Seconds(on.start - history.start), Seconds(on.end - history.start)});
    }
  }
  return result;
}

// Hands a program's operations on with their collectives' repeating steps folded.
class FoldingProgram final : public Program {
 public:
  explicit FoldingProgram(Program& program) : program_(program) {}

  [[nodiscard]] int ranks() const override { return program_.ranks(); }
  [[nodiscard]] std::vector<StreamSpec> streams() const override { return program_.streams(); }
  void start(Emit& emit) override {
    Folding folding(*this, emit);
    program_.start(folding);
  }
  void on_done(OpId id, Rank rank, Seconds date, Emit& emit) override {
    Folding folding(*this, emit);
    program_.on_done(id, rank, date, folding);
  }
  void on_event(const Event& event, Emit& emit) override {
    Folding folding(*this, emit);
    program_.on_event(event, folding);
  }

 private:
  class Folding final : public Emit {
   public:
    Folding(FoldingProgram& program, Emit& emit) : program_(program), emit_(emit) {}
    OpId emit(Op op) override {
      op.pieces = program_.folded_once(op.pieces);
      return emit_.emit(std::move(op));
    }
    void cancel(CancelGroup group) override { emit_.cancel(group); }
    void tick(Seconds date, std::int64_t tag) override { emit_.tick(date, tag); }
    [[nodiscard]] Seconds now() const override { return emit_.now(); }

   private:
    FoldingProgram& program_;
    Emit& emit_;
  };

  // Buckets of one size share their schedules, and so do iterations.
  const std::vector<CollectivePiece>& folded_once(const std::vector<CollectivePiece>& pieces) {
    Key key;
    for (const auto& piece : pieces) key.emplace_back(piece.schedule, piece.channel);
    const auto [entry, is_new] = known_.try_emplace(std::move(key));
    if (is_new) entry->second = folded(pieces);
    return entry->second;
  }

  using Key = std::vector<std::pair<std::shared_ptr<const CollectiveSchedule>, std::int32_t>>;

  Program& program_;
  std::map<Key, std::vector<CollectivePiece>> known_;
};

class Simulation {
 public:
  // `collectives`: the model of the analytic fidelity.
  Simulation(const std::vector<Job>& jobs, const Network& network, const RunOptions& options, Backend& backend,
             CollectiveModel* collectives)
      : jobs_(jobs), options_(options) {
    for (const auto& job : jobs) {
      auto& program = *programs_.emplace_back(std::make_unique<FoldingProgram>(*job.program));
      auto job_options = job.options;
      job_options.latency_factor *= options.network.latency_factor;
      job_options.wait_for_latency = options.network.model == NetworkModelOptions::Model::alpha_beta;
      job_options.start_together = options.fidelity != Fidelity::flow;
      job_options.collectives = collectives;
      auto& unfolded = *job.program;
      const bool folds = options.fidelity == Fidelity::phase && may_fold(job.options);
      executors_.push_back(std::make_unique<Executor>(folds ? static_cast<Program&>(program) : unfolded, job.placement,
                                                      job.start, network, backend, std::move(job_options), job.events));
      executors_.back()->start();
    }
  }

  [[nodiscard]] RunResult result() const {
    RunResult result;
    for (std::size_t i = 0; i < executors_.size(); ++i) {
      const auto& executor = executors_[i];
      executor->check_complete();
      result.jobs.push_back(job_result(executor->history(), options_.keep_spans, jobs_[i].rank_weights));
      result.flows += executor->flows();
      result.bytes_injected += executor->bytes_injected();
      result.end = std::max(result.end, Seconds(executor->history().end));
    }
    return result;
  }

 private:
  const std::vector<Job>& jobs_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<FoldingProgram>> programs_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

RunResult simulate(const std::vector<Job>& jobs, const Network& network, const RunOptions& options) {
  SimgridBackend backend(network, options.network);
  Simulation simulation(jobs, network, options, backend, nullptr);
  backend.run();
  auto result = simulation.result();
  result.links = backend.link_uses();
  return result;
}

RunResult calculate(const std::vector<Job>& jobs, const Network& network, const RunOptions& options) {
  for (const auto& job : jobs) {
    if (!job.events.empty()) throw model_error("the analytic fidelity knows no events: take --fidelity flow");
  }
  QueueBackend backend(network, options.network.bandwidth_factor);
  AnalyticNetwork collectives(network, backend, options.network.bandwidth_factor);
  Simulation simulation(jobs, network, options, backend, &collectives);
  backend.run();
  auto result = simulation.result();
  result.links = collectives.link_uses();
  return result;
}

}  // namespace

bool may_fold(const ExecutorOptions& options) {
  return options.reduce_rate.count() == 0 && options.copy_rate.count() == 0;
}

RunResult run(const std::vector<Job>& jobs, const Network& network, const RunOptions& options) {
  for (const auto& link : network.links()) {
    if (!(link.bandwidth.count() > 0) || !(link.latency.count() >= 0)) {
      throw input_error("a link of the network has no bandwidth, or a negative latency");
    }
  }
  if (options.fidelity != Fidelity::flow && options.network.model != NetworkModelOptions::Model::alpha_beta) {
    throw usage_error(fmt::format("--fidelity {} knows the network model alpha-beta only: lv08 takes --fidelity flow",
                                  to_text(options.fidelity)));
  }
  if (options.fidelity == Fidelity::analytic) return calculate(jobs, network, options);
  const auto bytes = run_in_child([&] {
    const auto cbor = json::to_cbor(json(simulate(jobs, network, options)));
    return std::string(cbor.begin(), cbor.end());
  });
  return json::from_cbor(bytes).get<RunResult>();
}

}  // namespace tandem
