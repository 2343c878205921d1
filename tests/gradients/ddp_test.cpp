// Bucket sizes that PyTorch's DistributedDataParallel really made: ResNet-50's are visible in a published Chakra trace,
// ResNet-18's in a user's NCCL log (pytorch issue 48880); first-iteration layouts follow from the published rule.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "sim/core/error.hpp"
#include "sim/gradients/gradient_schedule.hpp"
#include "tests/gradients/arrival.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

std::vector<std::int64_t> sizes(const std::string& model, const std::string& schedule, bool first_iteration = false) {
  std::vector<std::int64_t> result;
  for (const auto& bucket : Registry<GradientSchedule>::instance()
                                .make(schedule, {first_iteration})
                                ->buckets(arrival_of(build_model(model, 32)))) {
    result.push_back(bucket.bytes.count());
  }
  return result;
}

using Sizes = std::vector<std::int64_t>;

TEST(Ddp, SteadyStateOfResNet50) {
  EXPECT_EQ(sizes("resnet50", "ddp"), (Sizes{8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160}));
}

TEST(Ddp, SteadyStateOfResNet18) {
  EXPECT_EQ(sizes("resnet18", "ddp"), (Sizes{2'052'000, 28'852'224, 15'853'824}));
  EXPECT_EQ(sizes("resnet18", "ddp:bucket=35MiB"), (Sizes{2'052'000, 38'297'600, 6'408'448}));
}

TEST(Ddp, FirstIteration) {
  EXPECT_EQ(sizes("resnet50", "ddp", true), (Sizes{12'410'784, 31'502'336, 29'669'376, 27'022'336, 1'623'296}));
  EXPECT_EQ(sizes("resnet18", "ddp", true), (Sizes{11'497'376, 33'744'896, 1'515'776}));
}

TEST(Ddp, ABucketIsReadyWithItsLastTensor) {
  const auto arrival = arrival_of(build_model("resnet50", 32));
  for (const bool first : {false, true}) {
    for (const auto& bucket : Registry<GradientSchedule>::instance().make("ddp", {first})->buckets(arrival)) {
      EXPECT_EQ(bucket.ready_after, *std::max_element(bucket.tensors.begin(), bucket.tensors.end()));
    }
  }
}

TEST(PerLayer, OneCollectiveALayerWithParameters) {
  // LeNet-5: ip2, ip1, conv2, conv1 with their biases.
  EXPECT_EQ(sizes("lenet5", "per-layer"), (Sizes{4 * 5010, 4 * 400500, 4 * 25050, 4 * 520}));
}

TEST(AfterBackward, ShipsEverythingAtTheEnd) {
  const auto arrival = arrival_of(build_model("vgg16", 32));
  EXPECT_EQ(sizes("vgg16", "after-backward"), (Sizes{4LL * 138'357'544}));
  for (const auto& bucket :
       Registry<GradientSchedule>::instance().make("after-backward:bucket=25MiB")->buckets(arrival)) {
    EXPECT_EQ(bucket.ready_after, static_cast<int>(arrival.size()) - 1);
  }
}

// ResNet-50 in a trace of PyTorch's DDP (reference data, section 4): five all-reduces, in this order.
TEST(Recorded, TakesTheBucketsOfTheRecordedRun) {
  const std::vector<Bytes> seen{Bytes(8'196'000), Bytes(31'502'336), Bytes(26'255'360), Bytes(26'550'272),
                                Bytes(9'724'160)};
  const auto arrival = arrival_of(build_model("resnet50", 32));
  const auto buckets = Registry<GradientSchedule>::instance().make("recorded", {false, seen})->buckets(arrival);
  ASSERT_EQ(buckets.size(), seen.size());
  for (std::size_t b = 0; b < seen.size(); ++b) EXPECT_EQ(buckets[b].bytes, seen[b]) << b;
  EXPECT_EQ(buckets.back().ready_after, static_cast<std::int32_t>(arrival.size()) - 1);
}

TEST(Recorded, SizesOfAnotherWidthAreScaled) {
  const std::vector<GradientTensor> arrival{{LayerId{1}, 0, Bytes(400)}, {LayerId{0}, 0, Bytes(200)}};
  const auto buckets =
      Registry<GradientSchedule>::instance().make("recorded", {false, {Bytes(200), Bytes(100)}})->buckets(arrival);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].bytes, Bytes(400));
}

TEST(Recorded, SizesThatDoNotFitAreRefused) {
  const std::vector<GradientTensor> arrival{{LayerId{1}, 0, Bytes(400)}, {LayerId{0}, 0, Bytes(200)}};
  const auto kind = [&](std::vector<Bytes> sizes) {
    try {
      (void)Registry<GradientSchedule>::instance().make("recorded", {false, std::move(sizes)})->buckets(arrival);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  EXPECT_EQ(kind({Bytes(300), Bytes(300)}), ErrorKind::input) << "ends inside a tensor";
  EXPECT_EQ(kind({}), ErrorKind::input) << "nothing was recorded";
}

TEST(GradientContract, EveryTensorOnceInEverySchedule) {
  EXPECT_TRUE(rc::check("buckets cover each tensor exactly once", [] {
    const auto lengths = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 40'000'000));
    std::vector<GradientTensor> arrival;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      arrival.push_back({LayerId{static_cast<std::int32_t>((lengths.size() - i) / 2)}, 0, Bytes(lengths[i])});
    }
    std::vector<Bytes> recorded;  // two tensors a bucket
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (i % 2 == 0) recorded.emplace_back(0);
      recorded.back() += Bytes(lengths[i]);
    }
    if (recorded.empty()) recorded.emplace_back(1);
    for (const auto& name : Registry<GradientSchedule>::instance().names()) {
      for (const bool first : {false, true}) {
        std::vector<int> seen(arrival.size(), 0);
        for (const auto& bucket :
             Registry<GradientSchedule>::instance().make(name, {first, recorded})->buckets(arrival)) {
          std::int64_t sum = 0;
          for (const auto t : bucket.tensors) {
            ++seen[static_cast<std::size_t>(t)];
            sum += arrival[static_cast<std::size_t>(t)].bytes.count();
            RC_ASSERT(t <= bucket.ready_after);
          }
          RC_ASSERT(sum == bucket.bytes.count());
        }
        RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
      }
    }
  }));
}

}  // namespace
}  // namespace tandem
