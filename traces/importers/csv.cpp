// A table of layers by hand, from a spreadsheet or from the csv exporter: traces/CSV.md describes it.
//
// The file is read into drafts, row by row; what a row leaves open is filled in afterwards, in the order of layers, and
// noted. A file of the exporter (with `# tandem_trace = 1`) leaves nothing open: there an empty cell is an empty value.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/csv_fields.hpp"
#include "traces/hdf5_file.hpp"
#include "traces/importer.hpp"
#include "traces/layer_guess.hpp"
#include "traces/layer_work.hpp"

namespace tandem {
namespace {

using Strings = std::vector<std::string>;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Edit distances are for slips of the finger, not for whatever a damaged file holds.
std::string hint(std::string_view name, const Strings& known) {
  return name.size() <= 40 && known.size() <= 1000 ? suggestion(name, known) : "";
}

// ---- columns ----

struct Unit {
  std::string_view suffix;
  double per_second;
};
constexpr Unit kUnits[] = {{"_s", 1}, {"_ms", 1e3}, {"_us", 1e6}, {"_ns", 1e9}};

struct SectionSpec {
  std::string_view name;
  Strings columns;
  Strings times;  // without their unit
  Strings required;
};

const std::vector<SectionSpec>& sections() {
  static const std::vector<SectionSpec> all = {
      {"layers",
       {"layer",
        "kind",
        "inputs",
        "input_shapes",
        "output_shape",
        "kernel",
        "stride",
        "pad",
        "pad_begin",
        "pad_end",
        "dilation",
        "groups",
        "in_place",
        "needs_input_gradient",
        "backward_is_joint",
        "parameters",
        "parameter_bytes",
        "activation_bytes",
        "workspace_bytes",
        "flops_forward",
        "flops_backward_data",
        "flops_backward_weight",
        "flops_update"},
       {"forward", "backward", "backward_data", "backward_weight", "update"},
       {"layer"}},
      {"splits",
       {"layer", "axis", "fraction", "input_shape", "output_shape"},
       {"forward", "backward", "backward_data", "backward_weight", "update"},
       {"layer", "axis", "fraction", "input_shape", "output_shape"}},
      {"iterations", {"batch"}, {"forward", "backward", "update"}, {"batch"}},
      {"outside", {"kind"}, {"time"}, {"kind"}},
      {"collectives", {"operation", "bytes"}, {"duration"}, {"operation", "bytes"}},
      {"notes", {"note"}, {}, {"note"}},
  };
  return all;
}

std::string canonical(const SectionSpec& spec, std::string name) {
  name = lower(std::move(name));
  if (spec.name != "layers") return name;
  return name == "name" ? "layer" : name == "input_shape" ? "input_shapes" : name;
}

class Header {
 public:
  struct Time {
    std::string column;  // with its unit
    double per_second = 1;
    std::size_t index = 0;
  };

  Header() = default;
  Header(const SectionSpec& spec, const CsvRecord& record) : spec_(&spec), width_(record.cells.size()) {
    with_context(fmt::format("line {}", record.line), [&] {
      for (std::size_t i = 0; i < record.cells.size(); ++i) {
        if (!record.cells[i].blank()) add(canonical(spec, record.cells[i].text), i);
      }
      for (const auto& name : spec.required) {
        if (!columns_.contains(name)) throw input_error(fmt::format("the {} have no column '{}'", spec.name, name));
      }
      if (spec.name == "layers" && times_.empty()) {
        throw input_error("the layers have no column of times, such as 'forward_ms'");
      }
    });
  }

  [[nodiscard]] const SectionSpec& spec() const { return *spec_; }
  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] bool has(const std::string& column) const { return columns_.contains(column); }
  [[nodiscard]] std::optional<std::size_t> index(const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] const Time* time(const std::string& name) const {
    const auto found = times_.find(name);
    return found == times_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool names_column(std::size_t index) const { return used_.contains(index); }

 private:
  void add(const std::string& name, std::size_t index) {
    used_.insert(index);
    if (std::find(spec_->columns.begin(), spec_->columns.end(), name) != spec_->columns.end()) {
      if (!columns_.emplace(name, index).second) throw input_error(fmt::format("column '{}' is there twice", name));
      return;
    }
    Strings known = spec_->columns;
    for (const auto& time : spec_->times) {
      if (name == time) {
        throw input_error(fmt::format("column '{}' has no unit; name it {}_s, {}_ms or {}_us", name, time, time, time));
      }
      for (const auto& unit : kUnits) {
        known.push_back(time + std::string(unit.suffix));
        if (name != known.back()) continue;
        const auto [other, added] = times_.emplace(time, Time{name, unit.per_second, index});
        if (!added) throw input_error(fmt::format("columns '{}' and '{}' say the same", other->second.column, name));
        return;
      }
    }
    throw input_error(fmt::format("the {} have no column {}{}", spec_->name, shown(name), hint(name, known)));
  }

  const SectionSpec* spec_ = nullptr;
  std::size_t width_ = 0;
  std::map<std::string, std::size_t> columns_;
  std::map<std::string, Time> times_;
  std::set<std::size_t> used_;
};

// One row under its header: cells by name, in the types of a trace.
class Row {
 public:
  Row(const Header& header, const CsvRecord& record) : header_(header), record_(record) {
    if (record.cells.size() < header.width()) {
      throw input_error(fmt::format("line {} has {} cells where the header has {}", record.line, record.cells.size(),
                                    header.width()));
    }
    for (std::size_t i = 0; i < record.cells.size(); ++i) {
      if (header.names_column(i) || record.cells[i].blank()) continue;
      throw input_error(fmt::format("line {} has {} in cell {}, where the header has no column", record.line,
                                    shown(record.cells[i].text), i + 1));
    }
  }

