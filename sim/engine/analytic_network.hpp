// Collectives of the analytic fidelity: each takes what its estimate says; those under way at once share links.
//
// A collective alone is a fluid that fills, on every link, the share of the link's bandwidth that it uses on average
// (its bytes over bandwidth x its time). Where several are under way, the rates of all are raised together until a link
// is full; the collectives on it stay there, and the others go on to rise up to their own speed: max-min fairness
// (Bertsekas and Gallager, Data Networks, 1992, section 6.5) among a few collectives and not among their flows.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/backend.hpp"
#include "sim/engine/executor.hpp"
#include "sim/estimate/shared_links.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

class AnalyticNetwork final : public CollectiveModel, private Backend::Listener {
 public:
  AnalyticNetwork(const Network& network, Backend& backend, double bandwidth_factor);

  std::int64_t start(const Op& op, const std::vector<DeviceId>& placement, const ExecutorOptions& options,
                     Backend::Listener& listener, Token token) override;
  bool cancel(const Backend::Listener& listener, Token token) override;
  [[nodiscard]] std::vector<LinkUse> link_uses() const;

 private:
  struct Key {
    std::shared_ptr<const std::vector<DeviceId>> members;
    std::vector<DeviceId> devices;  // where there are no members
    std::vector<std::pair<std::shared_ptr<const CollectiveSchedule>, std::int32_t>> pieces;  // and their channels
    auto operator<=>(const Key&) const = default;
  };
  struct Known {
    CollectiveEstimate estimate;
    double times = 0;  // of those that were cancelled, the part that was done
    double busy = 0;
  };
  struct Active {
    Known* what = nullptr;
    Backend::Listener* listener = nullptr;
    Token token = 0;
    double begun = 0;
    double left = 1;  // of its time alone
    double rate = 1;
    std::uint64_t generation = 0;  // tells stale timers
  };

  void on_timer(Token token) override;
  void on_flow_done(Token) override {}
  void advance();  // what is under way, to now
  void share();    // sets rates and timers

  const Network& network_;
  Backend& backend_;
  double bandwidth_factor_;
  std::map<Key, Known*> known_;
  std::deque<Known> in_order_;              // of first use: sums over it do not depend on addresses
  std::map<std::uint64_t, Active> active_;  // by order of beginning
  std::uint64_t begun_ = 0;
  std::uint64_t generation_ = 0;
  double updated_ = 0;
};

}  // namespace tandem
