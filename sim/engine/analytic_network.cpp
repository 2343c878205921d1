#include "sim/engine/analytic_network.hpp"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr int kGenerationBits = 32;

}  // namespace

AnalyticNetwork::AnalyticNetwork(const Network& network, Backend& backend, double bandwidth_factor)
    : network_(network), backend_(backend), bandwidth_factor_(bandwidth_factor) {}

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
    const AlphaBetaOptions costs{options.step_overhead, bandwidth_factor_, options.latency_factor, options.reduce_rate,
                                 options.copy_rate};
    known.estimate = collective_estimate(op.pieces, network_, op.members ? *op.members : entry->first.devices, costs);
  }
  ++known.times;
  advance();
  Active active;
  active.what = &known;
  active.listener = &listener;
  active.token = token;
  active.begun = backend_.now().count();
  active_.emplace(begun_++, active);
  share();
  return known.estimate.bytes;
}

bool AnalyticNetwork::cancel(const Backend::Listener& listener, Token token) {
  const auto found = std::find_if(active_.begin(), active_.end(), [&](const auto& entry) {
    return entry.second.listener == &listener && entry.second.token == token;
  });
  if (found == active_.end()) return false;
  advance();
  found->second.what->times -= found->second.left;
  found->second.what->busy += backend_.now().count() - found->second.begun;
  active_.erase(found);
  share();
  return true;
}

void AnalyticNetwork::on_timer(Token token) {
  const auto found = active_.find(token >> kGenerationBits);
  constexpr Token kGenerations = (Token{1} << kGenerationBits) - 1;
  if (found == active_.end() || (found->second.generation & kGenerations) != (token & kGenerations)) return;
  const auto done = found->second;
  advance();
  active_.erase(found);
  done.what->busy += backend_.now().count() - done.begun;
  share();
  done.listener->on_timer(done.token);
}

void AnalyticNetwork::advance() {
  const double now = backend_.now().count();
  for (auto& [order, active] : active_) {
    const double alone = active.what->estimate.time.count();
    active.left = alone > 0 ? std::max(0.0, active.left - (now - updated_) * active.rate / alone) : 0;
  }
  updated_ = now;
}

void AnalyticNetwork::share() {
  std::vector<Active*> rising;
  for (auto& [order, active] : active_) {
    active.rate = 1;
    if (active.what->estimate.time.count() > 0) rising.push_back(&active);
  }
  struct Share {
    double free = 1;    // of the link, beside those whose rates stand
    double wanted = 0;  // by the others, at their own speed
  };
  // Alone nothing shares.
  std::map<std::int32_t, Share> links;
  const auto wants = [&](const Active& active, const LinkLoad& load) {
    const double bandwidth = network_.link(load.link).bandwidth.count() * bandwidth_factor_;
    return static_cast<double>(load.bytes) / (bandwidth * active.what->estimate.time.count());
  };
  const auto each = [&](const Active& active, const auto& body) {
    for (const auto& load : active.what->estimate.loads) body(links[load.link.value], wants(active, load));
  };
  if (rising.size() > 1) {
    for (const auto* active : rising) each(*active, [](Share& link, double share) { link.wanted += share; });
  }
  while (rising.size() > 1) {
    double level = 1;
    for (const auto& [id, link] : links) {
      if (link.wanted > 0) level = std::min(level, link.free / link.wanted);
    }
    if (level >= 1) break;
    std::vector<Active*> others;
    std::vector<Active*> stopped;
    for (auto* active : rising) {
      bool full = false;
      each(*active, [&](const Share& link, double) { full = full || link.free <= link.wanted * level * (1 + 1e-12); });
      (full ? stopped : others).push_back(active);
    }
    if (stopped.empty()) break;  // what is left of a link is a rounding error
    for (auto* active : stopped) {
      active->rate = level;
      each(*active, [&](Share& link, double share) {
        link.free = std::max(0.0, link.free - level * share);
        link.wanted -= share;
      });
    }
    for (auto& [id, link] : links) {
      if (link.wanted < 1e-12) link.wanted = 0;
    }
    rising = std::move(others);
    if (rising.size() == 1) {  // what the links have left is its own, up to its speed
      double last = 1;
      each(*rising.front(), [&](const Share& link, double share) {
        if (share > 0) last = std::min(last, link.free / share);
      });
      rising.front()->rate = last;
    }
  }
  for (auto& [order, active] : active_) {
    active.generation = generation_++;
    const double left = active.left * active.what->estimate.time.count() / active.rate;
    backend_.at(backend_.now() + Seconds(left), *this, (order << kGenerationBits) | (active.generation & 0xffffffffu));
  }
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