  [[nodiscard]] int line() const { return record_.line; }

  [[noreturn]] void fail(std::string_view column, std::string_view value, std::string_view expected) const {
    throw input_error(fmt::format("line {}: {} is {}; {}", record_.line, column, shown(value), expected));
  }

  // Nothing where there is no such column or its cell is empty.
  [[nodiscard]] std::optional<std::string> text(const std::string& column) const {
    const auto index = header_.index(column);
    if (!index || record_.cells[*index].text.empty()) return std::nullopt;
    return record_.cells[*index].text;
  }

  [[nodiscard]] std::string needed(const std::string& column) const {
    auto value = text(column);
    if (!value) throw input_error(fmt::format("line {}: {} is missing", record_.line, column));
    return *value;
  }

  // The cell through a function that may refuse it; nothing where it is empty.
  template <class Parse>
  [[nodiscard]] auto value(const std::string& column, std::string_view expected, Parse&& parse_cell) const
      -> decltype(parse_cell(std::string())) {
    const auto cell = text(column);
    if (!cell) return std::nullopt;
    auto parsed = parse_cell(*cell);
    if (!parsed) fail(column, *cell, expected);
    return parsed;
  }

  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& column, std::int64_t least,
                                                    std::int64_t most) const {
    const auto cell = text(column);
    if (!cell) return std::nullopt;
    const auto number = parse<std::int64_t>(*cell);
    if (!number || *number < least || *number > most) {
      fail(column, *cell, fmt::format("a whole number from {} to {} is expected", least, most));
    }
    return number;
  }

  [[nodiscard]] std::optional<double> number(const std::string& column) const {
    return value(column, "a number, 0 or more, is expected", [](const std::string& cell) {
      const auto real = parse<double>(cell);
      return real && std::isfinite(*real) && *real >= 0 ? real : std::nullopt;
    });
  }

  [[nodiscard]] std::optional<bool> flag(const std::string& column) const {
    return value(column, "yes or no is expected", [](const std::string& cell) -> std::optional<bool> {
      const auto word = lower(cell);
      if (word == "yes" || word == "true" || word == "1") return true;
      if (word == "no" || word == "false" || word == "0") return false;
      return std::nullopt;
    });
  }

  [[nodiscard]] std::optional<Shape> shape(const std::string& column) const {
    return value(column, "extents of 1 or more such as 32x3x224x224 are expected", parse_csv_shape);
  }

  [[nodiscard]] std::vector<int> window(const std::string& column, int least) const {
    const auto cell = text(column);
    if (!cell) return {};
    auto extents = parse_csv_window(*cell, least);
    if (!extents) fail(column, *cell, fmt::format("extents of {} or more such as 3x3 are expected", least));
    return std::move(*extents);
  }

  [[nodiscard]] Samples samples(const std::string& name) const {
    const auto* time = header_.time(name);
    if (time == nullptr || record_.cells[time->index].text.empty()) return {};
    const auto& cell = record_.cells[time->index].text;
    auto parsed = parse_csv_samples(cell, time->per_second);
    if (!parsed) fail(time->column, cell, "numbers, 0 or more and joined with ';', are expected");
    return *parsed;
  }

 private:
  const Header& header_;
  const CsvRecord& record_;
};

// ---- the file ----

// A layer and what its row did not say.
struct Draft {
  Layer layer;
  int line = 0;
  bool has_kind = false, has_input_shapes = false, has_output_shape = false, has_gradient_flag = false;
  bool has_activation_bytes = false, has_flops = false;
  std::optional<std::int64_t> parameter_count, parameter_bytes;
};

struct File {
  Trace trace;  // everything but the layers
  std::vector<Draft> drafts;
  bool complete = false;  // of the exporter: nothing is left open
  std::int64_t comments = 0;
};

class Parser {
 public:
  File read(std::string_view content) {
    CsvReader reader(content);
    while (const auto record = reader.next()) {
      switch (record->kind) {
        case CsvRecord::Kind::metadata:
          set_metadata(*record);
          break;
        case CsvRecord::Kind::comment:
          ++file_.comments;
          break;
        case CsvRecord::Kind::section:
          start_section(*record);
          break;
        case CsvRecord::Kind::row:
          add_row(*record);
          break;
      }
    }
    if (file_.drafts.empty()) throw input_error("there are no layers in the file");
    return std::move(file_);
  }

