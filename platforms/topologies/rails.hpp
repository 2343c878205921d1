// What rail-only, rail-optimized and mesh-clos-rails share: nodes of m devices, and rails: one port of device j of
// every node leads to rail j, a folded Clos network of as few tiers of equal switches as its size needs.
//
//   device s = node * m + j;  R ports a switch, R/2 of them downwards where there is a tier above
//   one tier:    a rail is one leaf switch (up to R nodes)
//   two tiers:   a rail has L leaves of d <= R/2 nodes; every leaf has u = d cables upwards, u/S to each of S spines
//   three tiers: up to R/2 leaves of a rail are a pod with S spines of its own; a spine has v cables upwards, v/C to
//                each of C cores, and spine s of every pod to the same C
//
// Rails are apart, or joined: then the top tier (spines of two tiers, cores of three) is common to all rails, and one
// tier is not enough. S and C are the least numbers of switches that spread the cables evenly: L*u/S and L*u/R are the
// same where the sizes divide. Every tier has as many cables upwards as downwards, so that a fabric carries any
// permutation of its devices: a cut through it costs as many cables as the smaller side has devices.
//
// Inside a node, devices are joined by one switch (NVSwitch, `nvlink` parallel cables a device) or directly, each pair.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "platforms/topologies/build.hpp"

namespace tandem {

struct RailFabric {
  int rails = 0;
  int nodes = 0;
  bool joined = false;  // the top tier is common to all rails

  int tiers = 0;     // 0: a single node, nothing to join
  int per_leaf = 0;  // nodes of a leaf; its cables upwards where there are spines
  int leaves = 0;    // of a rail
  int pod_leaves = 0;
  int pods = 0;    // of a rail
  int spines = 0;  // of a pod; of two tiers, of the rail or of all rails
  int cores = 0;   // that one spine leads to

  [[nodiscard]] int all_leaves() const { return rails * leaves; }
  [[nodiscard]] int leaf(int rail, int node) const { return rail * leaves + node / per_leaf; }
  // Leaves that share spines, and how many such groups there are.
  [[nodiscard]] int group(int leaf) const {
    return joined && tiers == 2 ? 0 : leaf / leaves * pods + leaf % leaves / pod_leaves;
  }
  [[nodiscard]] int groups() const { return tiers < 2 ? 0 : joined && tiers == 2 ? 1 : rails * pods; }
  [[nodiscard]] int all_spines() const { return groups() * spines; }
  [[nodiscard]] int all_cores() const { return tiers < 3 ? 0 : (joined ? 1 : rails) * spines * cores; }
  [[nodiscard]] int core(int group, int spine, int c) const {
    return ((joined ? 0 : group / pods) * spines + spine) * cores + c;
  }
  [[nodiscard]] int leaf_width() const { return per_leaf / spines; }             // cables from a leaf to a spine
  [[nodiscard]] int spine_uplinks() const { return pod_leaves * leaf_width(); }  // three tiers
  [[nodiscard]] int core_width() const { return spine_uplinks() / cores; }
};

// The fabric of fewest tiers; none where three tiers of `radix`-port switches do not hold it.
[[nodiscard]] std::optional<RailFabric> rail_fabric(int rails, int nodes, int radix, bool joined);

struct RailOptions {
  // How a message gets to another rail: in its own node first (as NCCL does it, "PXN"), in the other node last, or over
  // the switches that join the rails.
  enum class Cross { node_first, node_last, spines };

  std::string name;        // of the plug-in
  std::string nodes_name;  // of its parameter for the number of nodes
  int m = 0;               // devices of a node
  int nodes = 0;
  int radix = 0;   // 0: 64, or as many times two as it takes
  int nvlink = 0;  // cables from a device to its node's switch; 0: devices joined directly
  bool joined = false;
  Cross cross = Cross::node_first;
  bool ecmp = false;
};

// "routing": the way up inside a rail.
[[nodiscard]] ParameterSpec rail_routing_parameter();

// m, nodes, radix and routing of `arguments`, checked; with nodes left out, as many as hold the devices.
[[nodiscard]] RailOptions rail_options(const std::string& name, const std::string& nodes_name,
                                       const Arguments& arguments, const Topology::PluginContext& context);
[[nodiscard]] std::unique_ptr<Topology> make_rails(RailOptions options, int planes,
                                                   const Topology::PluginContext& context);

}  // namespace tandem
