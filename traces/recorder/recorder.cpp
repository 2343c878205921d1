#include "traces/recorder/recorder.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>

#include "sim/core/error.hpp"
#include "traces/models/models.hpp"
#include "traces/recorder/machine.hpp"
#include "traces/recorder/training_network.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Iteration {
 public:
  Iteration(Trace& trace, TrainingNetwork& network) : trace_(trace), network_(network) {}

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
  TrainingNetwork& network_;
};

void check_range(const char* what, int value, int least, int most) {
  if (value < least || value > most) {
    throw usage_error(fmt::format("{} {}: from {} to {} is accepted", what, value, least, most));
  }
}

// Activations, about as much again for their gradients, and of each parameter the weights, their copy for the backward
// pass, gradient and velocity.
void check_memory(const Trace& trace) {
  Bytes needed(16 * trace.parameter_count());
  for (const auto& layer : trace.layers) needed += layer.activation_bytes * 2;
  const Bytes available = available_memory();
  if (available.count() > 0 && needed > available) {
    throw usage_error(fmt::format("batch {} of {} needs about {} of memory, and {} is free; a smaller batch is needed",
                                  trace.batch, trace.model, to_text(needed), to_text(available)));
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

}  // namespace

bool recorder_available() {
  return true;
}

Trace record(const RecordOptions& options) {
  check_range("repetitions", options.repetitions, 1, 10'000);
  check_range("warm-up iterations", options.warmup, 0, 10'000);
  check_range("threads", options.threads, 1, std::max(1, omp_get_num_procs()));
  Trace trace = build_model(options.model, options.batch);
  check_memory(trace);
  describe(trace, options);
  omp_set_num_threads(options.threads);  // before any primitive is made: they plan for it
  TrainingNetwork network(trace);
  Iteration iteration(trace, network);
  const int total = options.warmup + 2 * options.repetitions;
  int done = 0;
  const auto report = [&](const char* text) {
    ++done;
    if (options.progress) options.progress(done, total, fmt::format("{} batch {}: {}", trace.model, trace.batch, text));
  };
  for (int i = 0; i < options.warmup; ++i) {
    iteration.run();
    report("warming up");
  }
  for (int i = 0; i < options.repetitions; ++i) {
    iteration.time_layers();
    report("timing layers");
    iteration.time_whole();
    report("timing whole iterations");
  }
  if (!std::isfinite(network.loss())) throw internal_error("the recorded network's loss is not finite");
  note_flags(trace);
  validate(trace);
  return trace;
}

}  // namespace tandem