 private:
  // ---- metadata ----

  void set_metadata(const CsvRecord& record) {
    auto& trace = file_.trace;
    const std::map<std::string, std::string*> texts = {
        {"model", &trace.model},   {"recorder", &trace.recorder},
        {"device", &trace.device}, {"framework", &trace.framework},
        {"dtype", &trace.dtype},   {"framework_version", &trace.framework_version},
        {"layout", &trace.layout}, {"cache_mode", &trace.cache_mode},
        {"date", &trace.date}};
    const auto key = lower(record.cells[0].text);
    const auto& value = record.cells[1].text;
    if (!keys_.insert(key).second) throw input_error(fmt::format("line {} gives {} again", record.line, shown(key)));
    if (const auto found = texts.find(key); found != texts.end()) {
      *found->second = value;
    } else if (key == "batch") {
      trace.batch = whole(record, 1, 1 << 24);
    } else if (key == "threads") {
      trace.threads = static_cast<int>(whole(record, 0, std::numeric_limits<int>::max()));
    } else if (key == "clock_hz") {
      const auto hertz = parse<double>(value);
      if (!hertz || !std::isfinite(*hertz) || *hertz < 0) fail_value(record, "hertz, 0 or more, are expected");
      trace.clock_hz = *hertz;
    } else if (key == kCsvTraceKey) {
      (void)whole(record, Trace::kFormatVersion, Trace::kFormatVersion);
      if (section_ != nullptr) fail_value(record, "it stands above the layers");
      file_.complete = true;
    } else {
      Strings known = {"batch", "threads", "clock_hz"};
      for (const auto& [name, text] : texts) known.push_back(name);
      throw input_error(fmt::format("line {} has {}, which is no key of a trace{} (a comment has no '=')", record.line,
                                    shown(key), hint(key, known)));
    }
  }

  [[noreturn]] static void fail_value(const CsvRecord& record, const std::string& expected) {
    throw input_error(fmt::format("line {} has {} = {}; {}", record.line, record.cells[0].text,
                                  shown(record.cells[1].text), expected));
  }

  static std::int64_t whole(const CsvRecord& record, std::int64_t least, std::int64_t most) {
    const auto value = parse<std::int64_t>(record.cells[1].text);
    if (!value || *value < least || *value > most) {
      fail_value(record, least == most ? fmt::format("{} is expected", least)
                                       : fmt::format("a whole number from {} to {} is expected", least, most));
    }
    return *value;
  }

  // ---- sections ----

  void start_section(const CsvRecord& record) {
    const auto name = lower(record.cells[0].text);
    Strings known;
    section_ = nullptr;
    for (const auto& spec : sections()) {
      if (spec.name == name) section_ = &spec;
      known.emplace_back(spec.name);
    }
    if (section_ == nullptr) {
      throw input_error(
          fmt::format("line {} starts an unknown section {}{}", record.line, shown(name), hint(name, known)));
    }
    header_.reset();
    check_new(record);
  }

  void check_new(const CsvRecord& record) {
    if (!seen_.insert(section_->name).second) {
      throw input_error(fmt::format("line {} starts the {} again", record.line, section_->name));
    }
  }

  void add_row(const CsvRecord& record) {
    if (section_ == nullptr) {
      section_ = &sections()[0];
      check_new(record);
    }
    if (!header_) {
      if (section_ == &sections()[0]) refuse_others(record);
      header_.emplace(*section_, record);
      return;
    }
    const bool blank =
        std::all_of(record.cells.begin(), record.cells.end(), [](const CsvCell& cell) { return cell.text.empty(); });
    if (blank && section_->name != "notes") return;
    const Row row(*header_, record);
    if (section_->name == "layers") add_layer(row);
    if (section_->name == "splits") add_split(row);
    if (section_->name == "iterations") add_iteration(row);
    if (section_->name == "outside") add_outside(row);
    if (section_->name == "collectives") add_collective(row);
    if (section_->name == "notes") file_.trace.notes.push_back(row.text("note").value_or(""));
  }

  // Tables that people may take for one of layers.
  static void refuse_others(const CsvRecord& record) {
    std::set<std::string> names;
    for (const auto& cell : record.cells) names.insert(lower(cell.text));
    if (names.contains("layer") || names.contains("name")) return;
    if (names.contains("filt_w") || names.contains("out_c")) {
      throw input_error(
          "a table of single convolutions (DeepBench's form), not of a network: its rows are no layers that feed each "
          "other");
    }
    if (record.cells.size() == 1 && record.cells[0].text.find_first_of(";\t") != std::string::npos) {
      throw input_error(
          fmt::format("line {}: cells are separated with commas, not with semicolons or tabs", record.line));
    }
  }

  // ---- layers ----

