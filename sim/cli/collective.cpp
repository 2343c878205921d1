// tandem collective: one collective alone, in nccl-tests' columns.
#include <fmt/format.h>

#include "sim/cli/output.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/collective_run.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostSizes = 1000;

const std::vector<std::string> kShared{"topology",
                                       "ranks",
                                       "nodes",
                                       "devices-per-node",
                                       "nics-per-node",
                                       "link-bandwidth",
                                       "link-latency",
                                       "intra-bandwidth",
                                       "intra-latency",
                                       "host-bandwidth",
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

CommandSpec collective_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem collective [options]";
  spec.help =
      "The time of one collective alone for a range of sizes, as nccl-tests would measure it. algbw is size / time; "
      "busbw "
      "is algbw x 2(n-1)/n.";
  const std::string what = "What to measure";
  spec.options = {{"operation", "NAME", "all-reduce", "the only one so far", what},
                  {"begin", "SIZE", "8B", "smallest size", what, 'b'},
                  {"end", "SIZE", "1GiB", "largest size", what, 'e'},
                  {"factor", "F", "2", "from one size to the next", what, 'f'},
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
  options.fidelity = config.fidelity;
  return options;
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

Record as_record(const CollectivePoint& point) {
  return {{"size_bytes", "bytes", point.size.count()},
          {"count", "1", point.size.count() / 4},
          {"type", "1", std::string("float")},
          {"time_s", "s", point.time.count()},
          {"algbw_bytes_per_s", "bytes/s", point.algbw.count()},
          {"busbw_bytes_per_s", "bytes/s", point.busbw.count()},
          {"alpha_beta_time_s", "s", point.alpha_beta.count()},
          {"simulated_flows", "1", point.flows}};
}

// nccl-tests' order and units.
std::string as_table(const RunConfig& config, const CollectiveBench& bench,
                     const std::vector<CollectivePoint>& points) {
  std::vector<std::vector<std::string>> rows{
      {"size (B)", "count (float)", "type", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "alpha-beta (us)"}};
  for (const auto& point : points) {
    rows.push_back({fmt::format("{}", point.size.count()), fmt::format("{}", point.size.count() / 4), "float",
                    fmt::format("{:.2f}", point.time.count() * 1e6), fmt::format("{:.3f}", point.algbw.count() / 1e9),
                    fmt::format("{:.3f}", point.busbw.count() / 1e9),
                    fmt::format("{:.2f}", point.alpha_beta.count() * 1e6)});
  }
  return fmt::format("all-reduce, {}, {} ranks on {}\n", config.algorithm, config.cluster.ranks,
                     bench.cluster().topology().instance()) +
         aligned(rows);
}

int collective_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(collective_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  if (line->text("operation") != "all-reduce") {
    throw usage_error(fmt::format("--operation is '{}'{}", line->text("operation"),
                                  suggestion(line->text("operation"), {"all-reduce"})));
  }
  const auto sizes = sizes_of(*line);
  const auto config = parse_run(given_run_options(*line));
  const CollectiveBench bench(bench_options(config));
  std::vector<CollectivePoint> points;
  std::vector<Record> records;
  for (const auto size : sizes) {
    points.push_back(bench.all_reduce(size));
    records.push_back(as_record(points.back()));
  }
  if (format == Format::table) {
    print(as_table(config, bench, points));
  } else {
    print_records(format, records);
  }
  return 0;
}

}  // namespace

Subcommand collective_subcommand() {
  return {"collective", "one collective alone over a range of sizes, as nccl-tests measures it", collective_command};
}

}  // namespace tandem
