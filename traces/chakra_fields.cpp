#include "traces/chakra_fields.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <span>

#include "sim/core/error.hpp"
#include "traces/hdf5_file.hpp"

namespace tandem {
namespace {

// ---- attributes ----

chakra::Attribute& add(ChakraAttributes& attributes, std::string_view name) {
  auto& attribute = *attributes.Add();
  attribute.set_name(std::string(name));
  return attribute;
}

void put_real(ChakraAttributes& attributes, std::string_view name, double value) {
  add(attributes, name).set_double_value(value);
}

template <class Range>
void put_integers(ChakraAttributes& attributes, std::string_view name, const Range& values) {
  auto& list = *add(attributes, name).mutable_int64_list();
  for (const auto value : values) list.add_values(value);
}

void put_reals(ChakraAttributes& attributes, std::string_view name, const std::vector<double>& values) {
  auto& list = *add(attributes, name).mutable_double_list();
  for (const double value : values) list.add_values(value);
}

// The schema's text is UTF-8.
const std::string& utf8(const std::string& text, std::string_view name) {
  if (!is_storable_text(text)) throw input_error(fmt::format("'{}': a text is not UTF-8, or has a NUL in it", name));
  return text;
}

void put_texts(ChakraAttributes& attributes, std::string_view name, const std::vector<std::string>& values) {
  auto& list = *add(attributes, name).mutable_text_list();
  for (const auto& value : values) list.add_values(utf8(value, name));
}

// Attributes by name. Each is expected to be there and of its type: the errors say so.
class Fields {
 public:
  explicit Fields(const ChakraAttributes& attributes) {
    for (const auto& attribute : attributes) by_name_.emplace(attribute.name(), &attribute);
  }

  [[nodiscard]] bool has(std::string_view name) const { return by_name_.count(name) > 0; }
  [[nodiscard]] std::int64_t integer(std::string_view name) const {
    return get(name, chakra::Attribute::kInt64Value).int64_value();
  }
  [[nodiscard]] int small(std::string_view name) const { return narrow(name, integer(name)); }
  [[nodiscard]] double real(std::string_view name) const {
    return get(name, chakra::Attribute::kDoubleValue).double_value();
  }
  [[nodiscard]] bool flag(std::string_view name) const { return get(name, chakra::Attribute::kFlag).flag(); }
  [[nodiscard]] const std::string& text(std::string_view name) const {
    return utf8(get(name, chakra::Attribute::kText).text(), name);
  }
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name) const {
    const auto& list = get(name, chakra::Attribute::kInt64List).int64_list().values();
    return {list.begin(), list.end()};
  }
  [[nodiscard]] std::vector<int> window(std::string_view name) const {
    std::vector<int> values;
    for (const auto value : integers(name)) values.push_back(narrow(name, value));
    return values;
  }
  [[nodiscard]] std::vector<double> reals(std::string_view name) const {
    const auto& list = get(name, chakra::Attribute::kDoubleList).double_list().values();
    return {list.begin(), list.end()};
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const {
    const auto& list = get(name, chakra::Attribute::kTextList).text_list().values();
    for (const auto& value : list) utf8(value, name);
    return {list.begin(), list.end()};
  }

 private:
  static int narrow(std::string_view name, std::int64_t value) {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
      throw input_error(fmt::format("'{}' has a value of {}", name, value));
    }
    return static_cast<int>(value);
  }

  [[nodiscard]] const chakra::Attribute& get(std::string_view name, chakra::Attribute::ValueCase type) const {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) throw input_error(fmt::format("attribute '{}' is missing", name));
    if (found->second->value_case() != type) {
      throw input_error(fmt::format("attribute '{}' has a value of another type than Tandem writes", name));
    }
    return *found->second;
  }

  std::map<std::string_view, const chakra::Attribute*> by_name_;
};

// ---- values that are lists of lists ----

// "4x6x9x8"; a shape without extents is an empty text.
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const auto extent : shape) text += fmt::format("{}{}", text.empty() ? "" : "x", extent);
  return text;
}

Shape shape_of(std::string_view name, std::string_view text) {
  Shape shape;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(at, end, shape.emplace_back());
    const bool more = next != end && *next == 'x' && next + 1 != end;
    if (error != std::errc() || (next != end && !more)) {
      throw input_error(fmt::format("'{}': '{}' is no shape, such as 32x3x224x224", name, text.substr(0, 64)));
    }
    at = more ? next + 1 : next;
  }
  return shape;
}

void put_shapes(ChakraAttributes& attributes, std::string_view name, const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  for (const auto& shape : shapes) texts.push_back(shape_text(shape));
  put_texts(attributes, name, texts);
}

