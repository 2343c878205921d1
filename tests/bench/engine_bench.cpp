// Speed of the flow engine and of what surrounds it. Times on shared machines are noise: compare the ratios of one run
// to Calibration, a fixed loop beside them.
#include <benchmark/benchmark.h>

#include "sim/core/random.hpp"
#include "sim/estimate/shared_links.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/setup.hpp"
#include "tests/engine/simulate.hpp"
#include "tests/traces/temporary_folder.hpp"
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

// One 100 MiB ring all-reduce on a star with its steps folded, process start included.
void RingOnStarPhase(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto network = star(ranks, 12.5e9, 1e-6);
  auto op = collective_op(*network, "ring",
                          {CollectiveOperation::all_reduce, {}, Bytes(100 * 1024 * 1024), 1, Bytes(0), 0}, ranks);
  StaticProgram program(ranks, {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  RunOptions options;
  options.fidelity = static_cast<Fidelity>(state.range(1));
  for (auto _ : state) {
    benchmark::DoNotOptimize(run({{&program, in_order(ranks), Seconds(0), {}, {}}}, *network, options).end);
  }
}
BENCHMARK(RingOnStarPhase)
    ->Name("RingOnStarAtLevel")
    ->ArgNames({"ranks", "level"})
    ->Args({1024, static_cast<int>(Fidelity::phase)})
    ->Args({4096, static_cast<int>(Fidelity::phase)})
    ->Args({1024, static_cast<int>(Fidelity::analytic)})
    ->Args({65536, static_cast<int>(Fidelity::analytic)})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The analytic estimate of one all-reduce in chunks, as the proposed architecture runs it: no process, no engine.
void EstimatePipelined(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto network = make_topology("mesh-rail-cube:m=8", {ranks, BytesPerSecond(12.5e9), Seconds(1e-6)});
  const auto op = collective_op(*network, "hrr",
                                {CollectiveOperation::all_reduce, {}, Bytes(100 << 20), 1, Bytes(1 << 20), 0}, ranks);
  const auto devices = in_order(ranks);
  for (auto _ : state) {
    benchmark::DoNotOptimize(collective_estimate(op.pieces, *network, devices, {Seconds(2e-6)}).time);
  }
}
BENCHMARK(EstimatePipelined)->Arg(64)->Arg(4096)->Unit(benchmark::kMillisecond);

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

void PredictResNet50AtLevel(benchmark::State& state) {
  auto config = resnet50(static_cast<int>(state.range(0)));
  config.fidelity = to_text(static_cast<Fidelity>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(predict(config).wall_time_s);
}
BENCHMARK(PredictResNet50AtLevel)
    ->ArgNames({"ranks", "level"})
    ->Args({512, static_cast<int>(Fidelity::phase)})
    ->Args({1024, static_cast<int>(Fidelity::phase)})
    ->Args({4096, static_cast<int>(Fidelity::analytic)})
    ->Args({16384, static_cast<int>(Fidelity::analytic)})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

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

// 1,000 runs of 100 columns.
void WriteResults(benchmark::State& state) {
  std::vector<RunRecord> runs;
  for (int r = 0; r < 1000; ++r) {
    Record row;
    for (int c = 0; c < 100; ++c) row.push_back({"column_" + std::to_string(c), "s", r * 1e-3 + c});
    runs.push_back({std::move(row), {}});
  }
  const testing::TemporaryFolder folder;
  for (auto _ : state) write_results(folder.file("bench.h5"), Provenance{}, runs);
}
BENCHMARK(WriteResults)->Unit(benchmark::kMillisecond);

void BuildMeshRailCube32768(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_topology("mesh-rail-cube:m=8,n=64x64", {32768, BytesPerSecond(1e9), Seconds(0)}));
  }
}
BENCHMARK(BuildMeshRailCube32768)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem
