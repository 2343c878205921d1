#include "sim/study/details.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem {
namespace {

constexpr std::size_t kSummaryRows = 20;

double utilization(const RunConfig& config, const Setup& setup, const RunResult& result, const LinkUse& use) {
  const auto rate = setup.cluster->link(use.link).bandwidth * config.network.bandwidth_factor;
  const double capacity = rate.count() * result.end.count();
  return capacity > 0 ? static_cast<double>(use.bytes) / capacity : 0;
}

// Busiest first; equal ones in order of their ids, so that equal runs give equal files.
std::vector<LinkUse> by_utilization(const RunConfig& config, const Setup& setup, const RunResult& result) {
  auto links = result.links;
  std::stable_sort(links.begin(), links.end(), [&](const LinkUse& a, const LinkUse& b) {
    return utilization(config, setup, result, a) > utilization(config, setup, result, b);
  });
  return links;
}

Table links_table(const RunConfig& config, const Setup& setup, const RunResult& result) {
  std::vector<std::string> name;
  std::vector<std::int64_t> bytes, flows;
  std::vector<double> busy, saturated, share;
  auto links = by_utilization(config, setup, result);
  if (config.details == Details::summary && links.size() > kSummaryRows) links.resize(kSummaryRows);
  for (const auto& use : links) {
    name.push_back(setup.cluster->link_name(use.link));
    bytes.push_back(use.bytes);
    flows.push_back(use.flows);
    share.push_back(utilization(config, setup, result, use));
    busy.push_back(use.busy.count());
    saturated.push_back(use.saturated.count());
  }
  return {"links",
          {{"link", "1", name},
           {"bytes", "bytes", bytes},
           {"flows", "1", flows},
           {"utilization", "1", share},
           {"busy_time_s", "s", busy},
           {"saturated_time_s", "s", saturated}}};
}

Table ranks_table(const RunConfig& config, const Setup& setup, const RunResult& result) {
  const auto& all = result.jobs[0].ranks;
  const auto column = [&](Seconds Breakdown::*part) {
    std::vector<double> values;
    for (int r = 0; r < config.cluster.ranks; ++r) {
      values.push_back((all[static_cast<std::size_t>(r)].*part).count() / config.iterations);
    }
    return values;
  };
  const std::vector<std::pair<const char*, Seconds Breakdown::*>> parts{
      {"compute_time_s", &Breakdown::compute},
      {"exposed_comm_time_s", &Breakdown::exposed_comm},
      {"bubble_time_s", &Breakdown::bubble},
      {"idle_time_s", &Breakdown::idle},
      {"input_time_s", &Breakdown::input}};
  Table table{"ranks", {}};
  if (config.details == Details::full) {
    std::vector<std::int64_t> rank(static_cast<std::size_t>(config.cluster.ranks)), device;
    std::iota(rank.begin(), rank.end(), 0);
    for (const auto r : rank) device.push_back(setup.placement[static_cast<std::size_t>(r)].value);
    table.columns.push_back({"rank", "1", rank});
    table.columns.push_back({"device", "1", device});
    for (const auto& [name, part] : parts) table.columns.push_back({name, "s", column(part)});
    return table;
  }
  const std::vector<double> quantiles{0, 0.25, 0.5, 0.75, 1};
  table.columns.push_back({"quantile", "1", quantiles});
  for (const auto& [name, part] : parts) {
    auto values = column(part);
    std::sort(values.begin(), values.end());
    std::vector<double> picked;
    for (const double q : quantiles) {
      picked.push_back(values[static_cast<std::size_t>(std::llround(q * static_cast<double>(values.size() - 1)))]);
    }
    table.columns.push_back({name, "s", picked});
  }
  return table;
}

struct LayerRow {
  double forward = 0, backward_data = 0, backward_weight = 0;
  double gradient_ready = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t bucket = -1;
  double bucket_end = 0;
  [[nodiscard]] double compute() const { return forward + backward_data + backward_weight; }
};

std::vector<LayerRow> layer_rows(const Setup& setup, const JobResult& job) {
  std::vector<LayerRow> rows(setup.trace.layers.size());
  std::vector<double> bucket_end(setup.lowered.buckets.size(), 0);
  for (const auto& op : job.ops) {
    if (op.iteration != 0) continue;
    if (op.bucket >= 0) bucket_end[static_cast<std::size_t>(op.bucket)] = op.last_end.count();
    if (op.layer < 0) continue;
    auto& row = rows[static_cast<std::size_t>(op.layer)];
    const double duration = op.mean_duration.count();
    if (op.pass == static_cast<int>(Pass::forward)) row.forward = duration;
    if (op.pass == static_cast<int>(Pass::backward_data)) row.backward_data = duration;
    if (op.pass == static_cast<int>(Pass::backward_weight)) row.backward_weight = duration;
    if (op.pass != static_cast<int>(Pass::forward)) {
      row.gradient_ready = std::max(row.gradient_ready, op.last_end.count());
    }
  }
  for (std::size_t b = 0; b < setup.lowered.buckets.size(); ++b) {
    for (const auto index : setup.lowered.buckets[b].tensors) {
      const auto& tensor = setup.lowered.arrival[static_cast<std::size_t>(index)];
      auto& row = rows[tensor.layer.index()];
      row.gradient_bytes += tensor.bytes.count();
      row.bucket = static_cast<std::int64_t>(b);
      row.bucket_end = std::max(row.bucket_end, bucket_end[b]);
    }
  }
  return rows;
}

// Per layer: compute, gradient bytes, when its gradient is ready, when its bucket ends, and the slack between that end
// and the last bucket's, which is what the optimizer waits for.
Table layers_table(const RunConfig& config, const Setup& setup, const RunResult& result) {
  const auto rows = layer_rows(setup, result.jobs[0]);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (config.details == Details::summary && order.size() > kSummaryRows) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rows[a].compute() > rows[b].compute(); });
    order.resize(kSummaryRows);
  }
  double last_bucket = 0;
  for (const auto& row : rows) last_bucket = std::max(last_bucket, row.bucket_end);
  std::vector<std::string> name, kind;
  std::vector<double> forward, data, weight, ready, end, slack;
  std::vector<std::int64_t> bytes, bucket;
  for (const auto i : order) {
    const auto& row = rows[i];
    name.push_back(setup.trace.layers[i].name);
    kind.emplace_back(to_text(setup.trace.layers[i].kind));
    forward.push_back(row.forward);
    data.push_back(row.backward_data);
    weight.push_back(row.backward_weight);
    bytes.push_back(row.gradient_bytes);
    bucket.push_back(row.bucket);
    ready.push_back(row.gradient_ready);
    end.push_back(row.bucket_end);
    slack.push_back(row.bucket >= 0 ? last_bucket - row.bucket_end : 0);
  }
  return {"layers",
          {{"layer", "1", name},
           {"kind", "1", kind},
           {"forward_time_s", "s", forward},
           {"backward_data_time_s", "s", data},
           {"backward_weight_time_s", "s", weight},
           {"gradient_bytes", "bytes", bytes},
           {"bucket", "1", bucket},
           {"gradient_ready_s", "s", ready},
           {"bucket_end_s", "s", end},
           {"slack_s", "s", slack}}};
}

