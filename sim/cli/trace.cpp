// tandem trace: what traces there are, what is inside, sanity. Other formats in and out are in files of their own.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/cli/output.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/cli/trace_commands.hpp"
#include "sim/cli/trace_memory.hpp"
#include "sim/cli/trace_tables.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"
#include "traces/models/models.hpp"

namespace tandem {

CommandSpec trace_spec(const char* synopsis, const char* help, const char* word, std::size_t words) {
  CommandSpec spec;
  spec.synopsis = synopsis;
  spec.help = help;
  spec.word_name = word;
  spec.least_words = spec.most_words = words;
  return spec;
}

Trace trace_or_model(const std::string& name) {
  const auto models = model_names();
  return std::find(models.begin(), models.end(), name) == models.end() ? load_trace(name) : build_model(name, 1);
}

namespace {

using json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

int list_traces(const Words& arguments) {
  auto spec =
      trace_spec("tandem trace list [options]", "Shipped traces, and models whose layers are built in.", "word", 0);
  spec.options = {format_option()};
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  std::vector<Record> rows;
  const auto add = [&](const std::string& name, const char* kind, const Trace& trace, Seconds time) {
    rows.push_back({{"name", "1", name},
                    {"kind", "1", std::string(kind)},
                    {"batch", "1", trace.batch},
                    {"layers", "1", static_cast<std::int64_t>(trace.layers.size())},
                    {"parameters", "1", trace.parameter_count()},
                    {"iteration_time_s", "s", time.count()},
                    {"device", "1", trace.device}});
  };
  for (const auto& name : shipped_traces()) {
    const auto trace = load_trace(name);
    add(name, "recorded", trace,
        trace.total(Pass::forward) + trace.total(Pass::backward_data) + trace.total(Pass::backward_weight) +
            trace.total(Pass::update));
  }
  for (const auto& name : model_names()) add(name, "built-in, without times", build_model(name, 1), Seconds{});
  print_records(format_of(*line), rows);
  return 0;
}

int show_memory(const CommandLine& line, const Trace& trace) {
  PartitionOptions options;
  options.batch = line.has("batch") ? parse_integer(line.text("batch"), 1, 1'048'576, "--batch") : trace.batch;
  if (line.has("optimizer")) options.optimizer = line.text("optimizer");
  (void)optimizer_copies(options.optimizer);
  const auto report = memory_report(trace, options);
  switch (format_of(line)) {
    case Format::csv:
      print(to_csv(report.devices));
      break;
    case Format::json: {
      auto object = to_json_value(report.use);
      auto& list = object["devices"] = json::array();
      for (const auto& device : report.devices) list.push_back(to_json_value(device));
      print(object.dump(2) + "\n");
      break;
    }
    case Format::table:
      print(to_list(report.use) + "\n" + to_table(report.devices) +
            "\nlibraries' own needs (context, kernel workspaces, fragmentation) come on top: often 1 to 2 GB\n");
      break;
  }
  return 0;
}

int show_trace(const Words& arguments) {
  auto spec = trace_spec("tandem trace show NAME|FILE [options]",
                         "A trace's facts, its layers, and the sum of its layers against the measured whole iteration.",
                         "trace", 1);
  spec.options = {{"top", "N", "all, in their order", "only the N costliest layers, costliest first", ""},
                  {"memory", "", "no", "instead of layers: what a replica needs, and which devices hold it", ""},
                  {"batch", "SAMPLES", "as the trace", "of the replica, for --memory", ""},
                  {"optimizer", "NAME", "momentum", "sgd, momentum or adam, for --memory", ""},
                  format_option()};
  spec.options.back().group = "";
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto top = line->has("top") ? parse_integer(line->text("top"), 1, 1'000'000, "--top") : 0;
  const auto trace = trace_or_model(line->words()[0]);
  if (line->has("memory")) return show_memory(*line, trace);
  for (const char* name : {"batch", "optimizer"}) {
    if (line->has(name)) throw usage_error(fmt::format("--{} says something about --memory only", name));
  }
  const auto facts = trace_facts(trace);
  const auto layers = layer_records(trace, static_cast<std::size_t>(top));
  if (format == Format::csv) {
    print(to_csv(layers));
  } else if (format == Format::json) {
    auto object = to_json_value(facts);
    object["remarks"] = remarks_of(trace);
    auto& list = object["layer_list"] = json::array();
    for (const auto& layer : layers) list.push_back(to_json_value(layer));
    print(object.dump(2) + "\n");
  } else {
    print(to_list(facts) + "\n" + to_table(layers) + trace_remarks(trace));
  }
  return 0;
}

int check_trace(const Words& arguments) {
  auto spec = trace_spec("tandem trace check NAME|FILE [options]",
                         "Reads a trace and checks it; exit status 1 where it is not sound.", "trace", 1);
  spec.options = {format_option()};
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto& name = line->words()[0];
  const auto trace = trace_or_model(name);
  with_context(name, [&] { validate(trace); });
  if (format != Format::table) {
    Record row{{"trace", "1", name}, {"sound", "1", std::string("yes")}};
    row.push_back({"remarks", "1", fmt::format("{}", fmt::join(remarks_of(trace), "; "))});
    print_records(format, {row});
  } else {
    print(fmt::format("{}: sound, {} layers, {} parameters\n", name, trace.layers.size(), trace.parameter_count()) +
          trace_remarks(trace));
  }
  return 0;
}

int trace_command(const Words& arguments) {
  const std::vector<Subcommand> commands{{"list", "shipped traces and built-in models", list_traces},
                                         {"show", "what is inside a trace", show_trace},
                                         {"import", "another tool's format in", trace_import},
                                         {"export", "another tool's format out", trace_export},
                                         {"check", "whether a trace is sound", check_trace}};
  std::string help = "Usage: tandem trace COMMAND [options]\n\nCommands:\n";
  Words names;
  for (const auto& command : commands) {
    help += fmt::format("  {:<8}{}\n", command.name, command.help);
    names.push_back(command.name);
  }
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    print(help);
    return 0;
  }
  for (const auto& command : commands) {
    if (command.name == arguments[0]) return command.function({arguments.begin() + 1, arguments.end()});
  }
  throw usage_error(fmt::format("unknown command 'trace {}'{}", arguments[0], suggestion(arguments[0], names)));
}

}  // namespace

Subcommand trace_subcommand() {
  return {"trace", "list, show, import, export and check traces", trace_command};
}

}  // namespace tandem
