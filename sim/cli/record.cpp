// tandem record: a trace of a built-in CNN, recorded on this machine.
#include <fmt/format.h>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/cli/trace_tables.hpp"
#include "sim/core/error.hpp"
#include "sim/results/text_table.hpp"
#include "traces/models/models.hpp"
#include "traces/recorder/recorder.hpp"

namespace tandem {
namespace {

CommandSpec record_spec() {
  const RecordOptions defaults;
  CommandSpec spec;
  spec.synopsis = "tandem record --output FILE.h5 [options]";
  spec.help = "Records a trace of a built-in CNN on this machine, with oneDNN: every pass of every layer, many times.";
  spec.options = {{"model", "NAME", defaults.model, fmt::format("one of {}", fmt::join(model_names(), ", ")), ""},
                  {"batch", "SAMPLES", fmt::format("{}", defaults.batch), "samples in an iteration", ""},
                  {"repetitions", "N", fmt::format("{}", defaults.repetitions), "timed iterations of each sort", ""},
                  {"warmup", "N", fmt::format("{}", defaults.warmup), "iterations thrown away first", ""},
                  {"threads", "N", fmt::format("{}", defaults.threads), "threads of the library", ""},
                  {"output", "FILE.h5", "none: it must be given", "the trace, written whole or not at all", ""},
                  format_option()};
  spec.options.back().group = "";
  return spec;
}

RecordOptions options_of(const CommandLine& line) {
  const auto whole = [&](const char* name, std::int64_t least, std::int64_t most) {
    return parse_integer(line.text(name), least, most, std::string("--") + name);
  };
  RecordOptions options;
  options.model = line.text("model");
  options.batch = whole("batch", 1, 65'536);
  options.repetitions = static_cast<int>(whole("repetitions", 1, 100'000));
  options.warmup = static_cast<int>(whole("warmup", 0, 100'000));
  options.threads = static_cast<int>(whole("threads", 1, 4096));
  return options;
}

int record_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(record_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  auto options = options_of(*line);
  (void)build_model(options.model, 1);  // an unknown name is the first thing to say
  if (!line->has("output")) throw usage_error("--output is missing: the file that the trace is written to");
  if (!recorder_available()) {
    throw usage_error("this tandem was built without its recorder: build it with oneDNN and -DTANDEM_RECORDER=ON");
  }
  const auto& path = line->text("output");
  check_output(path);
  Trace trace;
  {
    Progress progress("recording " + options.model);
    options.progress = [&](int done, int total, const std::string& text) { progress.show(done, total, text); };
    trace = record(options);
  }
  validate(trace);
  write_trace(trace, path);
  const auto facts = trace_facts(trace);
  switch (format) {
    case Format::json:
      print(to_json(facts));
      break;
    case Format::csv:
      print(to_csv(std::vector<Record>{facts}));
      break;
    case Format::table:
      print(to_list(facts) + trace_remarks(trace) + fmt::format("\nwritten to {}\n", path));
      break;
  }
  return 0;
}

}  // namespace

Subcommand record_subcommand() {
  return {"record", "records a trace of a built-in CNN on this machine", record_command};
}

}  // namespace tandem
