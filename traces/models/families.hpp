// The built-in models, one file a family. build_model() is the way to them: it checks the batch.
#pragma once

#include "traces/trace.hpp"

namespace tandem {

inline constexpr std::int64_t kClasses = 1000;  // of ImageNet

[[nodiscard]] Trace alexnet(std::int64_t batch);
[[nodiscard]] Trace googlenet(std::int64_t batch);
[[nodiscard]] Trace lenet5(std::int64_t batch);
[[nodiscard]] Trace resnet18(std::int64_t batch);
[[nodiscard]] Trace resnet50(std::int64_t batch);
[[nodiscard]] Trace resnet101(std::int64_t batch);
[[nodiscard]] Trace vgg16(std::int64_t batch);

}  // namespace tandem
