#include "sim/disturb/jitter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

class None final : public Jitter {
 public:
  [[nodiscard]] double factor(Random&) const override { return 1; }
};

TANDEM_REGISTER(Jitter, none, "none", "all ranks are equally fast",
                [](const Arguments&, const Jitter::PluginContext&) { return std::make_unique<None>(); }, {})

}  // namespace

std::vector<double> compute_slowdown(const ComputeNoise& noise, int ranks) {
  const auto jitter = Registry<Jitter>::instance().make(noise.jitter);
  std::vector<double> factors;
  for (int r = 0; r < ranks; ++r) {
    Random random(mix(noise.seed) ^ mix(static_cast<std::uint64_t>(r) + 0x5eed));
    factors.push_back(jitter->factor(random));
  }
  for (const auto& [rank, factor] : noise.stragglers) {
    if (rank >= ranks) {
      throw usage_error(fmt::format("--straggler names rank {}: the run has ranks 0 to {}", rank, ranks - 1));
    }
    factors[static_cast<std::size_t>(rank)] *= factor;
  }
  const bool equal = std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; });
  return equal ? std::vector<double>{} : factors;
}

RankClasses rank_classes(const std::vector<double>& slowdown, int ranks) {
  RankClasses classes;
  std::map<double, int> known;
  for (int r = 0; r < ranks; ++r) {
    const double factor = slowdown.empty() ? 1 : slowdown[static_cast<std::size_t>(r)];
    const auto [entry, is_new] = known.try_emplace(factor, static_cast<int>(classes.first.size()));
    if (is_new) classes.first.push_back(r);
    classes.of_rank.push_back(entry->second);
  }
  return classes;
}

}  // namespace tandem
