// The HDF5 form of a trace (FORMAT.md): one flat column a field over all layers. A list that differs in length from
// layer to layer is one column of values and one of offsets, as in compressed sparse rows: the values of row i are
// values[offset[i] .. offset[i+1]).
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/hdf5_file.hpp"
#include "traces/trace.hpp"

namespace tandem {
namespace {

constexpr std::string_view kFormat = "tandem-trace";
constexpr std::string_view kPassNames[kPasses] = {"forward", "backward_data", "backward_weight", "update"};

// ---- the columns of both directions ----

class Writer {
 public:
  explicit Writer(const std::string& path) : file(path) {}
  Hdf5Writer file;

  template <class Row, class Get>
  void column(const std::string& name, const std::vector<Row>& rows, std::string_view unit, Get&& get) {
    std::vector<std::decay_t<decltype(get(rows[0]))>> values;
    for (const auto& row : rows) values.push_back(get(row));
    file.dataset(name, std::span<const std::decay_t<decltype(get(rows[0]))>>(values), unit);
  }

  // `get` gives a vector a row; Stored is the type on file.
  template <class Stored, class Row, class Get>
  void ragged(const std::string& name, const std::vector<Row>& rows, std::string_view unit, Get&& get) {
    std::vector<Stored> values;
    std::vector<std::int64_t> offsets{0};
    for (const auto& row : rows) {
      for (const auto& value : get(row)) values.push_back(static_cast<Stored>(value));
      offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    file.dataset(name, std::span<const Stored>(values), unit);
    file.dataset(name + "_offset", std::span<const std::int64_t>(offsets));
  }

  template <class Row>
  void samples(const std::string& group, const std::vector<Row>& rows) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      ragged<double>(
          fmt::format("{}/{}", group, kPassNames[pass]), rows,
          "s", [&](const Row& row) -> const auto& { return row.samples[pass].seconds; });
    }
  }
};

class Reader {
 public:
  explicit Reader(const std::string& path) : file(path) {}
  Hdf5Reader file;

  void check_rows(const std::string& name, std::size_t seen, std::size_t wanted) const {
    if (seen != wanted) throw input_error(fmt::format("'{}' has {} rows; {} are expected", name, seen, wanted));
  }

  template <class Row, class Values, class Set>
  void fill(const std::string& name, std::vector<Row>& rows, const Values& values, Set&& set) const {
    check_rows(name, values.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) set(rows[i], values[i]);
  }

  // Offsets that start at 0, never fall and end at the number of values: what makes every row's range safe to use.
  [[nodiscard]] std::vector<std::size_t> offsets(const std::string& name, std::size_t rows, std::size_t values) const {
    const auto read = file.integers(name);
    check_rows(name, read.size(), rows + 1);
    if (read.front() != 0 || !std::is_sorted(read.begin(), read.end()) ||
        read.back() != static_cast<std::int64_t>(values)) {
      throw input_error(fmt::format("'{}' does not rise from 0 to the {} values it cuts up", name, values));
    }
    return {read.begin(), read.end()};
  }

  template <class Row, class Values, class Get>
  void ragged(const std::string& name, std::vector<Row>& rows, const Values& values, Get&& get) const {
    const auto offset = offsets(name + "_offset", rows.size(), values.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      auto& list = get(rows[i]);
      for (std::size_t k = offset[i]; k < offset[i + 1]; ++k) list.push_back(convert(name, values[k], list));
    }
  }

  template <class Row>
  void samples(const std::string& group, std::vector<Row>& rows) const {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const auto name = fmt::format("{}/{}", group, kPassNames[pass]);
      check_unit(name, "s");
      ragged(
          name, rows, file.numbers(name), [&](Row & row) -> auto& { return row.samples[pass].seconds; });
    }
  }

  // A column in another unit would be read as if it were SI.
  void check_unit(const std::string& name, std::string_view wanted) const {
    const auto seen = file.unit(name);
    if (seen != wanted) throw input_error(fmt::format("'{}' has unit '{}'; '{}' is expected", name, seen, wanted));
  }

