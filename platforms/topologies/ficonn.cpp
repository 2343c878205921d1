// FiConn(n,k) (Li et al., INFOCOM 2009): as DCell, but with two ports a device. The second, the backup port, is taken
// by one level at most, and every level uses half of those that are still free.
//
//   FiConn_0: n devices on one switch, n even, N_0 = n
//   FiConn_l: g_l = N_(l-1) / 2^l + 1 times FiConn_(l-1), for N_(l-1) / 2^(l-1) backup ports are free in each
//   for i < j < g_l: device (j-1) * 2^l + 2^(l-1) - 1 of the i-th FiConn_(l-1) - device i * 2^l + 2^(l-1) - 1 of the
//   j-th
//
// Address as in DCell; the paper's traffic-oblivious routing.
#include "platforms/topologies/cells.hpp"

namespace tandem {
namespace {

std::unique_ptr<Topology> make_ficonn(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto levels =
      levels_of(arguments, context.devices,
                {"ficonn", 2, 2, [](int n, int k) { return Cells::count_devices(n, k, Gateways::half); }});
  return std::make_unique<Cells>("ficonn", levels, Gateways::half, planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, ficonn, "ficonn", "cells of a switch joined recursively by second ports (FiConn)",
                make_ficonn,
                {{"n", ParameterType::integer, "", "ports of a switch, even (as needed when left out)"},
                 {"k", ParameterType::integer, "", "levels of direct links (as needed when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
