// Hierarchical all-reduce (and either half of it), in the form with parallel inter-node rings: reduce-scatter inside
// each node, then one all-reduce between nodes for every local position at once, then all-gather inside each node. With
// g members a node and k nodes: intra (g-1)/g n each way, inter 2(k-1)/k n/g on each position.
#include "sim/collectives/collective.hpp"
#include "sim/collectives/nested.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

class Hierarchical final : public CollectiveAlgorithm {
 public:
  Hierarchical(Exchange intra, Exchange inter) : intra_(intra), inter_(inter) {}

  [[nodiscard]] bool supports(CollectiveOperation operation) const override { return is_nested(operation); }
  [[nodiscard]] std::string note(const GroupShape& shape) const override {
    if (shape.workers == 1 || (shape.node_size != 1 && shape.node_size != shape.workers)) return "";
    return one_level_note("hierarchical", shape.node_size == 1 ? inter_ : intra_);
  }

 protected:
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int) const override {
    if (shape.node_size == 0) {
      throw usage_error(
          "hierarchical collectives need nodes with equally many ranks, in order of rank; use ring, or another "
          "--placement");
    }
    const int nodes = shape.workers / shape.node_size;
    return nested_schedule(operation, shape.workers, bytes,
                           {{shape.node_size, 1, intra_}, {nodes, shape.node_size, inter_}});
  }

 private:
  Exchange intra_;
  Exchange inter_;
};

TANDEM_REGISTER(
    CollectiveAlgorithm, hierarchical, "hierarchical",
    "reduce-scatter in each node, parallel all-reduces between nodes, all-gather in each node; or half of it",
    [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
      return std::make_unique<Hierarchical>(exchange_from_text(arguments.text("intra")),
                                            exchange_from_text(arguments.text("inter")));
    },
    {{"intra", ParameterType::text, "ring", "exchange inside a node: ring, direct or halving"},
     {"inter", ParameterType::text, "ring", "exchange between nodes: ring, direct or halving"}})

}  // namespace
}  // namespace tandem
