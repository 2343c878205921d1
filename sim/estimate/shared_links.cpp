#include "sim/estimate/shared_links.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "sim/core/random.hpp"
#include "sim/estimate/chunk_pipeline.hpp"
#include "sim/estimate/loads.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// A message of the step that is looked at.
struct Message {
  int channel = 0;
  int from = 0;
  int to = 0;
  int place = 0;               // among the sender's messages of the step
  std::size_t path_begin = 0;  // in Step::paths
  std::size_t path_end = 0;
  std::int64_t bytes = 0;
  Seconds latency{};  // of all repetitions, with the overhead
  Seconds receive{};
  Seconds end{};
};

struct Step {
  std::vector<Message> messages;
  std::vector<LinkId> paths;
};

// ---- one chunk ----

// When every member is through its steps so far.
class Clocks {
 public:
  Clocks(const std::vector<CollectivePiece>& channels, const Network& network, const AlphaBetaOptions& options)
      : network_(network), options_(options), free_at_(network.links().size()) {
    std::size_t members = 0;
    for (const auto& channel : channels) {
      clocks_.emplace_back(index(channel.schedule->members()));
      members = std::max(members, clocks_.back().size());
    }
    if (options.reduce_rate.count() > 0 || options.copy_rate.count() > 0) receive_.resize(members);
  }

  // A link's load of a step begins no earlier than its load of the step before has ended: members that skip a step
  // would otherwise use a link together with those that do not.
  void advance(Step& step, const Loads& loads) {
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

 private:
  struct Clock {
    Seconds ready{};
    Seconds next{};  // when it is through the step that is looked at
  };

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
  }

  const Network& network_;
  const AlphaBetaOptions& options_;
  std::vector<std::vector<Clock>> clocks_;  // by channel and member
  std::vector<Seconds> free_at_;            // by link
  std::vector<Seconds> receive_;            // of the step, by member; empty where receiving is free
  Seconds total_{};
};

// ---- chunks ----

