// tandem sweep: every run of a study file, in parallel processes.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/shards.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/cli/sweep_runs.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/journal.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/sweep.hpp"

namespace tandem {
namespace {

int default_jobs() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

CommandSpec sweep_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem sweep STUDY.ini [options]";
  spec.help = "Every combination of the values that a study file lists, each run in a process of its own.";
  spec.word_name = "study file";
  spec.least_words = spec.most_words = 1;
  spec.options = {
      {"output", "FILE.h5", "none", "result file with one row a run, written whole or not at all", ""},
      {"jobs", "N", fmt::format("{}, the processors here", default_jobs()), "runs at a time", "", 'j'},
      {"resume", "", "no", "go on with a sweep that was interrupted: only runs that are missing or failed", ""},
      {"shard", "I/N", "all runs", "only the I-th of N shares of the runs, into a journal for 'tandem merge'", ""},
      {"dry-run", "", "no", "list the runs, about how many flows each has and how long it takes, and stop", ""},
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
      "    topology = fat-tree:planes=8\n\n"
      "With --output, runs are kept in FILE.h5.journal as they end; a sweep that is killed loses those under way, and\n"
      "--resume goes on. A failed run is reported, its row has the reason in the column 'error', and the exit status "
      "is 1.\n"
      "On several machines, each runs 'tandem sweep STUDY.ini --output FILE.h5 --shard I/N', and then\n"
      "'tandem merge --output FILE.h5' makes the file that one process would have made.";
  return spec;
}

StudyShard shard_of(const CommandLine& line) {
  if (!line.has("shard")) return {};
  const auto& text = line.text("shard");
  const auto parts = split(text, '/');
  if (parts.size() != 2) throw usage_error(fmt::format("--shard is '{}': it must be I/N, the I-th of N", text));
  const auto count = static_cast<int>(parse_integer(parts[1], 1, 1'000'000, "N of --shard I/N"));
  return {static_cast<int>(parse_integer(parts[0], 1, count, "I of --shard I/N")), count};
}

// What this process is to do of a study.
struct Assignment {
  SweepRuns sweep;
  StudyShard shard;
  bool is_shard = false;
  bool resume = false;
  int jobs = 1;
  std::string output;  // "": none
};

std::vector<std::size_t> own_runs(const Assignment& task) {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < task.sweep.configs.size(); ++i) {
    if (task.shard.has(static_cast<std::int64_t>(i))) own.push_back(i);
  }
  return own;
}

std::string counted_runs(std::size_t count) {
  return counted(static_cast<std::int64_t>(count), "run");
}

// "1,500 of 2,000 runs"
std::string counted_runs(std::size_t some, std::size_t all) {
  return fmt::format("{} of {}", grouped(static_cast<std::int64_t>(some)), counted_runs(all));
}

int dry_run(const Assignment& task, Format format) {
  const auto& sweep = task.sweep;
  std::vector<Record> rows;
  double time = 0;
  const auto own = own_runs(task);
  const auto sizes = look_at(sweep, own, task.jobs);
  for (std::size_t k = 0; k < own.size(); ++k) {
    const auto i = own[k];
    if (sizes[k].error) with_context(name_of(sweep, i), [&] { throw *sizes[k].error; });
    const auto& size = *sizes[k].answer;
    time += time_of(sweep.configs[i], size);
    rows.push_back(row_of(sweep, i,
                          {{"trace", "1", sweep.configs[i].trace},
                           {"ranks", "1", std::int64_t{sweep.configs[i].cluster.ranks}},
                           {"instance", "1", size.instance},
                           {"fidelity", "1", to_text(size.fidelity)},
                           {"estimated_flows", "1", static_cast<std::int64_t>(size.effort.flows)},
                           {"estimated_run_time_s", "s", time_of(sweep.configs[i], size)}}));
  }
  print_records(format, rows);
  if (format == Format::table) {
    print(time_text(rows.size(), time, task.jobs) + "\n");
  }
  return 0;
}

// Where runs go as they end: into the journal, or without --output into memory, where nobody asks for details.
class Ledger {
 public:
  explicit Ledger(Journal* journal) : journal_(journal) {}

  void add(JournalEntry entry) {
    if (journal_ != nullptr) {
      journal_->add(entry);
    } else {
      entry.record.details.clear();
      entries_.push_back(std::move(entry));
    }
  }
  void sync() {
    if (journal_ != nullptr) journal_->sync();
  }
  [[nodiscard]] std::vector<JournalEntry> entries() {
    return journal_ != nullptr ? journal_->read().entries : std::move(entries_);
  }

