// Rail-only network (Wang et al., arXiv 2307.12169): nodes of m GPUs on an NVSwitch; GPU j of every node is joined to
// rail j, and rails meet nowhere but in the nodes. A rail that one switch does not hold is a Clos network of its own.
// Addresses, tiers and names: rails.hpp.
//
// Routing: a message to another rail goes over its own node's NVSwitch to the GPU of that rail first, then along the
// rail. This is shortest for all pairs.
#include "platforms/topologies/rails.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make_rail_only(const Arguments& arguments, const Topology::PluginContext& context) {
  auto options = rail_options("rail-only", "nodes", arguments, context);
  options.nvlink = static_cast<int>(arguments.integer("nvlink", 1, 1024));
  return make_rails(std::move(options), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, rail_only, "rail-only", "NVSwitch nodes; GPU j of all nodes on rail j; rails apart",
                make_rail_only,
                {{"m", ParameterType::integer, "8", "GPUs of a node, and rails"},
                 {"nodes", ParameterType::integer, "", "nodes (as many as hold the devices when left out)"},
                 {"radix", ParameterType::integer, "",
                  "ports of a rail's switches (64, or as many times two as needed, when left out)"},
                 {"nvlink", ParameterType::integer, "9", "cables between a GPU and its NVSwitch"},
                 rail_routing_parameter(),
                 planes_parameter()})

}  // namespace
}  // namespace tandem