  [[nodiscard]] int small(const std::string& name, std::int64_t value) const {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
      throw input_error(fmt::format("'{}' has a value of {}, which is out of range", name, value));
    }
    return static_cast<int>(value);
  }

 private:
  template <class Value>
  Value convert(const std::string&, const Value& value, const std::vector<Value>&) const {
    return value;
  }
  int convert(const std::string& name, std::int64_t value, const std::vector<int>&) const { return small(name, value); }
  LayerId convert(const std::string& name, std::int64_t value, const std::vector<LayerId>&) const {
    return LayerId{small(name, value)};
  }
};

// Text fields of the file as a whole, in both directions.
template <class TraceRef, class Each>
void each_text(TraceRef& trace, Each&& each) {
  each("model", trace.model);
  each("recorder", trace.recorder);
  each("library", trace.framework);
  each("library_version", trace.framework_version);
  each("device", trace.device);
  each("dtype", trace.dtype);
  each("layout", trace.layout);
  each("cache_mode", trace.cache_mode);
  each("date", trace.date);
}

template <class TraceRef, class Each>
void each_iteration(TraceRef& trace, Each&& each) {
  each("/iteration/forward", trace.iteration_forward);
  each("/iteration/backward", trace.iteration_backward);
  each("/iteration/update", trace.iteration_update);
}

template <class Each>
void each_window(Each&& each) {
  each("/layers/kernel", &Layer::kernel);
  each("/layers/stride", &Layer::stride);
  each("/layers/pad_begin", &Layer::pad_begin);
  each("/layers/pad_end", &Layer::pad_end);
  each("/layers/dilation", &Layer::dilation);
}

template <class Each>
void each_whole(Each&& each) {
  each("/batches/forward", &WholeIteration::forward);
  each("/batches/backward", &WholeIteration::backward);
  each("/batches/update", &WholeIteration::update);
}

// Rows of the tables below /layers, each with the layer it belongs to.
template <class Row>
struct Owned {
  std::int64_t layer = 0;
  Row row;
};

// ---- writing ----

void write_head(Writer& out, const Trace& trace) {
  out.file.attribute("/", "format", kFormat);
  out.file.attribute("/", "format_version", std::int64_t{Trace::kFormatVersion});
  each_text(trace, [&](const char* name, const std::string& text) { out.file.attribute("/", name, text); });
  out.file.attribute("/", "threads", std::int64_t{trace.threads});
  out.file.attribute("/", "clock_hz", trace.clock_hz);
  out.file.attribute("/", "batch", trace.batch);
  out.file.dataset("/notes", std::span<const std::string>(trace.notes));
  each_iteration(trace, [&](const char* name, const Samples& samples) {
    out.file.dataset(name, std::span<const double>(samples.seconds), "s");
  });
}

void write_layers(Writer& out, const std::vector<Layer>& layers) {
  out.column("/layers/name", layers, "", [](const Layer& l) { return l.name; });
  out.column("/layers/kind", layers, "", [](const Layer& l) { return std::string(to_text(l.kind)); });
  out.column("/layers/groups", layers, "", [](const Layer& l) { return std::int32_t{l.groups}; });
  out.column("/layers/in_place", layers, "", [](const Layer& l) { return std::int32_t{l.in_place}; });
  out.column("/layers/needs_input_gradient", layers, "",
             [](const Layer& l) { return std::int32_t{l.needs_input_gradient}; });
  out.column("/layers/backward_is_joint", layers, "", [](const Layer& l) { return std::int32_t{l.backward_is_joint}; });
  out.column("/layers/activation_bytes", layers, "B", [](const Layer& l) { return l.activation_bytes.count(); });
  out.column("/layers/workspace_bytes", layers, "B", [](const Layer& l) { return l.workspace_bytes.count(); });
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    out.column(fmt::format("/layers/flops_{}", kPassNames[pass]), layers, "FLOP",
               [&](const Layer& l) { return l.flops[pass].count(); });
  }
  std::vector<std::int32_t> ids;
  out.ragged<std::int32_t>(
      "/layers/inputs", layers, "", [&](const Layer& l) -> const auto& {
        ids.clear();
        for (const LayerId input : l.inputs) ids.push_back(input.value);
        return ids;
      });
  out.ragged<std::int64_t>(
      "/layers/output_shape", layers, "", [](const Layer& l) -> const auto& { return l.output_shape; });
  each_window([&](const char* name, std::vector<int> Layer::*field) {
    out.ragged<std::int32_t>(
        name, layers, "", [&](const Layer& l) -> const auto& { return l.*field; });
  });
  out.samples("/samples", layers);
}

