#include "traces/models/models.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/models/builder.hpp"

namespace tandem {
namespace {

using Window = ModelBuilder::Window;
constexpr LayerId kInput = ModelBuilder::kInput;
constexpr std::int64_t kClasses = 1000;

// LeCun et al. 1998 as Caffe ships it (examples/mnist): 20 and 50 filters, 500 hidden units, ReLU behind the first
// fully connected layer only. Caffe's names.
Trace lenet5(std::int64_t batch) {
  ModelBuilder b("lenet5", {batch, 1, 28, 28});
  auto x = b.conv("conv1", kInput, 20, {5, 1, 0}, true);
  x = b.max_pool("pool1", x, {2, 2, 0});
  x = b.conv("conv2", x, 50, {5, 1, 0}, true);
  x = b.max_pool("pool2", x, {2, 2, 0});
  x = b.flatten("flatten", x);
  x = b.fc("ip1", x, 500);
  x = b.relu("relu1", x);
  x = b.fc("ip2", x, 10);
  b.softmax_loss("loss", x);
  return b.finish();
}

// Simonyan and Zisserman 2014, configuration D, with torchvision's names: `features.N` and `classifier.N` count the
// ReLUs and pools too. torchvision's adaptive average pool is the identity at 224 x 224 and left out.
Trace vgg16(std::int64_t batch) {
  constexpr std::int64_t pool = 0;
  constexpr std::array<std::int64_t, 18> plan = {64,   64,  pool, 128, 128,  pool, 256, 256, 256,
                                                 pool, 512, 512,  512, pool, 512,  512, 512, pool};
  ModelBuilder b("vgg16", {batch, 3, 224, 224});
  LayerId x = kInput;
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
    auto x = conv_bn("conv1", "bn1", kInput, 64, {7, 2, 3});
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

Trace resnet18(std::int64_t batch) {
  return ResNet("resnet18", batch, false).build({2, 2, 2, 2});
}
Trace resnet50(std::int64_t batch) {
  return ResNet("resnet50", batch, true).build({3, 4, 6, 3});
}

constexpr std::pair<const char*, Trace (*)(std::int64_t)> kModels[] = {
    {"lenet5", lenet5}, {"resnet18", resnet18}, {"resnet50", resnet50}, {"vgg16", vgg16}};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, build] : kModels) names.emplace_back(name);
  return names;
}

Trace build_model(const std::string& name, std::int64_t batch) {
  constexpr std::int64_t most = 65536;
  if (batch < 1 || batch > most) throw usage_error(fmt::format("batch {}: from 1 to {} is accepted", batch, most));
  for (const auto& [known, build] : kModels) {
    if (name == known) return build(batch);
  }
  throw usage_error(fmt::format("unknown model '{}'{}", name, suggestion(name, model_names())));
}

}  // namespace tandem
