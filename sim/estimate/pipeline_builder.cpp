#include "sim/estimate/pipeline_builder.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "sim/core/random.hpp"
#include "sim/ir/folded_schedule.hpp"

namespace tandem {
namespace {

constexpr int kMostRounds = 4;
constexpr std::int64_t kMostLooks = 20'000'000;
constexpr int kMostKinds = 8;
constexpr std::size_t kMostLinks = 512;

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

void make_unique(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Classes of equal signatures.
Roles classes_of(const std::vector<std::uint64_t>& signatures) {
  Roles roles;
  roles.of_member.reserve(signatures.size());
  std::unordered_map<std::uint64_t, int> numbers;
  for (const auto signature : signatures) {
    roles.of_member.push_back(numbers.try_emplace(signature, static_cast<int>(numbers.size())).first->second);
  }
  roles.count = std::max(1, static_cast<int>(numbers.size()));
  return roles;
}

// Kinds of messages of all tasks, up to `most`.
int count_kinds(const CollectiveSchedule& schedule, const Roles& roles, int most) {
  int count = 0;
  std::vector<Send> sends;
  for (int step = 0; step < schedule.steps(); ++step) {
    std::set<std::tuple<int, int, int>> kinds;  // roles, and place among the sender's messages
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends);
      for (std::size_t i = 0; i < sends.size(); ++i) {
        kinds.insert({roles.of_member[index(member)], roles.of_member[index(sends[i].to)],
                      std::min(static_cast<int>(i), kMostKinds - 1)});
        if (count + static_cast<int>(kinds.size()) > most) return most + 1;
      }
    }
    count += static_cast<int>(kinds.size());
  }
  return count;
}

// Members whose messages, step by step, go to and come from members of the same roles.
std::vector<std::uint64_t> refined(const CollectiveSchedule& schedule, const Roles& roles) {
  const auto members = index(schedule.members());
  std::vector<std::uint64_t> signatures(members, 0);
  std::vector<std::uint64_t> messages(members);  // of the step; a sum, in which their order does not count
  std::vector<Send> sends;
  for (int step = 0; step < schedule.steps(); ++step) {
    std::fill(messages.begin(), messages.end(), 0);
    for (int member = 0; member < schedule.members(); ++member) {
      schedule.sends(step, member, sends);
      for (const auto& send : sends) {
        const auto role = [&](int m) { return static_cast<std::uint64_t>(roles.of_member[index(m)]) + 1; };
        messages[index(member)] += mix(role(send.to));
        messages[index(send.to)] += mix(role(member) << 32U);
      }
    }
    for (std::size_t m = 0; m < members; ++m) signatures[m] = mix(signatures[m] ^ messages[m]);
  }
  return signatures;
}

Roles roles_in(const CollectiveSchedule& schedule, const std::vector<std::uint64_t>& differences, int most_kinds) {
  const auto is_feasible = [&](const Roles& roles) {
    return roles.count <= most_kinds && count_kinds(schedule, roles, most_kinds) <= most_kinds;
  };
  Roles roles{1, std::vector<int>(index(schedule.members()), 0)};
  // Long chains: telling their members apart would take longer than all the rest.
  if (std::int64_t{schedule.members()} * schedule.steps() > kMostLooks) return roles;
  if (auto different = classes_of(differences); different.count > 1 && is_feasible(different)) {
    roles = std::move(different);
  }
  for (int round = 0; round < kMostRounds; ++round) {
    auto signatures = refined(schedule, roles);
    for (std::size_t m = 0; m < signatures.size(); ++m) {
      signatures[m] = mix(signatures[m] ^ static_cast<std::uint64_t>(roles.of_member[m]));
    }
    auto finer = classes_of(signatures);
    if (finer.count == roles.count || !is_feasible(finer)) break;
    roles = std::move(finer);
  }
  return roles;
}

}  // namespace

