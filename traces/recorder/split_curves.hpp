// The split curves of convolutions and fully connected layers along height, output and input channels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "traces/recorder/recorder.hpp"
#include "traces/trace.hpp"

namespace tandem {

class SplitCurveRecorder {
 public:
  // Plans what is to be timed along the axes other than batch; layers of equal shapes are timed once. Usage error for
  // an unknown layer.
  SplitCurveRecorder(const Trace& trace, const SplitOptions& options);

  [[nodiscard]] int steps() const;                        // calls of `step` that record() makes
  [[nodiscard]] Bytes memory() const { return memory_; }  // about what record() allocates
  // Adds the curves to the layers of `trace`: along each axis that a layer has parts along, rows from the whole layer
  // (fraction 1, timed in turn with its parts) downwards. Fractions are those really run, after rounding.
  void record(Trace& trace, const std::function<void(const std::string& layer)>& step) const;

 private:
  struct Subject {
    std::vector<std::size_t> layers;     // ids, all of one shape
    std::vector<Layer> parts;            // the whole layer first
    std::vector<SplitCurve::Axis> axes;  // of the parts; of the whole layer without meaning
  };
  static void add_parts(Subject& subject, SplitCurve::Axis axis, const std::vector<double>& fractions);

  std::vector<Subject> subjects_;
  Bytes iteration_bytes_{};
  Bytes memory_{};
  int repetitions_;
};

}  // namespace tandem
