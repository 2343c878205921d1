#include "sim/engine/run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "sim/engine/breakdown.hpp"
#include "sim/engine/process.hpp"

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

OpSummary summarize(const OpRecord& record, double job_start) {
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
  for (const auto& on : record.on) {
    if (on.status != OpStatus::done) continue;
    first = first < 0 ? on.start : std::min(first, on.start);
    last = std::max(last, on.end);
    total += on.end - on.start;
    ++done;
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

JobResult job_result(const History& history, bool keep_spans) {
  JobResult result;
  result.makespan = Seconds(history.end - history.start);
  result.communication = communication_time(history);
  result.ranks = break_down(history);
  for (std::size_t id = 0; id < history.ops.size(); ++id) {
    const auto& record = history.ops[id];
    result.ops.push_back(summarize(record, history.start));
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

RunResult simulate(const std::vector<Job>& jobs, const Network& network, const RunOptions& options) {
  SimgridBackend backend(network, options.network);
  std::vector<std::unique_ptr<Executor>> executors;
  for (const auto& job : jobs) {
    auto job_options = job.options;
    job_options.latency_factor *= options.network.latency_factor;
    job_options.wait_for_latency = options.network.model == NetworkModelOptions::Model::alpha_beta;
    executors.push_back(std::make_unique<Executor>(*job.program, job.placement, job.start, network, backend,
                                                   std::move(job_options), job.events));
    executors.back()->start();
  }
  backend.run();
  RunResult result;
  for (const auto& executor : executors) {
    executor->check_complete();
    result.jobs.push_back(job_result(executor->history(), options.keep_spans));
    result.flows += executor->flows();
    result.bytes_injected += executor->bytes_injected();
    result.end = std::max(result.end, Seconds(executor->history().end));
  }
  result.links = backend.link_uses();
  return result;
}

}  // namespace

RunResult run(const std::vector<Job>& jobs, const Network& network, const RunOptions& options) {
  for (const auto& link : network.links()) {
    if (!(link.bandwidth.count() > 0) || !(link.latency.count() >= 0)) {
      throw input_error("a link of the network has no bandwidth, or a negative latency");
    }
  }
  const auto bytes = run_in_child([&] {
    const auto cbor = json::to_cbor(json(simulate(jobs, network, options)));
    return std::string(cbor.begin(), cbor.end());
  });
  return json::from_cbor(bytes).get<RunResult>();
}

}  // namespace tandem
