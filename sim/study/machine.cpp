#include "sim/study/machine.hpp"

#include <algorithm>

#include "platforms/placement.hpp"

namespace tandem {

Machine make_machine(const ClusterOptions& options, const std::string& placement,
                     const CollectiveAlgorithm& algorithm) {
  const int lost = static_cast<int>(options.lost_ranks.size());
  const int servers = algorithm.servers(options.ranks);
  auto whole = options;
  whole.ranks = options.ranks + lost + servers;
  Machine machine;
  machine.cluster = std::make_unique<Cluster>(whole);
  auto all = place(placement, *machine.cluster, whole.ranks);
  for (const int rank : options.lost_ranks) machine.cluster->fail_device(all[static_cast<std::size_t>(rank)]);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& gone = options.lost_ranks;
    if (std::find(gone.begin(), gone.end(), static_cast<int>(rank)) == gone.end()) {
      machine.placement.push_back(all[rank]);
    }
  }
  std::shared_ptr<const SwitchTree> tree;
  if (algorithm.in_switches()) {
    tree = std::make_shared<SwitchTree>(switch_tree(*machine.cluster, machine.placement));
    for (const int vertex : tree->switches) machine.placement.push_back(DeviceId{vertex});
  }
  machine.group = collective_group(algorithm, *machine.cluster, machine.placement, options.ranks, std::move(tree));
  return machine;
}

bool has_failures(const ClusterOptions& options) {
  return !options.failures.empty() || !options.lost_ranks.empty();
}

ClusterOptions without_failures(ClusterOptions options) {
  options.ranks += static_cast<int>(options.lost_ranks.size());
  options.lost_ranks.clear();
  options.failures.clear();
  return options;
}

}  // namespace tandem
