// Modules of m directly joined devices with Clos rails: one port of device j of every module leads to rail j, a Clos
// network of one to three tiers. What one buys today (MI300X or Gaudi boxes), and mesh-rail-cube's fair rival: with one
// tier it is mesh-rail-cube of one level; where that goes on with more levels of single switches, this goes on with
// more tiers. Addresses, tiers and names: rails.hpp.
//
// Routing: along the own rail to the other module, then inside of it (as mesh-rail-cube). Shortest for all pairs.
#include "platforms/topologies/rails.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make_mesh_clos_rails(const Arguments& arguments, const Topology::PluginContext& context) {
  auto options = rail_options("mesh-clos-rails", "n", arguments, context);
  options.cross = RailOptions::Cross::node_last;
  return make_rails(std::move(options), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, mesh_clos_rails, "mesh-clos-rails",
                "modules of directly joined devices; device j of all modules on rail j, a Clos of 1 to 3 tiers",
                make_mesh_clos_rails,
                {{"m", ParameterType::integer, "8", "devices of a module, and rails"},
                 {"n", ParameterType::integer, "", "modules (as many as hold the devices when left out)"},
                 {"radix", ParameterType::integer, "",
                  "ports of a rail's switches (64, or as many times two as needed, when left out)"},
                 rail_routing_parameter(),
                 planes_parameter()})

}  // namespace
}  // namespace tandem