std::vector<Roles> roles_of(const std::vector<CollectivePiece>& channels,
                            const std::vector<std::vector<std::uint64_t>>& differences, int most_kinds) {
  std::vector<Roles> roles;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    roles.push_back(roles_in(*channels[c].schedule, differences[c], most_kinds));
  }
  return roles;
}

PipelineBuilder::PipelineBuilder(const std::vector<CollectivePiece>& channels, const std::vector<int>& chunks,
                                 std::vector<Roles> roles, const Network& network, const AlphaBetaOptions& options)
    : pieces_(channels),
      network_(network),
      options_(options),
      loads_(network),
      signatures_(network.links().size()),
      seconds_(network.links().size()) {
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto members = index(channels[c].schedule->members());
    collective_.channels.push_back({chunks[c], {}});
    auto& channel = channels_.emplace_back();
    channel.roles = std::move(roles[c]);
    channel.last.assign(members, -1);
    channel.last_of_stage.assign(members, -1);
  }
}

void PipelineBuilder::add(const StepMessages& step, std::size_t begin, std::size_t end, int channel, int number) {
  const auto& schedule = *pieces_[index(channel)].schedule;
  auto& state = channels_[index(channel)];
  if (schedule.stage(number) != state.stage) end_stage(channel);
  state.stage = schedule.stage(number);
  state.first.resize(index(number) + 1, static_cast<int>(state.tasks.size()));
  std::map<std::pair<int, int>, std::vector<std::size_t>> by_roles;
  for (std::size_t m = begin; m < end; ++m) {
    const auto& message = step.messages[m];
    by_roles[{state.roles.of_member[index(message.from)], state.roles.of_member[index(message.to)]}].push_back(m);
  }
  for (const auto& [roles, which] : by_roles) add_task(step, which, channel, {number, roles.first, roles.second, {}});
  for (std::size_t m = begin; m < end; ++m) {
    for (const int member : {step.messages[m].from, step.messages[m].to}) {
      state.last[index(member)] = number;
      state.last_of_stage[index(member)] = number;
    }
  }
}

void PipelineBuilder::add_task(const StepMessages& step, const std::vector<std::size_t>& which, int channel,
                               Task task) {
  auto& state = channels_[index(channel)];
  auto& steps = collective_.channels[index(channel)].steps;
  auto& gathered = steps.emplace_back();
  for (const auto m : which) {
    const auto& message = step.messages[m];
    gathered.latency = std::max(gathered.latency, message.latency);
    if (task.senders.empty() || task.senders.back() != message.from) task.senders.push_back(message.from);
  }
  order_.emplace_back(channel, static_cast<int>(steps.size()) - 1);
  add_kinds(gathered, step, which);
  add_receivers(gathered, step, which);
  wait_for(state, task.senders, state.last, gathered.after, gathered.after_sent);
  state.tasks.push_back(std::move(task));
}

// Tasks that the members take part in, each in its step: `done` where they receive, `sent` where they only send.
void PipelineBuilder::wait_for(const Channel& channel, const std::vector<int>& members, const std::vector<int>& steps,
                               std::vector<int>& done, std::vector<int>& sent) const {
  std::set<std::pair<int, int>> looked_for;  // step and role
  std::pair<int, int> previous{-1, -1};      // mostly the same: no need to search for it
  for (const int member : members) {
    const std::pair<int, int> next{steps[index(member)], channel.roles.of_member[index(member)]};
    if (next.first >= 0 && next != previous) looked_for.insert(next);
    previous = next;
  }
  for (const auto& [number, role] : looked_for) {
    for (auto t = index(channel.first[index(number)]); t < channel.tasks.size(); ++t) {
      const auto& task = channel.tasks[t];
      if (task.number != number) break;
      if (task.to == role) {
        done.push_back(static_cast<int>(t));
      } else if (task.from == role) {
        sent.push_back(static_cast<int>(t));
      }
    }
  }
  make_unique(done);
  make_unique(sent);
}

