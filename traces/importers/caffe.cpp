// `caffe time` (Jia et al. 2014): forward and backward times of every layer, averaged over iterations, from its log or
// from a table of them; caffe_profile.hpp has both forms. The log may hold the network too. What it lacks is derived
// from names and shapes, or taken from the built-in model with the same shapes, and noted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"
#include "traces/hdf5_file.hpp"
#include "traces/importer.hpp"
#include "traces/importers/caffe_profile.hpp"
#include "traces/layer_guess.hpp"
#include "traces/layer_work.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = 4;

// "SoftmaxWithLoss" of today and "SOFTMAX_LOSS" of 2014.
std::string plain_type(std::string_view type) {
  std::string plain;
  for (const char c : type) {
    if (c == '_') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

bool is_data_type(const std::string& plain) {
  return plain == "input" || plain.ends_with("data");  // Data, ImageData, HDF5Data, DummyData, ...
}

std::optional<OpKind> kind_of_type(const CaffeLayer& layer) {
  static const std::map<std::string, OpKind> kinds = {{"convolution", OpKind::conv},
                                                      {"innerproduct", OpKind::fc},
                                                      {"batchnorm", OpKind::bn},
                                                      {"relu", OpKind::relu},
                                                      {"eltwise", OpKind::add},
                                                      {"concat", OpKind::concat},
                                                      {"lrn", OpKind::lrn},
                                                      {"dropout", OpKind::dropout},
                                                      {"softmaxwithloss", OpKind::softmax_loss},
                                                      {"softmaxloss", OpKind::softmax_loss},
                                                      {"softmax", OpKind::softmax_loss},
                                                      {"flatten", OpKind::flatten},
                                                      {"reshape", OpKind::flatten}};
  const auto plain = plain_type(layer.type);
  if (plain.empty()) return std::nullopt;
  if (plain == "pooling") {
    const auto method = layer.parameters.find("pool");
    const bool average = method != layer.parameters.end() && method->second[0] == "AVE";
    return average ? OpKind::avg_pool : OpKind::max_pool;
  }
  const auto found = kinds.find(plain);
  return found == kinds.end() ? OpKind::other : found->second;
}

// A list of names for a note: the first few, and how many more.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

// ---- windows ----

// The values of a field, one a spatial dimension: "kernel_size", or "kernel_h" and "kernel_w". Empty: not there.
std::vector<int> window_field(const CaffeLayer& layer, const std::string& name, const std::string& stem, int least) {
  const auto values = [&](const std::string& key) {
    std::vector<int> all;
    const auto found = layer.parameters.find(key);
    if (found == layer.parameters.end()) return all;
    for (const auto& text : found->second) {
      int value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value < least || value > 1'000'000) {
        throw input_error(fmt::format("{} is {}; a whole number from {} is expected", key, shown(text), least));
      }
      all.push_back(value);
    }
    return all;
  };
  auto both = values(name);
  if (both.size() == 1) both.push_back(both[0]);
  const auto height = values(stem + "_h");
  const auto width = values(stem + "_w");
  if (height.size() == 1 && width.size() == 1) both = {height[0], width[0]};
  if (both.size() > 3) throw input_error(fmt::format("{} has {} values", name, both.size()));
  return both;
}

void set_window_from_network(Layer& layer, const CaffeLayer& source) {
  layer.kernel = window_field(source, "kernel_size", "kernel", 1);
  const auto global = source.parameters.find("global_pooling");
  const auto& in = layer.input_shapes.at(0);
  if (global != source.parameters.end() && global->second[0] == "true" && in.size() == 4 &&
      std::max(in[2], in[3]) <= 1'000'000) {
    layer.kernel = {static_cast<int>(in[2]), static_cast<int>(in[3])};
  }
  if (layer.kernel.empty()) return;
  const auto rank = layer.kernel.size();
  layer.stride = window_field(source, "stride", "stride", 1);
  if (layer.stride.empty()) layer.stride.assign(rank, 1);
  layer.dilation = window_field(source, "dilation", "dilation", 1);
  layer.pad_begin = layer.pad_end = window_field(source, "pad", "pad", 0);
  // A pool without pads may still round up; that the shapes tell. A convolution has the pads that it says.
  if (layer.pad_begin.empty() && layer.kind == OpKind::conv) {
    layer.pad_begin.assign(rank, 0);
    layer.pad_end.assign(rank, 0);
  }
}

// "conv2/5x5_s1", "pool1/3x3_s2": height x width, then the stride.
bool set_window_from_name(Layer& layer) {
  const auto slash = layer.name.rfind('/');
  const std::string_view part = std::string_view(layer.name).substr(slash == std::string::npos ? 0 : slash + 1);
  int height = 0, width = 0, stride = 0;
  const char* end = part.data() + part.size();
  auto at = std::from_chars(part.data(), end, height);
  if (at.ec != std::errc() || at.ptr == end || *at.ptr != 'x') return false;
  at = std::from_chars(at.ptr + 1, end, width);
  if (at.ec != std::errc() || height < 1 || width < 1 || std::max(height, width) > 10'000) return false;
  layer.kernel = {height, width};
  if (end - at.ptr > 2 && at.ptr[0] == '_' && at.ptr[1] == 's') {
    at = std::from_chars(at.ptr + 2, end, stride);
    if (at.ec == std::errc() && stride > 0 && stride < 10'000) layer.stride = {stride, stride};
  }
  return true;
}

bool has_window(OpKind kind) {
  return kind == OpKind::conv || kind == OpKind::max_pool || kind == OpKind::avg_pool;
}

// ---- the trace ----

class Builder {
 public:
  Builder(const CaffeProfile& profile, std::int64_t batch_given) : profile_(profile), given_(batch_given) {}

  Imported build() {
    find_batch();
    for (std::size_t i = 0; i < profile_.layers.size(); ++i) {
      const auto& source = profile_.layers[i];
      with_context(fmt::format("line {}: layer {}", source.line, shown(source.name)),
                   [&] { is_data(i) ? add_data(source) : add_layer(source); });
    }
    if (trace_.layers.empty()) throw input_error("only data layers are timed");
    complete();
    describe();
    report();
    return {std::move(trace_), std::move(report_)};
  }

 private:
  using Names = std::vector<std::string>;
  struct Source {
    std::optional<LayerId> layer;  // nothing: a data layer
    std::optional<Shape> shape;
  };

  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  void find_batch() {
    trace_.batch = given_;
    if (given_ > 0) note(fmt::format("batch {} as given", given_));
    for (const auto& layer : profile_.layers) {
      for (const auto& top : layer.tops) {
        if (trace_.batch > 0) return;
        if (!top.shape || top.shape->size() < 2) continue;
        trace_.batch = top.shape->front();
        note(fmt::format("batch {} is the first extent of the output of {}", trace_.batch, layer.name));
      }
    }
    if (trace_.batch == 0)
      throw input_error("the file has no shapes, so the batch is not known; give it as caffe:batch=N");
  }

  [[nodiscard]] bool is_data(std::size_t index) const {
    const auto& layer = profile_.layers[index];
    if (!layer.type.empty()) return is_data_type(plain_type(layer.type));
    if (profile_.has_graph) return layer.bottoms.empty();
    return index == 0 &&
           (layer.name.find("data") != std::string::npos || layer.name.find("input") != std::string::npos);
  }

  void add_data(const CaffeLayer& source) {
    ++data_.count;
    data_.time += Seconds((*source.forward_ms + source.backward_ms.value_or(0)) / 1e3);
    for (const auto& top : source.tops) blobs_[top.name] = {std::nullopt, top.shape};
    last_ = {std::nullopt, source.tops.empty() ? std::nullopt : source.tops[0].shape};
  }

  void add_layer(const CaffeLayer& source) {
    Layer layer;
    layer.name = source.name;
    set_kind(layer, source);
    bool inputs_known = true;
    for (const auto& from : sources_of(source)) {
      inputs_known = inputs_known && from.shape.has_value();
      if (from.layer) layer.inputs.push_back(*from.layer);
      layer.input_shapes.push_back(from.shape.value_or(Shape{trace_.batch, 1}));
    }
    if (layer.inputs.empty()) layer.input_shapes.resize(1);
    const bool output_known = !source.tops.empty() && source.tops[0].shape;
    layer.output_shape = output_known ? *source.tops[0].shape : Shape{trace_.batch, 1};
    if (!inputs_known || !output_known) without_shapes_.push_back(layer.name);
    layer.in_place = is_in_place(layer, source);
    layer.needs_input_gradient = !layer.inputs.empty() || profile_.force_backward;
    set_window(layer, source, inputs_known && output_known);
    set_parameters(layer, source, inputs_known && output_known);
    if (output_known && !layer.in_place) layer.activation_bytes = bytes_of(layer.output_shape);
    set_times(layer, source);
    const LayerId id{static_cast<std::int32_t>(trace_.layers.size())};
    for (const auto& top : source.tops) blobs_[top.name] = {id, top.shape};
    last_ = {id, output_known ? source.tops[0].shape : std::nullopt};
    shapes_known_.push_back(inputs_known && output_known);
    trace_.layers.push_back(std::move(layer));
  }

  void set_kind(Layer& layer, const CaffeLayer& source) {
    const bool copies = source.name.ends_with("_split");  // Caffe puts them in where a blob is read twice
    if (const auto kind = kind_of_type(source)) {
      layer.kind = *kind;
    } else if (copies) {
      layer.kind = OpKind::other;
    } else if (const auto guess = kind_from_name(source.name)) {
      layer.kind = *guess;
      guessed_.push_back(fmt::format("{} {}", layer.name, to_text(*guess)));
    }
    if (layer.kind == OpKind::other) others_.push_back(layer.name);
  }

  // What it reads besides labels: layers, or else the one blob of a data layer that it reads first.
  [[nodiscard]] std::vector<Source> sources_of(const CaffeLayer& source) const {
    if (!profile_.has_graph) return {last_};
    std::vector<Source> layers, data;
    for (const auto& bottom : source.bottoms) {
      const auto found = blobs_.find(bottom);
      if (found == blobs_.end()) {
        throw input_error(fmt::format("reads the blob {}, which no layer before it writes", shown(bottom)));
      }
      (found->second.layer ? layers : data).push_back(found->second);
    }
    if (!layers.empty()) return layers;
    if (data.empty()) data.emplace_back();
    data.resize(1);
    return data;
  }

  [[nodiscard]] bool is_in_place(const Layer& layer, const CaffeLayer& source) const {
    if (layer.kind == OpKind::flatten || source.name.ends_with("_split")) return true;
    return source.bottoms.size() == 1 && source.tops.size() == 1 && source.bottoms[0] == source.tops[0].name;
  }

  void set_window(Layer& layer, const CaffeLayer& source, bool shapes_known) {
    if (!has_window(layer.kind)) return;
    if (source.has_parameters) {
      set_window_from_network(layer, source);
      const auto groups = window_field(source, "group", "group", 1);
      if (!groups.empty()) layer.groups = groups[0];
    } else if (set_window_from_name(layer)) {
      named_windows_.push_back(layer.name);
    }
    if (!layer.kernel.empty() && !complete_window(layer, shapes_known)) odd_windows_.push_back(layer.name);
  }

  void set_parameters(Layer& layer, const CaffeLayer& source, bool shapes_known) {
    const auto term = source.parameters.find("bias_term");
    const bool bias = term == source.parameters.end() || term->second[0] != "false";
    if (source.parameter_count) {
      const bool had_kernel = !layer.kernel.empty();
      if (!set_parameters_from_count(layer, *source.parameter_count)) odd_counts_.push_back(layer.name);
      if (!had_kernel && !layer.kernel.empty()) {
        counted_windows_.push_back(layer.name);
        if (!complete_window(layer, shapes_known)) odd_windows_.push_back(layer.name);
      }
      return;
    }
    if (!shapes_known) return;
    if (plain_type(source.type) == "scale" && layer.output_shape.size() > 1) {
      layer.parameters = {{"weight", {layer.output_shape[1]}}};
      if (term != source.parameters.end() && bias) layer.parameters.push_back({"bias", {layer.output_shape[1]}});
      return;
    }
    set_parameters_from_shapes(layer, bias);
    if (!layer.parameters.empty() && !source.has_parameters) assumed_biases_.push_back(layer.name);
  }

  [[nodiscard]] static Bytes bytes_of(const Shape& shape) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(elements(shape), kFloat, &bytes)) {
      throw input_error("the output has more bytes than 64 bits can count");
    }
    return Bytes(bytes);
  }

  void set_times(Layer& layer, const CaffeLayer& source) {
    layer.samples[static_cast<std::size_t>(Pass::forward)].seconds = {*source.forward_ms / 1e3};
    layer.backward_is_joint = true;
    if (!source.backward_ms) return;
    layer.samples[static_cast<std::size_t>(Pass::backward_weight)].seconds = {*source.backward_ms / 1e3};
  }

  // Windows and parameters of a known network, then the work of all layers that say enough.
  void complete() {
    Names open;
    for (const auto& layer : trace_.layers) {
      const bool weights = layer.kind == OpKind::conv || layer.kind == OpKind::fc;
      if ((has_window(layer.kind) && layer.kernel.empty()) || (weights && layer.parameters.empty())) {
        open.push_back(layer.name);
      }
    }
    if (!open.empty()) {
      const auto model = complete_from_model(trace_);
      note(model.empty() ? fmt::format("windows or parameters not known: {}", some_of(open))
                         : fmt::format("its shapes are those of the built-in {}: windows and parameters from there: {}",
                                       model, some_of(open)));
    }
    for (std::size_t id = 0; id < trace_.layers.size(); ++id) {
      auto& layer = trace_.layers[id];
      const bool spatial = layer.kind != OpKind::conv || (layer.input_shapes[0].size() > 2 && !layer.kernel.empty());
      if (!shapes_known_[id] || !spatial || layer.output_shape.empty()) continue;
      with_context(fmt::format("layer {}", shown(layer.name)), [&] { set_flops(layer); });
    }
  }

  // ---- notes and report ----

  void describe() {
    trace_.model = profile_.model;
    trace_.recorder = "caffe time";
    trace_.framework = "Caffe";
    trace_.device = profile_.device.empty() ? "unknown" : profile_.device;
    trace_.layout = "nchw";
    trace_.cache_mode = "in situ";
    const std::pair<const char*, const Names*> lists[] = {
        {"kinds guessed from names: {}", &guessed_},
        {"kept as 'other': {}", &others_},
        {"shapes unknown, one element a sample stands for them: {}", &without_shapes_},
        {"kernels from names, pads from shapes: {}", &named_windows_},
        {"kernels from the number of parameters, strides and pads from shapes: {}", &counted_windows_},
        {"window contradicts the shapes: {}", &odd_windows_},
        {"parameters kept as one tensor, since the shapes do not explain their number: {}", &odd_counts_},
        {"a bias assumed, as is Caffe's default: {}", &assumed_biases_},
    };
    for (const auto& [text, names] : lists) {
      if (!names->empty()) note(fmt::format(fmt::runtime(text), some_of(*names)));
    }
    if (!profile_.has_graph) note("the file has no edges: every layer is taken to read the one before it");
    if (!profile_.has_graph) note("which layers work in place the file does not say");
    note("means over iterations; one time for the whole backward pass of a layer, under backward-weight; no update");
    note("a synchronisation behind every layer: the sum of layers is an upper bound on an undisturbed iteration");
    if (!profile_.force_backward) {
      note(
          "with force_backward, which the file does not show, the first layer's backward time holds its input "
          "gradient");
    }
    if (data_.count > 0) {
      trace_.outside.push_back({OutsideTime::Kind::input_wait, {{data_.time.count()}}});
      note(fmt::format("{} of data layers stand outside of the layers, as input-wait", to_text(data_.time)));
    }
    note_totals();
  }

  // The tool's own totals are clocks around the passes: over the layers', they hold what lies between two layers.
  void note_totals() {
    double forward = 0, backward = 0;
    for (const auto& layer : profile_.layers) {
      forward += *layer.forward_ms;
      backward += layer.backward_ms.value_or(0);
    }
    const std::tuple<const char*, double, std::optional<double>> totals[] = {
        {"forward", forward, profile_.forward_ms},
        {"backward", backward, profile_.backward_ms},
        {"forward and backward", forward + backward, profile_.both_ms}};
    for (const auto& [what, sum, total] : totals) {
      if (!total) continue;
      const auto off = *total > 0 ? fmt::format("{:+.2f} %", (sum / *total - 1) * 100) : "no ratio";
      note(fmt::format("{}: all timed layers sum to {:.6g} ms, the tool's own total is {:.6g} ms ({})", what, sum,
                       *total, off));
    }
  }

  void report() {
    using Fate = ImportReport::Fate;
    ImportReport::Entry layers{"layers, forward and backward", 0, {}, Fate::used, ""};
    for (const auto& layer : trace_.layers) {
      ++layers.count;
      for (const auto& samples : layer.samples) layers.time += samples.typical();
    }
    data_.what = "data layers";
    data_.fate = Fate::apart;
    data_.why = "the input's arrival, no work of the network";
    const auto totals =
        std::int64_t{profile_.forward_ms.has_value()} + profile_.backward_ms.has_value() + profile_.both_ms.has_value();
    report_.entries = {layers, data_};
    report_.entries.push_back({"totals of the tool", totals, Seconds(profile_.both_ms.value_or(0) / 1e3), Fate::dropped,
                               "compared with the sum of layers, in the notes"});
    report_.entries.push_back({"times of single iterations",
                               profile_.iterations,
                               {},
                               Fate::dropped,
                               "forward and backward in one, with timers around layers"});
    report_.entries.push_back({"other lines", profile_.other_lines, {}, Fate::dropped, "nothing about layers"});
    std::erase_if(report_.entries, [](const ImportReport::Entry& entry) { return entry.count == 0; });
  }

  const CaffeProfile& profile_;
  std::int64_t given_;
  Trace trace_;
  ImportReport report_;
  ImportReport::Entry data_;
  std::map<std::string, Source> blobs_;
  Source last_;
  std::vector<bool> shapes_known_;
  Names guessed_, others_, without_shapes_, named_windows_, counted_windows_, odd_windows_, odd_counts_,
      assumed_biases_;
};

// All layers have a backward time, or none (a forward-only run); in between the log was cut off.
void check_backward(const CaffeProfile& profile) {
  const auto has = [](const CaffeLayer& layer) { return layer.backward_ms.has_value(); };
  if (std::none_of(profile.layers.begin(), profile.layers.end(), has)) return;
  for (const auto& layer : profile.layers) {
    if (!has(layer)) {
      throw input_error(fmt::format("line {}: {} has no backward time where others have one; the log is cut off",
                                    layer.line, shown(layer.name)));
    }
  }
}

class CaffeImporter : public Importer {
 public:
  explicit CaffeImporter(std::int64_t batch) : batch_(batch) {}

  [[nodiscard]] bool recognizes(std::string_view head) const override {
    return is_caffe_table(head) || (is_caffe_log(head) && !head.starts_with('{') && !head.starts_with('['));
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    if (!is_storable_text(source.content)) throw input_error("the file is not UTF-8 text, or has a NUL in it");
    const auto profile =
        is_caffe_table(source.content) ? read_caffe_table(source.content) : read_caffe_log(source.content);
    check_backward(profile);
    auto imported = Builder(profile, batch_).build();
    if (!source.content.ends_with('\n')) imported.trace.notes.emplace_back(kUnfinishedLine);
    return imported;
  }

 private:
  std::int64_t batch_;
};

std::unique_ptr<Importer> make_caffe(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<CaffeImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 20) : 0);
}

TANDEM_REGISTER(Importer, caffe, "caffe", "log of 'caffe time', or a table of its figures (joint backward times)",
                make_caffe,
                {{"batch", ParameterType::integer, "", "samples an iteration; by default the first extent of a shape"}})

}  // namespace
}  // namespace tandem