  void add_layer(const Row& row) {
    Draft draft;
    auto& layer = draft.layer;
    draft.line = row.line();
    layer.name = row.needed("layer");
    if (const auto kind = row.text("kind")) {
      draft.has_kind = true;
      const auto known = op_kind_from_text(lower(*kind));
      if (!known) row.fail("kind", *kind, "known kinds are" + known_kinds());
      layer.kind = *known;
    }
    set_inputs(row, layer);
    set_shapes(row, draft);
    layer.groups = static_cast<int>(row.integer("groups", 1, std::numeric_limits<int>::max()).value_or(1));
    layer.in_place = row.flag("in_place").value_or(false);
    draft.has_gradient_flag = row.text("needs_input_gradient").has_value();
    layer.needs_input_gradient = row.flag("needs_input_gradient").value_or(true);
    set_parameters(row, draft);
    draft.has_activation_bytes = row.text("activation_bytes").has_value();
    layer.activation_bytes = Bytes(row.integer("activation_bytes", 0, kMostBytes).value_or(0));
    layer.workspace_bytes = Bytes(row.integer("workspace_bytes", 0, kMostBytes).value_or(0));
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      constexpr const char* columns[] = {"flops_forward", "flops_backward_data", "flops_backward_weight",
                                         "flops_update"};
      const auto flops = row.number(columns[pass]);
      draft.has_flops = draft.has_flops || flops.has_value();
      layer.flops[pass] = Flops(flops.value_or(0));
    }
    layer.backward_is_joint = set_times(row, layer.samples);
    if (const auto joint = row.flag("backward_is_joint")) layer.backward_is_joint = *joint;
    const auto id = file_.drafts.size();
    if (id == kMostLayers) throw input_error(fmt::format("line {}: more than {} layers", row.line(), kMostLayers));
    if (const auto [first, added] = ids_.emplace(layer.name, id); !added) {
      throw input_error(fmt::format("line {} gives the layer {} again (first on line {})", row.line(),
                                    shown(layer.name), file_.drafts[first->second].line));
    }
    file_.drafts.push_back(std::move(draft));
  }

  static std::string known_kinds() {
    std::string text;
    for (int i = 0; i <= static_cast<int>(OpKind::other); ++i) {
      text += fmt::format(" {}", to_text(static_cast<OpKind>(i)));
    }
    return text;
  }

  [[noreturn]] static void refuse_gap(const Row& row, const char* column) {
    throw input_error(fmt::format("line {}: {} is not complete; without the line '# {} = {}' it would be filled in",
                                  row.line(), column, kCsvTraceKey, Trace::kFormatVersion));
  }

  void set_inputs(const Row& row, Layer& layer) const {
    const auto cell = row.text("inputs");
    if (!cell) {
      if (file_.complete) refuse_gap(row, "inputs");
      if (!file_.drafts.empty()) layer.inputs = {id_of(file_.drafts.size() - 1)};
      return;
    }
    const auto names = parse_csv_names(*cell);
    if (names.size() == 1 && names[0].is_model_input) return;
    for (const auto& [name, is_model_input] : names) {
      if (is_model_input) {
        row.fail("inputs", *cell, "a layer reads either the model's input (-) or other layers");
      }
      const auto found = ids_.find(name);
      if (found == ids_.end()) {
        Strings known;
        for (std::size_t i = 0; i < std::min<std::size_t>(file_.drafts.size(), 1001); ++i) {
          known.push_back(file_.drafts[i].layer.name);
        }
        throw input_error(fmt::format("line {}: inputs has {}, which is no layer above this row{}", row.line(),
                                      shown(name), known.empty() ? "" : hint(name, known)));
      }
      layer.inputs.push_back(id_of(found->second));
    }
  }

  static LayerId id_of(std::size_t index) { return LayerId{static_cast<std::int32_t>(index)}; }

  static void set_shapes(const Row& row, Draft& draft) {
    auto& layer = draft.layer;
    const auto shapes =
        row.value("input_shapes", "extents of 1 or more such as 32x3x224x224, joined with ';'", parse_csv_shapes);
    draft.has_input_shapes = shapes.has_value();
    layer.input_shapes = shapes.value_or(std::vector<Shape>());
    const auto output = row.shape("output_shape");
    draft.has_output_shape = output.has_value();
    layer.output_shape = output.value_or(Shape());
    layer.kernel = row.window("kernel", 1);
    layer.stride = row.window("stride", 1);
    layer.dilation = row.window("dilation", 1);
    layer.pad_begin = row.window("pad_begin", 0);
    layer.pad_end = row.window("pad_end", 0);
    if (const auto pad = row.text("pad")) {
      if (!layer.pad_begin.empty() || !layer.pad_end.empty()) {
        row.fail("pad", *pad, "it is pad, or pad_begin and pad_end");
      }
      layer.pad_begin = layer.pad_end = row.window("pad", 0);
    }
  }

  void set_parameters(const Row& row, Draft& draft) {
    const auto cell = row.text("parameters");
    draft.parameter_bytes = row.integer("parameter_bytes", 0, kMostBytes);
    if (cell && draft.parameter_bytes) row.fail("parameters", *cell, "it is parameters or parameter_bytes, not both");
    const bool is_tensors = cell && cell->find_first_not_of("-0123456789") != std::string::npos;
    if (cell && !is_tensors) draft.parameter_count = row.integer("parameters", 0, kMostBytes);
    const auto counted = draft.parameter_count ? draft.parameter_count : draft.parameter_bytes;
    if (counted) {
      if (file_.complete) refuse_gap(row, "parameters");
      add_parameters(row, *counted);
    } else if (cell) {
      draft.layer.parameters = *row.value(
          "parameters", "a count, or tensors such as weight:64x3x7x7;bias:64, are expected", parse_csv_parameters);
      for (const auto& tensor : draft.layer.parameters) add_parameters(row, tensor.count());
    }
  }

  // Sums over all layers stay inside 64 bits.
  void add_parameters(const Row& row, std::int64_t count) {
    constexpr std::int64_t most = std::int64_t{1} << 60;
    if (__builtin_add_overflow(parameters_, count, &parameters_) || parameters_ > most) {
      throw input_error(fmt::format("line {}: no model has that many parameters", row.line()));
    }
  }

  // Whether the backward time is a joint one.
  static bool set_times(const Row& row, std::array<Samples, kPasses>& samples) {
    constexpr const char* columns[] = {"forward", "backward_data", "backward_weight", "update"};
    for (std::size_t pass = 0; pass < kPasses; ++pass) samples[pass] = row.samples(columns[pass]);
    auto joint = row.samples("backward");
    if (joint.seconds.empty()) return false;
    auto& weight = samples[static_cast<std::size_t>(Pass::backward_weight)];
    if (!weight.seconds.empty() || !samples[static_cast<std::size_t>(Pass::backward_data)].seconds.empty()) {
      throw input_error(fmt::format(
          "line {} has a joint backward time and separate ones; it is either backward, or backward_data and "
          "backward_weight",
          row.line()));
    }
    weight = std::move(joint);
    return true;
  }

  // ---- the other sections ----

  void add_split(const Row& row) {
    const auto name = row.needed("layer");
    const auto found = ids_.find(name);
    if (found == ids_.end()) row.fail("layer", name, "no layer above has this name");
    SplitCurve split;
    const auto axis = row.needed("axis");
    const auto known = split_axis_from_text(axis);
    if (!known) row.fail("axis", axis, "batch, height, width, output-channel or input-channel is expected");
    split.axis = *known;
    (void)row.needed("fraction");
    split.fraction = *row.number("fraction");
    if (split.fraction <= 0 || split.fraction > 1) {
      row.fail("fraction", row.needed("fraction"), "a part of 1, such as 0.25, is expected");
    }
    for (const char* column : {"input_shape", "output_shape"}) (void)row.needed(column);
    split.input_shape = *row.shape("input_shape");
    split.output_shape = *row.shape("output_shape");
    set_times(row, split.samples);
    file_.drafts[found->second].layer.splits.push_back(std::move(split));
  }

  void add_iteration(const Row& row) {
    (void)row.needed("batch");
    file_.trace.other_batches.push_back(
        {*row.integer("batch", 1, 1 << 24), row.samples("forward"), row.samples("backward"), row.samples("update")});
  }

  void add_outside(const Row& row) {
    const auto text = row.needed("kind");
    const auto kind = outside_kind_from_text(lower(text));
    if (!kind) row.fail("kind", text, "input-wait, launch-gap, copy, communication or unmatched is expected");
    file_.trace.outside.push_back({*kind, row.samples("time")});
  }

  void add_collective(const Row& row) {
    const auto operation = row.needed("operation");
    (void)row.needed("bytes");
    const auto duration = row.samples("duration");
    if (duration.seconds.size() > 1) {
      throw input_error(fmt::format("line {} has {} durations; one is expected", row.line(), duration.seconds.size()));
    }
    file_.trace.collectives.push_back({operation, Bytes(*row.integer("bytes", 0, kMostBytes)),
                                       Seconds(duration.seconds.empty() ? 0 : duration.seconds[0])});
  }

  static constexpr std::size_t kMostLayers = std::size_t{1} << 20;
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 46;  // as for every trace

  File file_;
  const SectionSpec* section_ = nullptr;
  std::optional<Header> header_;
  std::set<std::string_view> seen_;
  std::set<std::string> keys_;
  std::map<std::string, std::size_t, std::less<>> ids_;
  std::int64_t parameters_ = 0;
};

// ---- what the rows leave open ----

