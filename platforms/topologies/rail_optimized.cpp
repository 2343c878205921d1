// Rail-optimized cluster (DGX SuperPOD; as Wang et al., arXiv 2307.12169, describe it before they take its spines
// away): nodes of m GPUs on an NVSwitch; GPU j of every node on leaves of rail j; and a top tier of switches common to
// all rails, so that the fabric joins any two GPUs at full bisection. With three tiers, pods are leaves and spines of
// one rail, and cores join the rails. Addresses, tiers and names: rails.hpp.
//
// Routing: with pxn (NCCL's name for it) a message to another rail goes over its own node's NVSwitch to the GPU of that
// rail and then along the rail, so that the top tier carries only what a rail needs; that is up to two links longer
// than over the spines. pxn=no crosses in the top tier.
#include "platforms/topologies/rails.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make_rail_optimized(const Arguments& arguments, const Topology::PluginContext& context) {
  auto options = rail_options("rail-optimized", "nodes", arguments, context);
  options.nvlink = static_cast<int>(arguments.integer("nvlink", 1, 1024));
  options.joined = true;
  if (!arguments.boolean("pxn")) options.cross = RailOptions::Cross::spines;
  return make_rails(std::move(options), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, rail_optimized, "rail-optimized",
                "NVSwitch nodes; GPU j of all nodes on leaves of rail j; rails joined by spines", make_rail_optimized,
                {{"m", ParameterType::integer, "8", "GPUs of a node, and rails"},
                 {"nodes", ParameterType::integer, "", "nodes (as many as hold the devices when left out)"},
                 {"radix", ParameterType::integer, "",
                  "ports of leaves, spines and cores (64, or as many times two as needed, when left out)"},
                 {"nvlink", ParameterType::integer, "9", "cables between a GPU and its NVSwitch"},
                 {"pxn", ParameterType::boolean, "yes", "to another rail over the own node's NVSwitch first"},
                 rail_routing_parameter(),
                 planes_parameter()})

}  // namespace
}  // namespace tandem
