// A profile of somebody else's machine replayed on one device must take as long as that machine did. The profile's
// figures were summed from the file's events by a script of its own (union of kernels, copies and fills on the device
// within each ProfilerStep; length of the steps).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "sim/study/predict.hpp"
#include "tests/traces/temporary_folder.hpp"
#include "traces/importer.hpp"

namespace tandem {
namespace {

constexpr double kBusy = (0.101499 + 0.101029) / 2;  // s a step
constexpr double kWall = (0.123110 + 0.117820) / 2;

std::filesystem::path profile() {
  return std::filesystem::path(TANDEM_SOURCE_DIR).parent_path() /
         "shared/reference/traces/kineto_resnet50_v100_bs32_steps18_19.json.gz";
}

double one_device(const std::string& trace, bool overheads) {
  RunConfig config;
  config.trace = trace;
  config.cluster.ranks = 1;
  config.overheads = overheads;
  config.details = Details::none;
  return number(predict(config).row, "iteration_time_s");
}

TEST(Profile, OneDeviceTakesAsLongAsTheProfiledOne) {
  if (!std::filesystem::exists(profile())) GTEST_SKIP() << "no " << profile();
  const testing::TemporaryFolder folder;
  write_trace(import_trace({profile().string()}).trace, folder.file("resnet50.h5"));
  const double busy = one_device(folder.file("resnet50.h5"), false);
  const double wall = one_device(folder.file("resnet50.h5"), true);
  fmt::print(
      "layers alone {:.2f} ms, device busy {:.2f} ms ({:+.1f} %); all that was recorded {:.2f} ms, step {:.2f} ms "
      "({:+.1f} %); the two steps differ by {:.1f} %\n",
      busy * 1e3, kBusy * 1e3, 100 * (busy / kBusy - 1), wall * 1e3, kWall * 1e3, 100 * (wall / kWall - 1),
      100 * (0.123110 / 0.117820 - 1));
  EXPECT_LT(std::abs(busy / kBusy - 1), 0.05);
  EXPECT_LT(std::abs(wall / kWall - 1), 0.10);
  EXPECT_GT(std::abs(busy / kWall - 1), 0.10) << "without the overheads (the null prediction) the step is missed";
}

}  // namespace
}  // namespace tandem