// A member works on one chunk a stage: it begins one when it is through its last step of the stage with the one before.
void PipelineBuilder::end_stage(int channel) {
  auto& state = channels_[index(channel)];
  for (; state.stage_begin < state.tasks.size(); ++state.stage_begin) {
    auto& task = state.tasks[state.stage_begin];
    auto& gathered = collective_.channels[index(channel)].steps[state.stage_begin];
    wait_for(state, task.senders, state.last_of_stage, gathered.after_chunk, gathered.after_chunk_sent);
    task.senders = {};
  }
  std::fill(state.last_of_stage.begin(), state.last_of_stage.end(), -1);
}

// A receiver does one thing at a time. Tasks of the same receivers are one behind another; of sets that overlap only in
// part it is not known who waits for whom.
void PipelineBuilder::add_receivers(PipelineStep& gathered, const StepMessages& step,
                                    const std::vector<std::size_t>& which) {
  if (options_.reduce_rate.count() == 0 && options_.copy_rate.count() == 0) return;
  std::unordered_map<int, Seconds> receive;
  std::uint64_t members = 0;
  for (const auto m : which) {
    const auto [entry, is_new] = receive.try_emplace(step.messages[m].to);
    if (is_new) members += mix(static_cast<std::uint64_t>(entry->first));
    entry->second += step.messages[m].receive;
    gathered.receive = std::max(gathered.receive, entry->second);
  }
  gathered.receiver = receivers_.try_emplace(members, static_cast<int>(receivers_.size())).first->second;
}

// Members of symmetric collectives send the same in the same order: the first message of each is of one kind, and so
// on.
void PipelineBuilder::add_kinds(PipelineStep& gathered, const StepMessages& step,
                                const std::vector<std::size_t>& which) {
  int places = 0;
  for (const auto m : which) places = std::max(places, step.messages[m].place + 1);
  const int each = (places + kMostKinds - 1) / kMostKinds;
  for (int first = 0; first < places; first += each) {
    auto& kind = gathered.messages.emplace_back();
    loads_.clear();
    for (const auto m : which) {
      const auto& message = step.messages[m];
      if (message.place < first || message.place >= first + each) continue;
      if (message.path_begin == message.path_end) continue;
      kind.bytes = std::max(kind.bytes, static_cast<double>(message.bytes));
      for (std::size_t i = message.path_begin; i < message.path_end; ++i) loads_.add(step.paths[i], message.bytes);
    }
    keep_loads();
  }
}

void PipelineBuilder::keep_loads() {
  const auto kind = static_cast<std::uint64_t>(stored_.size());
  auto& stored = stored_.emplace_back();
  stored.reserve(loads_.loaded().size());
  for (const auto link : loads_.loaded()) {
    const auto bytes = loads_.on(link);
    if (bytes == 0) continue;
    stored.push_back({link.value, static_cast<float>(bytes)});
    auto& signature = signatures_[link.index()];
    signature = mix(signature ^ mix(mix(kind) ^ static_cast<std::uint64_t>(bytes)));
    seconds_[link.index()] += static_cast<double>(bytes) / bandwidth(link.index());
  }
}

double PipelineBuilder::bandwidth(std::size_t link) const {
  return network_.links()[link].bandwidth.count() * options_.bandwidth_factor;
}

const PipelinedCollective& PipelineBuilder::finish() {
  for (std::size_t c = 0; c < channels_.size(); ++c) end_stage(static_cast<int>(c));
  choose_links();
  for (std::size_t c = 0; c < channels_.size(); ++c) unfold(c);
  return collective_;
}

