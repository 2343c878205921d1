#include "sim/estimate/alpha_beta.hpp"

#include <algorithm>

#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

// Bytes by link; links that carry nothing cost nothing to look at.
class Loads {
 public:
  explicit Loads(const Network& network) : network_(network), bytes_(network.links().size(), 0) {}

  void add(LinkId link, std::int64_t bytes) {
    auto& sum = bytes_[link.index()];
    if (sum == 0) loaded_.push_back(link);
    sum += bytes;
  }
  // The longest that a link needs for its load.
  [[nodiscard]] Seconds slowest(double bandwidth_factor) const {
    Seconds longest{};
    for (const auto link : loaded_) {
      longest = std::max(longest, Bytes(bytes_[link.index()]) / (network_.link(link).bandwidth * bandwidth_factor));
    }
    return longest;
  }
  [[nodiscard]] const std::vector<LinkId>& loaded() const { return loaded_; }
  [[nodiscard]] std::int64_t on(LinkId link) const { return bytes_[link.index()]; }
  void clear() {
    for (const auto link : loaded_) bytes_[link.index()] = 0;
    loaded_.clear();
  }

 private:
  const Network& network_;
  std::vector<std::int64_t> bytes_;
  std::vector<LinkId> loaded_;
};

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
    if (!options_.shared_inside) return;
    for (const auto& channel : channels_) clocks_.emplace_back(static_cast<std::size_t>(channel.schedule->members()));
    free_at_.resize(network.links().size());
  }

  // `followed`: find out, too, how long the wave holds up the next one. `counted`: what each link carries, too.
  void run(bool followed, bool counted) {
    counted_ = counted;
    if (counted) messages_.assign(network_.links().size(), 0);
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
      if (options_.shared_inside) {
        advance_clocks();
        if (followed) {
          occupy(step, [&](std::size_t channel, std::size_t member) {
            return clocks_[channel][member].next - clocks_[channel][member].ready;
          });
        }
        settle_clocks();
      } else {
        const auto time =
            latency_ * repetitions_ + std::max(slowest_message_, longest(step_loads_)) + longest_receive();
        total_ += time;
        if (followed) occupy(step, [&](std::size_t, std::size_t) { return time; });
      }
    }
  }

  [[nodiscard]] Seconds total() const { return total_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::vector<LinkLoad> loads() const {
    std::vector<LinkLoad> loads;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i] == 0) continue;
      const LinkId link{static_cast<std::int32_t>(i)};
      loads.push_back({link, wave_loads_[0].on(link), messages_[i]});
    }
    return loads;
  }
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

  // When a member is through its steps so far, and through the one that is looked at.
  struct Clock {
    Seconds ready{};
    Seconds next{};
  };
  struct Message {
    std::size_t channel = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t path_begin = 0;  // in paths_
    std::size_t path_end = 0;
    Seconds latency{};  // of all repetitions
    Seconds end{};
  };

  // A step is no barrier: a member goes on when its own messages of the step have come and gone. A message takes as
  // long as the most loaded link of its path needs for the step's load.
  //
  // A link's load of a step begins no earlier than its load of the step before has ended: members that skip a step
  // would otherwise use a link together with those that do not.
  void advance_clocks() {
    for (auto& message : messages_of_step_) {
      auto& clocks = clocks_[message.channel];
      auto begin = clocks[message.from].ready + message.latency;
      Seconds transfer{};
      for (std::size_t i = message.path_begin; i < message.path_end; ++i) {
        begin = std::max(begin, free_at_[paths_[i].index()]);
        transfer = std::max(transfer, Bytes(step_loads_[0].on(paths_[i])) /
                                          (network_.link(paths_[i]).bandwidth * options_.bandwidth_factor));
      }
      message.end = begin + transfer;
      clocks[message.from].next = std::max(clocks[message.from].next, message.end);
      clocks[message.to].next = std::max(clocks[message.to].next, message.end);
    }
    for (const auto& message : messages_of_step_) {
      for (std::size_t i = message.path_begin; i < message.path_end; ++i) {
        auto& free = free_at_[paths_[i].index()];
        free = std::max(free, message.end);
      }
    }
    // A receiver does its messages of all channels one after another, here behind the last that came.
    if (receives_cost()) {
      for (auto& clocks : clocks_) {
        for (std::size_t member = 0; member < clocks.size(); ++member) {
          if (clocks[member].next > clocks[member].ready) clocks[member].next += receive_[member];
        }
      }
    }
    messages_of_step_.clear();
    paths_.clear();
  }

  void settle_clocks() {
    for (auto& clocks : clocks_) {
      for (auto& clock : clocks) {
        clock.next = std::max(clock.next, clock.ready);
        clock.ready = clock.next;
        total_ = std::max(total_, clock.ready);
      }
    }
  }

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
          network_.route(from, to, options_.shared_inside ? flow_hash(from, to, channels_[channel].channel) : 0, path_);
        }
        // Switches have no software, and add and store at line rate.
        const bool from_switch = from.value >= network_.devices();
        if (to.value < network_.devices()) receive(send);
        const auto overhead = from_switch ? Seconds{} : options_.overhead;
        const auto latency = network_.route_latency(path_) * options_.latency_factor + overhead;
        if (options_.shared_inside) {
          messages_of_step_.push_back({channel, static_cast<std::size_t>(member), static_cast<std::size_t>(send.to),
                                       paths_.size(), paths_.size() + path_.size(),
                                       latency * schedule.repetitions(step), Seconds{}});
          paths_.insert(paths_.end(), path_.begin(), path_.end());
        }
        if (path_.empty()) continue;
        latency_ = std::max(latency_, latency);
        add_message(send.range.size(), schedule.repetitions(step), followed || counted_);
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

  // `in_all`: add to what the whole wave puts on links, too.
  void add_message(std::int64_t bytes, int repetitions, bool in_all) {
    bytes_ += bytes;
    if (counted_) {
      for (const auto link : path_) messages_[link.index()] += repetitions;
    }
    const auto load = [&](std::size_t kind, LinkId link) {
      step_loads_[kind].add(link, bytes);
      if (in_all) wave_loads_[kind].add(link, bytes);
    };
    if (options_.shared_inside) {
      for (const auto link : path_) load(0, link);
      return;
    }
    load(0, path_.front());
    load(1, path_.back());
    for (const auto link : path_) {
      slowest_message_ =
          std::max(slowest_message_, Bytes(bytes) / (network_.link(link).bandwidth * options_.bandwidth_factor));
    }
  }

  // `time(channel, member)` is that of the step.
  template <class Time>
  void occupy(int step, const Time& time) {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      auto& occupied = occupied_[c];
      const auto& schedule = *channels_[c].schedule;
      if (step >= schedule.steps()) continue;
      if (step == 0 || schedule.stage(step) != occupied.stage) {
        occupied.stage = schedule.stage(step);
        occupied.members.assign(static_cast<std::size_t>(schedule.members()), Seconds{});
      }
      for (const auto member : occupied.senders) {
        occupied.members[member] += time(c, member);
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
  // First and last links apart: a direct link is both, and carries its load once. All are in the former where links
  // inside are shared.
  Loads step_loads_[2];
  Loads wave_loads_[2];
  std::vector<std::vector<Clock>> clocks_;  // by channel and member, where links inside are shared
  std::vector<Seconds> free_at_;            // the same, by link
  std::vector<Message> messages_of_step_;   // the same
  std::vector<LinkId> paths_;               // of those
  std::vector<Occupied> occupied_;          // by channel
  std::vector<Seconds> receive_;            // of the step, by member; empty where receiving is free
  std::vector<Seconds> receive_in_all_;     // of the wave, by member
  std::vector<std::int64_t> messages_;      // by link, where counted
  bool counted_ = false;
  int repetitions_ = 1;  // of the step
  std::int64_t bytes_ = 0;
  Seconds latency_{};
  Seconds slowest_message_{};  // over the narrowest link of its route
  Seconds total_{};
};

}  // namespace

