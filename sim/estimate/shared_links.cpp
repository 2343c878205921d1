#include "sim/estimate/shared_links.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/random.hpp"
#include "sim/estimate/chunk_pipeline.hpp"
#include "sim/estimate/loads.hpp"
#include "sim/estimate/pipeline_builder.hpp"
#include "sim/estimate/step_messages.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// Of messages, in a channel: a pipeline's cost grows with their number, and with that of those under way at once.
constexpr int kMostKinds = 2000;
constexpr int kMostKindsOfPipelined = 400;

// When every member is through its steps so far.
class Clocks {
 public:
  Clocks(const std::vector<CollectivePiece>& channels, const Network& network, const AlphaBetaOptions& options)
      : network_(network), options_(options), free_at_(network.links().size()) {
    std::size_t members = 0;
    for (const auto& channel : channels) {
      clocks_.emplace_back(index(channel.schedule->members()));
      contention_.emplace_back(index(channel.schedule->members()));
      members = std::max(members, clocks_.back().size());
    }
    if (options.reduce_rate.count() > 0 || options.copy_rate.count() > 0) receive_.resize(members);
  }

  // A link's load of a step begins no earlier than its load of the step before has ended: members that skip a step
  // would otherwise use a link together with those that do not.
  void advance(StepMessages& step, const Loads& loads) {
    for (auto& message : step.messages) {
      auto& clocks = clocks_[index(message.channel)];
      auto begin = clocks[index(message.from)].ready + message.latency;
      Seconds transfer{};
      for (std::size_t i = message.path_begin; i < message.path_end; ++i) {
        begin = std::max(begin, free_at_[step.paths[i].index()]);
        transfer = std::max(transfer, Bytes(loads.on(step.paths[i])) /
                                          (network_.link(step.paths[i]).bandwidth * options_.bandwidth_factor));
      }
      message.end = begin + transfer;
      note_contention(message, transfer, step.paths);
      for (const int member : {message.from, message.to}) {
        auto& next = clocks[index(member)].next;
        next = std::max(next, message.end);
      }
      if (!receive_.empty()) receive_[index(message.to)] += message.receive;
    }
    for (const auto& message : step.messages) {
      for (std::size_t i = message.path_begin; i < message.path_end; ++i) {
        auto& free = free_at_[step.paths[i].index()];
        free = std::max(free, message.end);
      }
    }
    settle();
  }

  [[nodiscard]] Seconds total() const { return total_; }
  // By channel and member: equal where messages, step by step, took equally long.
  [[nodiscard]] const std::vector<std::vector<std::uint64_t>>& contention() const { return contention_; }

 private:
  struct Clock {
    Seconds ready{};
    Seconds next{};  // when it is through the step that is looked at
  };

  // How many times as long as alone, to an eighth: a byte more or less is no difference.
  void note_contention(const StepMessage& message, Seconds transfer, const std::vector<LinkId>& paths) {
    if (message.bytes == 0 || message.path_begin == message.path_end) return;
    const auto bandwidth = network_.link(paths[message.path_begin]).bandwidth * options_.bandwidth_factor;
    const auto eighths = static_cast<std::uint64_t>(std::llround(8 * (transfer / (Bytes(message.bytes) / bandwidth))));
    auto& members = contention_[index(message.channel)];
    members[index(message.from)] += mix(eighths);
    members[index(message.to)] += mix(~eighths);
  }

  void settle() {
    for (auto& clocks : clocks_) {
      for (std::size_t member = 0; member < clocks.size(); ++member) {
        auto& clock = clocks[member];
        // A receiver does its messages of all channels one after another, here behind the last that came.
        if (!receive_.empty() && clock.next > clock.ready) clock.next += receive_[member];
        clock.ready = clock.next = std::max(clock.next, clock.ready);
        total_ = std::max(total_, clock.ready);
      }
    }
    std::fill(receive_.begin(), receive_.end(), Seconds{});
    for (auto& members : contention_) {
      for (auto& signature : members) signature = mix(signature);
    }
  }

