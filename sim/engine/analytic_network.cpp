#include "sim/engine/analytic_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

// Timers of one collective, and of those that share links.
Token alone(std::uint64_t order) {
  return order * 2;
}
Token shared(std::uint64_t generation) {
  return generation * 2 + 1;
}

std::vector<double> bandwidths_of(const Network& network, double factor) {
  std::vector<double> bandwidths;
  bandwidths.reserve(network.links().size());
  for (const auto& link : network.links()) bandwidths.push_back(link.bandwidth.count() * factor);
  return bandwidths;
}

double alone_time(const PipelinedCollective& collective, const std::vector<double>& bandwidths) {
  StepNetwork network(bandwidths);
  network.add(collective);
  network.advance(std::numeric_limits<double>::infinity());
  return network.now();
}

}  // namespace

AnalyticNetwork::AnalyticNetwork(const Network& network, Backend& backend, double bandwidth_factor, int most_tasks)
    : network_(network),
      backend_(backend),
      bandwidth_factor_(bandwidth_factor),
      most_tasks_(most_tasks),
      users_(network.links().size()),
      steps_(bandwidths_of(network, bandwidth_factor)) {}

std::int64_t AnalyticNetwork::start(const Op& op, const std::vector<DeviceId>& placement,
                                    const ExecutorOptions& options, Backend::Listener& listener, Token token) {
  Key key;
  key.members = op.members;
  if (!op.members) {
    for (int i = 0; i < op.ranks.size(); ++i) key.devices.push_back(placement[op.ranks.at(i).index()]);
  }
  for (const auto& piece : op.pieces) key.pieces.emplace_back(piece.schedule, piece.channel);
  const auto [entry, is_new] = known_.try_emplace(std::move(key), nullptr);
  if (is_new) entry->second = &in_order_.emplace_back();
  auto& known = *entry->second;
  if (is_new) {
    known.costs = {options.step_overhead, bandwidth_factor_, options.latency_factor, options.reduce_rate,
                   options.copy_rate};
    known.estimate =
        collective_estimate(op.pieces, network_, op.members ? *op.members : entry->first.devices, known.costs);
  }
  ++known.times;
  const auto order = begun_++;
  auto& active = active_[order];
  active.key = &entry->first;
  active.what = &known;
  active.listener = &listener;
  active.token = token;
  active.begun = backend_.now().count();
  const auto& loads = known.estimate.loads;
  const bool meets_others =
      std::any_of(loads.begin(), loads.end(), [&](const auto& load) { return users_[load.link.index()] > 0; });
  occupy(known, 1);
  if (meets_others) {
    share_with_others(order);
  } else {
    backend_.at(backend_.now() + known.estimate.time, *this, alone(order));
  }
  return known.estimate.bytes;
}

std::optional<std::int64_t> AnalyticNetwork::cancel(const Backend::Listener& listener, Token token) {
  const auto is_meant = [&](const Active& active) { return active.listener == &listener && active.token == token; };
  if (std::erase_if(ending_, is_meant) > 0) return 0;
  const auto found =
      std::find_if(active_.begin(), active_.end(), [&](const auto& entry) { return is_meant(entry.second); });
  if (found == active_.end()) return std::nullopt;
  catch_up();
  auto& active = found->second;
  const double time = active.what->estimate.time.count();
  const double past = backend_.now().count() - active.begun;
  const double done = active.shares ? steps_.progress(*active.shares) : time > 0 ? std::min(1.0, past / time) : 1;
  active.what->times -= 1 - done;
  const auto not_sent = std::llround((1 - done) * static_cast<double>(active.what->estimate.bytes));
  std::erase(done_, found->first);
  finish(found->first);
  set_timer();
  return not_sent;
}

void AnalyticNetwork::on_timer(Token token) {
  if (token % 2 == 0) {
    const auto found = active_.find(token / 2);
    if (found == active_.end() || found->second.shares) return;
    ending_.push_back(found->second);
    finish(found->first);
  } else if (token == shared(generation_)) {
    catch_up();
    std::sort(done_.begin(), done_.end());
    for (const auto order : done_) {
      ending_.push_back(active_.at(order));
      finish(order);
    }
    done_.clear();
    set_timer();
  }
  while (!ending_.empty()) {
    const auto next = ending_.front();
    ending_.pop_front();
    next.listener->on_timer(next.token);
  }
}

