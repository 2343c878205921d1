// Text workloads of ASTRA-sim 1.0 (Rashidi et al., ISPASS 2020).
//
//   DATA                                    loop type, with further words for some types
//   54                                      layers
//   conv1 -1 13003 NONE 0 12864 NONE 0 32291 ALLREDUCE 37632 3229      one line a layer:
//
// name, reserved, then for forward, input gradient and weight gradient each a compute time, a collective and its bytes,
// then the delay of the update. Times are cycles of a compute model, so the clock must be given. The file has neither
// shapes nor edges nor the batch.
//
// ASTRA-sim's loops decide which of the numbers count: backward, the data-parallel loop runs a layer's weight gradient
// before its input gradient, and no input gradient for the first layer; the others run them the other way round. Its
// pure data-parallel loop issues the collectives of weight gradients only, its model-parallel one those of activations
// and input gradients only, and none issues the input gradient's collective of the first layer.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/importer.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kMostCycles = 1'000'000'000'000'000;
constexpr std::int64_t kMostLayers = 1'000'000;
constexpr std::size_t kRowWords = 12;

// ---- text ----

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view blanks = " \t\r\v\f";
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

struct Line {
  int number = 0;
  Words words;
};

// The next line with words in it; nothing at the end of `text`, which is used up from the front.
std::optional<Line> next_line(std::string_view& text, int& number) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!words.empty()) return Line{number, std::move(words)};
  }
  return std::nullopt;
}

