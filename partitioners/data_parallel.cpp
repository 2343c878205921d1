// Data parallelism: every rank holds the whole model and a batch of its own; every gradient is summed over all ranks.
#include "partitioners/partitioner.hpp"

namespace tandem {
namespace {

class DataParallel final : public Partitioner {
 public:
  [[nodiscard]] Plan partition(const Trace& trace, const PartitionOptions& options) const override {
    Plan plan;
    plan.ranks = options.ranks;
    plan.layers.assign(trace.layers.size(), LayerPlan{0, options.ranks, ShardAxis::none, 1});
    RankGroup all;
    for (int r = 0; r < options.ranks; ++r) all.ranks.push_back(Rank{r});
    plan.groups.push_back(std::move(all));
    const int element = dtype_bytes(options.gradient_dtype);
    for (std::size_t i = 0; i < trace.layers.size(); ++i) {
      const auto& parameters = trace.layers[i].parameters;
      for (std::size_t t = 0; t < parameters.size(); ++t) {
        plan.reductions.push_back({LayerId{static_cast<std::int32_t>(i)}, static_cast<std::int32_t>(t), 0,
                                   Bytes(parameters[t].count() * element)});
      }
    }
    plan.memory.push_back(replica_memory(trace, options));
    return plan;
  }
};

TANDEM_REGISTER(Partitioner, data, "data", "data parallelism: a replica of the model on every rank",
                [](const Arguments&, const Partitioner::PluginContext&) { return std::make_unique<DataParallel>(); },
                {})

}  // namespace
}  // namespace tandem
