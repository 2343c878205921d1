// A trace: what one training iteration of a CNN costs on one device, layer by layer and pass by pass, as recorded
// (or imported). Times are samples, never single numbers; shapes, parameters and edges are kept so that a layer can
// be split and its communication computed. The HDF5 form is documented in traces/FORMAT.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

enum class OpKind {
  conv,
  fc,
  bn,
  relu,
  max_pool,
  avg_pool,
  add,
  concat,
  lrn,
  dropout,
  softmax_loss,
  flatten,  // moves or computes nothing; kept so that edges stay true
  other,    // timed, but can only be split along the batch
};
[[nodiscard]] std::string_view to_text(OpKind kind);
[[nodiscard]] std::optional<OpKind> op_kind_from_text(std::string_view text);

enum class Pass { forward, backward_data, backward_weight, update };
inline constexpr std::size_t kPasses = 4;
[[nodiscard]] std::string_view to_text(Pass pass);

// Repeated timings of one thing, seconds, in the order taken. Empty means not measured (or nothing to do).
struct Samples {
  std::vector<double> seconds;
  // The 20 % quantile (linear between order statistics): disturbances only ever add time. 0 where empty.
  [[nodiscard]] Seconds typical() const;
  [[nodiscard]] Seconds median() const;
  [[nodiscard]] Seconds max() const;

  friend bool operator==(const Samples&, const Samples&) = default;
};

// Batch first, then channels, then 1 to 3 spatial extents (none for a vector). Elements.
using Shape = std::vector<std::int64_t>;
[[nodiscard]] std::int64_t elements(const Shape& shape);  // the product; 1 for an empty shape

struct ParameterTensor {
  std::string name;  // "weight", "bias"
  Shape shape;
  [[nodiscard]] std::int64_t count() const { return elements(shape); }

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

// Times of one layer at other than its recorded shape. parts = 4 on the batch axis is a quarter of the batch.
struct SplitCurve {
  enum class Axis { batch, height, width, output_channel, input_channel };
  Axis axis = Axis::batch;
  double fraction = 1;  // of the extent along the axis
  Shape input_shape;    // shape really run, halo rows included
  Shape output_shape;
  std::array<Samples, kPasses> samples;

  friend bool operator==(const SplitCurve&, const SplitCurve&) = default;
};
[[nodiscard]] std::string_view to_text(SplitCurve::Axis axis);
[[nodiscard]] std::optional<SplitCurve::Axis> split_axis_from_text(std::string_view text);

struct Layer {
  std::string name;
  OpKind kind = OpKind::other;
  std::vector<LayerId> inputs;      // producers; empty: reads the model's input. Ids below this layer's own.
  std::vector<Shape> input_shapes;  // one an input (one where `inputs` is empty)
  Shape output_shape;
  std::vector<int> kernel, stride, pad_begin, pad_end, dilation;  // one a spatial dimension; empty: not applicable
  int groups = 1;
  bool in_place = false;
  bool needs_input_gradient = true;         // false where no gradient flows back (the first layer)
  std::vector<ParameterTensor> parameters;  // in the framework's declaration order (weight, then bias)
  Bytes activation_bytes{};                 // output of the whole batch (0 where in place)
  Bytes workspace_bytes{};
  std::array<Flops, kPasses> flops{};  // 0 where unknown
  std::array<Samples, kPasses> samples;
  bool backward_is_joint = false;  // the source has one backward time; it stands under backward_weight
  std::vector<SplitCurve> splits;

  [[nodiscard]] std::int64_t parameter_count() const;
  [[nodiscard]] Seconds time(Pass pass) const { return samples[static_cast<std::size_t>(pass)].typical(); }

