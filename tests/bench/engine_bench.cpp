// Speed of the flow engine and of what surrounds it. Times on shared machines are noise: compare the ratios of one run
// to Calibration, a fixed loop beside them.
#include <benchmark/benchmark.h>

#include "sim/core/random.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/setup.hpp"
#include "tests/engine/simulate.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

void Calibration(benchmark::State& state) {
  for (auto _ : state) {
    std::uint64_t x = 1;
    for (int i = 0; i < 10'000'000; ++i) x = mix(x);
    benchmark::DoNotOptimize(x);
  }
}
BENCHMARK(Calibration)->Unit(benchmark::kMillisecond);

// Flows per second of one 100 MiB ring all-reduce on a star, process start included.
void RingOnStar(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto network = star(ranks, 12.5e9, 1e-6);
  for (auto _ : state) {
    benchmark::DoNotOptimize(all_reduce_time(*network, "ring", Bytes(100 * 1024 * 1024), ExecutorOptions{}));
  }
  state.SetItemsProcessed(state.iterations() * 2 * ranks * (ranks - 1));
}
BENCHMARK(RingOnStar)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

RunConfig resnet50(int ranks) {
  RunConfig config;
  config.trace = "resnet50";
  config.device = "v100";
  config.cluster.topology = "mesh-rail-cube";
  config.cluster.ranks = ranks;
  config.algorithm = "blueconnect";
  config.details = Details::none;
  return config;
}

void PredictResNet50(benchmark::State& state) {
  const auto config = resnet50(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(predict(config).wall_time_s);
}
BENCHMARK(PredictResNet50)->Arg(8)->Arg(64)->Unit(benchmark::kMillisecond)->UseRealTime();

void LowerResNet50(benchmark::State& state) {
  const auto config = resnet50(64);
  for (auto _ : state) benchmark::DoNotOptimize(make_setup(config)->lowered.buckets.size());
}
BENCHMARK(LowerResNet50)->Unit(benchmark::kMillisecond);

void LoadTrace(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(read_trace(TANDEM_SOURCE_DIR "/traces/data/resnet50-cpu.h5").layers.size());
}
BENCHMARK(LoadTrace)->Unit(benchmark::kMillisecond);

void BuildMeshRailCube32768(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_topology("mesh-rail-cube:m=8,n=64x64", {32768, BytesPerSecond(1e9), Seconds(0)}));
  }
}
BENCHMARK(BuildMeshRailCube32768)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
