#include "sim/study/cost.hpp"

namespace tandem {

double cost_per_device(const Topology& topology, const Prices& prices) {
  const auto items = topology.cost_items();
  const auto times = [](std::int64_t count, double price) { return static_cast<double>(count) * price; };
  return (times(items.switch_ports - items.node_switch_ports, prices.switch_port) +
          times(items.node_switch_ports, prices.node_switch_port) + times(items.device_ports, prices.device_port) +
          times(items.board_links, prices.board_link) + times(items.copper_cables, prices.copper_cable) +
          times(items.optical_cables, prices.optical_cable)) /
         topology.devices();
}

}  // namespace tandem
