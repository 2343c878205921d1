#include "traces/models/builder.hpp"
#include "traces/models/families.hpp"

namespace tandem {

// LeCun et al. 1998 as Caffe ships it (examples/mnist): 20 and 50 filters, 500 hidden units, ReLU behind the first
// fully connected layer only. Caffe's names.
Trace lenet5(std::int64_t batch) {
  ModelBuilder b("lenet5", {batch, 1, 28, 28});
  auto x = b.conv("conv1", ModelBuilder::kInput, 20, {5, 1, 0}, true);
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

}  // namespace tandem
