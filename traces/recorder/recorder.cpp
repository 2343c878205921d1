#include "traces/recorder/recorder.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "sim/core/error.hpp"
#include "traces/models/models.hpp"
#include "traces/recorder/layer_part.hpp"
#include "traces/recorder/machine.hpp"
#include "traces/recorder/split_curves.hpp"
#include "traces/recorder/training_network.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Iteration {
 public:
  explicit Iteration(Trace& trace) : trace_(trace), network_(trace) {}

  [[nodiscard]] double loss() const { return network_.loss(); }

  void run() {
    forward([&](std::size_t layer, Pass pass) { network_.run(layer, pass); });
    backward([&](std::size_t layer, Pass pass) { network_.run(layer, pass); });
    update([&](std::size_t layer, Pass pass) { network_.run(layer, pass); });
  }

  void time_layers() {
    const auto timed = [&](std::size_t layer, Pass pass) {
      if (!network_.has(layer, pass)) return;
      const auto start = Clock::now();
      network_.run(layer, pass);
      const double seconds = seconds_since(start);
      trace_.layers[layer].samples[static_cast<std::size_t>(pass)].seconds.push_back(seconds);
    };
    forward(timed);
    backward(timed);
    update(timed);
  }

  void time_whole() {
    const auto plain = [&](std::size_t layer, Pass pass) { network_.run(layer, pass); };
    auto start = Clock::now();
    forward(plain);
    trace_.iteration_forward.seconds.push_back(seconds_since(start));
    start = Clock::now();
    backward(plain);
    trace_.iteration_backward.seconds.push_back(seconds_since(start));
    start = Clock::now();
    update(plain);
    trace_.iteration_update.seconds.push_back(seconds_since(start));
  }

 private:
  template <class Each>
  void forward(Each&& each) {
    for (std::size_t i = 0; i < trace_.layers.size(); ++i) each(i, Pass::forward);
  }
  // Within a layer the gradient of the input comes first: the layers below wait for it.
  template <class Each>
  void backward(Each&& each) {
    for (std::size_t i = trace_.layers.size(); i-- > 0;) {
      each(i, Pass::backward_data);
      each(i, Pass::backward_weight);
    }
  }
  template <class Each>
  void update(Each&& each) {
    for (std::size_t i = 0; i < trace_.layers.size(); ++i) each(i, Pass::update);
  }

  Trace& trace_;
  TrainingNetwork network_;
};

void check_range(const char* what, int value, int least, int most) {
  if (value < least || value > most) {
    throw usage_error(fmt::format("{} {}: from {} to {} is accepted", what, value, least, most));
  }
}

// Activations, about as much again for their gradients, and of each parameter the weights, their copy for the backward
// pass, gradient and velocity.
Bytes network_bytes(const Trace& trace) {
  Bytes needed(16 * trace.parameter_count());
  for (const auto& layer : trace.layers) needed += layer.activation_bytes * 2;
  return needed;
}

void check_memory(const Trace& trace, Bytes needed) {
  const Bytes available = available_memory();
  if (available.count() > 0 && needed > available) {
    throw usage_error(fmt::format("batch {} of {} needs about {} of memory, and {} is free; a smaller batch is needed",
                                  trace.batch, trace.model, to_text(needed), to_text(available)));
  }
}

void check_options(const RecordOptions& options) {
  check_range("repetitions", options.repetitions, 0, 10'000);
  check_range("warm-up iterations", options.warmup, 0, 10'000);
  check_range("threads", options.threads, 1, std::max(1, omp_get_num_procs()));
  check_range("repetitions of splits", options.splits.repetitions, 1, 10'000);
  if (options.splits.has(SplitCurve::Axis::width))
    throw usage_error("the recorder splits along the height, not the width");
  if (options.repetitions == 0 && options.splits.axes.empty()) {
    throw usage_error("no repetitions and no splits: nothing to record");
  }
  for (const double fraction : options.splits.fractions) {
    if (!(fraction > 0 && fraction < 1)) {
      throw usage_error(fmt::format("a split at fraction {}: above 0 and below 1 is accepted", fraction));
    }
  }
}

void describe(Trace& trace, const RecordOptions& options) {
  const auto machine = this_machine();
  const auto* version = dnnl::version();
  trace.recorder = "tandem record";
  trace.framework = "oneDNN";
  trace.framework_version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  trace.device = machine.processor;
  trace.clock_hz = machine.clock_hz;
  trace.threads = options.threads;
  trace.layout = "library's choice";
  trace.cache_mode = "in situ";
  trace.date = today();
  trace.notes = {
      "each pass of each layer is timed in its place within whole iterations; the whole-iteration samples are of "
      "iterations without those timers, taken in turn with them",
      "weights are brought into the library's preferred layouts once, before timing; backward-data reads a copy in its "
      "own layout that the update does not refresh",
      "activations keep the layout that their producer chose: no reorders between layers",
      "where an output fans out, adding up its gradients counts as the producer's backward; a residual add's own "
      "backward moves nothing",
      "dropout masks are drawn once, not in every iteration; batch norm keeps no running averages",
      "update is SGD with momentum 0.9, without weight decay",
      "the model's input is in memory: no data loading, no copy to a device",
  };
  if (options.splits.has(SplitCurve::Axis::batch)) {
    trace.notes.emplace_back(
        "batch curves: whole networks of a smaller batch, timed as this one is; an update does not "
        "depend on the batch and has no rows");
  }
  if (std::any_of(options.splits.axes.begin(), options.splits.axes.end(),
                  [](SplitCurve::Axis axis) { return axis != SplitCurve::Axis::batch; })) {
    trace.notes.emplace_back(
        "height and channel curves: convolutions and fully connected layers run apart from the network, "
        "caches prepared as an iteration leaves them, the whole layer (fraction 1) in turn with its "
        "parts; use their ratios. A part is the rank's that has most to do: away from the borders "
        "where there is one. Layers of equal shapes share their samples");
  }
}

void note_flags(Trace& trace) {
  const auto flagged = unsteady_layers(trace);
  if (flagged.empty()) return;
  constexpr std::size_t shown = 10;
  trace.notes.push_back(
      fmt::format("{} timings have a maximum above 1.5 times their median; the longest follow", flagged.size()));
  trace.notes.insert(trace.notes.end(), flagged.begin(),
                     flagged.begin() + static_cast<long>(std::min(shown, flagged.size())));
}

// A smaller batch's samples as rows of the layers' batch curves.
void add_batch_rows(Trace& trace, Trace& part, const SplitOptions& options) {
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    Layer& small = part.layers[i];
    const auto& wanted = options.layers;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), small.name) == wanted.end()) continue;
    SplitCurve row;
    row.axis = SplitCurve::Axis::batch;
    row.fraction = static_cast<double>(part.batch) / static_cast<double>(trace.batch);
    row.input_shape = small.input_shapes[0];
    row.output_shape = small.output_shape;
    row.samples = std::move(small.samples);
    row.samples[static_cast<std::size_t>(Pass::update)] = {};
    if (std::all_of(row.samples.begin(), row.samples.end(), [](const Samples& s) { return s.seconds.empty(); }))
      continue;
    trace.layers[i].splits.push_back(std::move(row));
  }
}

class Recording {
 public:
  Recording(const RecordOptions& options, Trace trace) : options_(options), trace_(std::move(trace)) {
    if (options.splits.has(SplitCurve::Axis::batch)) batches_ = split_batches(trace_.batch, options.splits.fractions);
  }

  Trace run() {
    omp_set_num_threads(options_.threads);  // before any primitive is made: they plan for it
    const SplitCurveRecorder curves(trace_, options_.splits);
    const bool whole = options_.repetitions > 0;
    check_memory(trace_, std::max(whole || !batches_.empty() ? network_bytes(trace_) : Bytes(0), curves.memory()));
    const auto small = static_cast<int>(batches_.size());
    total_ = (whole ? iterations(options_.repetitions) : 0) + small * iterations(options_.splits.repetitions) +
             curves.steps();
    describe(trace_, options_);
    if (whole) time_network(trace_, options_.repetitions);
    for (const auto batch : batches_) time_batch(batch);
    curves.record(trace_, [&](const std::string& layer) { report(trace_, "timing parts of " + layer); });
    note_flags(trace_);
    validate(trace_);
    return std::move(trace_);
  }

 private:
  [[nodiscard]] int iterations(int repetitions) const { return options_.warmup + 2 * repetitions; }

  void report(const Trace& trace, const std::string& text) {
    ++done_;
    if (options_.progress) {
      options_.progress(done_, total_, fmt::format("{} batch {}: {}", trace.model, trace.batch, text));
    }
  }

  void time_network(Trace& trace, int repetitions) {
    Iteration iteration(trace);
    for (int i = 0; i < options_.warmup; ++i) {
      iteration.run();
      report(trace, "warming up");
    }
    for (int i = 0; i < repetitions; ++i) {
      iteration.time_layers();
      report(trace, "timing layers");
      iteration.time_whole();
      report(trace, "timing whole iterations");
    }
    if (!std::isfinite(iteration.loss())) throw internal_error("the recorded network's loss is not finite");
  }

  // Batches fall, as curves do; other_batches rise.
  void time_batch(std::int64_t batch) {
    Trace part = build_model(options_.model, batch);
    time_network(part, options_.splits.repetitions);
    add_batch_rows(trace_, part, options_.splits);
    trace_.other_batches.insert(trace_.other_batches.begin(),
                                {batch, std::move(part.iteration_forward), std::move(part.iteration_backward),
                                 std::move(part.iteration_update)});
  }

  const RecordOptions& options_;
  Trace trace_;
  std::vector<std::int64_t> batches_;
  int done_ = 0, total_ = 0;
};

}  // namespace

bool recorder_available() {
  return true;
}

Trace record(const RecordOptions& options) {
  check_options(options);
  Trace trace = build_model(options.model, options.batch);
  return Recording(options, std::move(trace)).run();
}

}  // namespace tandem
