// tandem collective: one collective alone, in nccl-tests' columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/collective_run.hpp"
#include "sim/study/machine.hpp"
#include "sim/study/predict.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostSizes = 1000;

const std::vector<std::string> kShared{"cluster",
                                       "topology",
                                       "ranks",
                                       "nodes",
                                       "devices-per-node",
                                       "nics-per-node",
                                       "link-bandwidth",
                                       "link-latency",
                                       "intra-bandwidth",
                                       "intra-latency",
                                       "host-bandwidth",
                                       "link-override",
                                       "failure",
                                       "placement",
                                       "algorithm",
                                       "channels",
                                       "chunk",
                                       "step-overhead",
                                       "reduce-rate",
                                       "copy-rate",
                                       "network-model",
                                       "bandwidth-factor",
                                       "latency-factor",
                                       "fidelity",
                                       "cfg"};

std::string operations_text() {
  std::vector<std::string> names;
  for (const auto operation : collective_operations()) names.push_back(to_text(operation));
  return fmt::format("{}", fmt::join(names, ", "));
}

CommandSpec collective_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem collective [options]";
  spec.help =
      "The time of one collective alone for a range of sizes, as nccl-tests would measure it. A size is the larger of "
      "what a rank sends and receives. algbw is size / time; busbw is algbw x 2(n-1)/n for all-reduce, x 1 for "
      "broadcast and x (n-1)/n for the others. With failures, the healthy time is that of all ranks on the whole "
      "network. Where the fidelity is not flow, 'off flow' is how far it is off, with as many ranks or the largest "
      "fraction of them that takes no time.";
  const std::string what = "What to measure";
  spec.options = {{"operation", "NAME", "all-reduce", operations_text(), what},
                  {"root", "RANK", "0", "of broadcast, gather and scatter", what},
                  {"begin", "SIZE", "8B", "smallest size", what, 'b'},
                  {"end", "SIZE", "1GiB", "largest size", what, 'e'},
                  {"factor", "F", "2", "from one size to the next", what, 'f'},
                  {"output", "FILE.h5", "none", "result file with one row a size, written whole or not at all", what},
                  format_option()};
  for (auto& option : run_option_specs(kShared)) spec.options.push_back(std::move(option));
  return spec;
}

CollectiveBenchOptions bench_options(const RunConfig& config) {
  CollectiveBenchOptions options;
  options.cluster = config.cluster;
  options.placement = config.placement;
  options.algorithm = config.algorithm;
  options.channels = config.channels;
  options.chunk = config.chunk;
  options.step_overhead = config.step_overhead;
  options.reduce_rate = config.reduce_rate;
  options.copy_rate = config.copy_rate;
  options.network = config.network;
  options.fidelity = asked_fidelity(config.fidelity);
  return options;
}

void add_operation(const CommandLine& line, CollectiveBenchOptions& options) {
  options.operation =
      with_context("--operation", [&] { return collective_operation_from_text(line.text("operation")); });
  if (line.has("root") && !has_root(options.operation)) {
    throw usage_error(fmt::format("--root is for operations that have one, and {} has none", line.text("operation")));
  }
  options.root = static_cast<int>(parse_integer(line.text("root"), 0, options.cluster.ranks - 1, "--root"));
}

std::vector<Bytes> sizes_of(const CommandLine& line) {
  const auto first = with_context("--begin", [&] { return parse_bytes(line.text("begin")); });
  const auto last = with_context("--end", [&] { return parse_bytes(line.text("end")); });
  // Where only the beginning is given and lies above the default end, it is the one size meant.
  const auto end = !line.has("end") && first > last ? first : last;
  const double factor = parse_number(line.text("factor"), "--factor");
  if (!(factor >= 1.01)) {
    throw usage_error(fmt::format("--factor is '{}': it must be at least 1.01", line.text("factor")));
  }
  auto sizes = size_range(first, end, factor);
  if (sizes.size() > kMostSizes) {
    throw usage_error(fmt::format("{} sizes are too many: at most {}", sizes.size(), kMostSizes));
  }
  return sizes;
}

// nccl-tests counts the elements of a rank's part where the operation cuts buffers into parts.
std::int64_t count_of(const CollectiveBenchOptions& options, Bytes size) {
  const bool whole =
      options.operation == CollectiveOperation::all_reduce || options.operation == CollectiveOperation::broadcast;
  return size.count() / 4 / (whole ? 1 : options.cluster.ranks);
}

std::string algorithm_of(const CollectiveBenchOptions& options, const CollectivePoint& point) {
  return point.choice ? point.choice->picked() : options.algorithm;
}

Record as_record(const CollectiveBenchOptions& options, const CollectivePoint& point) {
  return {{"size_bytes", "bytes", point.size.count()},
          {"count", "1", count_of(options, point.size)},
          {"type", "1", std::string("float")},
          {"time_s", "s", point.time.count()},
          {"healthy_time_s", "s", point.healthy.count()},
          {"algbw_bytes_per_s", "bytes/s", point.algbw.count()},
          {"busbw_bytes_per_s", "bytes/s", point.busbw.count()},
          {"alpha_beta_time_s", "s", point.alpha_beta.count()},
          {"fidelity", "1", to_text(point.fidelity)},
          {"fidelity_error", "1", point.fidelity_error.value},
          {"fidelity_error_ranks", "1", point.fidelity_error.ranks},
          {"simulated_flows", "1", point.flows},
          {"operation", "1", to_text(options.operation)},
          {"algorithm", "1", algorithm_of(options, point)}};
}