// It and all that use one of its links go on as tasks.
void AnalyticNetwork::share_with_others(std::uint64_t order) {
  catch_up();
  const auto& loads = active_.at(order).what->estimate.loads;
  for (auto& [other, active] : active_) {
    if (active.shares) continue;
    auto mine = loads.begin();
    const auto& theirs = active.what->estimate.loads;
    const bool meets = std::any_of(theirs.begin(), theirs.end(), [&](const auto& load) {
      while (mine != loads.end() && mine->link.value < load.link.value) ++mine;
      return mine != loads.end() && mine->link == load.link;
    });
    if (meets) share(other, active);
  }
  set_timer();
}

void AnalyticNetwork::share(std::uint64_t order, Active& active) {
  auto& known = *active.what;
  const double time = known.estimate.time.count();
  const double past = backend_.now().count() - active.begun;
  if (past >= time * (1 - 1e-9) && past > 0) return;  // its own timer is due
  make_steps(active);
  const bool fits = known.steps && tasks_ + known.steps->tasks() <= most_tasks_;
  const auto& collective = fits ? *known.steps : *known.as_one;
  active.shares = steps_.add(collective, past > 0 ? past / time * (fits ? known.time_of_steps : time) : 0);
  tasks_ += collective.tasks();
  ids_.emplace(*active.shares, order);
}

void AnalyticNetwork::make_steps(const Active& active) {
  auto& known = *active.what;
  if (known.as_one) return;
  std::vector<CollectivePiece> pieces;
  for (const auto& [schedule, channel] : active.key->pieces) pieces.push_back({schedule, channel});
  const auto& devices = active.key->members ? *active.key->members : active.key->devices;
  known.steps = collective_steps(pieces, network_, devices, known.costs, most_tasks_);
  if (known.steps) known.time_of_steps = alone_time(*known.steps, bandwidths_of(network_, bandwidth_factor_));
  // Its own link keeps it from being faster than alone.
  PipelineMessages messages;
  messages.bytes = static_cast<double>(known.estimate.bytes) / static_cast<double>(devices.size());
  for (const auto& load : known.estimate.loads) {
    messages.loads.push_back({load.link.value, static_cast<double>(load.bytes)});
  }
  messages.loads.push_back({steps_.add_link(1), known.estimate.time.count()});
  PipelineStep step;
  step.messages.push_back(std::move(messages));
  known.as_one = PipelinedCollective{{{1, {std::move(step)}}}, {}};
}

void AnalyticNetwork::catch_up() {
  for (const auto id : steps_.advance(backend_.now().count())) done_.push_back(ids_.at(id));
}

void AnalyticNetwork::set_timer() {
  ++generation_;
  const double next = done_.empty() ? steps_.next() : backend_.now().count();
  if (next < std::numeric_limits<double>::infinity()) {
    backend_.at(std::max(Seconds(next), backend_.now()), *this, shared(generation_));
  }
}

void AnalyticNetwork::occupy(const Known& what, int change) {
  for (const auto& load : what.estimate.loads) users_[load.link.index()] += change;
}

void AnalyticNetwork::finish(std::uint64_t order) {
  const auto found = active_.find(order);
  auto& active = found->second;
  active.what->busy += backend_.now().count() - active.begun;
  occupy(*active.what, -1);
  if (active.shares) {
    tasks_ -= static_cast<double>(steps_.tasks(*active.shares));
    steps_.remove(*active.shares);
    ids_.erase(*active.shares);
  }
  active_.erase(found);
}

std::vector<LinkUse> AnalyticNetwork::link_uses() const {
  std::map<std::int32_t, LinkUse> uses;
  for (const auto& known : in_order_) {
    for (const auto& load : known.estimate.loads) {
      auto& use = uses[load.link.value];
      use.link = load.link;
      use.bytes += std::llround(static_cast<double>(load.bytes) * known.times);
      use.flows += std::llround(static_cast<double>(load.messages) * known.times);
      use.busy += Seconds(known.busy);
    }
  }
  std::vector<LinkUse> list;
  for (const auto& [link, use] : uses) list.push_back(use);
  return list;
}

}  // namespace tandem