std::vector<Shape> get_shapes(const Fields& fields, std::string_view name) {
  std::vector<Shape> shapes;
  for (const auto& text : fields.texts(name)) shapes.push_back(shape_of(name, text));
  return shapes;
}

// All samples in one list, and how many each has in another.
void put_samples(ChakraAttributes& attributes, const std::string& name, const std::vector<const Samples*>& samples) {
  std::vector<std::int64_t> counts;
  std::vector<double> all;
  for (const auto* one : samples) {
    counts.push_back(static_cast<std::int64_t>(one->seconds.size()));
    all.insert(all.end(), one->seconds.begin(), one->seconds.end());
  }
  put_integers(attributes, name + "_counts", counts);
  put_reals(attributes, name + "_s", all);
}

std::vector<Samples> get_samples(const Fields& fields, const std::string& name, std::size_t expected) {
  const auto counts = fields.integers(name + "_counts");
  const auto all = fields.reals(name + "_s");
  std::vector<Samples> samples;
  std::span<const double> left(all);
  for (const auto count : counts) {
    if (count < 0 || static_cast<std::uint64_t>(count) > left.size()) {
      throw input_error(fmt::format("'{}_counts' has {} where {} samples are left", name, count, left.size()));
    }
    const auto own = left.first(static_cast<std::size_t>(count));
    samples.push_back({{own.begin(), own.end()}});
    left = left.subspan(own.size());
  }
  if (samples.size() != expected || !left.empty()) {
    throw input_error(fmt::format("'{}_counts' has {} entries and leaves {} samples; {} entries are expected", name,
                                  samples.size(), left.size(), expected));
  }
  return samples;
}

template <class Value>
Value value_of(std::string_view name, const std::string& text, std::optional<Value> (*parse)(std::string_view)) {
  const auto value = parse(text);
  if (!value) throw input_error(fmt::format("'{}' is '{}', which is unknown", name, text.substr(0, 64)));
  return *value;
}

std::optional<Pass> pass_from_text(std::string_view text) {
  for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weight, Pass::update}) {
    if (to_text(pass) == text) return pass;
  }
  return std::nullopt;
}

void same_length(std::size_t a, std::size_t b, std::string_view what) {
  if (a != b) throw input_error(fmt::format("{}: lists of {} and {} entries that belong together", what, a, b));
}

// ---- parts of a trace ----

void put_other_batches(const Trace& trace, ChakraAttributes& attributes) {
  std::vector<std::int64_t> batches;
  std::vector<const Samples*> samples = {&trace.iteration_forward, &trace.iteration_backward, &trace.iteration_update};
  for (const auto& other : trace.other_batches) {
    batches.push_back(other.batch);
    for (const auto* pass : {&other.forward, &other.backward, &other.update}) samples.push_back(pass);
  }
  put_integers(attributes, "tandem_other_batches", batches);
  put_samples(attributes, "tandem_iterations", samples);
}

void get_other_batches(const Fields& fields, Trace& trace) {
  const auto batches = fields.integers("tandem_other_batches");
  auto samples = get_samples(fields, "tandem_iterations", 3 * (batches.size() + 1));
  trace.iteration_forward = samples[0];
  trace.iteration_backward = samples[1];
  trace.iteration_update = samples[2];
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto* own = &samples[3 * (i + 1)];
    trace.other_batches.push_back({batches[i], own[0], own[1], own[2]});
  }
}

void put_outside(const Trace& trace, ChakraAttributes& attributes) {
  std::vector<std::string> kinds;
  std::vector<const Samples*> samples;
  for (const auto& time : trace.outside) {
    kinds.emplace_back(to_text(time.kind));
    samples.push_back(&time.samples);
  }
  put_texts(attributes, "tandem_outside_kinds", kinds);
  put_samples(attributes, "tandem_outside", samples);
}

void get_outside(const Fields& fields, Trace& trace) {
  const auto kinds = fields.texts("tandem_outside_kinds");
  const auto samples = get_samples(fields, "tandem_outside", kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    trace.outside.push_back({value_of("tandem_outside_kinds", kinds[i], outside_kind_from_text), samples[i]});
  }
}

