// Bulk-synchronous training: every iteration ends with the optimizer's step on the sum of all workers' gradients.
// Collectives of the group run one after another on one stream, strictly in order of launch, beside the backward pass.
#include <fmt/format.h>

#include "sim/sync/sync_strategy.hpp"

namespace tandem {
namespace {

enum Stream : StreamId { kCompute, kCommunication };

class BspBuilder {
 public:
  explicit BspBuilder(const TrainingSteps& steps) : steps_(steps) {}

  std::unique_ptr<Program> build() {
    for (int i = 0; i < steps_.iterations; ++i) add_iteration(i);
    return std::make_unique<StaticProgram>(
        steps_.workers + steps_.servers,
        std::vector<StreamSpec>{{"compute", StreamSpec::Role::compute, StreamSpec::Discipline::in_order},
                                {"communication", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}},
        std::move(ops_));
  }

 private:
  OpId add(Op op) {
    ops_.push_back(std::move(op));
    return static_cast<OpId>(ops_.size()) - 1;
  }

  OpId add_compute(const TrainingSteps::Compute& compute, int iteration) {
    Op op;
    op.kind = Op::Kind::compute;
    op.name = compute.name;
    op.ranks = RankSet::range(0, steps_.workers);
    op.stream = kCompute;
    op.duration = compute.duration;
    op.layer = compute.layer;
    op.pass = compute.pass;
    op.iteration = iteration;
    return add(std::move(op));
  }

  OpId add_bucket(const TrainingSteps::Bucket& bucket, OpId ready, int index, int iteration) {
    Op op;
    op.kind = Op::Kind::collective;
    op.name = bucket.name;
    op.ranks = steps_.group;
    op.stream = kCommunication;
    op.pieces = bucket.pieces;
    op.members = bucket.members;
    op.bucket = index;
    op.iteration = iteration;
    // A server waits for no backward pass of its own: its schedule waits for what the workers send.
    if (steps_.servers == 0) op.waits_for.push_back({ready, RankMap::same()});
    return add(std::move(op));
  }

  // With dedicated servers the collective cannot wait for the same rank's backward pass, which a server does not have:
  // a delay of no length on each worker's communication stream holds it back instead.
  void add_gate(OpId ready, int iteration) {
    if (steps_.servers == 0) return;
    Op op;
    op.kind = Op::Kind::delay;
    op.name = "gradients ready";
    op.ranks = RankSet::range(0, steps_.workers);
    op.stream = kCommunication;
    op.iteration = iteration;
    op.waits_for.push_back({ready, RankMap::same()});
    add(std::move(op));
  }

  // Waiting for data and for the host's launches leaves the device idle; work of no known layer keeps it busy.
  void add_pauses(TrainingSteps::Pause::Before before, int iteration) {
    using Kind = TrainingSteps::Pause::Kind;
    for (const auto& pause : steps_.pauses) {
      if (pause.before != before) continue;
      Op op;
      op.kind = pause.kind == Kind::other_work ? Op::Kind::compute : Op::Kind::delay;
      op.delay_kind = pause.kind == Kind::input ? Op::DelayKind::input : Op::DelayKind::idle;
      op.name = pause.kind == Kind::input        ? "input wait"
                : pause.kind == Kind::launch_gap ? "launch gaps"
                                                 : "outside of layers";
      op.ranks = RankSet::range(0, steps_.workers);
      op.stream = kCompute;
      op.duration = pause.duration;
      op.iteration = iteration;
      add(std::move(op));
    }
  }

  void add_iteration(int iteration) {
    using Before = TrainingSteps::Pause::Before;
    add_pauses(Before::forward, iteration);
    for (const auto& compute : steps_.forward) add_compute(compute, iteration);
    add_pauses(Before::backward, iteration);
    std::vector<OpId> backward;
    for (const auto& compute : steps_.backward) backward.push_back(add_compute(compute, iteration));
    std::vector<OpId> shipped;
    for (std::size_t b = 0; b < steps_.buckets.size(); ++b) {
      const auto& bucket = steps_.buckets[b];
      const auto ready = backward.at(static_cast<std::size_t>(bucket.ready_after));
      add_gate(ready, iteration);
      shipped.push_back(add_bucket(bucket, ready, static_cast<int>(b), iteration));
    }
    add_pauses(Before::update, iteration);
    Op op;
    op.kind = Op::Kind::compute;
    op.name = "optimizer";
    op.ranks = RankSet::range(0, steps_.workers);
    op.stream = kCompute;
    op.duration = steps_.update;
    op.pass = 3;
    op.iteration = iteration;
    for (const auto id : shipped) op.waits_for.push_back({id, RankMap::same()});
    add(std::move(op));
  }

  const TrainingSteps& steps_;
  std::vector<Op> ops_;
};

class Bsp final : public SyncStrategy {
 public:
  [[nodiscard]] std::unique_ptr<Program> program(const TrainingSteps& steps) const override {
    return BspBuilder(steps).build();
  }
};

TANDEM_REGISTER(SyncStrategy, bsp, "bsp", "bulk-synchronous: one optimizer step a global iteration",
                [](const Arguments&, const SyncStrategy::PluginContext&) { return std::make_unique<Bsp>(); }, {})

}  // namespace
}  // namespace tandem