// Names for a note: the first few, and how many more.
class NameList {
 public:
  void add(const std::string& text) {
    constexpr std::size_t most = 8;
    if (++count_ <= most) text_ += (count_ > 1 ? ", " : "") + text;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    return count_ <= 8 ? text_ : fmt::format("{} and {} more", text_, count_ - 8);
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

class Completion {
 public:
  Completion(File& file, std::int64_t batch_given) : trace_(file.trace), drafts_(file.drafts), given_(batch_given) {}

  void run() {
    if (trace_.recorder.empty()) trace_.recorder = "csv";
    if (trace_.device.empty()) trace_.device = "unknown";
    find_batch();
    element_ = element_bytes(trace_.dtype);
    known_.resize(drafts_.size());
    for (std::size_t id = 0; id < drafts_.size(); ++id) {
      auto& draft = drafts_[id];
      with_context(fmt::format("line {}: layer {}", draft.line, shown(draft.layer.name)), [&] { complete(draft, id); });
    }
    add_notes();
  }

 private:
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  void find_batch() {
    if (given_ > 0) {
      if (trace_.batch > 0 && trace_.batch != given_) {
        throw usage_error(fmt::format("the file says batch {} where csv:batch={} is given", trace_.batch, given_));
      }
      if (trace_.batch == 0) note(fmt::format("batch {} as given", given_));
      trace_.batch = given_;
    }
    if (trace_.batch > 0) return;
    std::set<std::int64_t> firsts;
    for (const auto& draft : drafts_) {
      for (const auto& shape : draft.layer.input_shapes) {
        if (shape.size() > 1) firsts.insert(shape[0]);
      }
      if (draft.layer.output_shape.size() > 1) firsts.insert(draft.layer.output_shape[0]);
    }
    if (firsts.size() != 1) {
      throw input_error(
          fmt::format("the batch is not known: {}; write '# batch = 32' into the file or give csv:batch=N",
                      firsts.empty() ? "no shape is given" : "the first extents of the shapes differ"));
    }
    trace_.batch = *firsts.begin();
    note(fmt::format("the file does not state its batch: {} is the first extent of its shapes", trace_.batch));
  }

  void complete(Draft& draft, std::size_t id) {
    auto& layer = draft.layer;
    if (!draft.has_kind) guess_kind(layer);
    const bool inputs_known = set_input_shapes(draft);
    for (auto* window : {&layer.kernel, &layer.stride, &layer.pad_begin, &layer.pad_end, &layer.dilation}) {
      widen(*window, layer);
    }
    known_[id] = draft.has_output_shape;
    if (!draft.has_output_shape) known_[id] = derive_output(draft, inputs_known);
    if (!known_[id]) layer.output_shape = counted_shape(draft);
    set_counted_parameters(draft, inputs_known && known_[id]);
    if (!layer.kernel.empty()) set_window(layer, inputs_known && known_[id]);
    if (!draft.has_activation_bytes && known_[id] && !layer.in_place && element_) {
      layer.activation_bytes = Bytes(checked_bytes(layer.output_shape));
    }
    if (!draft.has_gradient_flag) layer.needs_input_gradient = !layer.inputs.empty();
    if (layer.output_shape.size() > 1 && layer.output_shape[0] != trace_.batch) other_batch_.add(layer.name);
    if (!draft.has_flops && inputs_known && known_[id]) set_work(layer);
  }

  void guess_kind(Layer& layer) {
    if (const auto kind = kind_from_name(layer.name)) {
      layer.kind = *kind;
      guessed_kinds_.add(fmt::format("{} {}", layer.name, to_text(*kind)));
    } else {
      unknown_kinds_.add(layer.name);
    }
  }

  bool set_input_shapes(Draft& draft) {
    auto& layer = draft.layer;
    if (draft.has_input_shapes) return true;
    bool known = !layer.inputs.empty();
    for (const LayerId input : layer.inputs) {
      layer.input_shapes.push_back(drafts_[input.index()].layer.output_shape);
      known = known && known_[input.index()];
    }
    if (!layer.inputs.empty()) return known;
    const bool same = draft.has_output_shape && keeps_shape(layer.kind);
    layer.input_shapes = {same ? layer.output_shape : Shape{trace_.batch, 1}};
    if (!same) unknown_inputs_.add(layer.name);
    return same;
  }

  static bool keeps_shape(OpKind kind) {
    return kind == OpKind::relu || kind == OpKind::bn || kind == OpKind::lrn || kind == OpKind::dropout ||
           kind == OpKind::add;
  }

  // "3" stands for 3 along every spatial dimension.
  static void widen(std::vector<int>& window, const Layer& layer) {
    const auto& shape = layer.output_shape.empty() ? layer.input_shapes.at(0) : layer.output_shape;
    const auto rank = std::max(layer.kernel.size(), shape.size() > 2 ? shape.size() - 2 : 0);
    if (window.size() == 1 && rank > 1 && rank <= 3) window.assign(rank, window[0]);
  }

  bool derive_output(Draft& draft, bool inputs_known) {
    auto& layer = draft.layer;
    const Shape in = layer.input_shapes[0];
    std::optional<Shape> out;
    if (inputs_known && keeps_shape(layer.kind)) out = in;
    if (inputs_known && layer.kind == OpKind::flatten && in.size() > 1) out = Shape{in[0], elements(in) / in[0]};
    if (inputs_known && layer.kind == OpKind::concat) out = concatenated(layer.input_shapes);
    if (layer.kind == OpKind::fc && !layer.parameters.empty()) out = Shape{trace_.batch, layer.parameters[0].shape[0]};
    if (inputs_known && !layer.kernel.empty()) out = windowed(layer);
    if (!out) return false;
    layer.output_shape = *out;
    derived_shapes_.add(layer.name);
    return true;
  }

  static std::optional<Shape> concatenated(const std::vector<Shape>& shapes) {
    Shape out = shapes[0];
    if (out.size() < 2) return std::nullopt;
    for (std::size_t i = 1; i < shapes.size(); ++i) {
      if (shapes[i].size() != out.size() || __builtin_add_overflow(out[1], shapes[i][1], &out[1])) return std::nullopt;
    }
    return out;
  }

  static std::optional<Shape> windowed(Layer layer) {
    const auto rank = layer.kernel.size();
    Shape out = layer.input_shapes[0];
    if (out.size() != rank + 2) return std::nullopt;
    complete_window(layer, false);
    for (const auto* window : {&layer.stride, &layer.pad_begin, &layer.pad_end, &layer.dilation}) {
      if (window->size() != rank) return std::nullopt;
    }
    if (layer.kind == OpKind::conv) {
      if (layer.parameters.empty()) return std::nullopt;
      out[1] = layer.parameters[0].shape[0];
    } else if (layer.kind != OpKind::max_pool && layer.kind != OpKind::avg_pool) {
      return std::nullopt;
    }
    for (std::size_t d = 0; d < rank; ++d) {
      out[d + 2] = window_extent(out[d + 2], layer.kernel[d], layer.stride[d], layer.pad_begin[d], layer.pad_end[d],
                                 layer.dilation[d]);
    }
    return out;
  }

  // As many elements as the output's bytes say, or one a sample.
  Shape counted_shape(const Draft& draft) {
    const auto bytes = draft.layer.activation_bytes.count();
    if (draft.has_activation_bytes && element_ && bytes > 0 && bytes % (*element_ * trace_.batch) == 0) {
      counted_shapes_.add(draft.layer.name);
      return {trace_.batch, bytes / *element_ / trace_.batch};
    }
    unknown_shapes_.add(draft.layer.name);
    return {trace_.batch, 1};
  }

  void set_counted_parameters(Draft& draft, bool shapes_known) {
    auto& layer = draft.layer;
    auto count = draft.parameter_count;
    if (draft.parameter_bytes) {
      if (!element_ || *draft.parameter_bytes % *element_ != 0) {
        throw input_error(fmt::format("parameter_bytes is {}, which is no whole number of elements of {}",
                                      *draft.parameter_bytes, shown(trace_.dtype)));
      }
      count = *draft.parameter_bytes / *element_;
    }
    if (!count) return;
    if (shapes_known) {
      const bool had_kernel = !layer.kernel.empty();
      if (!set_parameters_from_count(layer, *count)) one_tensor_.add(layer.name);
      if (!had_kernel && !layer.kernel.empty()) derived_kernels_.add(layer.name);
    } else if (*count > 0) {
      layer.parameters = {{"weight", {*count}}};
      one_tensor_.add(layer.name);
    }
  }

  void set_window(Layer& layer, bool shapes_known) {
    const bool open = layer.stride.empty() || layer.dilation.empty() || layer.pad_begin.empty();
    if (!complete_window(layer, shapes_known)) odd_windows_.add(layer.name);
    if (open) completed_windows_.add(layer.name);
  }

  [[nodiscard]] std::int64_t checked_bytes(const Shape& shape) const {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements(shape), *element_, &bytes)) {
      throw input_error("the output shape has more bytes than 64 bits can count");
    }
    return bytes;
  }

