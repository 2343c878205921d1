#include "sim/cli/sweep_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/cli/output.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/setup.hpp"
#include "traces/models/models.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

// A trace that cannot be read is one error, and not one failed run after the other.
void check_traces(const SweepRuns& sweep) {
  const auto models = model_names();
  std::set<std::string> seen(models.begin(), models.end());
  for (const auto& config : sweep.configs) {
    if (seen.insert(config.trace).second) (void)load_trace(config.trace);
  }
}

// What a run has in common with the others of its curve, which differ in the number of ranks.
std::string curve_of(const SweepRuns& sweep, std::size_t run) {
  std::string text = sweep.runs[run].case_name;
  for (const auto& [name, value] : sweep.runs[run].options) {
    if (name != "ranks" && name != "nodes") text += fmt::format("\n{}={}", name, value);
  }
  return text;
}

// `auto` fidelity is one level along a curve: what its largest run needs.
void settle_fidelity(SweepRuns& sweep) {
  std::map<std::string, std::vector<std::size_t>> curves;
  for (std::size_t i = 0; i < sweep.configs.size(); ++i) {
    if (sweep.configs[i].fidelity == "auto") curves[curve_of(sweep, i)].push_back(i);
  }
  for (auto& [key, runs] : curves) {
    if (runs.size() < 2) continue;
    auto by_size = runs;
    std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
      return sweep.configs[a].cluster.ranks > sweep.configs[b].cluster.ranks;
    });
    for (const auto largest : by_size) {
      try {
        const auto level = make_setup(sweep.configs[largest])->fidelity;
        for (const auto run : runs) sweep.configs[run].fidelity = to_text(level);
        break;
      } catch (const Error&) {  // it will fail when its turn comes, and say why: the next one decides
      }
    }
  }
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string> table_columns(const SweepRuns& sweep, bool any_failed) {
  std::vector<std::string> names;
  if (sweep.has_cases) names.push_back("case");
  for (const auto& name : sweep.varied) {
    // The instance says what was built of a topology.
    if (name != "topology") names.push_back(underscored(name));
  }
  for (const auto* name :
       {"ranks", "iteration_time_s", "throughput_samples_per_s", "scaling_efficiency", "compute_time_s",
        "exposed_comm_time_s", "idle_time_s", "bottleneck_utilization", "instance"}) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  if (any_failed) names.emplace_back("error");
  return names;
}

}  // namespace

SweepRuns read_sweep(const std::string& path) {
  const auto study = read_study(path);
  SweepRuns sweep;
  sweep.runs = expand(study);
  sweep.varied = varied_options(study, sweep.runs);
  sweep.has_cases = !study.cases.empty();
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    const auto where = sweep.runs.size() == 1 ? path : path + ": " + name_of(sweep, i);
    sweep.configs.push_back(with_context(where, [&] { return parse_run(sweep.runs[i].options); }));
  }
  check_traces(sweep);
  settle_fidelity(sweep);
  return sweep;
}

std::string name_of(const SweepRuns& sweep, std::size_t run) {
  std::vector<std::string> parts;
  if (sweep.has_cases) parts.push_back("case " + sweep.runs[run].case_name);
  for (const auto& name : sweep.varied) {
    const auto& options = sweep.runs[run].options;
    if (options.contains(name)) parts.push_back(name + "=" + options.at(name));
  }
  return parts.empty() ? "the only run" : fmt::format("{}", fmt::join(parts, ", "));
}

Record row_of(const SweepRuns& sweep, std::size_t run, const Record& result) {
  Record row{{"case", "1", sweep.runs[run].case_name}};
  for (const auto& name : sweep.varied) {
    if (find_field(result, underscored(name)) != nullptr) continue;
    const auto& options = sweep.configs[run].options;
    const auto found = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == name; });
    row.push_back({underscored(name), "1", found == options.end() ? "" : found->second});
  }
  row.insert(row.end(), result.begin(), result.end());
  return row;
}

Record row_of_failed(const SweepRuns& sweep, std::size_t run) {
  const auto& config = sweep.configs[run];
  Record row{{"case", "1", sweep.runs[run].case_name}};
  for (const auto& [name, text] : config.options) {
    if (name == "ranks") {  // those that failures leave
      row.push_back({name, "1", std::int64_t{config.cluster.ranks}});
    } else {
      row.push_back({underscored(name), "1", text});
    }
  }
  return row;
}

std::vector<Record> narrow(const SweepRuns& sweep, const std::vector<Record>& rows) {
  const bool any_failed =
      std::any_of(rows.begin(), rows.end(), [](const auto& r) { return !text_of(r, "error").empty(); });
  const auto names = table_columns(sweep, any_failed);
  std::vector<Record> narrow_rows;
  for (const auto& row : rows) narrow_rows.push_back(select(row, names));
  return narrow_rows;
}

}  // namespace tandem
