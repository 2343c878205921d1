// Times parts of convolutions and fully connected layers apart from their network.
//
// Caches are as they would be in an iteration: before each timing as much memory is streamed over as the iteration
// touches (up to more than a core's caches hold), then the operand that a neighbour has just made is written again:
// the input before the forward pass, the gradient of the output before the backward passes. Parts are run in turn,
// round after round, so that a slow drift of the machine meets all of them alike.
//
// Against the same layers in situ (LeNet-5, ResNet-18, AlexNet on one core) times so taken were 0.96 to 1.07 for
// convolutions and 0.88 to 1.02 for most fully connected layers; hot caches gave 0.93 to 1.06, but 0.67 to 0.73 for a
// small fully connected layer. The one that reads feature maps in the library's blocked layout differs more (0.9 to
// 1.4): here its input is plain. Hence a curve's ratios are used, and not its times.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

class PartTimer {
 public:
  explicit PartTimer(Bytes iteration_bytes);
  ~PartTimer();
  PartTimer(const PartTimer&) = delete;
  PartTimer& operator=(const PartTimer&) = delete;

  using Times = std::array<Samples, kPasses>;
  // `repetitions` samples of each part's forward and backward passes, after a first round that is thrown away.
  [[nodiscard]] std::vector<Times> time(const std::vector<Layer>& parts, int repetitions,
                                        const std::function<void()>& after_round);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem
