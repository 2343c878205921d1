// The contract of every registered partitioner: each layer's work is covered exactly once, each parameter's gradient is
// summed exactly once over its replicas, and memory adds up.
#include "partitioners/partitioner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "sim/core/error.hpp"
#include "tests/traces/sample_trace.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

const auto& partitioners() {
  return Registry<Partitioner>::instance();
}

using Faults = std::vector<std::string>;

// A stage's ranks are its replicas times the parts of each, the same for every layer of the stage; stages share no
// rank.
Faults faults_in_layers(const Trace& trace, const Plan& plan) {
  Faults faults;
  if (plan.layers.size() != trace.layers.size()) return {"a layer has no plan, or two"};
  std::map<int, int> ranks_of_stage;
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const auto& layer = plan.layers[i];
    if (layer.stage < 0 || layer.stage >= plan.stages) faults.push_back(fmt::format("layer {}: stage", i));
    if (layer.replicas < 1 || layer.parts < 1) faults.push_back(fmt::format("layer {}: nobody computes it", i));
    if ((layer.axis == ShardAxis::none) != (layer.parts == 1)) faults.push_back(fmt::format("layer {}: axis", i));
    const int ranks = layer.replicas * layer.parts;
    if (ranks_of_stage.emplace(layer.stage, ranks).first->second != ranks) {
      faults.push_back(fmt::format("layer {}: other ranks than the rest of its stage", i));
    }
  }
  int ranks = 0;
  for (const auto& [stage, count] : ranks_of_stage) ranks += count;
  if (ranks != plan.ranks) faults.push_back(fmt::format("{} ranks compute, of {}", ranks, plan.ranks));
  return faults;
}

// Over each tensor's groups together: its bytes once, ranks at most once, as many ranks a group as there are replicas.
Faults faults_in_reductions(const Trace& trace, const Plan& plan, int element_bytes) {
  Faults faults;
  std::map<std::pair<int, int>, std::int64_t> bytes;
  std::map<std::pair<int, int>, std::set<int>> seen;
  std::pair<int, int> last{-1, -1};
  for (const auto& reduction : plan.reductions) {
    const std::pair key{reduction.layer.value, reduction.tensor};
    if (key < last) faults.push_back("reductions are not in the order of the trace's parameters");
    last = key;
    bytes[key] += reduction.bytes.count();
    const auto& group = plan.groups.at(static_cast<std::size_t>(reduction.group)).ranks;
    const auto& layer = plan.layers.at(reduction.layer.index());
    if (static_cast<int>(group.size()) != layer.replicas) faults.push_back("a group is not a shard's replicas");
    for (const auto rank : group) {
      if (rank.value < 0 || rank.value >= plan.ranks) faults.push_back("a group has a rank that does not exist");
      if (!seen[key].insert(rank.value).second) faults.push_back("a rank reduces a tensor twice");
    }
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    for (std::size_t t = 0; t < trace.layers[i].parameters.size(); ++t) {
      const auto wanted = trace.layers[i].parameters[t].count() * element_bytes;
      const std::pair key{static_cast<int>(i), static_cast<int>(t)};
      if (plan.layers[i].replicas > 1 && bytes[key] != wanted) {
        faults.push_back(fmt::format("layer {} tensor {}: {} bytes reduced, of {}", i, t, bytes[key], wanted));
      }
      bytes.erase(key);
    }
  }
  for (const auto& [key, count] : bytes) {
    if (count != 0) faults.push_back(fmt::format("layer {} has no tensor {}", key.first, key.second));
  }
  return faults;
}

// Over all ranks, every replica of a layer holds its parameters, gradients and optimizer state once.
Faults faults_in_memory(const Trace& trace, const Plan& plan, const PartitionOptions& options) {
  Faults faults;
  if (plan.memory.size() != 1 && plan.memory.size() != static_cast<std::size_t>(plan.ranks)) {
    return {fmt::format("memory of {} ranks, of {}", plan.memory.size(), plan.ranks)};
  }
  const auto times = plan.memory.size() == 1 ? plan.ranks : 1;
  MemoryUse sum;
  for (const auto& use : plan.memory) {
    sum.parameters += use.parameters * times;
    sum.gradients += use.gradients * times;
    sum.optimizer_state += use.optimizer_state * times;
    sum.activations += use.activations * times;
  }
  std::int64_t parameters = 0;
  double activations = 0;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    parameters += trace.layers[i].parameter_count() * plan.layers[i].replicas;
    activations += static_cast<double>(trace.layers[i].activation_bytes.count()) * plan.layers[i].replicas;
  }
  activations *=
      static_cast<double>(options.batch) / static_cast<double>(trace.batch) * dtype_bytes(options.activation_dtype) / 4;
  const auto expect = [&](const char* what, Bytes have, std::int64_t wanted) {
    if (have.count() != wanted) faults.push_back(fmt::format("{}: {} bytes, of {}", what, have.count(), wanted));
  };
  expect("parameters", sum.parameters, 4 * parameters);
  expect("gradients", sum.gradients, dtype_bytes(options.gradient_dtype) * parameters);
  expect("optimizer state", sum.optimizer_state, 4 * optimizer_copies(options.optimizer) * parameters);
  // A rank rounds to whole bytes; a layer that is split may keep its halo besides.
  if (static_cast<double>(sum.activations.count()) < activations * (1 - 1e-12) - plan.ranks) {
    faults.push_back(fmt::format("activations: {} bytes, of {}", sum.activations.count(), activations));
  }
  return faults;
}