template <class Row, class Get>
std::vector<Owned<Row>> gather(const std::vector<Layer>& layers, Get&& get) {
  std::vector<Owned<Row>> rows;
  for (std::size_t id = 0; id < layers.size(); ++id) {
    for (const auto& row : get(layers[id])) rows.push_back({static_cast<std::int64_t>(id), row});
  }
  return rows;
}

void write_tables(Writer& out, const std::vector<Layer>& layers) {
  const auto owner = [](const auto& owned) { return owned.layer; };
  const auto inputs = gather<Shape>(
      layers, [](const Layer& l) -> const auto& { return l.input_shapes; });
  out.column("/input_shapes/layer", inputs, "", owner);
  out.ragged<std::int64_t>(
      "/input_shapes/shape", inputs, "", [](const auto& o) -> const auto& { return o.row; });

  const auto tensors = gather<ParameterTensor>(
      layers, [](const Layer& l) -> const auto& { return l.parameters; });
  out.column("/parameters/layer", tensors, "", owner);
  out.column("/parameters/name", tensors, "", [](const auto& o) { return o.row.name; });
  out.ragged<std::int64_t>(
      "/parameters/shape", tensors, "", [](const auto& o) -> const auto& { return o.row.shape; });

  const auto owned = gather<SplitCurve>(
      layers, [](const Layer& l) -> const auto& { return l.splits; });
  std::vector<SplitCurve> splits;
  for (const auto& one : owned) splits.push_back(one.row);
  out.column("/splits/layer", owned, "", owner);
  out.column("/splits/axis", splits, "", [](const SplitCurve& s) { return std::string(to_text(s.axis)); });
  out.column("/splits/fraction", splits, "1", [](const SplitCurve& s) { return s.fraction; });
  out.ragged<std::int64_t>(
      "/splits/input_shape", splits, "", [](const SplitCurve& s) -> const auto& { return s.input_shape; });
  out.ragged<std::int64_t>(
      "/splits/output_shape", splits, "", [](const SplitCurve& s) -> const auto& { return s.output_shape; });
  out.samples("/splits/samples", splits);
}

// Written where there is something to write: most traces have none of these.
void write_surroundings(Writer& out, const Trace& trace) {
  if (!trace.other_batches.empty()) {
    out.column("/batches/batch", trace.other_batches, "", [](const WholeIteration& w) { return w.batch; });
    each_whole([&](const char* name, Samples WholeIteration::*field) {
      out.ragged<double>(
          name, trace.other_batches, "s", [&](const WholeIteration& w) -> const auto& { return (w.*field).seconds; });
    });
  }
  if (!trace.outside.empty()) {
    out.column("/outside/kind", trace.outside, "", [](const OutsideTime& o) { return std::string(to_text(o.kind)); });
    out.ragged<double>(
        "/outside/samples", trace.outside, "s", [](const OutsideTime& o) -> const auto& { return o.samples.seconds; });
  }
  if (!trace.collectives.empty()) {
    out.column("/collectives/operation", trace.collectives, "",
               [](const RecordedCollective& c) { return c.operation; });
    out.column("/collectives/bytes", trace.collectives, "B",
               [](const RecordedCollective& c) { return c.bytes.count(); });
    out.column("/collectives/duration", trace.collectives, "s",
               [](const RecordedCollective& c) { return c.duration.count(); });
  }
}

// ---- reading ----

void check_format(const Reader& in) {
  if (!in.file.has_attribute("/", "format") || in.file.text_attribute("/", "format") != kFormat) {
    throw input_error("an HDF5 file, but not a trace (no attribute format = 'tandem-trace' on its root)");
  }
  const auto version = in.file.integer_attribute("/", "format_version");
  if (version != Trace::kFormatVersion) {
    throw input_error(
        fmt::format("trace format version {}; this program reads version {}", version, Trace::kFormatVersion));
  }
}

void read_head(const Reader& in, Trace& trace) {
  each_text(trace, [&](const char* name, std::string& text) { text = in.file.text_attribute("/", name); });
  trace.threads = in.small("threads", in.file.integer_attribute("/", "threads"));
  trace.clock_hz = in.file.number_attribute("/", "clock_hz");
  trace.batch = in.file.integer_attribute("/", "batch");
  trace.notes = in.file.strings("/notes");
  each_iteration(trace, [&](const char* name, Samples& samples) {
    in.check_unit(name, "s");
    samples.seconds = in.file.numbers(name);
  });
}

void read_flags(const Reader& in, std::vector<Layer>& layers) {
  const auto flag = [&](const std::string& name, bool Layer::*field) {
    in.fill(name, layers, in.file.integers(name), [&](Layer& l, std::int64_t value) {
      if (value != 0 && value != 1) throw input_error(fmt::format("'{}' has a value of {}; 0 or 1", name, value));
      l.*field = value == 1;
    });
  };
  flag("/layers/in_place", &Layer::in_place);
  flag("/layers/needs_input_gradient", &Layer::needs_input_gradient);
  flag("/layers/backward_is_joint", &Layer::backward_is_joint);
}

void read_scalars(const Reader& in, std::vector<Layer>& layers) {
  in.fill("/layers/kind", layers, in.file.strings("/layers/kind"), [](Layer& l, const std::string& text) {
    const auto kind = op_kind_from_text(text);
    if (!kind) throw input_error(fmt::format("layer '{}': unknown kind '{}'", l.name, text));
    l.kind = *kind;
  });
  in.fill("/layers/groups", layers, in.file.integers("/layers/groups"),
          [&](Layer& l, std::int64_t value) { l.groups = in.small("/layers/groups", value); });
  const auto bytes = [&](const std::string& name, Bytes Layer::*field) {
    in.check_unit(name, "B");
    in.fill(name, layers, in.file.integers(name), [&](Layer& l, std::int64_t value) { l.*field = Bytes(value); });
  };
  bytes("/layers/activation_bytes", &Layer::activation_bytes);
  bytes("/layers/workspace_bytes", &Layer::workspace_bytes);
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    const auto name = fmt::format("/layers/flops_{}", kPassNames[pass]);
    in.check_unit(name, "FLOP");
    in.fill(name, layers, in.file.numbers(name), [&](Layer& l, double value) { l.flops[pass] = Flops(value); });
  }
}

std::vector<Layer> read_layers(const Reader& in) {
  const auto names = in.file.strings("/layers/name");
  std::vector<Layer> layers(names.size());
  in.fill("/layers/name", layers, names, [](Layer& l, const std::string& name) { l.name = name; });
  read_flags(in, layers);
  read_scalars(in, layers);
  in.ragged(
      "/layers/inputs", layers, in.file.integers("/layers/inputs"), [](Layer & l) -> auto& { return l.inputs; });
  in.ragged(
      "/layers/output_shape", layers, in.file.integers("/layers/output_shape"),
      [](Layer & l) -> auto& { return l.output_shape; });
  each_window([&](const std::string& name, std::vector<int> Layer::*field) {
    in.ragged(
        name, layers, in.file.integers(name), [&](Layer & l) -> auto& { return l.*field; });
  });
  in.samples("/samples", layers);
  return layers;
}

// The layer of each row of a table, in rising order.
std::vector<std::size_t> read_owners(const Reader& in, const std::string& name, std::size_t layers) {
  const auto owners = in.file.integers(name);
  const auto most = static_cast<std::int64_t>(layers);
  if (!std::is_sorted(owners.begin(), owners.end()) ||
      (!owners.empty() && (owners.front() < 0 || owners.back() >= most))) {
    throw input_error(fmt::format("'{}' does not rise through layers 0 to {}", name, most - 1));
  }
  return {owners.begin(), owners.end()};
}

void read_tables(const Reader& in, std::vector<Layer>& layers) {
  const auto input_owners = read_owners(in, "/input_shapes/layer", layers.size());
  std::vector<Shape> shapes(input_owners.size());
  in.ragged(
      "/input_shapes/shape", shapes, in.file.integers("/input_shapes/shape"), [](Shape & s) -> auto& { return s; });
  for (std::size_t i = 0; i < shapes.size(); ++i) layers[input_owners[i]].input_shapes.push_back(std::move(shapes[i]));

  const auto tensor_owners = read_owners(in, "/parameters/layer", layers.size());
  std::vector<ParameterTensor> tensors(tensor_owners.size());
  in.fill("/parameters/name", tensors, in.file.strings("/parameters/name"),
          [](ParameterTensor& t, const std::string& name) { t.name = name; });
  in.ragged(
      "/parameters/shape", tensors, in.file.integers("/parameters/shape"),
      [](ParameterTensor & t) -> auto& { return t.shape; });
  for (std::size_t i = 0; i < tensors.size(); ++i) layers[tensor_owners[i]].parameters.push_back(std::move(tensors[i]));

  const auto split_owners = read_owners(in, "/splits/layer", layers.size());
  std::vector<SplitCurve> splits(split_owners.size());
  in.fill("/splits/axis", splits, in.file.strings("/splits/axis"), [](SplitCurve& s, const std::string& text) {
    const auto axis = split_axis_from_text(text);
    if (!axis) throw input_error(fmt::format("unknown split axis '{}'", text));
    s.axis = *axis;
  });
  in.fill("/splits/fraction", splits, in.file.numbers("/splits/fraction"),
          [](SplitCurve& s, double fraction) { s.fraction = fraction; });
  in.ragged(
      "/splits/input_shape", splits, in.file.integers("/splits/input_shape"),
      [](SplitCurve & s) -> auto& { return s.input_shape; });
  in.ragged(
      "/splits/output_shape", splits, in.file.integers("/splits/output_shape"),
      [](SplitCurve & s) -> auto& { return s.output_shape; });
  in.samples("/splits/samples", splits);
  for (std::size_t i = 0; i < splits.size(); ++i) layers[split_owners[i]].splits.push_back(std::move(splits[i]));
}

