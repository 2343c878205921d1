// tandem record: a trace of a built-in CNN, recorded on this machine.
#include <fmt/format.h>

#include "sim/cli/output.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/cli/trace_tables.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "sim/core/units.hpp"
#include "sim/results/text_table.hpp"
#include "traces/models/models.hpp"
#include "traces/recorder/recorder.hpp"

namespace tandem {
namespace {

constexpr const char* kSplits = "Split curves (what layers cost at parts of their shape)";

// "batch,height"
std::vector<SplitCurve::Axis> parse_axes(const std::string& text) {
  using Axis = SplitCurve::Axis;
  const std::vector<Axis> all = {Axis::batch, Axis::height, Axis::output_channel, Axis::input_channel};
  if (text == "all") return all;
  if (text == "none") return {};
  std::vector<Axis> axes;
  for (const auto& word : split(text, ',')) {
    const auto axis = split_axis_from_text(word);
    if (axis && *axis != Axis::width) {
      axes.push_back(*axis);
      continue;
    }
    std::vector<std::string> names = {"all", "none"};
    for (const Axis known : all) names.emplace_back(to_text(known));
    throw usage_error(fmt::format("--splits: no axis '{}'{}", word, suggestion(word, names)));
  }
  return axes;
}

// "3/8" or "0.375"
double parse_fraction(const std::string& text) {
  const auto parts = split(text, '/');
  double fraction = 0;
  if (parts.size() == 2) {
    constexpr std::int64_t most = 1'000'000;
    fraction = static_cast<double>(parse_integer(parts[0], 1, most, "--split-fractions")) /
               static_cast<double>(parse_integer(parts[1], 1, most, "--split-fractions"));
  } else {
    fraction = parse_number(text, "--split-fractions");
  }
  if (fraction > 0 && fraction < 1) return fraction;
  throw usage_error(fmt::format("--split-fractions: '{}' is not above 0 and below 1", text));
}

CommandSpec record_spec() {
  const RecordOptions defaults;
  CommandSpec spec;
  spec.synopsis = "tandem record --output FILE.h5 [options]";
  spec.help = "Records a trace of a built-in CNN on this machine, with oneDNN: every pass of every layer, many times.";
  spec.options = {
      {"model", "NAME", defaults.model, fmt::format("one of {}", fmt::join(model_names(), ", ")), ""},
      {"batch", "SAMPLES", fmt::format("{}", defaults.batch), "samples in an iteration", ""},
      {"repetitions", "N", fmt::format("{}", defaults.repetitions),
       "timed iterations of each sort; 0: split curves only", ""},
      {"warmup", "N", fmt::format("{}", defaults.warmup), "iterations thrown away first", ""},
      {"splits", "AXES", "all",
       "split curves: all, none, or some of batch (the network again at smaller batches), height, "
       "output-channel and input-channel (parts of convolutions and fully connected layers), joined by commas",
       kSplits},
      {"split-fractions", "LIST", "1/2,1/4,1/8", "parts to time, of the batch, the rows or the channels", kSplits},
      {"split-repetitions", "N", fmt::format("{}", defaults.splits.repetitions), "timings of each part", kSplits},
      {"split-layers", "NAMES", "all", "the layers that get split curves, joined by commas", kSplits},
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
  options.repetitions = static_cast<int>(whole("repetitions", 0, 10'000));
  options.warmup = static_cast<int>(whole("warmup", 0, 10'000));
  options.threads = static_cast<int>(whole("threads", 1, 4096));
  options.splits.axes = parse_axes(line.text("splits"));
  options.splits.fractions.clear();
  for (const auto& text : split(line.text("split-fractions"), ',')) {
    options.splits.fractions.push_back(parse_fraction(text));
  }
  if (options.splits.fractions.empty()) throw usage_error("--split-fractions: empty; 1/2,1/4 for example is accepted");
  options.splits.repetitions = static_cast<int>(whole("split-repetitions", 1, 10'000));
  if (line.text("split-layers") != "all") options.splits.layers = split(line.text("split-layers"), ',');
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