namespace {

CollectiveEstimate estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                            const std::vector<DeviceId>& devices, const AlphaBetaOptions& options, bool counted) {
  // The first chunk of a channel is its largest, and by at most a byte.
  std::vector<CollectivePiece> channels;
  std::vector<int> chunks;
  for (const auto& piece : pieces) {
    if (channels.empty() || channels.back().channel != piece.channel) {
      channels.push_back(piece);
      chunks.push_back(0);
    }
    ++chunks.back();
  }
  if (channels.empty()) return {};
  const int most = *std::max_element(chunks.begin(), chunks.end());
  Wave wave(folded(channels), network, devices, options);
  wave.run(most > 1, counted);
  CollectiveEstimate result{wave.total() + wave.period() * (most - 1), wave.bytes() * most, {}};
  if (counted) result.loads = wave.loads();
  for (auto& load : result.loads) {
    load.bytes *= most;
    load.messages *= most;
  }
  return result;
}

}  // namespace

Seconds alpha_beta_time(const std::vector<CollectivePiece>& pieces, const Network& network,
                        const std::vector<DeviceId>& devices, const AlphaBetaOptions& options) {
  return estimate(pieces, network, devices, options, false).time;
}

CollectiveEstimate collective_estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                                       const std::vector<DeviceId>& devices, const AlphaBetaOptions& options) {
  auto shared = options;
  shared.shared_inside = true;
  return estimate(pieces, network, devices, shared, true);
}

}  // namespace tandem