Faults faults_of(const Trace& trace, const Plan& plan, const PartitionOptions& options) {
  auto faults = faults_in_layers(trace, plan);
  if (!faults.empty()) return faults;
  for (auto& fault : faults_in_reductions(trace, plan, dtype_bytes(options.gradient_dtype))) faults.push_back(fault);
  for (auto& fault : faults_in_memory(trace, plan, options)) faults.push_back(fault);
  return faults;
}

TEST(PartitionerContract, CoversTheBuiltInModels) {
  ASSERT_FALSE(partitioners().names().empty());
  for (const auto& name : partitioners().names()) {
    for (const auto& model : model_names()) {
      const auto trace = build_model(model, 16);
      for (const int ranks : {1, 2, 5, 8}) {
        const PartitionOptions options{ranks, 16, "float32", "float32", "momentum"};
        const auto plan = partitioners().make(name)->partition(trace, options);
        EXPECT_EQ(plan.ranks, ranks);
        EXPECT_EQ(faults_of(trace, plan, options), Faults{}) << name << " " << model << " " << ranks;
      }
    }
  }
}

TEST(PartitionerContract, CoversRandomTraces) {
  EXPECT_TRUE(rc::check("every tensor once, whatever the trace", [] {
    const auto trace = testing::random_trace();
    PartitionOptions options;
    options.ranks = *rc::gen::inRange(1, 40);
    options.batch = *rc::gen::inRange<std::int64_t>(1, trace.batch + 1);
    options.gradient_dtype = *rc::gen::element<std::string>("float16", "bfloat16", "float32", "float64");
    options.activation_dtype = *rc::gen::element<std::string>("float16", "float32");
    options.optimizer = *rc::gen::element<std::string>("sgd", "momentum", "adam");
    for (const auto& name : partitioners().names()) {
      RC_ASSERT(faults_of(trace, partitioners().make(name)->partition(trace, options), options) == Faults{});
    }
  }));
}

// The contract itself can fail.
TEST(PartitionerContract, SeesWhatIsWrong) {
  const auto trace = build_model("lenet5", 16);
  const PartitionOptions options{4, 16, "float32", "float32", "momentum"};
  const auto good = partitioners().make("data")->partition(trace, options);
  const auto broken = [&](auto&& change) {
    auto plan = good;
    change(plan);
    return !faults_of(trace, plan, options).empty();
  };
  EXPECT_FALSE(broken([](Plan&) {}));
  EXPECT_TRUE(broken([](Plan& plan) { plan.layers.pop_back(); }));
  EXPECT_TRUE(broken([](Plan& plan) { plan.layers.front().replicas = 3; }));
  EXPECT_TRUE(broken([](Plan& plan) { plan.reductions.pop_back(); }));
  EXPECT_TRUE(broken([](Plan& plan) { plan.reductions.push_back(plan.reductions.back()); }));
  EXPECT_TRUE(broken([](Plan& plan) { plan.groups.front().ranks.back() = Rank{0}; }));
  EXPECT_TRUE(broken([](Plan& plan) { std::swap(plan.reductions.front(), plan.reductions.back()); }));
  EXPECT_TRUE(broken([](Plan& plan) { plan.memory.front().gradients += Bytes(1); }));
}

TEST(DataParallel, MemoryOfLeNet5) {
  const auto trace = build_model("lenet5", 10);
  std::int64_t activations = 0;
  for (const auto& layer : trace.layers) activations += layer.activation_bytes.count();
  const auto memory = [&](const PartitionOptions& options) {
    return partitioners().make("data")->partition(trace, options).memory.at(0);
  };
  const auto plain = memory({4, 10, "float32", "float32", "momentum"});
  EXPECT_EQ(plain.parameters.count(), 4 * 431080);
  EXPECT_EQ(plain.gradients.count(), 4 * 431080);
  EXPECT_EQ(plain.optimizer_state.count(), 4 * 431080);
  EXPECT_EQ(plain.activations.count(), activations);
  EXPECT_EQ(plain.total().count(), 12 * 431080 + activations);
  const auto small = memory({4, 5, "float16", "bfloat16", "sgd"});
  EXPECT_EQ(small.gradients.count(), 2 * 431080);
  EXPECT_EQ(small.optimizer_state.count(), 0);
  EXPECT_EQ(small.activations.count(), activations / 4);
  EXPECT_EQ(memory({4, 10, "float32", "float32", "adam"}).optimizer_state.count(), 8 * 431080);
}

TEST(PartitionOptions, UnknownNamesAreRefused) {
  EXPECT_THROW((void)dtype_bytes("float31"), Error);
  EXPECT_THROW((void)optimizer_copies("adamant"), Error);
  EXPECT_THROW((void)partitioners().make("dada"), Error);
  EXPECT_THROW((void)partitioners().make("data:stages=2"), Error);
}

}  // namespace
}  // namespace tandem
