// tandem sweep: every run of a study file, in parallel processes.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/setup.hpp"
#include "sim/study/study_file.hpp"
#include "sim/study/sweep.hpp"
#include "traces/models/models.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

struct Sweep {
  std::vector<StudyRun> runs;
  std::vector<RunConfig> configs;
  std::vector<std::string> varied;  // options that differ between runs
  bool has_cases = false;
};

int default_jobs() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

CommandSpec sweep_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem sweep STUDY.ini [options]";
  spec.help = "Every combination of the values that a study file lists, each run in a process of its own.";
  spec.word_name = "study file";
  spec.least_words = spec.most_words = 1;
  spec.options = {{"output", "FILE.h5", "none", "result file with one row a run, written whole or not at all", ""},
                  {"jobs", "N", fmt::format("{}, the processors here", default_jobs()), "runs at a time", "", 'j'},
                  {"dry-run", "", "no", "list the runs and about how many flows each has, and stop", ""},
                  format_option()};
  spec.options.back().group = "";
  spec.epilogue =
      "A study file has lines OPTION = VALUE VALUE ..., with the options of 'tandem run' without their dashes (flags:\n"
      "yes or no), and sections [case NAME] that tie options together. '#' starts a comment. The runs are the product "
      "of\n"
      "the cases and the lists, in the order of the file:\n\n"
      "    trace = resnet50-cpu vgg16-cpu\n"
      "    ranks = 8 16 32\n"
      "    [case proposed]\n"
      "    topology = mesh-rail-cube:m=8\n"
      "    [case fat-tree-equal-ports]\n"
      "    topology = fat-tree:planes=8";
  return spec;
}

std::string name_of(const Sweep& sweep, std::size_t i) {
  std::vector<std::string> parts;
  if (sweep.has_cases) parts.push_back("case " + sweep.runs[i].case_name);
  for (const auto& name : sweep.varied) {
    if (sweep.runs[i].options.contains(name)) parts.push_back(name + "=" + sweep.runs[i].options.at(name));
  }
  return parts.empty() ? "the only run" : fmt::format("{}", fmt::join(parts, ", "));
}

// A trace that cannot be read is one error, and not one failed run after the other.
void check_traces(const Sweep& sweep) {
  const auto models = model_names();
  std::set<std::string> seen(models.begin(), models.end());
  for (const auto& config : sweep.configs) {
    if (seen.insert(config.trace).second) (void)load_trace(config.trace);
  }
}

// Mistakes in any run are found before the first one starts.
Sweep read_sweep(const std::string& path) {
  const auto study = read_study(path);
  Sweep sweep;
  sweep.runs = expand(study);
  sweep.varied = varied_options(study, sweep.runs);
  sweep.has_cases = !study.cases.empty();
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    const auto where = sweep.runs.size() == 1 ? path : path + ": " + name_of(sweep, i);
    sweep.configs.push_back(with_context(where, [&] { return parse_run(sweep.runs[i].options); }));
  }
  check_traces(sweep);
  return sweep;
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The case, then what the run is and gives; a varied option that is no result of its own comes right after the case.
Record row_of(const Sweep& sweep, std::size_t i, const Record& result) {
  Record row{{"case", "1", sweep.runs[i].case_name}};
  for (const auto& name : sweep.varied) {
    if (find_field(result, underscored(name)) != nullptr) continue;
    const auto& options = sweep.configs[i].options;
    const auto found = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == name; });
    row.push_back({underscored(name), "1", found == options.end() ? "" : found->second});
  }
  row.insert(row.end(), result.begin(), result.end());
  return row;
}

std::vector<std::string> table_columns(const Sweep& sweep) {
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
  return names;
}

void print_rows(Format format, const Sweep& sweep, const std::vector<Record>& rows) {
  if (format != Format::table) return print_records(format, rows);
  std::vector<Record> narrow;
  for (const auto& row : rows) narrow.push_back(select(row, table_columns(sweep)));
  print(to_table(narrow));
}

int dry_run(const Sweep& sweep, Format format) {
  std::vector<Record> rows;
  for (std::size_t i = 0; i < sweep.configs.size(); ++i) {
    const auto setup = with_context(name_of(sweep, i), [&] { return make_setup(sweep.configs[i]); });
    rows.push_back(row_of(sweep, i,
                          {{"trace", "1", sweep.configs[i].trace},
                           {"ranks", "1", std::int64_t{sweep.configs[i].cluster.ranks}},
                           {"instance", "1", setup->cluster->topology().instance()},
                           {"fidelity", "1", to_text(setup->fidelity)},
                           {"estimated_flows", "1", static_cast<std::int64_t>(setup->efforts.flow.flows)}}));
  }
  print_records(format, rows);
  if (format == Format::table) print(fmt::format("{} runs\n", rows.size()));
  return 0;
}

std::vector<SweepOutcome> run_all(const Sweep& sweep, int jobs) {
  Progress progress("runs");
  SweepWatcher watcher;
  std::size_t failed = 0;
  const auto show = [&](std::size_t done) {
    progress.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(sweep.configs.size()),
                  failed == 0 ? "" : fmt::format("{} failed", failed));
  };
  watcher.on_done = [&](std::size_t done, std::size_t i, const SweepOutcome& outcome) {
    if (outcome.error) {
      ++failed;
      progress.say(fmt::format("failed: run {} ({}): {}", i + 1, name_of(sweep, i), outcome.error->what()));
    }
    show(done);
  };
  watcher.on_wait = show;
  return predict_all(sweep.configs, jobs, watcher);
}

int sweep_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(sweep_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto jobs =
      line->has("jobs") ? static_cast<int>(parse_integer(line->text("jobs"), 1, 4096, "--jobs")) : default_jobs();
  const auto sweep = read_sweep(line->words()[0]);
  if (line->has("dry-run")) return dry_run(sweep, format);
  if (line->has("output")) check_output(line->text("output"));

  auto outcomes = run_all(sweep, jobs);
  std::vector<Record> rows;
  std::vector<RunRecord> records;
  std::vector<RunConfig> good;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].prediction) continue;
    rows.push_back(row_of(sweep, i, outcomes[i].prediction->row));
    records.push_back({rows.back(), std::move(outcomes[i].prediction->details)});
    good.push_back(sweep.configs[i]);
  }
  if (rows.empty()) throw Error(outcomes.front().error->kind(), "every run failed; nothing is written");
  if (line->has("output")) {
    write_results(line->text("output"), provenance(command_text("sweep", arguments), good), records);
  }
  print_rows(format, sweep, rows);
  if (rows.size() < outcomes.size()) {
    flush_output();
    throw model_error(fmt::format("{} of {} runs failed; the results hold the others", outcomes.size() - rows.size(),
                                  outcomes.size()));
  }
  return 0;
}

}  // namespace

Subcommand sweep_subcommand() {
  return {"sweep", "every run of a study file, in parallel", sweep_command};
}

}  // namespace tandem
