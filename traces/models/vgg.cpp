#include <fmt/format.h>

#include <array>

#include "traces/models/builder.hpp"
#include "traces/models/families.hpp"

namespace tandem {

// Simonyan and Zisserman 2014, configuration D, with torchvision's names: `features.N` and `classifier.N` count the
// ReLUs and pools too. torchvision's adaptive average pool is the identity at 224 x 224 and left out.
Trace vgg16(std::int64_t batch) {
  constexpr std::int64_t pool = 0;
  constexpr std::array<std::int64_t, 18> plan = {64,   64,  pool, 128, 128,  pool, 256, 256, 256,
                                                 pool, 512, 512,  512, pool, 512,  512, 512, pool};
  ModelBuilder b("vgg16", {batch, 3, 224, 224});
  LayerId x = ModelBuilder::kInput;
  int n = 0;
  const auto feature = [&] { return fmt::format("features.{}", n++); };
  for (const auto channels : plan) {
    if (channels == pool) {
      x = b.max_pool(feature(), x, {2, 2, 0});
    } else {
      x = b.conv(feature(), x, channels, {3, 1, 1}, true);
      x = b.relu(feature(), x);
    }
  }
  x = b.flatten("flatten", x);
  n = 0;
  for (int hidden = 0; hidden < 2; ++hidden) {
    x = b.fc(fmt::format("classifier.{}", n++), x, 4096);
    x = b.relu(fmt::format("classifier.{}", n++), x);
    x = b.dropout(fmt::format("classifier.{}", n++), x);
  }
  x = b.fc(fmt::format("classifier.{}", n), x, kClasses);
  b.softmax_loss("loss", x);
  return b.finish();
}

}  // namespace tandem
