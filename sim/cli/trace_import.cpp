// tandem trace import: other tools' formats in, with an account of what became of their content.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/cli/output.hpp"
#include "sim/cli/trace_commands.hpp"
#include "sim/cli/trace_tables.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "traces/importer.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

std::vector<Record> report_records(const ImportReport& report) {
  std::vector<Record> rows;
  for (const auto& entry : report.entries) {
    rows.push_back({{"content", "1", entry.what},
                    {"count", "1", entry.count},
                    {"time_s", "s", entry.time.count()},
                    {"fate", "1", std::string(to_text(entry.fate))},
                    {"why", "1", entry.why}});
  }
  return rows;
}

}  // namespace

int trace_import(const std::vector<std::string>& arguments) {
  auto spec =
      trace_spec("tandem trace import FILE... --output FILE.h5 [options]",
                 "Reads a trace of another tool and writes it in Tandem's format. Several files are the ranks of "
                 "one run: their times are pooled.",
                 "file", 1);
  spec.most_words = 4096;
  spec.options = {{"importer", "NAME", "by content", "which format it is (tandem list importer)", ""},
                  {"clock", "RATE", "unset", "what a file's cycles are cycles of, for the importers that need it", ""},
                  {"model", "NAME", "as in the file", "name of the model in the trace", ""},
                  {"output", "FILE.h5", "none: it must be given", "the trace, written whole or not at all", ""},
                  format_option()};
  spec.options.back().group = "";
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  if (!line->has("output")) throw usage_error("--output is missing: the file that the trace is written to");
  check_output(line->text("output"));
  check_not_an_input(line->text("output"), line->words());
  auto [trace, report] = import_trace(line->words(), line->has("importer") ? line->text("importer") : "",
                                      line->has("clock") ? "clock=" + line->text("clock") : "");
  if (line->has("model")) trace.model = line->text("model");
  write_trace(trace, line->text("output"));
  const auto facts = trace_facts(trace);
  const auto rows = report_records(report);
  switch (format) {
    case Format::csv:
      print(to_csv(rows));
      break;
    case Format::json: {
      auto object = to_json_value(facts);
      object["remarks"] = remarks_of(trace);
      auto& list = object["report"] = json::array();
      for (const auto& row : rows) list.push_back(to_json_value(row));
      print(object.dump(2) + "\n");
      break;
    }
    case Format::table:
      print(to_list(facts) + trace_remarks(trace) + "\n" + to_table(rows) +
            fmt::format("\nwritten to {}\n", line->text("output")));
      break;
  }
  return 0;
}

}  // namespace tandem