  const Network& network_;
  const AlphaBetaOptions& options_;
  std::vector<std::vector<Clock>> clocks_;  // by channel and member
  std::vector<std::vector<std::uint64_t>> contention_;
  std::vector<Seconds> free_at_;  // by link
  std::vector<Seconds> receive_;  // of the step, by member; empty where receiving is free
  Seconds total_{};
};

class Estimate {
 public:
  Estimate(const std::vector<CollectivePiece>& pieces, const Network& network, const std::vector<DeviceId>& devices,
           const AlphaBetaOptions& options)
      : whole_(channels_of(pieces)),
        network_(network),
        devices_(devices),
        options_(options),
        channels_(folded(whole_.first)),
        clocks_(channels_, network, options),
        step_loads_(network),
        loads_(network.links().size()) {}

  [[nodiscard]] CollectiveEstimate run() {
    each_step([&](int) {
      for (const auto& message : step_.messages) count(message);
      clocks_.advance(step_, step_loads_);
    });
    result_.time = clocks_.total();
    auto roles =
        roles_of(channels_, clocks_.contention(), whole_.most_chunks() > 1 ? kMostKindsOfPipelined : kMostKinds);
    const bool has_roles =
        receivers_queue() || std::any_of(roles.begin(), roles.end(), [](const auto& each) { return each.count > 1; });
    if (has_roles || whole_.most_chunks() > 1) result_.time = pipelined_time(std::move(roles), has_roles);
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].messages == 0) continue;
      result_.loads.push_back({LinkId{static_cast<std::int32_t>(i)}, loads_[i].bytes, loads_[i].messages});
    }
    return std::move(result_);
  }

  [[nodiscard]] std::optional<PipelinedCollective> steps(int most_tasks) {
    std::size_t members = 0;
    for (const auto& channel : channels_) members += index(channel.schedule->members());
    if (members > index(most_tasks)) return std::nullopt;  // or their links would be too many
    const int most_kinds = most_tasks / whole_.most_chunks();
    auto each_its_own = built(roles_of(channels_, numbered(channels_), most_kinds)).finish_on_all_links();
    if (each_its_own.tasks() <= most_tasks) return each_its_own;
    each_step([&](int) { clocks_.advance(step_, step_loads_); });
    auto by_role = built(roles_of(channels_, clocks_.contention(), most_kinds)).finish_on_all_links();
    if (by_role.tasks() <= most_tasks) return by_role;
    return std::nullopt;
  }

 private:
  // Different for each member.
  [[nodiscard]] static std::vector<std::vector<std::uint64_t>> numbered(const std::vector<CollectivePiece>& channels) {
    std::vector<std::vector<std::uint64_t>> numbers;
    for (const auto& channel : channels) {
      numbers.emplace_back(index(channel.schedule->members()));
      std::iota(numbers.back().begin(), numbers.back().end(), 0);
    }
    return numbers;
  }

  // Receivers take turns with the messages of several channels.
  [[nodiscard]] bool receivers_queue() const {
    return channels_.size() > 1 && (options_.reduce_rate.count() > 0 || options_.copy_rate.count() > 0);
  }

  struct Load {
    std::int64_t bytes = 0;
    std::int64_t messages = 0;
  };

  template <class Look>
  void each_step(const Look& look) {
    int steps = 0;
    for (const auto& channel : channels_) steps = std::max(steps, channel.schedule->steps());
    for (int number = 0; number < steps; ++number) {
      step_.messages.clear();
      step_.paths.clear();
      step_loads_.clear();
      for (std::size_t c = 0; c < channels_.size(); ++c) {
        if (number < channels_[c].schedule->steps()) add_messages(static_cast<int>(c), number);
      }
      look(number);
    }
  }

  // In the pipeline all members of a role take a step together. Where roles are not told apart, how much earlier some
  // are counts once.
  [[nodiscard]] Seconds pipelined_time(std::vector<Roles> roles, bool has_roles) {
    auto pipeline = built(std::move(roles));
    const auto& collective = pipeline.finish();
    if (has_roles) return pipeline_time(collective);
    auto single = collective;
    for (auto& channel : single.channels) channel.chunks = 1;
    return clocks_.total() + (pipeline_time(collective) - pipeline_time(single));
  }

  [[nodiscard]] PipelineBuilder built(std::vector<Roles> roles) {
    PipelineBuilder pipeline(channels_, whole_.chunks, std::move(roles), network_, options_);
    each_step([&](int number) {
      for (std::size_t begin = 0; begin < step_.messages.size();) {
        const int channel = step_.messages[begin].channel;
        auto end = begin;
        while (end < step_.messages.size() && step_.messages[end].channel == channel) ++end;
        pipeline.add(step_, begin, end, channel, number);
        begin = end;
      }
    });
    return pipeline;
  }

  void add_messages(int channel, int number) {
    const auto& schedule = *channels_[index(channel)].schedule;
    const int repetitions = schedule.repetitions(number);
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(number, member, sends_);
      const auto from = devices_[index(member)];
      // Switches have no software, and add and store at line rate.
      const auto overhead = from.value >= network_.devices() ? Seconds{} : options_.overhead;
      for (const auto& send : sends_) {
        const auto to = devices_[index(send.to)];
        if (send.cable.value >= 0) {
          path_.assign(1, send.cable);
        } else {
          network_.route(from, to, flow_hash(from, to, channels_[index(channel)].channel), path_);
        }
        StepMessage message;
        message.channel = channel;
        message.from = member;
        message.to = send.to;
        message.place = static_cast<int>(&send - sends_.data());
        message.path_begin = step_.paths.size();
        message.path_end = step_.paths.size() + path_.size();
        message.bytes = send.range.size();
        message.repetitions = repetitions;
        message.latency = (network_.route_latency(path_) * options_.latency_factor + overhead) * repetitions;
        if (to.value < network_.devices()) message.receive = receive_time(send);
        step_.messages.push_back(message);
        step_.paths.insert(step_.paths.end(), path_.begin(), path_.end());
        for (const auto link : path_) step_loads_.add(link, message.bytes);
      }
    }
  }

  [[nodiscard]] Seconds receive_time(const Send& send) const {
    const auto rate = send.reduce ? options_.reduce_rate : options_.copy_rate;
    return rate.count() > 0 ? Bytes(send.range.size()) / rate : Seconds{};
  }

  void count(const StepMessage& message) {
    if (message.path_begin == message.path_end) return;
    const auto chunks = whole_.chunks[index(message.channel)];
    result_.bytes += message.bytes * chunks;
    for (auto i = message.path_begin; i < message.path_end; ++i) {
      auto& load = loads_[step_.paths[i].index()];
      load.bytes += message.bytes * chunks;
      load.messages += std::int64_t{message.repetitions} * chunks;
    }
  }

  Channels whole_;
  const Network& network_;
  const std::vector<DeviceId>& devices_;
  const AlphaBetaOptions& options_;
  std::vector<CollectivePiece> channels_;  // folded
  Clocks clocks_;
  StepMessages step_;
  Loads step_loads_;
  std::vector<Load> loads_;  // by link, of all steps and chunks
  std::vector<Send> sends_;
  std::vector<LinkId> path_;
  CollectiveEstimate result_;
};

}  // namespace

CollectiveEstimate collective_estimate(const std::vector<CollectivePiece>& pieces, const Network& network,
                                       const std::vector<DeviceId>& devices, const AlphaBetaOptions& options) {
  if (pieces.empty()) return {};
  return Estimate(pieces, network, devices, options).run();
}

std::optional<PipelinedCollective> collective_steps(const std::vector<CollectivePiece>& pieces, const Network& network,
                                                    const std::vector<DeviceId>& devices,
                                                    const AlphaBetaOptions& options, int most_tasks) {
  if (pieces.empty()) return std::nullopt;
  return Estimate(pieces, network, devices, options).steps(most_tasks);
}

}  // namespace tandem