PipelinedCollective PipelineBuilder::finish_on_all_links() {
  for (std::size_t c = 0; c < channels_.size(); ++c) end_stage(static_cast<int>(c));
  std::vector<int> numbers(seconds_.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  assign_links(numbers);
  for (std::size_t c = 0; c < channels_.size(); ++c) unfold(c);
  return std::move(collective_);
}

// Of links that all steps load alike one stands for all. Of those the busiest stay, and the busiest of every step:
// others are never what a step waits for, or by little.
void PipelineBuilder::choose_links() {
  std::vector<std::int32_t> links;
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t link = 0; link < seconds_.size(); ++link) {
    if (seconds_[link] == 0) continue;
    if (seen.insert(signatures_[link] ^ mix(std::bit_cast<std::uint64_t>(bandwidth(link)))).second) {
      links.push_back(static_cast<std::int32_t>(link));
    }
  }
  std::stable_sort(links.begin(), links.end(), [&](auto a, auto b) { return seconds_[index(a)] > seconds_[index(b)]; });
  links.resize(std::min(links.size(), kMostLinks));
  for (const auto& stored : stored_) {
    const auto slowest = std::max_element(stored.begin(), stored.end(), [&](const auto& a, const auto& b) {
      return a.bytes / bandwidth(index(a.link)) < b.bytes / bandwidth(index(b.link));
    });
    if (slowest != stored.end()) links.push_back(slowest->link);
  }
  std::vector<int> numbers(seconds_.size(), -1);
  for (const auto link : links) {
    if (numbers[index(link)] >= 0) continue;
    numbers[index(link)] = static_cast<int>(collective_.bandwidths.size());
    collective_.bandwidths.push_back(bandwidth(index(link)));
  }
  assign_links(numbers);
}

// `numbers`, by link: what it is called, or -1 for those that are left out.
void PipelineBuilder::assign_links(const std::vector<int>& numbers) {
  auto next = stored_.begin();
  for (const auto& [channel, step] : order_) {
    for (auto& kind : collective_.channels[index(channel)].steps[index(step)].messages) {
      for (const auto& [link, bytes] : *next) {
        if (numbers[index(link)] >= 0) kind.loads.push_back({numbers[index(link)], bytes});
      }
      ++next;
    }
  }
}

// Steps that repeat, in parts: latency and messages of one chunk alternate with those of others.
void PipelineBuilder::unfold(std::size_t channel) {
  const auto& state = channels_[channel];
  auto& steps = collective_.channels[channel].steps;
  std::vector<PipelineStep> parts;
  std::vector<int> last(steps.size());  // part of every task
  for (std::size_t begin = 0; begin < steps.size();) {
    auto end = begin;
    while (end < steps.size() && state.tasks[end].number == state.tasks[begin].number) ++end;
    const int count = std::min(pieces_[channel].schedule->repetitions(state.tasks[begin].number), kPartsOfPipelined);
    std::vector<int> before;  // parts of the repetition before
    for (int i = 0; i < count; ++i) {
      std::vector<int> now;
      for (auto t = begin; t < end; ++t) {
        auto part = steps[t];
        part.latency = part.latency / count;
        part.receive = part.receive / count;
        for (auto& messages : part.messages) {
          messages.bytes /= count;
          for (auto& load : messages.loads) load.bytes /= count;
        }
        if (i == 0) {
          for (auto& task : part.after) task = last[index(task)];
          for (auto& task : part.after_sent) task = last[index(task)];
        } else {
          part.after.clear();
          part.after_sent.clear();
          part.after_chunk.clear();
          part.after_chunk_sent.clear();
          for (auto other = begin; other < end; ++other) {
            const auto& task = state.tasks[other];
            const int role = state.tasks[t].from;
            if (task.to == role) {
              part.after.push_back(before[other - begin]);
            } else if (task.from == role) {
              part.after_sent.push_back(before[other - begin]);
            }
          }
        }
        now.push_back(static_cast<int>(parts.size()));
        parts.push_back(std::move(part));
      }
      before = std::move(now);
    }
    for (auto t = begin; t < end; ++t) last[t] = before[t - begin];
    begin = end;
  }
  // Tasks of the chunk before may come later than their followers.
  for (auto& part : parts) {
    for (auto& task : part.after_chunk) task = last[index(task)];
    for (auto& task : part.after_chunk_sent) task = last[index(task)];
  }
  steps = std::move(parts);
}

}  // namespace tandem
