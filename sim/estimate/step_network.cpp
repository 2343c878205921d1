#include "sim/estimate/step_network.hpp"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::size_t kMostKnown = 1'000'000;  // numbers

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

double PipelinedCollective::tasks() const {
  double tasks = 0;
  for (const auto& channel : channels) tasks += static_cast<double>(channel.steps.size()) * channel.chunks;
  return tasks;
}

int StepNetwork::add_link(double bandwidth) {
  bandwidths_.push_back(bandwidth);
  return static_cast<int>(bandwidths_.size()) - 1;
}

StepNetwork::Id StepNetwork::add(const PipelinedCollective& collective, double ahead, int most_chunks) {
  if (ahead <= 0) return insert(collective, most_chunks);
  StepNetwork before(bandwidths_);
  const auto id = before.insert(collective, most_chunks);
  before.advance(ahead);
  return take_over(before, id);
}

void StepNetwork::remove(Id id) {
  runs_.erase(id);
  if (std::erase_if(moving_, [&](const Moving& one) { return one.run == id; }) > 0) changed_ = true;
}

double StepNetwork::next() {
  if (changed_) share();
  while (!timers_.empty() && !runs_.contains(std::get<1>(timers_.top()))) timers_.pop();
  double then = timers_.empty() ? std::numeric_limits<double>::infinity() : std::get<0>(timers_.top());
  for (const auto& one : moving_) then = std::min(then, now_ + one.left / one.speed);
  return then;
}

std::vector<StepNetwork::Id> StepNetwork::advance(double date) {
  std::vector<Id> done;
  // A date that has been through another clock may have lost a digit.
  for (double then = next(); then <= date * (1 + 1e-12) && then < std::numeric_limits<double>::infinity();
       then = next()) {
    happen(then, done);
  }
  if (date < std::numeric_limits<double>::infinity()) let_time_pass(date);
  return done;
}

double StepNetwork::progress(Id id) const {
  const auto& run = runs_.at(id);
  return static_cast<double>(run.done) / static_cast<double>(run.tasks.size());
}

double StepNetwork::end_of_chunk(Id id, int chunk) const {
  return runs_.at(id).chunk_ends[index(chunk)];
}

StepNetwork::Id StepNetwork::insert(const PipelinedCollective& collective, int most_chunks) {
  const auto id = next_id_++;
  auto& run = runs_[id];
  const auto [entry, is_new] = first_kinds_.try_emplace(&collective, kinds_);
  int kind = entry->second;
  for (const auto& channel : collective.channels) {
    insert_channel(run, channel, kind, std::min(channel.chunks, most_chunks));
    for (const auto& step : channel.steps) kind += static_cast<int>(step.messages.size());
  }
  if (is_new) kinds_ = kind;
  for (int task = 0; task < static_cast<int>(run.tasks.size()); ++task) {
    if (run.tasks[index(task)].waits_for == 0) begin(id, run, task);
  }
  return id;
}

void StepNetwork::insert_channel(Run& run, const PipelinedChannel& channel, int first_kind, int chunks) {
  const int first = static_cast<int>(run.tasks.size());
  const int steps = static_cast<int>(channel.steps.size());
  run.tasks.reserve(run.tasks.size() + index(chunks) * index(steps));
  run.chunk_ends.resize(std::max(run.chunk_ends.size(), index(chunks)));
  std::vector<int> first_kinds;
  for (const auto& step : channel.steps) {
    first_kinds.push_back(first_kind);
    first_kind += static_cast<int>(step.messages.size());
    run.receiver_free_at.resize(std::max(run.receiver_free_at.size(), index(step.receiver) + 1));
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int s = 0; s < steps; ++s) {
      auto& task = run.tasks.emplace_back();
      task.step = &channel.steps[index(s)];
      task.first_kind = first_kinds[index(s)];
      task.chunk = chunk;
      const int here = first + chunk * steps;
      for (const int before : task.step->after) wait(run, here + s, here + before, &Task::followers);
      for (const int before : task.step->after_sent) {
        wait(run, here + s, here + before, &Task::followers_of_sending);
      }
      if (chunk == 0) continue;
      const int earlier = here - steps;
      for (const int before : task.step->after_chunk) wait(run, here + s, earlier + before, &Task::followers);
      for (const int before : task.step->after_chunk_sent) {
        wait(run, here + s, earlier + before, &Task::followers_of_sending);
      }
    }
  }
}

// Both have the same links, and each its own clock.
StepNetwork::Id StepNetwork::take_over(StepNetwork& other, Id old) {
  const double later = now_ - other.now_;
  const auto id = next_id_++;
  auto& run = runs_[id] = std::move(other.runs_.at(old));
  for (auto& date : run.receiver_free_at) date += later;
  for (auto& date : run.chunk_ends) date += later;
  for (; !other.timers_.empty(); other.timers_.pop()) {
    const auto [date, of, task] = other.timers_.top();
    if (of == old) timers_.emplace(date + later, id, task);
  }
  // Kinds are numbered from the same collective's first one.
  const auto& [collective, old_first] = *other.first_kinds_.begin();
  const auto [entry, is_new] = first_kinds_.try_emplace(collective, kinds_);
  const int shift = entry->second - old_first;
  if (is_new) kinds_ += other.kinds_;
  for (auto& task : run.tasks) task.first_kind += shift;
  for (auto one : other.moving_) {
    if (one.run != old) continue;
    one.run = id;
    one.kind += shift;
    moving_.push_back(one);
  }
  changed_ = true;
  return id;
}

void StepNetwork::wait(Run& run, int task, int before, std::vector<int> Task::*followers) {
  ++run.tasks[index(task)].waits_for;
  (run.tasks[index(before)].*followers).push_back(task);
}

