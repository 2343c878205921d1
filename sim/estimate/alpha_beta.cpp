#include "sim/estimate/alpha_beta.hpp"

#include <algorithm>

#include "sim/estimate/loads.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

// One chunk of every channel, all of them step by step.
class Wave {
 public:
  Wave(std::vector<CollectivePiece> channels, const Network& network, const std::vector<DeviceId>& devices,
       const AlphaBetaOptions& options)
      : channels_(std::move(channels)),
        network_(network),
        devices_(devices),
        options_(options),
        step_loads_{Loads(network), Loads(network)},
        wave_loads_{Loads(network), Loads(network)},
        occupied_(channels_.size()) {
    if (receives_cost()) receive_in_all_.resize(devices.size());
  }

  // `followed`: find out, too, how long the wave holds up the next one.
  void run(bool followed) {
    int steps = 0;
    for (const auto& channel : channels_) steps = std::max(steps, channel.schedule->steps());
    for (int step = 0; step < steps; ++step) {
      latency_ = slowest_message_ = Seconds{};
      repetitions_ = 1;
      for (auto& loads : step_loads_) loads.clear();
      for (auto& occupied : occupied_) occupied.senders.clear();
      if (receives_cost()) receive_.assign(devices_.size(), Seconds{});
      for (std::size_t c = 0; c < channels_.size(); ++c) {
        if (step < channels_[c].schedule->steps()) add_step(c, step, followed);
      }
      const auto time = latency_ * repetitions_ + std::max(slowest_message_, longest(step_loads_)) + longest_receive();
      total_ += time;
      if (followed) occupy(step, time);
    }
  }

  [[nodiscard]] Seconds total() const { return total_; }
  [[nodiscard]] Seconds period() const {
    auto period = longest(wave_loads_);
    for (const auto& occupied : occupied_) period = std::max(period, occupied.longest);
    for (const auto& receive : receive_in_all_) period = std::max(period, receive);
    return period;
  }

 private:
  // How long members of one channel are busy sending in the stage that the channel is in.
  struct Occupied {
    int stage = 0;
    std::vector<Seconds> members;
    std::vector<std::size_t> senders;  // of the step
    Seconds longest{};                 // of all members and stages so far
  };

  void add_step(std::size_t channel, int step, bool followed) {
    const auto& schedule = *channels_[channel].schedule;
    repetitions_ = std::max(repetitions_, schedule.repetitions(step));
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends_);
      const auto from = devices_[static_cast<std::size_t>(member)];
      if (followed && !sends_.empty()) occupied_[channel].senders.push_back(static_cast<std::size_t>(member));
      for (const auto& send : sends_) {
        const auto to = devices_[static_cast<std::size_t>(send.to)];
        if (send.cable.value >= 0) {
          path_.assign(1, send.cable);
        } else {
          network_.route(from, to, 0, path_);
        }
        if (to.value < network_.devices()) receive(send);
        if (path_.empty()) continue;
        // Switches have no software, and add and store at line rate.
        const auto overhead = from.value >= network_.devices() ? Seconds{} : options_.overhead;
        latency_ = std::max(latency_, network_.route_latency(path_) * options_.latency_factor + overhead);
        add_message(send.range.size(), followed);
      }
    }
  }

  [[nodiscard]] bool receives_cost() const {
    return options_.reduce_rate.count() > 0 || options_.copy_rate.count() > 0;
  }
  void receive(const Send& send) {
    const auto rate = send.reduce ? options_.reduce_rate : options_.copy_rate;
    if (rate.count() == 0) return;
    const auto time = Bytes(send.range.size()) / rate;
    receive_[static_cast<std::size_t>(send.to)] += time;
    receive_in_all_[static_cast<std::size_t>(send.to)] += time;
  }
  [[nodiscard]] Seconds longest_receive() const {
    return receive_.empty() ? Seconds{} : *std::max_element(receive_.begin(), receive_.end());
  }

  // `in_all`: add to what the whole wave puts on ports, too.
  void add_message(std::int64_t bytes, bool in_all) {
    const auto load = [&](std::size_t kind, LinkId link) {
      step_loads_[kind].add(link, bytes);
      if (in_all) wave_loads_[kind].add(link, bytes);
    };
    load(0, path_.front());
    load(1, path_.back());
    for (const auto link : path_) {
      slowest_message_ =
          std::max(slowest_message_, Bytes(bytes) / (network_.link(link).bandwidth * options_.bandwidth_factor));
    }
  }

  void occupy(int step, Seconds time) {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      auto& occupied = occupied_[c];
      const auto& schedule = *channels_[c].schedule;
      if (step >= schedule.steps()) continue;
      if (step == 0 || schedule.stage(step) != occupied.stage) {
        occupied.stage = schedule.stage(step);
        occupied.members.assign(static_cast<std::size_t>(schedule.members()), Seconds{});
      }
      for (const auto member : occupied.senders) {
        occupied.members[member] += time;
        occupied.longest = std::max(occupied.longest, occupied.members[member]);
      }
    }
  }

  [[nodiscard]] Seconds longest(const Loads (&loads)[2]) const {
    return std::max(loads[0].slowest(options_.bandwidth_factor), loads[1].slowest(options_.bandwidth_factor));
  }

  std::vector<CollectivePiece> channels_;
  const Network& network_;
  const std::vector<DeviceId>& devices_;
  const AlphaBetaOptions& options_;
  std::vector<Send> sends_;
  std::vector<LinkId> path_;
  Loads step_loads_[2];  // first and last links apart: a direct link is both, and carries its load once
  Loads wave_loads_[2];
  std::vector<Occupied> occupied_;       // by channel
  std::vector<Seconds> receive_;         // of the step, by member; empty where receiving is free
  std::vector<Seconds> receive_in_all_;  // of the wave, by member
  int repetitions_ = 1;                  // of the step
  Seconds latency_{};
  Seconds slowest_message_{};  // over the narrowest link of its route
  Seconds total_{};
};

}  // namespace

Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                        const std::vector<DeviceId>& devices, const AlphaBetaOptions& options) {
  const auto channels = channels_of(pieces);
  if (channels.first.empty()) return {};
  const int most = channels.most_chunks();
  Wave wave(folded(channels.first), network, devices, options);
  wave.run(most > 1);
  return wave.total() + wave.period() * (most - 1);
}

}  // namespace tandem
