// Collectives of the analytic fidelity: each takes what its estimate says, until another that is under way uses one of
// its links.
//
// From then on the steps of both are tasks (sim/estimate/step_network.hpp), whose messages share links. A collective
// whose tasks would be too many is one task, as large as what one of its members sends on average, and no faster than
// it is alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/backend.hpp"
#include "sim/engine/executor.hpp"
#include "sim/estimate/shared_links.hpp"
#include "sim/estimate/step_network.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

class AnalyticNetwork final : public CollectiveModel, private Backend::Listener {
 public:
  // `most_tasks` of collectives that share links at once.
  AnalyticNetwork(const Network& network, Backend& backend, double bandwidth_factor, int most_tasks = 6000);

  std::int64_t start(const Op& op, const std::vector<DeviceId>& placement, const ExecutorOptions& options,
                     Backend::Listener& listener, Token token) override;
  std::optional<std::int64_t> cancel(const Backend::Listener& listener, Token token) override;
  [[nodiscard]] std::vector<LinkUse> link_uses() const;

 private:
  struct Key {
    std::shared_ptr<const std::vector<DeviceId>> members;
    std::vector<DeviceId> devices;  // where there are no members
    std::vector<std::pair<std::shared_ptr<const CollectiveSchedule>, std::int32_t>> pieces;  // and their channels
    auto operator<=>(const Key&) const = default;
  };
  struct Known {
    AlphaBetaOptions costs;
    CollectiveEstimate estimate;
    std::optional<PipelinedCollective> steps;  // made when it shares links for the first time; none: too many
    std::optional<PipelinedCollective> as_one;
    double time_of_steps = 0;  // alone, s
    double times = 0;          // of those that were cancelled, the part that was done
    double busy = 0;
  };
  struct Active {
    const Key* key = nullptr;
    Known* what = nullptr;
    Backend::Listener* listener = nullptr;
    Token token = 0;
    double begun = 0;
    std::optional<StepNetwork::Id> shares;  // links with others
  };

  void on_timer(Token token) override;
  void on_flow_done(Token) override {}
  void share_with_others(std::uint64_t order);
  void share(std::uint64_t order, Active& active);
  void make_steps(const Active& active);
  void catch_up();
  void set_timer();
  void occupy(const Known& what, int change);
  void finish(std::uint64_t order);

  const Network& network_;
  Backend& backend_;
  double bandwidth_factor_;
  int most_tasks_;
  std::map<Key, Known*> known_;
  std::deque<Known> in_order_;              // of first use: sums over it do not depend on addresses
  std::map<std::uint64_t, Active> active_;  // by order of beginning
  std::uint64_t begun_ = 0;
  std::vector<int> users_;  // by link
  StepNetwork steps_;
  double tasks_ = 0;                              // of steps_
  std::map<StepNetwork::Id, std::uint64_t> ids_;  // order of those in steps_
  std::vector<std::uint64_t> done_;               // in steps_, until the timer
  std::deque<Active> ending_;                     // their listeners are called next, and may begin or cancel others
  std::uint64_t generation_ = 0;                  // tells stale timers
};

}  // namespace tandem