void StepNetwork::release(Id id, Run& run, const std::vector<int>& followers) {
  for (const int follower : followers) {
    if (--run.tasks[index(follower)].waits_for == 0) begin(id, run, follower);
  }
}

void StepNetwork::begin(Id id, Run& run, int task) {
  run.tasks[index(task)].phase = Phase::latency;
  timers_.emplace(now_ + run.tasks[index(task)].step->latency.count(), id, task);
}

// The task's phase has ended.
void StepNetwork::proceed(Id id, Run& run, int task) {
  auto& what = run.tasks[index(task)];
  if (what.phase == Phase::latency) {
    what.phase = Phase::moving;
    for (std::size_t i = 0; i < what.step->messages.size(); ++i) {
      const auto& messages = what.step->messages[i];
      if (messages.bytes > 0 && !messages.loads.empty()) move(id, run, task, static_cast<int>(i), messages);
    }
    if (what.moving > 0) return;
  }
  if (what.phase == Phase::moving) release(id, run, what.followers_of_sending);
  if (what.phase == Phase::moving && what.step->receive > Seconds{}) {
    what.phase = Phase::receiving;
    auto& free_at = run.receiver_free_at[index(what.step->receiver)];
    free_at = std::max(free_at, now_) + what.step->receive.count();
    timers_.emplace(free_at, id, task);
    return;
  }
  auto& end = run.chunk_ends[index(what.chunk)];
  end = std::max(end, now_);
  ++run.done;
  release(id, run, what.followers);
}

void StepNetwork::move(Id id, Run& run, int task, int kind, const PipelineMessages& messages) {
  ++run.tasks[index(task)].moving;
  Moving one;
  one.run = id;
  one.task = task;
  one.kind = run.tasks[index(task)].first_kind + kind;
  one.messages = &messages;
  moving_.push_back(one);
  changed_ = true;
}

void StepNetwork::let_time_pass(double then) {
  if (then <= now_) return;
  for (auto& one : moving_) one.left = std::max(0.0, one.left - (then - now_) * one.speed);
  now_ = then;
}

void StepNetwork::happen(double then, std::vector<Id>& done) {
  let_time_pass(then);
  // Equal steps end together: rounding must not let one go ahead by a moment, at a speed of its own.
  const double together = now_ * (1 + 1e-12);
  std::vector<std::pair<Id, int>> ended;
  std::erase_if(moving_, [&](const Moving& one) {
    if (now_ + one.left / one.speed > together) return false;
    changed_ = true;
    if (--runs_.at(one.run).tasks[index(one.task)].moving == 0) ended.emplace_back(one.run, one.task);
    return true;
  });
  while (!timers_.empty() && std::get<0>(timers_.top()) <= together) {
    ended.emplace_back(std::get<1>(timers_.top()), std::get<2>(timers_.top()));
    timers_.pop();
  }
  std::sort(ended.begin(), ended.end());
  for (const auto& [id, task] : ended) {
    const auto run = runs_.find(id);
    if (run == runs_.end()) continue;  // removed
    proceed(id, run->second, task);
    if (run->second.done == run->second.tasks.size()) done.push_back(id);
  }
}

// The same kinds move together again and again.
void StepNetwork::share() {
  std::sort(moving_.begin(), moving_.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
  std::vector<int> kinds;
  kinds.reserve(moving_.size());
  for (const auto& one : moving_) kinds.push_back(one.kind);
  if (known_size_ > kMostKnown) {
    known_.clear();
    known_size_ = 0;
  }
  const auto [entry, is_new] = known_.try_emplace(std::move(kinds));
  if (is_new) {
    entry->second = speeds();
    known_size_ += 2 * moving_.size();
  }
  for (std::size_t i = 0; i < moving_.size(); ++i) moving_[i].speed = entry->second[i];
  changed_ = false;
}

// The rate of every message rises until a link is full; those on it stay there.
std::vector<double> StepNetwork::speeds() {
  share_of_.resize(bandwidths_.size());
  std::vector<int> links;
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    for (const auto& load : moving_[i].messages->loads) {
      auto& link = share_of_[index(load.link)];
      if (link.rising == 0) {
        links.push_back(load.link);
        link.remaining = bandwidths_[index(load.link)];
        link.weight = 0;
        link.moving.clear();
      }
      ++link.rising;
      link.weight += load.bytes / moving_[i].messages->bytes;
      link.moving.push_back(i);
    }
  }
  std::sort(links.begin(), links.end());
  std::vector<double> speeds(moving_.size(), 0);  // 0: rising
  for (auto left = moving_.size(); left > 0;) {
    double rate = std::numeric_limits<double>::infinity();
    for (const int id : links) {
      const auto& link = share_of_[index(id)];
      if (link.rising > 0) rate = std::min(rate, link.remaining / link.weight);
    }
    std::vector<std::size_t> stopped;
    for (const int id : links) {
      const auto& link = share_of_[index(id)];
      if (link.rising == 0 || link.remaining > link.weight * rate * (1 + 1e-9)) continue;
      for (const auto i : link.moving) {
        if (speeds[i] > 0) continue;
        speeds[i] = rate / moving_[i].messages->bytes;
        stopped.push_back(i);
      }
    }
    for (const auto i : stopped) {
      const auto& messages = *moving_[i].messages;
      for (const auto& load : messages.loads) {
        auto& link = share_of_[index(load.link)];
        link.remaining = std::max(link.remaining - speeds[i] * load.bytes, 1e-12 * bandwidths_[index(load.link)]);
        link.weight -= load.bytes / messages.bytes;
        --link.rising;
      }
    }
    std::erase_if(links, [&](int id) { return share_of_[index(id)].rising == 0; });
    left -= stopped.size();
  }
  return speeds;
}

}  // namespace tandem