  // Only where the shapes have what the formulas read.
  static void set_work(Layer& layer) {
    const bool spatial = layer.kind != OpKind::conv || (layer.input_shapes[0].size() > 2 && !layer.kernel.empty());
    for (const auto& shape : layer.input_shapes) (void)elements(shape);
    if (spatial && layer.output_shape.size() > 1) set_flops(layer);
  }

  void add_notes() {
    const std::pair<const char*, const NameList*> lists[] = {
        {"kinds guessed from names: {}", &guessed_kinds_},
        {"no kind given and none in the name, kept as 'other': {}", &unknown_kinds_},
        {"output shapes derived from inputs, windows and parameters: {}", &derived_shapes_},
        {"output shapes are element counts from activation_bytes: {}", &counted_shapes_},
        {"output shapes unknown, one element a sample stands for them: {}", &unknown_shapes_},
        {"the model's input shape unknown, one element a sample stands for it: {}", &unknown_inputs_},
        {"kernels that follow from the number of parameters: {}", &derived_kernels_},
        {"stride, pads or dilation filled in from the shapes, else stride 1 (pools: the kernel), pads 0: {}",
         &completed_windows_},
        {"window contradicts the shapes: {}", &odd_windows_},
        {"parameters kept as one tensor, since the shapes do not explain their number: {}", &one_tensor_},
        {"shapes whose first extent is not the batch: {}", &other_batch_},
    };
    for (const auto& [text, names] : lists) {
      if (!names->empty()) note(fmt::format(fmt::runtime(text), names->text()));
    }
    if (!element_) note(fmt::format("the size of an element of {} is not known", shown(trace_.dtype)));
  }

