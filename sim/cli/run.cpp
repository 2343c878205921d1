// tandem run: one prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/cli/output.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/text.hpp"
#include "sim/results/text_table.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/machine.hpp"
#include "sim/study/setup.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

CommandSpec run_spec() {
  CommandSpec spec;
  spec.synopsis = "tandem run [options]";
  spec.help =
      "Predicts one training iteration of a recorded CNN on a cluster: its time, where the time goes and which link is "
      "the bottleneck.";
  spec.options = run_option_specs();
  spec.options.push_back(
      {"output", "FILE.h5", "none", "result file, written whole or not at all", "Simulation and output", 0, false, 1});
  auto format = format_option();
  format.group = "Simulation and output";
  spec.options.push_back(format);
  return spec;
}

json as_json(const RunConfig& config, const Prediction& prediction) {
  auto object = to_json_value(prediction.row);
  object["wall_time_s"] = prediction.wall_time_s;
  object["assumptions"] = prediction.assumptions;
  for (const auto& [bytes, choice] : prediction.choices) {
    object["choices"].push_back(
        {{"size_bytes", bytes}, {"algorithm", choice.picked()}, {"candidates", to_json_value(choice)}});
  }
  auto& options = object["options"] = json::object();
  for (const auto& [name, text] : config.options) options[name] = text;
  if (!prediction.explanation.empty()) {
    const auto& explanation = prediction.explanation.front();
    object["explanation"] = {{"sentences", explanation.sentences},
                             {"iteration_time_double_bandwidth_s", explanation.with_double_bandwidth.count()},
                             {"iteration_time_half_latency_s", explanation.with_half_latency.count()},
                             {"iteration_time_double_device_speed_s", explanation.with_double_device_speed.count()}};
  }
  return object;
}

std::string headline(const RunConfig& config, const Record& row) {
  auto text =
      fmt::format("{} (trace {}), {} on {}, batch {:.0f} a rank\n\n", text_of(row, "model"), config.trace,
                  counted(config.cluster.ranks, "rank"), text_of(row, "instance"), number_of(row, "batch_per_rank"));
  std::vector<std::vector<std::string>> rows{
      {"iteration time", text_of(row, "iteration_time_s")},
      {"throughput", fmt::format("{:.4g} samples/s", number_of(row, "throughput_samples_per_s"))},
      {"scaling efficiency",
       fmt::format("{:.1f} % of {} x {} {}", 100 * number_of(row, "scaling_efficiency"), text_of(row, "ranks"),
                   config.baseline_ranks, config.baseline_ranks == 1 ? "rank" : "ranks")}};
  if (has_failures(config.cluster)) {
    const double healthy = number_of(row, "healthy_iteration_time_s");
    rows.push_back({"without the failures",
                    fmt::format("{} ({:+.1f} %)", text_of(row, "healthy_iteration_time_s"),
                                healthy > 0 ? 100 * (number_of(row, "iteration_time_s") / healthy - 1) : 0.0)});
  }
  return text + aligned(rows, "  ", false);
}

std::string breakdown(const Record& row) {
  const double total = number_of(row, "iteration_time_s");
  std::vector<std::vector<std::string>> rows{{"where the time goes", "mean of ranks", "share", "slowest rank"}};
  const std::pair<const char*, const char*> parts[]{{"compute", "compute_time_s"},
                                                    {"exposed communication", "exposed_comm_time_s"},
                                                    {"pipeline bubble", "bubble_time_s"},
                                                    {"idle", "idle_time_s"},
                                                    {"waiting for input", "input_time_s"}};
  for (const auto& [label, name] : parts) {
    const bool always = std::string(label) == "compute" || std::string(label) == "exposed communication";
    if (!always && number_of(row, std::string(name) + "_max") == 0) continue;
    rows.push_back({label, text_of(row, name),
                    fmt::format("{:.1f} %", total > 0 ? 100 * number_of(row, name) / total : 0.0),
                    text_of(row, std::string(name) + "_max")});
  }
  if (const double gaps = number_of(row, "launch_gap_time_s"); gaps > 0) {
    rows.push_back({"  of it launch gaps", to_text(Seconds(gaps)),
                    fmt::format("{:.1f} %", total > 0 ? 100 * gaps / total : 0.0), to_text(Seconds(gaps))});
  }
  return aligned(rows, "  ");
}

std::string network(const Record& row) {
  std::vector<std::vector<std::string>> rows{
      {"communication in all", fmt::format("{} with transfers under way", text_of(row, "comm_time_s"))},
      {"bottleneck link", fmt::format("{}, {:.1f} % utilized", text_of(row, "bottleneck_link"),
                                      100 * number_of(row, "bottleneck_utilization"))},
      {"bytes injected", text_of(row, "bytes_injected")},
      {"alpha-beta estimate", fmt::format("{}, against {} simulated (closed form: no overlap, no contention)",
                                          text_of(row, "alpha_beta_time_s"), text_of(row, "iteration_time_s"))},
      {"peak memory", fmt::format("{} a rank", text_of(row, "peak_memory_bytes"))},
      {"network", fmt::format("{:.4g} ports and {:.0f} USD a device (assumed prices)",
                              number_of(row, "ports_per_device"), number_of(row, "cost_per_device"))}};
  return aligned(rows, "  ", false);
}

std::string explained(const RunConfig& config, const Explanation& explanation, double time) {
  std::string text = "\nexplanation\n";
  for (const auto& sentence : explanation.sentences) text += "  - " + sentence + "\n";
  const auto what_if = [&](const char* what, Seconds then) {
    return std::vector<std::string>{what, to_text(then),
                                    time > 0 ? fmt::format("{:+.1f} %", 100 * (then.count() / time - 1)) : ""};
  };
  return text + "\n" +
         aligned({{"what if", "iteration time", "change"},
                  what_if("links were twice as fast", explanation.with_double_bandwidth),
                  what_if(config.step_overhead > Seconds{} ? "latencies and step overhead were half"
                                                           : "latencies were half",
                          explanation.with_half_latency),
                  what_if("devices were twice as fast", explanation.with_double_device_speed)},
                 "  ");
}

std::string summary(const RunConfig& config, const Prediction& prediction) {
  const auto& row = prediction.row;
  auto text = headline(config, row) + "\n" + breakdown(row) + "\n" + network(row);
  if (!prediction.explanation.empty()) {
    text += explained(config, prediction.explanation.front(), number_of(row, "iteration_time_s"));
  }
  text += "\nassumptions\n";
  for (const auto& assumption : prediction.assumptions) text += "  - " + assumption + "\n";
  const auto* error = find_field(row, "fidelity_error");
  const auto* off = error == nullptr ? nullptr : std::get_if<double>(&error->value);
  const auto* at = find_field(row, "fidelity_error_ranks");
  const bool is_flow = text_of(row, "fidelity") == "flow";
  return text + fmt::format(
                    "\nfidelity {}: {} flows{}, {:.2f} s\n", text_of(row, "fidelity"), text_of(row, "simulated_flows"),
                    is_flow || off == nullptr ? ""
                    : std::isnan(*off)
                        ? ", its error is not known"
                        : fmt::format(", {:.2g} % off flow at {} ranks", 100 * *off, std::get<std::int64_t>(at->value)),
                    prediction.wall_time_s);
}

int run_command(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(run_spec(), arguments);
  if (!line) return 0;
  const auto format = format_of(*line);
  const auto config = parse_run(given_run_options(*line));
  if (line->has("output")) check_output(line->text("output"));

  const auto prediction = predict(config, [&](const Setup& setup) {
    const int simulations = config.explain ? 4 : 1;
    warn(long_run_warning(asked_fidelity(config.fidelity), setup.efforts * simulations, config.network));
  });
  if (line->has("output")) {
    write_results(line->text("output"), provenance(command_text("run", arguments), {config}),
                  {{prediction.row, prediction.details}});
  }
  switch (format) {
    case Format::json:
      print(as_json(config, prediction).dump(2) + "\n");
      break;
    case Format::csv:
      print(to_csv(std::vector<Record>{prediction.row}));
      break;
    case Format::table:
      print(summary(config, prediction));
      break;
  }
  return 0;
}

}  // namespace

Subcommand run_subcommand() {
  return {"run", "one prediction", run_command};
}

}  // namespace tandem