 private:
  Journal* journal_;
  std::vector<JournalEntry> entries_;
};

void run_all(const Assignment& task, const std::vector<std::size_t>& which, std::size_t before, Ledger& ledger) {
  const auto& sweep = task.sweep;
  Progress progress("runs", static_cast<std::int64_t>(before));
  auto done = before;
  std::size_t failed = 0;
  SweepWatcher watcher;
  watcher.on_done = [&](std::size_t i, Outcome<Prediction> outcome) {
    JournalEntry entry;
    entry.run = static_cast<std::int64_t>(i);
    entry.error = std::move(outcome.error);
    if (entry.error) {
      ++failed;
      progress.say(fmt::format("failed: run {} ({}): {}", i + 1, name_of(sweep, i), entry.error->what()));
      entry.record.row = row_of_failed(sweep, i);
    } else {
      entry.record = {row_of(sweep, i, outcome.answer->row), std::move(outcome.answer->details)};
    }
    ledger.add(std::move(entry));
    ++done;
  };
  watcher.on_wait = [&] {
    ledger.sync();
    progress.show(static_cast<std::int64_t>(done), static_cast<std::int64_t>(before + which.size()),
                  failed == 0 ? "" : fmt::format("{} failed", grouped(static_cast<std::int64_t>(failed))));
  };
  predict_all(sweep.configs, which, task.jobs, watcher);
}

// Why a journal must not be begun anew: results that are nowhere else. "" where it may.
std::string only_place_of(const JournalContent& content, const JournalHeader& header, const Assignment& task) {
  const auto other = difference(*content.header, header);
  const auto what_next = other.empty() ? "--resume goes on with it" : other;
  std::set<std::int64_t> there;
  bool any_good = false;
  for (const auto& entry : content.entries) {
    there.insert(entry.run);
    any_good = any_good || !entry.error;
  }
  if (there.empty()) return "";
  const auto count = static_cast<std::int64_t>(there.size());
  if (count < content.header->shard.share_of(content.header->runs)) {
    return fmt::format("{} of an interrupted sweep: {}", counted(count, "run"), what_next);
  }
  if (task.is_shard) return fmt::format("{} of this shard: {}", counted(count, "run"), what_next);
  // A sweep that got through may be repeated: its rows are in the result file, or there are none.
  const bool is_this_study = content.header->study == header.study;
  if (!any_good || (is_this_study && has_rows_of(task.output, *content.header))) return "";
  return fmt::format("all {} of a sweep {}: {}", counted(count, "run"),
                     is_this_study ? "whose result file was not written" : "of another study", what_next);
}

// What an earlier sweep left is gone on with where --resume says so, and not overwritten where it does not.
std::vector<JournalEntry> open_journal(Journal& journal, const JournalHeader& header, const Assignment& task) {
  const auto content = journal.read();
  if (!content.header) {
    journal.begin(header);
    return {};
  }
  if (task.resume) {
    const auto reason = difference(*content.header, header);
    if (!reason.empty()) {
      throw input_error(
          fmt::format("{} belongs to another sweep: {}; take it away to begin anew", journal.path(), reason));
    }
    journal.resume(content);
    return content.entries;
  }
  if (const auto results = only_place_of(content, header, task); !results.empty()) {
    throw input_error(fmt::format("{} is there, with {}; take it away to begin anew", journal.path(), results));
  }
  journal.begin(header);
  return {};
}

// The runs that are still to be done: a failed one is tried again.
std::vector<std::size_t> left_of(const Assignment& task, const std::vector<std::size_t>& own,
                                 const std::vector<JournalEntry>& entries) {
  std::vector<std::size_t> good;
  for (const auto& entry : entries) {
    if (!entry.error) good.push_back(static_cast<std::size_t>(entry.run));
  }
  std::sort(good.begin(), good.end());
  std::vector<std::size_t> left;
  std::set_difference(own.begin(), own.end(), good.begin(), good.end(), std::back_inserter(left));
  // The largest first: last, they would run alone while the other processors have nothing to do.
  std::stable_sort(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
    return task.sweep.configs[a].cluster.ranks > task.sweep.configs[b].cluster.ranks;
  });
  return left;
}

int report_failures(std::size_t failed, std::size_t all) {
  if (failed == 0) return 0;
  flush_output();
  throw model_error(fmt::format("{} failed; the results say why", counted_runs(failed, all)));
}