// For CSV and result files, where a choice is text.
std::vector<Record> as_rows(const CollectiveBenchOptions& options, const std::vector<CollectivePoint>& points) {
  std::vector<Record> rows;
  for (const auto& point : points) {
    rows.push_back(as_record(options, point));
    if (point.choice) rows.back().push_back({"candidates", "1", to_text(*point.choice)});
  }
  return rows;
}

// Why `auto` picked what it did: the estimates of all candidates, and what it could not use.
std::string picks(const std::vector<CollectivePoint>& points) {
  std::string text = "\npicked by estimate, every link shared by its load:\n";
  std::vector<std::vector<std::string>> rows;
  for (const auto& point : points) {
    if (point.choice) rows.push_back({fmt::format("{} B", point.size.count()), to_text(*point.choice)});
  }
  return text + aligned(rows, "  ", false);
}

std::string off_flow(const FidelityError& error) {
  return std::isnan(error.value) ? "unknown" : fmt::format("{:.2g} ({} ranks)", 100 * error.value, error.ranks);
}

// A line each, where an algorithm is not what its name says.
std::string notes(const std::vector<CollectivePoint>& points) {
  std::set<std::string> lines;
  for (const auto& point : points) {
    if (!point.note.empty()) lines.insert(point.note + "\n");
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

// nccl-tests' order and units.
std::string as_table(const CollectiveBenchOptions& options, const CollectiveBench& bench,
                     const std::vector<CollectivePoint>& points) {
  const bool picked = !points.empty() && points.front().choice;
  std::vector<std::vector<std::string>> rows{
      {"size (B)", "count (float)", "type", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "alpha-beta (us)"}};
  const bool degraded = has_failures(options.cluster);
  if (degraded) rows.front().push_back("healthy (us)");
  const auto fidelity = points.empty() ? Fidelity::flow : points.front().fidelity;
  if (fidelity != Fidelity::flow) rows.front().push_back("off flow (%, at)");
  if (picked) rows.front().push_back("algorithm");
  for (const auto& point : points) {
    rows.push_back({fmt::format("{}", point.size.count()), fmt::format("{}", count_of(options, point.size)), "float",
                    fmt::format("{:.2f}", point.time.count() * 1e6), fmt::format("{:.3f}", point.algbw.count() / 1e9),
                    fmt::format("{:.3f}", point.busbw.count() / 1e9),
                    fmt::format("{:.2f}", point.alpha_beta.count() * 1e6)});
    if (degraded) rows.back().push_back(fmt::format("{:.2f}", point.healthy.count() * 1e6));
    if (fidelity != Fidelity::flow) rows.back().push_back(off_flow(point.fidelity_error));
    if (picked) rows.back().push_back(algorithm_of(options, point));
  }
  return fmt::format("{}, {}, {} ranks on {}{}\n", to_text(options.operation), options.algorithm, options.cluster.ranks,
                     bench.cluster().topology().instance(),
                     fidelity == Fidelity::flow ? "" : fmt::format("; fidelity {}", to_text(fidelity))) +
         notes(points) + aligned(rows) + (picked ? picks(points) : "");
}

void print_json(const CollectiveBenchOptions& options, const std::vector<CollectivePoint>& points) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& point : points) {
    auto object = to_json_value(as_record(options, point));
    if (point.choice) object["candidates"] = to_json_value(*point.choice);
    list.push_back(std::move(object));
  }
  print(list.dump(2) + "\n");
}

std::vector<CollectivePoint> run_all(CollectiveBench& bench, const std::vector<Bytes>& sizes) {
  Progress progress("sizes");
  std::vector<CollectivePoint> points;
  for (const auto size : sizes) {
    progress.show(static_cast<std::int64_t>(points.size()), static_cast<std::int64_t>(sizes.size()));
    points.push_back(bench.run(size));
  }
  return points;
}

int collective_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(collective_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto sizes = sizes_of(*line);
  const auto config = parse_run(given_run_options(*line));
  auto options = bench_options(config);
  add_operation(*line, options);
  if (line->has("output")) check_output(line->text("output"));
  CollectiveBench bench(options);
  bench.settle_fidelity(sizes);
  warn(long_run_warning(options.fidelity, bench.efforts(sizes), options.network));
  const auto points = run_all(bench, sizes);
  if (line->has("output")) {
    std::vector<RunRecord> runs;
    for (const auto& record : as_rows(options, points)) runs.push_back({record, {}});
    write_results(line->text("output"), provenance(command_text("collective", arguments), {config}), runs);
  }
  switch (format) {
    case Format::table:
      print(as_table(options, bench, points));
      break;
    case Format::json:
      print_json(options, points);
      break;
    case Format::csv:
      print_records(format, as_rows(options, points));
      break;
  }
  return 0;
}

}  // namespace

Subcommand collective_subcommand() {
  return {"collective", "one collective alone over a range of sizes, as nccl-tests measures it", collective_command};
}

}  // namespace tandem