Table buckets_table(const RunResult& result) {
  std::vector<std::int64_t> index, bytes;
  std::vector<double> start, end, active;
  for (const auto& op : result.jobs[0].ops) {
    if (op.bucket < 0 || op.iteration != 0) continue;
    index.push_back(op.bucket);
    bytes.push_back(op.bytes);
    start.push_back(op.first_start.count());
    end.push_back(op.last_end.count());
    active.push_back(op.active.count());
  }
  return {"buckets",
          {{"bucket", "1", index},
           {"bytes", "bytes", bytes},
           {"start_s", "s", start},
           {"end_s", "s", end},
           {"active_time_s", "s", active}}};
}

Table timeline_table(const RunResult& result) {
  const auto& job = result.jobs[0];
  std::vector<std::string> name;
  std::vector<std::int64_t> rank, iteration;
  std::vector<double> start, end;
  for (const auto& span : job.spans) {
    const auto& op = job.ops[static_cast<std::size_t>(span.op)];
    name.push_back(op.name);
    iteration.push_back(op.iteration);
    rank.push_back(span.rank.value);
    start.push_back(span.start.count());
    end.push_back(span.end.count());
  }
  return {"timeline",
          {{"operation", "1", name},
           {"iteration", "1", iteration},
           {"rank", "1", rank},
           {"start_s", "s", start},
           {"end_s", "s", end}}};
}

}  // namespace

BusiestLink busiest_link(const RunConfig& config, const Setup& setup, const RunResult& result) {
  BusiestLink busiest;
  const auto links = by_utilization(config, setup, result);
  if (links.empty()) return busiest;
  return {setup.cluster->link_name(links.front().link), utilization(config, setup, result, links.front()),
          links.front().saturated};
}

std::vector<Table> detail_tables(const RunConfig& config, const Setup& setup, const RunResult& result) {
  if (config.details == Details::none) return {};
  std::vector<Table> tables{ranks_table(config, setup, result), layers_table(config, setup, result),
                            buckets_table(result), links_table(config, setup, result)};
  if (config.details == Details::full) tables.push_back(timeline_table(result));
  return tables;
}

}  // namespace tandem