// Gathers, step by step, what the pipeline of chunks needs to know.
class PipelineBuilder {
 public:
  PipelineBuilder(const std::vector<CollectivePiece>& channels, const std::vector<int>& chunks, const Network& network,
                  const AlphaBetaOptions& options)
      : channels_(channels),
        network_(network),
        options_(options),
        loads_(network),
        signatures_(network.links().size()),
        seconds_(network.links().size()) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const auto members = index(channels[c].schedule->members());
      collective_.channels.push_back({chunks[c], {}});
      members_.push_back({std::vector<int>(members, -1), std::vector<int>(members, -1), {}, 0});
    }
  }

  // The messages of channel `c`; `step` counts from 0 for every channel.
  void add(const Step& step, std::size_t begin, std::size_t end, int channel, int number) {
    const auto& schedule = *channels_[index(channel)].schedule;
    auto& members = members_[index(channel)];
    auto& steps = collective_.channels[index(channel)].steps;
    if (number > 0 && schedule.stage(number) != schedule.stage(number - 1)) end_stage(channel);
    auto& gathered = steps.emplace_back();
    std::vector<int> senders;
    for (std::size_t m = begin; m < end; ++m) {
      const auto& message = step.messages[m];
      gathered.latency = std::max(gathered.latency, message.latency);
      if (senders.empty() || senders.back() != message.from) senders.push_back(message.from);
    }
    add_kinds(gathered, step, begin, end);
    order_.emplace_back(channel, number);
    gathered.receive = longest_receive(step, begin, end);
    for (const int sender : senders) {
      if (const int before = members.last[index(sender)]; before >= 0) gathered.after.push_back(before);
    }
    make_unique(gathered.after);
    for (std::size_t m = begin; m < end; ++m) {
      for (const int member : {step.messages[m].from, step.messages[m].to}) {
        members.last[index(member)] = number;
        members.last_of_stage[index(member)] = number;
      }
    }
    members.senders.push_back(std::move(senders));
  }

  [[nodiscard]] const PipelinedCollective& finish() {
    for (std::size_t c = 0; c < channels_.size(); ++c) end_stage(static_cast<int>(c));
    choose_links();
    for (std::size_t c = 0; c < channels_.size(); ++c) unfold(c);
    return collective_;
  }

 private:
  struct Members {
    std::vector<int> last;                  // step in which a member took part, so far
    std::vector<int> last_of_stage;         // the same, in the stage that is looked at
    std::vector<std::vector<int>> senders;  // by step of that stage
    int first = 0;                          // step of that stage
  };
  struct Stored {
    std::int32_t link = 0;
    float bytes = 0;
  };

  static void make_unique(std::vector<int>& steps) {
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  }

  // A member works on one chunk a stage: it begins one when it is through its last step of the stage with the one
  // before.
  void end_stage(int channel) {
    auto& members = members_[index(channel)];
    auto& steps = collective_.channels[index(channel)].steps;
    for (std::size_t s = 0; s < members.senders.size(); ++s) {
      auto& after = steps[index(members.first) + s].after_chunk;
      for (const int sender : members.senders[s]) after.push_back(members.last_of_stage[index(sender)]);
      make_unique(after);
    }
    members.first += static_cast<int>(members.senders.size());
    members.senders.clear();
    std::fill(members.last_of_stage.begin(), members.last_of_stage.end(), -1);
  }

  [[nodiscard]] Seconds longest_receive(const Step& step, std::size_t begin, std::size_t end) {
    Seconds longest{};
    if (options_.reduce_rate.count() == 0 && options_.copy_rate.count() == 0) return longest;
    std::unordered_map<int, Seconds> receive;
    for (std::size_t m = begin; m < end; ++m) {
      auto& sum = receive[step.messages[m].to];
      sum += step.messages[m].receive;
      longest = std::max(longest, sum);
    }
    return longest;
  }

  // Members of symmetric collectives send the same in the same order: the first message of each is of one kind, and so
  // on.
  void add_kinds(PipelineStep& gathered, const Step& step, std::size_t begin, std::size_t end) {
    const auto place_of = [&](std::size_t m) { return step.messages[m].place; };
    int places = 0;
    for (std::size_t m = begin; m < end; ++m) places = std::max(places, place_of(m) + 1);
    const int each = (places + kMostKinds - 1) / kMostKinds;
    for (int first = 0; first < places; first += each) {
      auto& kind = gathered.messages.emplace_back();
      loads_.clear();
      for (std::size_t m = begin; m < end; ++m) {
        if (place_of(m) < first || place_of(m) >= first + each) continue;
        const auto& message = step.messages[m];
        if (message.path_begin == message.path_end) continue;
        kind.bytes = std::max(kind.bytes, static_cast<double>(message.bytes));
        for (std::size_t i = message.path_begin; i < message.path_end; ++i) loads_.add(step.paths[i], message.bytes);
      }
      keep_loads(stored_.size());
    }
  }

  void keep_loads(std::size_t step) {
    auto& stored = stored_.emplace_back();
    stored.reserve(loads_.loaded().size());
    for (const auto link : loads_.loaded()) {
      const auto bytes = loads_.on(link);
      if (bytes == 0) continue;
      stored.push_back({link.value, static_cast<float>(bytes)});
      auto& signature = signatures_[link.index()];
      signature = mix(signature ^ mix((static_cast<std::uint64_t>(step) << 44U) ^ static_cast<std::uint64_t>(bytes)));
      seconds_[link.index()] += static_cast<double>(bytes) / bandwidth(link.index());
    }
  }
  [[nodiscard]] double bandwidth(std::size_t link) const {
    return network_.links()[link].bandwidth.count() * options_.bandwidth_factor;
  }

  // Of links that all steps load alike one stands for all. Of those the busiest stay, and the busiest of every step:
  // others are never what a step waits for, or by little.
  void choose_links() {
    std::vector<std::int32_t> links;
    std::unordered_set<std::uint64_t> seen;
    for (std::size_t link = 0; link < seconds_.size(); ++link) {
      if (seconds_[link] == 0) continue;
      if (seen.insert(signatures_[link] ^ mix(static_cast<std::uint64_t>(bandwidth(link)))).second) {
        links.push_back(static_cast<std::int32_t>(link));
      }
    }
    std::stable_sort(links.begin(), links.end(),
                     [&](auto a, auto b) { return seconds_[index(a)] > seconds_[index(b)]; });
    links.resize(std::min(links.size(), kMostLinks));
    for (const auto& stored : stored_) {
      const auto slowest = std::max_element(stored.begin(), stored.end(), [&](const auto& a, const auto& b) {
        return a.bytes / bandwidth(index(a.link)) < b.bytes / bandwidth(index(b.link));
      });
      if (slowest != stored.end()) links.push_back(slowest->link);
    }
    std::vector<int> number(seconds_.size(), -1);
    for (const auto link : links) {
      if (number[index(link)] >= 0) continue;
      number[index(link)] = static_cast<int>(collective_.bandwidths.size());
      collective_.bandwidths.push_back(bandwidth(index(link)));
    }
    auto next = stored_.begin();
    for (const auto [channel, step] : order_) {
      for (auto& kind : collective_.channels[index(channel)].steps[index(step)].messages) {
        for (const auto& [link, bytes] : *next) {
          if (number[index(link)] >= 0) kind.loads.push_back({number[index(link)], bytes});
        }
        ++next;
      }
    }
  }

  // Steps that repeat, in parts: latency and messages of one chunk alternate with those of others.
  void unfold(std::size_t channel) {
    auto& steps = collective_.channels[channel].steps;
    std::vector<PipelineStep> parts;
    std::vector<int> last;  // part of every step
    for (std::size_t s = 0; s < steps.size(); ++s) {
      auto part = std::move(steps[s]);
      const int count = std::min(channels_[channel].schedule->repetitions(static_cast<int>(s)), kPartsOfPipelined);
      part.latency = part.latency / count;
      part.receive = part.receive / count;
      for (auto& messages : part.messages) {
        messages.bytes /= count;
        for (auto& load : messages.loads) load.bytes /= count;
      }
      for (auto& before : part.after) before = last[index(before)];
      // Steps of the chunk before may come later than this one: they are renumbered below.
      for (int i = 0; i < count; ++i) {
        parts.push_back(part);
        part.after = {static_cast<int>(parts.size()) - 1};
        part.after_chunk.clear();
      }
      last.push_back(static_cast<int>(parts.size()) - 1);
    }
    for (auto& part : parts) {
      for (auto& before : part.after_chunk) before = last[index(before)];
    }
    steps = std::move(parts);
  }

  static constexpr std::size_t kMostLinks = 64;
  static constexpr int kMostKinds = 8;

  const std::vector<CollectivePiece>& channels_;
  const Network& network_;
  const AlphaBetaOptions& options_;
  PipelinedCollective collective_;
  std::vector<Members> members_;             // by channel
  Loads loads_;                              // of one kind of messages
  std::vector<std::vector<Stored>> stored_;  // by kind of message of a step, in the order they were added
  std::vector<std::pair<int, int>> order_;   // channel and step, in that order
  std::vector<std::uint64_t> signatures_;    // by link, of all its loads
  std::vector<double> seconds_;              // by link, for all its loads
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
        loads_(network.links().size()) {
    if (whole_.most_chunks() > 1) pipeline_.emplace(channels_, whole_.chunks, network, options);
  }

  [[nodiscard]] CollectiveEstimate run() {
    int steps = 0;
    for (const auto& channel : channels_) steps = std::max(steps, channel.schedule->steps());
    for (int number = 0; number < steps; ++number) {
      step_.messages.clear();
      step_.paths.clear();
      step_loads_.clear();
      for (std::size_t c = 0; c < channels_.size(); ++c) {
        if (number >= channels_[c].schedule->steps()) continue;
        const auto begin = step_.messages.size();
        add_messages(static_cast<int>(c), number);
        if (pipeline_) pipeline_->add(step_, begin, step_.messages.size(), static_cast<int>(c), number);
      }
      clocks_.advance(step_, step_loads_);
    }
    result_.time = pipeline_ ? pipelined_time() : clocks_.total();
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].messages == 0) continue;
      result_.loads.push_back({LinkId{static_cast<std::int32_t>(i)}, loads_[i].bytes, loads_[i].messages});
    }
    return std::move(result_);
  }

 private:
  struct Load {
    std::int64_t bytes = 0;
    std::int64_t messages = 0;
  };

  // In the pipeline all members take a step together; how much earlier some are counts once.
  [[nodiscard]] Seconds pipelined_time() {
    const auto& collective = pipeline_->finish();
    auto single = collective;
    for (auto& channel : single.channels) channel.chunks = 1;
    return clocks_.total() + (pipeline_time(collective) - pipeline_time(single));
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
        Message message;
        message.channel = channel;
        message.from = member;
        message.to = send.to;
        message.place = static_cast<int>(&send - sends_.data());
        message.path_begin = step_.paths.size();
        message.path_end = step_.paths.size() + path_.size();
        message.bytes = send.range.size();
        message.latency = (network_.route_latency(path_) * options_.latency_factor + overhead) * repetitions;
        if (to.value < network_.devices()) message.receive = receive_time(send);
        step_.messages.push_back(message);
        step_.paths.insert(step_.paths.end(), path_.begin(), path_.end());
        count(message, repetitions, whole_.chunks[index(channel)]);
      }
    }
  }

  [[nodiscard]] Seconds receive_time(const Send& send) const {
    const auto rate = send.reduce ? options_.reduce_rate : options_.copy_rate;
    return rate.count() > 0 ? Bytes(send.range.size()) / rate : Seconds{};
  }

  void count(const Message& message, int repetitions, int chunks) {
    if (path_.empty()) return;
    result_.bytes += message.bytes * chunks;
    for (const auto link : path_) {
      step_loads_.add(link, message.bytes);
      loads_[link.index()].bytes += message.bytes * chunks;
      loads_[link.index()].messages += std::int64_t{repetitions} * chunks;
    }
  }

  Channels whole_;
  const Network& network_;
  const std::vector<DeviceId>& devices_;
  const AlphaBetaOptions& options_;
  std::vector<CollectivePiece> channels_;  // folded
  Clocks clocks_;
  std::optional<PipelineBuilder> pipeline_;  // where there are chunks
  Step step_;
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

}  // namespace tandem
