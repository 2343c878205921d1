#include "sim/cli/sweep_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/journal.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/effort.hpp"
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

// Runs that differ only in the number of ranks, the largest first.
std::vector<std::vector<std::size_t>> curves_of(const SweepRuns& sweep) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < sweep.configs.size(); ++i) {
    if (sweep.configs[i].fidelity == "auto") by_name[curve_of(sweep, i)].push_back(i);
  }
  std::vector<std::vector<std::size_t>> curves;
  for (auto& [name, runs] : by_name) {
    if (runs.size() < 2) continue;
    std::stable_sort(runs.begin(), runs.end(), [&](std::size_t a, std::size_t b) {
      return sweep.configs[a].cluster.ranks > sweep.configs[b].cluster.ranks;
    });
    curves.push_back(std::move(runs));
  }
  return curves;
}

// Whether a smaller run may need a coarser level than the largest one: where ranks are no power of two or `auto` picks
// another algorithm it may have more flows, but it will not have twenty times as many.
bool may_be_exceeded(const Outcome<RunSize>& largest) {
  if (!largest.answer) return true;
  return largest.answer->fidelity != Fidelity::analytic && !is_small(largest.answer->effort);
}

// What the run itself will fail with, too. A process that died says nothing of its run.
bool is_own(const Error& error) {
  return error.kind() != ErrorKind::machine && error.kind() != ErrorKind::internal;
}

// `auto` fidelity is one level along a curve: the coarsest that one of its runs needs. Those that cannot be made fail
// when their turn comes, and say why. Where the need of a run is not known, there is no level.
void settle_fidelity(SweepRuns& sweep, int jobs) {
  const auto curves = curves_of(sweep);
  std::map<std::size_t, RunSize> known;  // by run
  const auto look = [&](const std::vector<std::size_t>& which) {
    auto sizes = look_at(sweep, which, jobs);
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (sizes[i].answer) known[which[i]] = *sizes[i].answer;
      if (sizes[i].error && !is_own(*sizes[i].error)) {
        throw sizes[i].error->within(name_of(sweep, which[i]) + ": the fidelity of its curve cannot be settled");
      }
    }
    return sizes;
  };
  std::vector<std::size_t> largest;
  for (const auto& runs : curves) largest.push_back(runs.front());
  const auto sizes = look(largest);
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (may_be_exceeded(sizes[i])) others.insert(others.end(), curves[i].begin() + 1, curves[i].end());
  }
  (void)look(others);
  for (const auto& runs : curves) {
    std::optional<Fidelity> coarsest;
    for (const auto run : runs) {
      if (known.contains(run)) coarsest = std::max(coarsest.value_or(Fidelity::flow), known.at(run).fidelity);
    }
    if (!coarsest) continue;
    for (const auto run : runs) {
      sweep.configs[run].fidelity = to_text(*coarsest);
      if (known.contains(run) && known.at(run).fidelity == *coarsest) sweep.sizes[run] = known.at(run);
    }
  }
}

constexpr double kLongSweep = 600;  // seconds
constexpr std::size_t kMostLooks = 100;

// Whether `auto` fidelity keeps it short; it sets estimates no limit.
bool is_kept_short(const RunConfig& config) {
  if (config.network.model != NetworkModelOptions::Model::alpha_beta) return false;
  return config.fidelity != to_text(Fidelity::analytic) &&
         std::any_of(config.options.begin(), config.options.end(),
                     [](const auto& o) { return o.first == "fidelity" && o.second == "auto"; });
}

double simulations_of(const RunConfig& config) {
  return config.explain ? 4 : 1;
}

double at_a_time(std::size_t runs, int jobs) {
  return std::min<double>(jobs, static_cast<double>(std::max<std::size_t>(1, runs)));
}

// A fair share of the runs, as shards have it, of which there are no more than are worth looking at.
std::vector<std::size_t> some_of(const std::vector<std::size_t>& which) {
  const StudyShard share{1, static_cast<int>((which.size() + kMostLooks - 1) / kMostLooks)};
  std::vector<std::size_t> some;
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (share.has(static_cast<std::int64_t>(k))) some.push_back(which[k]);
  }
  return some;
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

SweepRuns read_sweep(const std::string& path, int jobs) {
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
  settle_fidelity(sweep, jobs);
  return sweep;
}

std::vector<Outcome<RunSize>> look_at(const SweepRuns& sweep, const std::vector<std::size_t>& which, int jobs) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Progress progress("runs looked at");
  return size_all(sweep.configs, which, jobs, [&](std::size_t done) {
    if (Clock::now() - begin < std::chrono::seconds(1)) return;
    progress.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(which.size()));
  });
}

double time_of(const RunConfig& config, const RunSize& size) {
  return run_time(size.effort) * simulations_of(config);
}

std::string time_text(std::size_t runs, double time, int jobs) {
  return fmt::format("{}, very roughly {} with {} at a time", counted(static_cast<std::int64_t>(runs), "run"),
                     rough_text(time / at_a_time(runs, jobs)), jobs);
}

std::string long_sweep_warning(const SweepRuns& sweep, const std::vector<std::size_t>& which, int jobs) {
  const auto is_long = [&](double time) { return time / at_a_time(which.size(), jobs) > kLongSweep; };
  double most = 0;
  bool all_short = true;
  for (const auto i : which) {
    all_short = all_short && is_kept_short(sweep.configs[i]);
    most += longest_auto_time() * simulations_of(sweep.configs[i]);
  }
  if (which.empty() || (all_short && !is_long(most))) return "";

  const auto some = some_of(which);
  double time = 0;
  std::vector<std::size_t> unknown;
  for (const auto i : some) {
    if (const auto found = sweep.sizes.find(i); found != sweep.sizes.end()) {
      time += time_of(sweep.configs[i], found->second);
    } else {
      unknown.push_back(i);
    }
  }
  const auto sizes = look_at(sweep, unknown, jobs);
  for (std::size_t k = 0; k < unknown.size(); ++k) {
    // One that cannot be made takes no time.
    if (sizes[k].answer) time += time_of(sweep.configs[unknown[k]], *sizes[k].answer);
  }
  time *= static_cast<double>(which.size()) / static_cast<double>(some.size());
  return is_long(time) ? time_text(which.size(), time, jobs) + "; --dry-run lists them" : "";
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
    } else if (name == "fidelity") {  // the curve's
      row.push_back({name, "1", config.fidelity});
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
