// Ranks that are not equally fast: noise that every rank draws, and single stragglers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/core/registry.hpp"

namespace tandem {

// How much slower than its trace a rank computes, drawn once a rank and kept for the whole run.
class Jitter {
 public:
  static constexpr const char* plugin_kind = "jitter";
  static constexpr const char* plugin_help = "noise of the ranks' compute times";
  struct PluginContext {};

  virtual ~Jitter() = default;
  // A factor on all compute times, above 0.
  [[nodiscard]] virtual double factor(Random& random) const = 0;
};

struct ComputeNoise {
  std::string jitter = "none";       // a plug-in of kind jitter
  std::map<int, double> stragglers;  // by rank: a factor on top
  std::uint64_t seed = 1;
};

// By rank; empty where all are 1. Rank r draws the same however many ranks there are. Usage error where a straggler is
// no rank.
[[nodiscard]] std::vector<double> compute_slowdown(const ComputeNoise& noise, int ranks);

// Ranks that are equally slow, numbered from 0 in order of their first rank: one can stand for all of its class.
struct RankClasses {
  std::vector<int> of_rank;
  std::vector<int> first;  // rank, by class
};
[[nodiscard]] RankClasses rank_classes(const std::vector<double>& slowdown, int ranks);

}  // namespace tandem
