// DCell(n,k) (Guo et al., SIGCOMM 2008): recursively defined, on small switches and devices with k+1 ports.
//
//   DCell_0: n devices on one switch, t_0 = n
//   DCell_l: g_l = t_(l-1) + 1 times DCell_(l-1), t_l = t_(l-1) * g_l devices
//   for i < j < g_l: device j-1 of the i-th DCell_(l-1) - device i of the j-th
//
// Address a_k..a_0, a_0 the position at the switch and a_l < g_l the DCell_(l-1) in the DCell_l; DCellRouting.
#include "platforms/topologies/cells.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make_dcell(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto levels =
      levels_of(arguments, context.devices,
                {"dcell", 2, 1, [](int n, int k) { return Cells::count_devices(n, k, Gateways::all); }});
  return std::make_unique<Cells>("dcell", levels, Gateways::all, planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, dcell, "dcell", "cells of a switch, all joined to each other, recursively (DCell)",
                make_dcell,
                {{"n", ParameterType::integer, "", "ports of a switch (as needed when left out)"},
                 {"k", ParameterType::integer, "", "levels of direct links (as needed when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