bool printable(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// What an error shows of a word, which may be a megabyte of anything.
std::string shown(std::string_view word) {
  if (!printable(word)) return "characters that no workload has";
  return word.size() > 40 ? fmt::format("'{}...'", word.substr(0, 40)) : fmt::format("'{}'", word);
}

std::optional<std::int64_t> whole(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::int64_t count_of(const Line& line, std::string_view word, std::string_view what, std::int64_t most) {
  const auto value = whole(word);
  if (!value || *value < 0 || *value > most) {
    throw input_error(fmt::format("line {} has {} as {}; a whole number from 0 to {} is expected", line.number,
                                  shown(word), what, most));
  }
  return *value;
}

// ---- the file ----

// What a loop runs of a layer's line.
struct Loop {
  std::string_view name;
  bool forward_collectives, input_collectives, weight_collectives;
  bool weight_first;  // and then no input gradient for the first layer
};

constexpr Loop kLoops[] = {{"DATA", false, false, true, true},
                           {"MODEL", true, true, false, false},
                           {"HYBRID_DATA_MODEL", true, true, true, false},
                           {"HYBRID_MODEL_DATA", true, true, true, false},
                           {"HYBRID_CUSTOMIZED", true, true, true, false},
                           {"HYBRID_DLRM", true, true, true, false},
                           {"HYBRID_DLRM_ENHANCED", true, true, true, false},
                           {"HYBRID_TRANSFORMER", true, true, true, false},
                           {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", true, true, true, false}};

const Loop& loop_of(const Line& line) {
  std::vector<std::string> names;
  for (const auto& loop : kLoops) {
    if (loop.name == line.words[0]) return loop;
    names.emplace_back(loop.name);
  }
  if (line.words[0] == "MICRO") {
    throw input_error("loop type MICRO is a microbenchmark of collectives, no training iteration");
  }
  if (line.words[0] == "DISTRIBUTED_INFERENCE") {
    throw input_error("loop type DISTRIBUTED_INFERENCE has no backward pass: it is no training iteration");
  }
  throw input_error(fmt::format("line {} has {} as loop type; accepted are {}", line.number, shown(line.words[0]),
                                fmt::join(names, ", ")));
}

constexpr std::pair<std::string_view, const char*> kCollectives[] = {{"ALLREDUCE", "all-reduce"},
                                                                     {"ALLGATHER", "all-gather"},
                                                                     {"REDUCESCATTER", "reduce-scatter"},
                                                                     {"ALLTOALL", "all-to-all"}};

const char* collective_of(const Line& line, std::string_view word) {
  if (word == "NONE") return nullptr;
  for (const auto& [known, name] : kCollectives) {
    if (word == known) return name;
  }
  throw input_error(
      fmt::format("line {} has {} as collective; accepted are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL",
                  line.number, shown(word)));
}

struct Step {
  std::int64_t cycles = 0;
  const char* collective = nullptr;
  std::int64_t bytes = 0;
};

struct Row {
  std::string name;
  Step forward, input_gradient, weight_gradient;
  std::int64_t update_cycles = 0;
};

struct Workload {
  const Loop* loop = nullptr;
  std::vector<Row> rows;
};

// "HYBRID_DLRM 4", "HYBRID_TRANSFORMER model_parallel_NPU_group: 4 [checkpoints: ...]": what follows the type.
void check_extras(const Line& line, const Loop& loop) {
  const auto has_number = [&](std::size_t at) {
    return line.words.size() > at && whole(line.words[at]).value_or(-1) >= 0;
  };
  if (loop.name.starts_with("HYBRID_DLRM") && !has_number(1)) {
    throw input_error(
        fmt::format("line {}: {} is followed by the number of the last bottom layer", line.number, loop.name));
  }
  if (loop.name.starts_with("HYBRID_TRANSFORMER") &&
      (line.words.size() < 3 || line.words[1] != "model_parallel_NPU_group:" || !has_number(2))) {
    throw input_error(fmt::format("line {}: {} is followed by 'model_parallel_NPU_group: N'", line.number, loop.name));
  }
}

Step step_of(const Line& line, std::size_t at, std::string_view pass) {
  Step step;
  step.cycles = count_of(line, line.words[at], fmt::format("{} cycles", pass), kMostCycles);
  step.collective = collective_of(line, line.words[at + 1]);
  step.bytes =
      count_of(line, line.words[at + 2], fmt::format("bytes of the {} collective", pass), std::int64_t{1} << 46);
  return step;
}

Row row_of(const Line& line, const Loop& loop) {
  const bool customized = loop.name == "HYBRID_CUSTOMIZED";  // a loop type of its own at the end of each line
  const auto wanted = kRowWords + (customized ? 1 : 0);
  if (line.words.size() != wanted) {
    throw input_error(fmt::format("line {} has {} words where a layer of {} has {}", line.number, line.words.size(),
                                  loop.name, wanted));
  }
  Row row;
  if (!printable(line.words[0]))
    throw input_error(fmt::format("line {} has a name of unprintable characters", line.number));
  row.name = line.words[0];
  if (!whole(line.words[1])) {
    throw input_error(
        fmt::format("line {} has {} where the reserved number (-1) is expected", line.number, shown(line.words[1])));
  }
  row.forward = step_of(line, 2, "forward");
  row.input_gradient = step_of(line, 5, "input-gradient");
  row.weight_gradient = step_of(line, 8, "weight-gradient");
  row.update_cycles = count_of(line, line.words[11], "update cycles", kMostCycles);
  return row;
}

Workload parse(std::string_view text) {
  int number = 0;
  const auto first = next_line(text, number);
  if (!first) throw input_error("the file has no lines");
  Workload workload;
  workload.loop = &loop_of(*first);
  check_extras(*first, *workload.loop);
  const auto second = next_line(text, number);
  if (!second) throw input_error("the file ends before the number of layers on its second line");
  if (second->words.size() != 1) {
    throw input_error(fmt::format("line {} has {} words where the number of layers stands alone", second->number,
                                  second->words.size()));
  }
  const auto layers = count_of(*second, second->words[0], "number of layers", kMostLayers);
  while (const auto line = next_line(text, number)) {
    if (static_cast<std::int64_t>(workload.rows.size()) == layers) {
      throw input_error(
          fmt::format("line {} is one more than the {} layers of line {}", line->number, layers, second->number));
    }
    workload.rows.push_back(row_of(*line, *workload.loop));
  }
  if (static_cast<std::int64_t>(workload.rows.size()) != layers) {
    throw input_error(fmt::format("line {} says {} layers, but {} follow: the file is cut off", second->number, layers,
                                  workload.rows.size()));
  }
  return workload;
}

// ---- the trace ----

// Only where the name leaves no doubt: "conv1", "layer_64_1_conv4", "fc1000".
OpKind kind_of(const std::string& name) {
  for (const auto& part : split(name, '_')) {
    const auto word = part.substr(0, part.find_first_of("0123456789"));
    if (word == "conv" || word == "Conv" || word == "conv2d" || word == "Conv2d") return OpKind::conv;
    if (word == "fc" || word == "FC") return OpKind::fc;
  }
  return OpKind::other;
}

class Builder {
 public:
  Builder(const Workload& workload, double clock, std::int64_t batch)
      : workload_(workload), loop_(*workload.loop), clock_(clock), batch_(batch) {}

  Imported build() {
    for (const auto& row : workload_.rows) add_layer(row);
    add_collectives();
    describe();
    auto said = report();
    return {std::move(trace_), std::move(said)};
  }

 private:
  [[nodiscard]] Seconds time(std::int64_t cycles) const { return Seconds(static_cast<double>(cycles) / clock_); }

  void add_layer(const Row& row) {
    Layer layer;
    layer.name = unique(row.name);
    layer.kind = kind_of(row.name);
    const bool first = trace_.layers.empty();
    if (!first) layer.inputs = {LayerId{static_cast<std::int32_t>(trace_.layers.size()) - 1}};
    layer.input_shapes = {{batch_, 1}};
    layer.output_shape = {batch_, 1};
    layer.needs_input_gradient = !(first && loop_.weight_first);
    add_parameters(row, layer);
    set_time(layer, Pass::forward, row.forward.cycles);
    set_time(layer, Pass::backward_weight, row.weight_gradient.cycles);
    set_time(layer, Pass::update, row.update_cycles);
    if (layer.needs_input_gradient) {
      set_time(layer, Pass::backward_data, row.input_gradient.cycles);
    } else {
      dropped_cycles_ = row.input_gradient.cycles;
    }
    trace_.layers.push_back(std::move(layer));
  }

  // The second "conv" becomes "conv.2".
  std::string unique(const std::string& name) {
    std::string candidate = name;
    while (!names_.insert(candidate).second) candidate = fmt::format("{}.{}", name, ++uses_[name] + 1);
    return candidate;
  }

  void set_time(Layer& layer, Pass pass, std::int64_t cycles) {
    if (cycles == 0) return;
    layer.samples[static_cast<std::size_t>(pass)].seconds = {time(cycles).count()};
    used_ += time(cycles);
    ++times_;
  }

  // What is summed over the replicas is the gradient, so it is as large as the parameters.
  void add_parameters(const Row& row, Layer& layer) {
    const auto& step = row.weight_gradient;
    const std::string_view collective = step.collective == nullptr ? "" : step.collective;
    if ((collective != "all-reduce" && collective != "reduce-scatter") || step.bytes == 0) return;
    layer.parameters = {{"weight", {(step.bytes + kFloat - 1) / kFloat}}};
    if (step.bytes % kFloat != 0) ++odd_sizes_;
  }

  void add_collective(const Step& step, bool issued) {
    if (step.collective == nullptr || step.bytes == 0) return;
    if (issued) {
      trace_.collectives.push_back({step.collective, Bytes(step.bytes), Seconds{}});
    } else {
      ++not_issued_;
    }
  }

  // In the order in which ASTRA-sim's loop issues them.
  void add_collectives() {
    const auto& rows = workload_.rows;
    for (const auto& row : rows) add_collective(row.forward, loop_.forward_collectives);
    for (std::size_t i = rows.size(); i-- > 0;) {
      const auto weight = [&] { add_collective(rows[i].weight_gradient, loop_.weight_collectives); };
      if (loop_.weight_first) weight();
      add_collective(rows[i].input_gradient, loop_.input_collectives && i > 0);
      if (!loop_.weight_first) weight();
    }
  }

  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  void describe() {
    trace_.recorder = "ASTRA-sim 1.0 workload";
    trace_.device = "unknown";
    trace_.clock_hz = clock_;
    trace_.batch = batch_;
    note(fmt::format("loop type {}; cycles of a compute model at {:g} GHz as given: not a measurement", loop_.name,
                     clock_ * 1e-9));
    if (batch_ == 1) {
      note("the file has no batch: the whole mini-batch counts as one sample; give it as astra-sim:batch=N");
    } else {
      note(fmt::format("batch {} as given", batch_));
    }
    note("the file has no edges: each layer is taken to read the one before it, which is a guess");
    note("the file has no shapes: one element a sample stands for each, so no layer can be split but along the batch");
    note(
        "parameters are those whose gradients the file sums over the replicas, 4 bytes (float32) each, one tensor a "
        "layer");
    if (odd_sizes_ > 0) note(fmt::format("{} layers have gradients that are no multiple of 4 bytes", odd_sizes_));
    if (not_issued_ > 0) {
      note(fmt::format("{} collectives that the loop {} does not issue are left out", not_issued_, loop_.name));
    }
  }

  [[nodiscard]] ImportReport report() const {
    using Fate = ImportReport::Fate;
    ImportReport report;
    report.entries.push_back({"compute times of layers", times_, used_, Fate::used, ""});
    if (!trace_.collectives.empty()) {
      report.entries.push_back({"collectives",
                                static_cast<std::int64_t>(trace_.collectives.size()),
                                {},
                                Fate::apart,
                                "sizes without times"});
    }
    if (dropped_cycles_ > 0) {
      report.entries.push_back({"input gradient of the first layer", 1, time(dropped_cycles_), Fate::dropped,
                                fmt::format("the loop {} does not run it", loop_.name)});
    }
    if (not_issued_ > 0) {
      report.entries.push_back({"collectives outside the loop",
                                not_issued_,
                                {},
                                Fate::dropped,
                                fmt::format("the loop {} does not issue them", loop_.name)});
    }
    return report;
  }

  const Workload& workload_;
  const Loop& loop_;
  double clock_;
  std::int64_t batch_;
  Trace trace_;
  std::set<std::string> names_;
  std::map<std::string, int> uses_;
  Seconds used_{};
  std::int64_t times_ = 0;
  std::int64_t dropped_cycles_ = 0;
  std::int64_t not_issued_ = 0;
  int odd_sizes_ = 0;
};

class AstraSimImporter : public Importer {
 public:
  AstraSimImporter(std::optional<double> clock, std::int64_t batch) : clock_(clock), batch_(batch) {}

  // By shape, so that an unknown loop type gets an answer of its own: a word in capitals, a number alone, a layer.
  [[nodiscard]] bool recognizes(std::string_view head) const override {
    int number = 0;
    const auto first = next_line(head, number);
    const auto second = next_line(head, number);
    const auto third = next_line(head, number);
    if (!first || !second || !third || third->words.size() < kRowWords) return false;
    const auto capitals = [](std::string_view word) {
      return std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    };
    return capitals(first->words[0]) && second->words.size() == 1 && whole(second->words[0]) &&
           whole(third->words[1]) && capitals(third->words[3]) && capitals(third->words[6]) &&
           capitals(third->words[9]);
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    const auto workload = parse(source.content);
    if (!clock_) {
      throw input_error(
          "its times are cycles; give the clock they are cycles of, as --clock 1GHz or "
          "astra-sim:clock=1GHz");
    }
    return Builder(workload, *clock_, batch_).build();
  }

 private:
  std::optional<double> clock_;
  std::int64_t batch_;
};

// Cycles per second: "1GHz", "940MHz".
double parse_frequency(const std::string& text) {
  constexpr std::pair<std::string_view, double> units[] = {{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}, {"Hz", 1}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : units) {
    const double rate = value * factor;
    if (error == std::errc() && unit == name && rate > 0 && std::isfinite(rate)) return rate;
  }
  throw usage_error(
      fmt::format("the clock is '{}': a frequency above 0 with its unit is expected, like 1GHz or 940MHz "
                  "(units: Hz, kHz, MHz, GHz)",
                  text));
}

std::unique_ptr<Importer> make_astra_sim(const Arguments& arguments, const Importer::PluginContext&) {
  const auto clock = arguments.has("clock") ? std::optional(parse_frequency(arguments.text("clock"))) : std::nullopt;
  return std::make_unique<AstraSimImporter>(clock, arguments.integer("batch", 1, 1 << 20));
}

TANDEM_REGISTER(Importer, astra_sim, "astra-sim", "text workloads of ASTRA-sim 1.0 (cycles of a compute model)",
                make_astra_sim,
                {{"clock", ParameterType::text, "", "what the cycles are cycles of, e.g. 1GHz; it must be given"},
                 {"batch", ParameterType::integer, "1", "samples a mini-batch; the file does not say"}})

}  // namespace
}  // namespace tandem
