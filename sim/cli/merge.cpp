// tandem merge: the shards of a sweep, into the result file that one process would have written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/cli/output.hpp"
#include "sim/cli/shards.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

CommandSpec merge_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem merge [JOURNAL...] --output FILE.h5";
  spec.help =
      "Joins the shards of a sweep (tandem sweep --shard) into the result file that one process would have written, "
      "byte for byte.";
  spec.word_name = "journal";
  spec.most_words = 1'000'000;
  spec.options = {{"output", "FILE.h5", "none; it must be given", "result file, written whole or not at all", ""}};
  spec.epilogue =
      "Without journals, all FILE.h5.shard-I-of-N.journal beside FILE.h5 are joined. They stay where they are. Exit "
      "status 1\n"
      "where runs are missing (nothing is written) or failed (their rows say why).";
  return spec;
}

int merge_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(merge_spec(), arguments);
  if (!line) return 0;
  if (!line->has("output")) throw usage_error("--output is missing: the result file to be written");
  const auto& output = line->text("output");
  check_output(output);
  check_not_an_input(output, line->words());
  const auto names = line->words().empty() ? shard_journals(output) : line->words();
  std::vector<std::pair<std::string, JournalContent>> journals;
  for (const auto& name : names) journals.emplace_back(name, read_journal(name));
  // The command in the file's provenance names the study as the first shard was given it.
  std::stable_sort(journals.begin(), journals.end(), [](const auto& a, const auto& b) {
    return a.second.header && b.second.header && a.second.header->shard.number < b.second.header->shard.number;
  });
  const auto header = journals.front().second.header;
  const auto runs = to_run_records(join_shards(std::move(journals)));
  write_results(output, header->provenance, runs);
  const auto failed = count_failed(runs);
  fmt::print(stderr, "{}: {} of {}{}\n", output, counted(static_cast<std::int64_t>(runs.size()), "run"),
             counted(header->shard.count, "shard"),
             failed == 0 ? "" : fmt::format(", {} failed", grouped(static_cast<std::int64_t>(failed))));
  if (failed > 0) {
    throw model_error(fmt::format("{} of {} failed; {} says why", grouped(static_cast<std::int64_t>(failed)),
                                  counted(static_cast<std::int64_t>(runs.size()), "run"), output));
  }
  return 0;
}

}  // namespace

std::string journal_path(const std::string& output, const StudyShard* shard) {
  return shard == nullptr ? output + ".journal"
                          : fmt::format("{}.shard-{}-of-{}.journal", output, shard->number, shard->count);
}

std::vector<std::string> shard_journals(const std::string& output) {
  const std::filesystem::path path(output);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const auto begin = path.filename().string() + ".shard-";
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(".journal")) found.push_back((path.parent_path() / name).string());
  }
  if (found.empty()) {
    throw input_error(fmt::format("{}: there are no journals of shards beside it ({}I-of-N.journal)", output, begin));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::size_t count_failed(const std::vector<RunRecord>& runs) {
  return static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const auto& run) { return !text_of(run.row, "error").empty(); }));
}

Subcommand merge_subcommand() {
  return {"merge", "the shards of a sweep, into one result file", merge_command};
}

}  // namespace tandem
