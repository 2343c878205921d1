// tandem trace export: a trace in another tool's format, and what that format has no place for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "sim/cli/output.hpp"
#include "sim/cli/trace_commands.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "traces/exporter.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

Record facts_of(const Exported& exported, const Trace& trace, const std::string& path) {
  return {{"output", "1", path},
          {"exporter", "1", exported.exporter},
          {"model", "1", trace.model},
          {"layers", "1", static_cast<std::int64_t>(trace.layers.size())},
          {"file_bytes", "bytes", static_cast<std::int64_t>(exported.bytes)}};
}

std::string as_text(const Exported& exported, const Record& facts, const std::string& path) {
  auto text = to_list(facts);
  if (exported.cannot_carry.empty()) {
    text += "\nnothing of the trace is missing in the file\n";
  } else {
    text += "\nthe format has no place for:\n";
    for (const auto& what : exported.cannot_carry) text += "  " + what + "\n";
  }
  return text + fmt::format("\nwritten to {}\n", path);
}

}  // namespace

int trace_export(const std::vector<std::string>& arguments) {
  auto spec =
      trace_spec("tandem trace export NAME|FILE --output FILE [options]",
                 "Writes a trace in another tool's format, and says what that format has no place for.", "trace", 1);
  spec.options = {{"exporter", "NAME", "by the output's extension", "which format it is (tandem list exporter)", ""},
                  {"output", "FILE", "none: it must be given",
                   "the file, written whole or not at all; packed with gzip where its name ends in .gz", ""},
                  format_option()};
  spec.options.back().group = "";
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  if (!line->has("output")) throw usage_error("--output is missing: the file that the trace is written to");
  const auto& path = line->text("output");
  const auto exporter = line->has("exporter") ? line->text("exporter") : exporter_for(path);
  (void)Registry<Exporter>::instance().make(exporter);  // a mistake in it is found before the trace is read
  check_output(path);
  const auto& name = line->words()[0];
  check_not_an_input(path, {name});
  const auto trace = trace_or_model(name);
  const auto exported = with_context(name, [&] { return export_trace(trace, path, exporter); });
  auto facts = facts_of(exported, trace, path);
  switch (format) {
    case Format::csv:
      facts.push_back({"cannot_carry", "1", fmt::format("{}", fmt::join(exported.cannot_carry, "; "))});
      print(to_csv({facts}));
      break;
    case Format::json: {
      auto object = to_json_value(facts);
      object["cannot_carry"] = exported.cannot_carry;
      print(object.dump(2) + "\n");
      break;
    }
    case Format::table:
      print(as_text(exported, facts, path));
      break;
  }
  return 0;
}

}  // namespace tandem
