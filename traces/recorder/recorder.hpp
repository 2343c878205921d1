// Records a trace of a built-in CNN on this machine with oneDNN.
//
// Every pass of every layer is timed where it stands in a whole training iteration, so that caches are as a neighbour
// left them; whole iterations without those timers are timed in between, and say what the sum of layers is worth.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

// Split curves: what layers cost at parts of their shape. Along the batch the whole network is run again at smaller
// batches; along the other axes convolutions and fully connected layers are timed apart from it (part_timer.hpp).
struct SplitOptions {
  std::vector<SplitCurve::Axis> axes;               // batch, height, output_channel, input_channel; none: no curves
  std::vector<double> fractions{0.5, 0.25, 0.125};  // each above 0 and below 1
  std::vector<std::string> layers;                  // names of the layers that get curves; empty: all
  int repetitions = 7;                              // samples of each point

  [[nodiscard]] bool has(SplitCurve::Axis axis) const {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }
};

struct RecordOptions {
  std::string model = "resnet50";
  std::int64_t batch = 32;
  int repetitions = 20;  // timed iterations of each sort: with timers around layers, and without; 0: split curves only
  int warmup = 3;        // iterations thrown away first
  int threads = 1;
  SplitOptions splits;
  // Told after every iteration, or round of a layer's parts; may be empty.
  std::function<void(int done, int total, const std::string& text)> progress;
};

// False in a build without oneDNN (-DTANDEM_RECORDER=OFF); record() is then a usage error that says so.
[[nodiscard]] bool recorder_available();

// Usage error for an unknown model or layer, a number out of range, nothing to record, or a batch that needs more
// memory than there is free.
// What the recorder leaves out or flags stands in the trace's notes; unsteady_layers() repeats the flags.
[[nodiscard]] Trace record(const RecordOptions& options);

}  // namespace tandem
