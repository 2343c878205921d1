// A CNN as oneDNN primitives, ready to run: everything is allocated, touched and filled beforehand.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

class TrainingNetwork {
 public:
  // Small enough that the weights hardly move over a recording: a loss that ran off to infinity would not be training.
  static constexpr float kRecordingRate = 1e-6F;

  // Reads the layers of `model` (build_model) and sets their workspace bytes. Uses as many threads as OpenMP is set to.
  explicit TrainingNetwork(Trace& model, float learning_rate = kRecordingRate);
  ~TrainingNetwork();
  TrainingNetwork(const TrainingNetwork&) = delete;
  TrainingNetwork& operator=(const TrainingNetwork&) = delete;

  // Runs one pass of one layer to its end. A forward run of all layers, then backward_data and backward_weight from
  // the last to the first, then the updates, make an iteration.
  void run(std::size_t layer, Pass pass);
  // Whether that pass does anything at all.
  [[nodiscard]] bool has(std::size_t layer, Pass pass) const;
  // The loss of the last forward run, mean over the batch, and the sum of squares of its gradient with respect to one
  // layer's parameters after the last backward run. A check that the primitives are wired up as a network: where that
  // layer alone is updated, a first step of a small rate r lowers the loss by r times that sum.
  [[nodiscard]] double loss() const;
  [[nodiscard]] double gradient_square(std::size_t layer) const;
  // The kernel that oneDNN chose ("jit:avx512_core"), "" where none.
  [[nodiscard]] const std::string& kernel(std::size_t layer, Pass pass) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