void read_surroundings(const Reader& in, Trace& trace) {
  if (in.file.has("/batches")) {
    const auto batches = in.file.integers("/batches/batch");
    trace.other_batches.resize(batches.size());
    in.fill("/batches/batch", trace.other_batches, batches, [](WholeIteration& w, std::int64_t b) { w.batch = b; });
    each_whole([&](const std::string& name, Samples WholeIteration::*field) {
      in.check_unit(name, "s");
      in.ragged(
          name, trace.other_batches,
          in.file.numbers(name), [&](WholeIteration & w) -> auto& { return (w.*field).seconds; });
    });
  }
  if (in.file.has("/outside")) {
    const auto kinds = in.file.strings("/outside/kind");
    trace.outside.resize(kinds.size());
    in.fill("/outside/kind", trace.outside, kinds, [](OutsideTime& o, const std::string& text) {
      const auto kind = outside_kind_from_text(text);
      if (!kind) throw input_error(fmt::format("unknown kind of time outside of layers '{}'", text));
      o.kind = *kind;
    });
    in.check_unit("/outside/samples", "s");
    in.ragged(
        "/outside/samples", trace.outside, in.file.numbers("/outside/samples"),
        [](OutsideTime & o) -> auto& { return o.samples.seconds; });
  }
  if (in.file.has("/collectives")) {
    auto& collectives = trace.collectives;
    const auto operations = in.file.strings("/collectives/operation");
    collectives.resize(operations.size());
    in.fill("/collectives/operation", collectives, operations,
            [](RecordedCollective& c, const std::string& text) { c.operation = text; });
    in.check_unit("/collectives/bytes", "B");
    in.fill("/collectives/bytes", collectives, in.file.integers("/collectives/bytes"),
            [](RecordedCollective& c, std::int64_t bytes) { c.bytes = Bytes(bytes); });
    in.check_unit("/collectives/duration", "s");
    in.fill("/collectives/duration", collectives, in.file.numbers("/collectives/duration"),
            [](RecordedCollective& c, double seconds) { c.duration = Seconds(seconds); });
  }
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path) {
  with_context(path, [&] { validate(trace); });
  Writer out(path);
  write_head(out, trace);
  write_layers(out, trace.layers);
  write_tables(out, trace.layers);
  write_surroundings(out, trace);
  out.file.commit();
}

Trace read_trace(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) > 0 &&
      !is_hdf5_file(path)) {
    throw input_error(fmt::format("{}: not a trace (HDF5); 'tandem trace import' makes traces of other formats", path));
  }
  const Reader in(path);
  Trace trace;
  const auto body = [&] {
    check_format(in);
    read_head(in, trace);
    trace.layers = read_layers(in);
    read_tables(in, trace.layers);
    read_surroundings(in, trace);
    validate(trace);
  };
  try {
    body();
  } catch (const Error& error) {
    // What the file layer says has the path already.
    if (std::string_view(error.what()).starts_with(path + ":")) throw;
    throw error.within(path);
  }
  return trace;
}

// ---- shipped traces ----

namespace {

std::filesystem::path trace_folder() {
  const char* given = std::getenv("TANDEM_TRACES");
  return given != nullptr && *given != '\0' ? given : TANDEM_TRACE_DATA;
}

}  // namespace

std::vector<std::string> shipped_traces() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(trace_folder(), ignored)) {
    if (entry.path().extension() == ".h5") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// What a file was when it was read: a file of the same stamp is the same file.
std::array<std::int64_t, 5> stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<std::int64_t>(info.st_dev), static_cast<std::int64_t>(info.st_ino), info.st_size,
          info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// Reading takes HDF5 tens of milliseconds, as long as a small simulation, and a study asks for the same few traces
// again and again. What was read is kept, so that the forked runs of a sweep find it in memory.
const Trace& read_once(const std::string& path) {
  struct Read {
    std::array<std::int64_t, 5> stamp;
    Trace trace;
  };
  static std::map<std::string, Read> known;
  const auto stamp = stamp_of(path);
  const auto found = known.find(path);
  if (found != known.end() && found->second.stamp == stamp) return found->second.trace;
  auto trace = read_trace(path);
  return (known[path] = {stamp, std::move(trace)}).trace;
}

}  // namespace

Trace load_trace(const std::string& name_or_path) {
  const auto names = shipped_traces();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end()) {
    return read_once((trace_folder() / (name_or_path + ".h5")).string());
  }
  std::error_code ignored;
  const bool path_like = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".h5");
  if (path_like || std::filesystem::exists(name_or_path, ignored)) return read_once(name_or_path);
  const auto hint =
      names.empty() ? fmt::format("; there is none in {}", trace_folder().string()) : suggestion(name_or_path, names);
  throw usage_error(fmt::format("unknown trace '{}' (neither shipped nor a file){}", name_or_path, hint));
}

}  // namespace tandem
