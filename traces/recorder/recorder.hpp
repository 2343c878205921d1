// Records a trace of a built-in CNN on this machine with oneDNN.
//
// Every pass of every layer is timed where it stands in a whole training iteration, so that caches are as a neighbour
// left them; whole iterations without those timers are timed in between, and say what the sum of layers is worth.
#pragma once

#include <functional>
#include <string>

#include "traces/trace.hpp"

namespace tandem {

struct RecordOptions {
  std::string model = "resnet50";
  std::int64_t batch = 32;
  int repetitions = 20;  // timed iterations of each sort: with timers around layers, and without
  int warmup = 3;        // iterations thrown away first
  int threads = 1;
  // Told after every iteration; may be empty.
  std::function<void(int done, int total, const std::string& text)> progress;
};

// False in a build without oneDNN (-DTANDEM_RECORDER=OFF); record() is then a usage error that says so.
[[nodiscard]] bool recorder_available();

// Usage error for an unknown model, a number out of range, or a batch that needs more memory than there is free.
// What the recorder leaves out or flags stands in the trace's notes; unsteady_layers() repeats the flags.
[[nodiscard]] Trace record(const RecordOptions& options);

}  // namespace tandem
