#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "traces/models/builder.hpp"
#include "traces/models/families.hpp"

namespace tandem {
namespace {

using Window = ModelBuilder::Window;

// He et al. 2015 with torchvision's names. torchvision has one `relu` module a block, used two or three times; here
// each use is a layer: relu1, relu2, ...
//
// The shortcut's convolution stands behind the main branch, as torchvision declares and runs it. So the parameters
// walked backwards are the order in which autograd finishes their gradients (it runs what was created last first),
// and PyTorch's buckets come out right.
class ResNet {
 public:
  ResNet(const std::string& name, std::int64_t batch, bool bottleneck)
      : b_(name, {batch, 3, 224, 224}), bottleneck_(bottleneck) {}

  Trace build(const std::array<int, 4>& blocks) {
    auto x = conv_bn("conv1", "bn1", ModelBuilder::kInput, 64, {7, 2, 3});
    x = b_.relu("relu", x);
    x = b_.max_pool("maxpool", x, {3, 2, 1});
    std::int64_t in = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
      const std::int64_t width = std::int64_t{64} << stage;
      for (int i = 0; i < blocks[stage]; ++i) {
        const int stride = stage > 0 && i == 0 ? 2 : 1;
        x = block(fmt::format("layer{}.{}.", stage + 1, i), x, in, width, stride);
        in = width * expansion();
      }
    }
    x = b_.global_avg_pool("avgpool", x);
    x = b_.flatten("flatten", x);
    x = b_.fc("fc", x, kClasses);
    b_.softmax_loss("loss", x);
    return b_.finish();
  }

 private:
  [[nodiscard]] std::int64_t expansion() const { return bottleneck_ ? 4 : 1; }

  LayerId conv_bn(const std::string& conv, const std::string& bn, LayerId from, std::int64_t channels, Window window) {
    return b_.bn(bn, b_.conv(conv, from, channels, window, false));
  }

  LayerId block(const std::string& at, LayerId from, std::int64_t in, std::int64_t width, int stride) {
    // v1.5: the bottleneck's stride is in its 3 x 3 convolution; v1 had it in the first 1 x 1.
    const std::vector<Window> windows = bottleneck_ ? std::vector<Window>{{1, 1, 0}, {3, stride, 1}, {1, 1, 0}}
                                                    : std::vector<Window>{{3, stride, 1}, {3, 1, 1}};
    const std::int64_t out = width * expansion();
    auto x = from;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const bool last = i + 1 == windows.size();
      x = conv_bn(fmt::format("{}conv{}", at, i + 1), fmt::format("{}bn{}", at, i + 1), x, last ? out : width,
                  windows[i]);
      if (!last) x = b_.relu(fmt::format("{}relu{}", at, i + 1), x);
    }
    auto shortcut = from;
    if (stride != 1 || in != out) {
      shortcut = conv_bn(at + "downsample.0", at + "downsample.1", from, out, {1, stride, 0});
    }
    x = b_.add(at + "add", x, shortcut);
    return b_.relu(fmt::format("{}relu{}", at, windows.size()), x);
  }

  ModelBuilder b_;
  bool bottleneck_;
};

}  // namespace

Trace resnet18(std::int64_t batch) {
  return ResNet("resnet18", batch, false).build({2, 2, 2, 2});
}
Trace resnet50(std::int64_t batch) {
  return ResNet("resnet50", batch, true).build({3, 4, 6, 3});
}
Trace resnet101(std::int64_t batch) {
  return ResNet("resnet101", batch, true).build({3, 4, 23, 3});
}

}  // namespace tandem
