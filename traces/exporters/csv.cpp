// The trace as CSV (traces/CSV.md): metadata, the table of layers, and a section for each thing that is no layer.
// Every column is there and nothing is left to a default, so that the csv importer gives the same trace back.
#include <fmt/format.h>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"
#include "traces/csv_fields.hpp"
#include "traces/exporter.hpp"
#include "traces/hdf5_file.hpp"

namespace tandem {
namespace {

const std::vector<std::string> kTimes = {"forward_s", "backward_data_s", "backward_weight_s", "update_s"};

std::string yes_or_no(bool flag) {
  return flag ? "yes" : "no";
}

std::string metadata_lines(const Trace& trace) {
  std::string text = fmt::format("# {} = {}\n", kCsvTraceKey, Trace::kFormatVersion);
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) text += fmt::format("# {} = {}\n", key, csv_cell(value));
  };
  add("model", trace.model);
  add("recorder", trace.recorder);
  add("framework", trace.framework);
  add("framework_version", trace.framework_version);
  add("device", trace.device);
  if (trace.threads != 0) add("threads", fmt::format("{}", trace.threads));
  if (trace.clock_hz != 0) add("clock_hz", fmt::format("{}", trace.clock_hz));
  text += fmt::format("# dtype = {}\n", csv_cell(trace.dtype));
  add("layout", trace.layout);
  add("batch", fmt::format("{}", trace.batch));
  add("cache_mode", trace.cache_mode);
  add("date", trace.date);
  return text;
}

void add_samples(std::vector<std::string>& cells, const std::array<Samples, kPasses>& samples) {
  for (const auto& pass : samples) cells.push_back(csv_samples(pass));
}

std::vector<std::string> layer_header() {
  std::vector<std::string> header = {"layer",
                                     "kind",
                                     "inputs",
                                     "input_shapes",
                                     "output_shape",
                                     "kernel",
                                     "stride",
                                     "pad_begin",
                                     "pad_end",
                                     "dilation",
                                     "groups",
                                     "in_place",
                                     "needs_input_gradient",
                                     "backward_is_joint",
                                     "parameters",
                                     "activation_bytes",
                                     "workspace_bytes",
                                     "flops_forward",
                                     "flops_backward_data",
                                     "flops_backward_weight",
                                     "flops_update"};
  header.insert(header.end(), kTimes.begin(), kTimes.end());
  return header;
}

std::string producers(const Trace& trace, const Layer& layer) {
  if (layer.inputs.empty()) return std::string(kCsvModelInput);
  std::vector<std::string> names;
  for (const LayerId input : layer.inputs) names.push_back(trace.layers[input.index()].name);
  return csv_names(names);
}

std::string layer_line(const Trace& trace, const Layer& layer) {
  std::vector<std::string> cells = {layer.name,
                                    std::string(to_text(layer.kind)),
                                    producers(trace, layer),
                                    csv_shapes(layer.input_shapes),
                                    csv_shape(layer.output_shape),
                                    csv_window(layer.kernel),
                                    csv_window(layer.stride),
                                    csv_window(layer.pad_begin),
                                    csv_window(layer.pad_end),
                                    csv_window(layer.dilation),
                                    fmt::format("{}", layer.groups),
                                    yes_or_no(layer.in_place),
                                    yes_or_no(layer.needs_input_gradient),
                                    yes_or_no(layer.backward_is_joint),
                                    csv_parameters(layer.parameters),
                                    fmt::format("{}", layer.activation_bytes.count()),
                                    fmt::format("{}", layer.workspace_bytes.count())};
  for (const Flops flops : layer.flops) cells.push_back(fmt::format("{}", flops.count()));
  add_samples(cells, layer.samples);
  return csv_line(cells);
}

std::string splits_section(const Trace& trace) {
  std::vector<std::string> header = {"layer", "axis", "fraction", "input_shape", "output_shape"};
  header.insert(header.end(), kTimes.begin(), kTimes.end());
  std::string text;
  for (const auto& layer : trace.layers) {
    for (const auto& split : layer.splits) {
      std::vector<std::string> cells = {layer.name, std::string(to_text(split.axis)), fmt::format("{}", split.fraction),
                                        csv_shape(split.input_shape), csv_shape(split.output_shape)};
      add_samples(cells, split.samples);
      text += csv_line(cells);
    }
  }
  return text.empty() ? text : "\n[splits]\n" + csv_line(header) + text;
}

// The recorded batch is one of them: that is where its whole-iteration samples stand.
std::string iterations_section(const Trace& trace) {
  std::string text;
  const auto add = [&](const WholeIteration& whole) {
    text += csv_line({fmt::format("{}", whole.batch), csv_samples(whole.forward), csv_samples(whole.backward),
                      csv_samples(whole.update)});
  };
  const WholeIteration own{trace.batch, trace.iteration_forward, trace.iteration_backward, trace.iteration_update};
  if (own != WholeIteration{trace.batch, {}, {}, {}}) add(own);
  for (const auto& other : trace.other_batches) add(other);
  return text.empty() ? text : "\n[iterations]\nbatch,forward_s,backward_s,update_s\n" + text;
}

std::string other_sections(const Trace& trace) {
  std::string text;
  if (!trace.outside.empty()) text += "\n[outside]\nkind,time_s\n";
  for (const auto& time : trace.outside) {
    text += csv_line({std::string(to_text(time.kind)), csv_samples(time.samples)});
  }
  if (!trace.collectives.empty()) text += "\n[collectives]\noperation,bytes,duration_s\n";
  for (const auto& collective : trace.collectives) {
    text += csv_line({collective.operation, fmt::format("{}", collective.bytes.count()),
                      fmt::format("{}", collective.duration.count())});
  }
  if (!trace.notes.empty()) text += "\n[notes]\nnote\n";
  for (const auto& note : trace.notes) text += csv_line({note});
  return text;
}

class CsvExporter : public Exporter {
 public:
  [[nodiscard]] std::vector<std::string> extensions() const override { return {".csv"}; }

  [[nodiscard]] std::string write(const Trace& trace) const override {
    std::string text = metadata_lines(trace) + csv_line(layer_header());
    for (const auto& layer : trace.layers) text += layer_line(trace, layer);
    text += splits_section(trace) + iterations_section(trace) + other_sections(trace);
    if (!is_storable_text(text)) throw input_error("a text of the trace is not UTF-8, or has a NUL in it");
    return text;
  }

  [[nodiscard]] std::vector<std::string> cannot_carry(const Trace&) const override { return {}; }
};

std::unique_ptr<Exporter> make_csv(const Arguments&, const Exporter::PluginContext&) {
  return std::make_unique<CsvExporter>();
}

TANDEM_REGISTER(Exporter, csv_exporter, "csv", "one table of layers for spreadsheets, and all else behind it", make_csv,
                {})

}  // namespace
}  // namespace tandem