  friend bool operator==(const Layer&, const Layer&) = default;
};

// A part of an iteration that no layer accounts for, as the device saw it: the kinds exclude each other, and together
// with the layers they make up the iteration. Kept apart, so that compute times stay compute times.
struct OutsideTime {
  enum class Kind {
    input_wait,     // the device idles while the host waits for data
    launch_gap,     // the device idles otherwise: the host has not launched the next kernel yet, or works itself
    copy,           // memory copies and fills, nothing else
    communication,  // collectives, nothing else
    unmatched,      // kernels or operators of no known layer
  };
  Kind kind = Kind::unmatched;
  Samples samples;  // one an iteration

  friend bool operator==(const OutsideTime&, const OutsideTime&) = default;
};
[[nodiscard]] std::string_view to_text(OutsideTime::Kind kind);
[[nodiscard]] std::optional<OutsideTime::Kind> outside_kind_from_text(std::string_view text);

// A collective of the recorded iteration (a gradient bucket, for one): what a recorder on a real machine saw.
struct RecordedCollective {
  std::string operation;  // "all-reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all"
  Bytes bytes{};          // payload of one rank
  Seconds duration{};     // 0: not measured

  friend bool operator==(const RecordedCollective&, const RecordedCollective&) = default;
};

// Whole iterations at another batch than the recorded one.
struct WholeIteration {
  std::int64_t batch = 0;
  Samples forward, backward, update;

  friend bool operator==(const WholeIteration&, const WholeIteration&) = default;
};

struct Trace {
  static constexpr int kFormatVersion = 1;
  std::string model;                         // "resnet50"
  std::string recorder;                      // "tandem record", "pipedream profiler"
  std::string framework, framework_version;  // what the kernels come from: "oneDNN", "PyTorch"
  std::string device;                        // processor or accelerator name; "unknown" where the source does not say
  int threads = 0;                           // 0: not applicable
  double clock_hz = 0;                       // nominal; 0: unknown
  std::string dtype = "float32";
  std::string layout;  // "nchw", "library's choice"
  std::int64_t batch = 0;
  std::string cache_mode;  // "hot", "flushed", "in situ"
  std::string date;        // ISO 8601 day; recorded, not taken from the clock when a file is copied
  Samples iteration_forward, iteration_backward, iteration_update;  // whole-iteration samples, may be empty
  std::vector<Layer> layers;                                        // in topological order
  std::vector<WholeIteration> other_batches;                        // by rising batch; may be empty
  std::vector<OutsideTime> outside;                                 // each kind at most once; may be empty
  std::vector<RecordedCollective> collectives;                      // in the order they were started; may be empty
  std::vector<std::string> notes;  // what an importer dropped or assumed, what a recorder flagged

  [[nodiscard]] std::int64_t parameter_count() const;
  [[nodiscard]] Seconds total(Pass pass) const;  // sum of the layers' typical times

  friend bool operator==(const Trace&, const Trace&) = default;
};

// Throws an input error (with the layer's name) where a trace contradicts itself: no layers, batch < 1, a name that is
// empty or given twice, ids out of order, an input without a shape, negative or non-finite times, a parameter tensor
// without elements, shapes with extents below 1 or more than 2^56 elements, window lists of unequal length.
void validate(const Trace& trace);

// The timings whose maximum exceeds `ratio` times their median, one line each, the longest median first: something
// disturbed them, and their quantiles deserve less trust.
[[nodiscard]] std::vector<std::string> unsteady_layers(const Trace& trace, double ratio = 1.5);

// HDF5. Writing is atomic (a temporary file in the same folder, renamed) and byte-identical for equal traces.
void write_trace(const Trace& trace, const std::string& path);
[[nodiscard]] Trace read_trace(const std::string& path);

// A shipped trace by name ("resnet50-cpu" -> <data folder>/resnet50-cpu.h5) or a path. TANDEM_TRACES overrides the
// folder; otherwise the source tree's traces/data, as configured at build time. Usage error with "did you mean".
// A file that has not changed is read once a process.
[[nodiscard]] Trace load_trace(const std::string& name_or_path);
[[nodiscard]] std::vector<std::string> shipped_traces();

}  // namespace tandem
