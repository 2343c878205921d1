#include <fmt/format.h>

#include <array>

#include "traces/models/builder.hpp"
#include "traces/models/families.hpp"

namespace tandem {

// The one-column form of Krizhevsky 2014 ("One weird trick for parallelizing convolutional neural networks"), as
// torchvision has it: 64, 192, 384, 256 and 256 filters, no groups and no local response normalization, 61,100,840
// parameters. The form of 2012 has two groups, LRN and 60,965,224. torchvision's names; its adaptive average pool is
// the identity at 224 x 224 and left out.
Trace alexnet(std::int64_t batch) {
  struct Stage {
    std::int64_t channels;
    ModelBuilder::Window window;
    bool pool;
  };
  constexpr std::array<Stage, 5> stages = {{{64, {11, 4, 2}, true},
                                            {192, {5, 1, 2}, true},
                                            {384, {3, 1, 1}, false},
                                            {256, {3, 1, 1}, false},
                                            {256, {3, 1, 1}, true}}};
  ModelBuilder b("alexnet", {batch, 3, 224, 224});
  LayerId x = ModelBuilder::kInput;
  int n = 0;
  const auto feature = [&] { return fmt::format("features.{}", n++); };
  for (const auto& stage : stages) {
    x = b.conv(feature(), x, stage.channels, stage.window, true);
    x = b.relu(feature(), x);
    if (stage.pool) x = b.max_pool(feature(), x, {3, 2, 0});
  }
  x = b.flatten("flatten", x);
  n = 0;
  for (int hidden = 0; hidden < 2; ++hidden) {
    x = b.dropout(fmt::format("classifier.{}", n++), x);
    x = b.fc(fmt::format("classifier.{}", n++), x, 4096);
    x = b.relu(fmt::format("classifier.{}", n++), x);
  }
  x = b.fc(fmt::format("classifier.{}", n), x, kClasses);
  b.softmax_loss("loss", x);
  return b.finish();
}

}  // namespace tandem