void put_splits(const Layer& layer, ChakraAttributes& attributes) {
  std::vector<std::string> axes;
  std::vector<double> fractions;
  std::vector<Shape> inputs, outputs;
  std::vector<const Samples*> samples;
  for (const auto& split : layer.splits) {
    axes.emplace_back(to_text(split.axis));
    fractions.push_back(split.fraction);
    inputs.push_back(split.input_shape);
    outputs.push_back(split.output_shape);
    for (const auto& pass : split.samples) samples.push_back(&pass);
  }
  put_texts(attributes, "tandem_split_axes", axes);
  put_reals(attributes, "tandem_split_fractions", fractions);
  put_shapes(attributes, "tandem_split_input_shapes", inputs);
  put_shapes(attributes, "tandem_split_output_shapes", outputs);
  put_samples(attributes, "tandem_split_samples", samples);
}

void get_splits(const Fields& fields, Layer& layer) {
  const auto axes = fields.texts("tandem_split_axes");
  const auto fractions = fields.reals("tandem_split_fractions");
  const auto inputs = get_shapes(fields, "tandem_split_input_shapes");
  const auto outputs = get_shapes(fields, "tandem_split_output_shapes");
  const auto samples = get_samples(fields, "tandem_split_samples", axes.size() * kPasses);
  for (const auto size : {fractions.size(), inputs.size(), outputs.size()}) same_length(axes.size(), size, "splits");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    SplitCurve split;
    split.axis = value_of("tandem_split_axes", axes[i], split_axis_from_text);
    split.fraction = fractions[i];
    split.input_shape = inputs[i];
    split.output_shape = outputs[i];
    for (std::size_t pass = 0; pass < kPasses; ++pass) split.samples[pass] = samples[i * kPasses + pass];
    layer.splits.push_back(std::move(split));
  }
}

void put_parameters(const Layer& layer, ChakraAttributes& attributes) {
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  for (const auto& tensor : layer.parameters) {
    names.push_back(tensor.name);
    shapes.push_back(tensor.shape);
  }
  put_texts(attributes, "tandem_parameter_names", names);
  put_shapes(attributes, "tandem_parameter_shapes", shapes);
}

void get_parameters(const Fields& fields, Layer& layer) {
  const auto names = fields.texts("tandem_parameter_names");
  const auto shapes = get_shapes(fields, "tandem_parameter_shapes");
  same_length(names.size(), shapes.size(), "parameters");
  for (std::size_t i = 0; i < names.size(); ++i) layer.parameters.push_back({names[i], shapes[i]});
}

}  // namespace

void put_number(ChakraAttributes& attributes, std::string_view name, std::int64_t value) {
  add(attributes, name).set_int64_value(value);
}
void put_flag(ChakraAttributes& attributes, std::string_view name, bool value) {
  add(attributes, name).set_flag(value);
}
void put_text(ChakraAttributes& attributes, std::string_view name, std::string_view value) {
  add(attributes, name).set_text(utf8(std::string(value), name));
}

void put_trace(const Trace& trace, ChakraAttributes& attributes) {
  put_number(attributes, kChakraFormat, Trace::kFormatVersion);
  put_text(attributes, "tandem_model", trace.model);
  put_text(attributes, "tandem_recorder", trace.recorder);
  put_text(attributes, "tandem_framework", trace.framework);
  put_text(attributes, "tandem_framework_version", trace.framework_version);
  put_text(attributes, "tandem_device", trace.device);
  put_number(attributes, "tandem_threads", trace.threads);
  put_real(attributes, "tandem_clock_hz", trace.clock_hz);
  put_text(attributes, "tandem_dtype", trace.dtype);
  put_text(attributes, "tandem_layout", trace.layout);
  put_number(attributes, "tandem_batch", trace.batch);
  put_text(attributes, "tandem_cache_mode", trace.cache_mode);
  put_text(attributes, "tandem_date", trace.date);
  put_other_batches(trace, attributes);
  put_outside(trace, attributes);
  put_texts(attributes, "tandem_notes", trace.notes);
}

Trace get_trace(const ChakraAttributes& attributes) {
  const Fields fields(attributes);
  if (const auto version = fields.integer(kChakraFormat); version != Trace::kFormatVersion) {
    throw input_error(fmt::format("'{}' is {}; this program reads {}", kChakraFormat, version, Trace::kFormatVersion));
  }
  Trace trace;
  trace.model = fields.text("tandem_model");
  trace.recorder = fields.text("tandem_recorder");
  trace.framework = fields.text("tandem_framework");
  trace.framework_version = fields.text("tandem_framework_version");
  trace.device = fields.text("tandem_device");
  trace.threads = fields.small("tandem_threads");
  trace.clock_hz = fields.real("tandem_clock_hz");
  trace.dtype = fields.text("tandem_dtype");
  trace.layout = fields.text("tandem_layout");
  trace.batch = fields.integer("tandem_batch");
  trace.cache_mode = fields.text("tandem_cache_mode");
  trace.date = fields.text("tandem_date");
  get_other_batches(fields, trace);
  get_outside(fields, trace);
  trace.notes = fields.texts("tandem_notes");
  return trace;
}

void put_layer(const Layer& layer, ChakraAttributes& attributes) {
  put_text(attributes, "tandem_name", layer.name);
  put_text(attributes, "tandem_kind", to_text(layer.kind));
  std::vector<std::int64_t> inputs;
  for (const LayerId input : layer.inputs) inputs.push_back(input.value);
  put_integers(attributes, "tandem_inputs", inputs);
  put_shapes(attributes, "tandem_input_shapes", layer.input_shapes);
  put_integers(attributes, "tandem_output_shape", layer.output_shape);
  put_integers(attributes, "tandem_kernel", layer.kernel);
  put_integers(attributes, "tandem_stride", layer.stride);
  put_integers(attributes, "tandem_pad_begin", layer.pad_begin);
  put_integers(attributes, "tandem_pad_end", layer.pad_end);
  put_integers(attributes, "tandem_dilation", layer.dilation);
  put_number(attributes, "tandem_groups", layer.groups);
  put_flag(attributes, "tandem_in_place", layer.in_place);
  put_flag(attributes, "tandem_needs_input_gradient", layer.needs_input_gradient);
  put_flag(attributes, "tandem_backward_is_joint", layer.backward_is_joint);
  put_parameters(layer, attributes);
  put_number(attributes, "tandem_activation_bytes", layer.activation_bytes.count());
  put_number(attributes, "tandem_workspace_bytes", layer.workspace_bytes.count());
  std::vector<double> flops;
  for (const Flops pass : layer.flops) flops.push_back(pass.count());
  put_reals(attributes, "tandem_flops", flops);
  if (!layer.splits.empty()) put_splits(layer, attributes);
}

Layer get_layer(const ChakraAttributes& attributes) {
  const Fields fields(attributes);
  Layer layer;
  layer.name = fields.text("tandem_name");
  layer.kind = value_of("tandem_kind", fields.text("tandem_kind"), op_kind_from_text);
  for (const int input : fields.window("tandem_inputs")) layer.inputs.push_back(LayerId{input});
  layer.input_shapes = get_shapes(fields, "tandem_input_shapes");
  layer.output_shape = fields.integers("tandem_output_shape");
  layer.kernel = fields.window("tandem_kernel");
  layer.stride = fields.window("tandem_stride");
  layer.pad_begin = fields.window("tandem_pad_begin");
  layer.pad_end = fields.window("tandem_pad_end");
  layer.dilation = fields.window("tandem_dilation");
  layer.groups = fields.small("tandem_groups");
  layer.in_place = fields.flag("tandem_in_place");
  layer.needs_input_gradient = fields.flag("tandem_needs_input_gradient");
  layer.backward_is_joint = fields.flag("tandem_backward_is_joint");
  get_parameters(fields, layer);
  layer.activation_bytes = Bytes(fields.integer("tandem_activation_bytes"));
  layer.workspace_bytes = Bytes(fields.integer("tandem_workspace_bytes"));
  const auto flops = fields.reals("tandem_flops");
  same_length(flops.size(), kPasses, "tandem_flops");
  for (std::size_t pass = 0; pass < kPasses; ++pass) layer.flops[pass] = Flops(flops[pass]);
  if (fields.has("tandem_split_axes")) get_splits(fields, layer);
  return layer;
}

void put_pass(const ChakraPassNode& node, ChakraAttributes& attributes) {
  put_number(attributes, kChakraLayer, node.layer);
  put_text(attributes, kChakraPass, to_text(node.pass));
  put_reals(attributes, "tandem_samples_s", node.samples.seconds);
}

ChakraPassNode get_pass(const ChakraAttributes& attributes) {
  const Fields fields(attributes);
  return {fields.integer(kChakraLayer), value_of(kChakraPass, fields.text(kChakraPass), pass_from_text),
          Samples{fields.reals("tandem_samples_s")}};
}

void put_collective(const RecordedCollective& collective, ChakraAttributes& attributes) {
  put_text(attributes, "tandem_operation", collective.operation);
  put_number(attributes, "tandem_bytes", collective.bytes.count());
  put_real(attributes, "tandem_duration_s", collective.duration.count());
}

RecordedCollective get_collective(const ChakraAttributes& attributes) {
  const Fields fields(attributes);
  return {fields.text("tandem_operation"), Bytes(fields.integer("tandem_bytes")),
          Seconds(fields.real("tandem_duration_s"))};
}

}  // namespace tandem