void print_rows(Format format, const SweepRuns& sweep, const std::vector<RunRecord>& runs) {
  std::vector<Record> rows;
  for (const auto& run : runs) rows.push_back(run.row);
  print_records(format, format == Format::table ? narrow(sweep, rows) : rows);
}

// The journal that runs are kept in, and what an earlier sweep left in it.
struct Kept {
  JournalHeader header;
  std::unique_ptr<Journal> journal;
  std::vector<JournalEntry> before;
};

JournalHeader header_of(const Assignment& task, const std::string& command) {
  JournalHeader header{study_hash(task.sweep.runs, task.sweep.configs),
                       static_cast<std::int64_t>(task.sweep.runs.size()), task.shard,
                       provenance(command, task.sweep.configs), program_hash()};
  header.provenance.entries.emplace_back("study_hash", header.study);
  header.provenance.entries.emplace_back("program_hash", header.program);
  return header;
}

std::string journal_path_of(const Assignment& task) {
  return journal_path(task.output, task.is_shard ? &task.shard : nullptr);
}

Kept keep(const Assignment& task, JournalHeader header) {
  Kept kept;
  kept.header = std::move(header);
  kept.journal = std::make_unique<Journal>(journal_path_of(task));
  if (!kept.journal->is_locked()) {
    fmt::print(stderr, "{}: cannot be locked on this file system: run one sweep at a time\n", kept.journal->path());
  }
  kept.before = open_journal(*kept.journal, kept.header, task);
  return kept;
}

void say_what_next(const Assignment& task) {
  const auto count = task.shard.count;
  flush_output();
  fmt::print(stderr, "shard {} of {} is done; {}: tandem merge --output {}\n", task.shard.number, count,
             count == 1 ? "then" : fmt::format("when all {} are", count), task.output);
}

int run_and_report(const Assignment& task, const Kept& kept, Format format) {
  const auto own = own_runs(task);
  const auto left = left_of(task, own, kept.before);
  const auto before = own.size() - left.size();
  if (before > 0) fmt::print(stderr, "{} are in {}\n", counted_runs(before, own.size()), kept.journal->path());
  warn(long_sweep_warning(task.sweep, left, task.jobs));
  Ledger ledger(kept.journal.get());
  run_all(task, left, before, ledger);

  const auto runs = to_run_records(ledger.entries());
  const auto failed = count_failed(runs);
  if (kept.journal && !task.is_shard) {
    write_results(task.output, kept.header.provenance, runs);
    if (failed == 0) kept.journal->remove();
  }
  if (!runs.empty()) print_rows(format, task.sweep, runs);  // a study may have fewer runs than shards
  if (task.is_shard) say_what_next(task);
  return report_failures(failed, runs.size());
}

int sweep_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(sweep_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  Assignment task;
  task.shard = shard_of(*line);
  task.is_shard = line->has("shard");
  task.resume = line->has("resume");
  if (line->has("jobs")) {
    task.jobs = static_cast<int>(parse_integer(line->text("jobs"), 1, 4096, "--jobs"));
  } else {
    task.jobs = default_jobs();
  }
  for (const auto* option : {"shard", "resume"}) {
    if (line->has(option) && !line->has("output") && !line->has("dry-run")) {
      throw usage_error(fmt::format("--{} needs --output: the runs are kept beside it", option));
    }
  }
  task.sweep = read_sweep(line->words()[0], task.jobs);
  if (line->has("dry-run")) return dry_run(task, format);
  if (!line->has("output")) return run_and_report(task, {}, format);

  task.output = line->text("output");
  check_output(task.output);
  check_not_an_input(task.output, line->words());
  auto header = header_of(task, command_text("sweep", arguments));
  const bool is_interrupted = task.is_shard || std::filesystem::exists(journal_path_of(task));
  if (task.resume && !is_interrupted && std::filesystem::exists(task.output) && !is_result_of(task.output, header)) {
    throw input_error(fmt::format(
        "{} is there, and not of this study and this build of tandem: take it away to begin anew", task.output));
  }
  if (task.resume && !is_interrupted && is_result_of(task.output, header)) {
    fmt::print(stderr, "{} has all runs of this study already; take it away to begin anew\n", task.output);
    return 0;
  }
  return run_and_report(task, keep(task, std::move(header)), format);
}

}  // namespace

Subcommand sweep_subcommand() {
  return {"sweep", "every run of a study file, in parallel", sweep_command};
}

}  // namespace tandem