  Trace& trace_;
  std::vector<Draft>& drafts_;
  std::int64_t given_;
  std::optional<std::int64_t> element_;
  std::vector<bool> known_;  // whether a layer's output shape is
  NameList guessed_kinds_, unknown_kinds_, derived_shapes_, counted_shapes_, unknown_shapes_, unknown_inputs_,
      derived_kernels_, completed_windows_, odd_windows_, one_tensor_, other_batch_;
};

// The row of the trace's own batch is its own iteration; known only once the batch is.
void place_iterations(Trace& trace) {
  auto& others = trace.other_batches;
  const auto own = std::find_if(others.begin(), others.end(),
                                [&](const WholeIteration& whole) { return whole.batch == trace.batch; });
  if (own == others.end()) return;
  trace.iteration_forward = std::move(own->forward);
  trace.iteration_backward = std::move(own->backward);
  trace.iteration_update = std::move(own->update);
  others.erase(own);
}

ImportReport report_of(const Trace& trace, std::int64_t comments) {
  using Fate = ImportReport::Fate;
  ImportReport::Entry layers{"layers", static_cast<std::int64_t>(trace.layers.size()), {}, Fate::used, ""};
  ImportReport::Entry splits{"timings of split layers", 0, {}, Fate::used, ""};
  for (const auto& layer : trace.layers) {
    for (const auto& samples : layer.samples) layers.time += samples.typical();
    for (const auto& split : layer.splits) {
      ++splits.count;
      for (const auto& samples : split.samples) splits.time += samples.typical();
    }
  }
  ImportReport::Entry outside{"time outside of layers", 0, {}, Fate::apart, ""};
  for (const auto& time : trace.outside) {
    ++outside.count;
    outside.time += time.samples.typical();
  }
  ImportReport::Entry collectives{"collectives", 0, {}, Fate::apart, ""};
  for (const auto& collective : trace.collectives) {
    ++collectives.count;
    collectives.time += collective.duration;
  }
  ImportReport::Entry remarks{"comment lines", comments, {}, Fate::dropped, "for readers of the file"};
  ImportReport report;
  for (const auto& entry : {layers, splits, outside, collectives, remarks}) {
    if (entry.count > 0) report.entries.push_back(entry);
  }
  return report;
}

class CsvImporter : public Importer {
 public:
  explicit CsvImporter(std::int64_t batch) : batch_(batch) {}

  // A heading with a column of layers. Caffe's tables have one too, but other names for their times.
  [[nodiscard]] bool recognizes(std::string_view head) const override {
    try {
      CsvReader reader(head);
      while (const auto record = reader.next()) {
        if (record->kind == CsvRecord::Kind::metadata && record->cells[0].text == kCsvTraceKey) return true;
        if (record->kind == CsvRecord::Kind::row) return is_heading(*record);
      }
    } catch (const Error&) {  // not CSV
    }
    return false;
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    if (!is_storable_text(source.content)) throw input_error("the file is not UTF-8 text, or has a NUL in it");
    File file = Parser().read(source.content);
    const bool unfinished = !source.content.ends_with('\n');
    if (file.complete) {
      if (unfinished) throw input_error("the last line has no line end: the file was cut short");
      if (batch_ > 0) throw usage_error("csv:batch is for files that do not state theirs; this one is complete");
    } else {
      Completion(file, batch_).run();
      if (unfinished) file.trace.notes.emplace_back(kUnfinishedLine);
    }
    place_iterations(file.trace);
    for (auto& draft : file.drafts) file.trace.layers.push_back(std::move(draft.layer));
    validate(file.trace);  // before anything is summed up
    auto report = report_of(file.trace, file.comments);
    return {std::move(file.trace), std::move(report)};
  }

 private:
  static bool is_heading(const CsvRecord& record) {
    std::set<std::string> names;
    for (const auto& cell : record.cells) names.insert(lower(cell.text));
    if (names.contains("filt_w") && names.contains("out_c")) return true;  // to be refused with the true reason
    if (names.contains("fwd_ms") && names.contains("bwd_ms")) return false;
    const auto& first = *names.begin();
    if (record.cells.size() == 1) return first.starts_with("layer;") || first.starts_with("layer\t");
    return names.contains("layer") || names.contains("name");
  }

  std::int64_t batch_;
};

std::unique_ptr<Importer> make_csv(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<CsvImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 20) : 0);
}

TANDEM_REGISTER(Importer, csv, "csv", "a table of layers, by hand or from a spreadsheet (traces/CSV.md)", make_csv,
                {{"batch", ParameterType::integer, "", "samples an iteration, where the file does not state it"}})

}  // namespace
}  // namespace tandem
