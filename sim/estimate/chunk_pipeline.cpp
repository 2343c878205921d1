#include "sim/estimate/chunk_pipeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

namespace tandem {
namespace {

constexpr double kMostTasks = 30'000;
constexpr int kLeastChunks = 8;

class Pipeline {
 public:
  Pipeline(const PipelinedCollective& collective, int most_chunks)
      : collective_(collective), bandwidths_(collective.bandwidths) {
    remaining_.resize(bandwidths_.size());
    weights_.resize(bandwidths_.size());
    for (const auto& channel : collective.channels) add_channel(channel, std::min(channel.chunks, most_chunks));
  }

  void run() {
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].waits_for == 0) begin(static_cast<int>(task));
    }
    while (!timers_.empty() || !moving_.empty()) {
      if (changed_) share();
      double then = timers_.empty() ? std::numeric_limits<double>::infinity() : timers_.top().first;
      for (const auto& one : moving_) then = std::min(then, now_ + one.left / one.speed);
      for (auto& one : moving_) one.left = std::max(0.0, one.left - (then - now_) * one.speed);
      now_ = then;
      // Equal steps end together: rounding must not let one go ahead by a moment, at a speed of its own.
      const double together = now_ * (1 + 1e-12);
      std::vector<int> ended;
      std::erase_if(moving_, [&](const Moving& one) {
        if (now_ + one.left / one.speed > together) return false;
        changed_ = true;
        if (--tasks_[index(one.task)].moving == 0) ended.push_back(one.task);
        return true;
      });
      while (!timers_.empty() && timers_.top().first <= together) {
        ended.push_back(timers_.top().second);
        timers_.pop();
      }
      std::sort(ended.begin(), ended.end());
      for (const int task : ended) proceed(task);
    }
  }

  // When the chunk was through its last step, in all channels that have as many.
  [[nodiscard]] double end_of_chunk(int chunk) const { return chunk_ends_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] double end() const { return now_; }

 private:
  enum class Phase { waiting, latency, moving, receiving };
  struct Task {
    const PipelineStep* step = nullptr;
    int first_kind = 0;  // of its messages, in tasks of all chunks
    int chunk = 0;
    int waits_for = 0;
    Phase phase = Phase::waiting;
    int moving = 0;  // kinds of its messages
    std::vector<int> followers;
    std::vector<int> followers_of_sending;  // do not wait for receivers
  };
  // Messages of one kind of a task.
  struct Moving {
    int task = 0;
    int kind = 0;  // tells what moves, without the chunk
    const PipelineMessages* messages = nullptr;
    double left = 1;   // down to 0
    double speed = 0;  // a second
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void add_channel(const PipelinedChannel& channel, int chunks) {
    const int first = static_cast<int>(tasks_.size());
    const int steps = static_cast<int>(channel.steps.size());
    chunk_ends_.resize(std::max(chunk_ends_.size(), index(chunks)));
    std::vector<int> first_kinds;
    for (const auto& step : channel.steps) {
      first_kinds.push_back(kinds_);
      kinds_ += static_cast<int>(step.messages.size());
      receiver_free_at_.resize(std::max(receiver_free_at_.size(), index(step.receiver) + 1));
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int s = 0; s < steps; ++s) {
        auto& task = tasks_.emplace_back();
        task.step = &channel.steps[index(s)];
        task.first_kind = first_kinds[index(s)];
        task.chunk = chunk;
        const int here = first + chunk * steps;
        for (const int before : task.step->after) wait(here + s, here + before, &Task::followers);
        for (const int before : task.step->after_sent) wait(here + s, here + before, &Task::followers_of_sending);
        if (chunk == 0) continue;
        const int earlier = here - steps;
        for (const int before : task.step->after_chunk) wait(here + s, earlier + before, &Task::followers);
        for (const int before : task.step->after_chunk_sent) {
          wait(here + s, earlier + before, &Task::followers_of_sending);
        }
      }
    }
  }
  void wait(int task, int before, std::vector<int> Task::*followers) {
    ++tasks_[index(task)].waits_for;
    (tasks_[index(before)].*followers).push_back(task);
  }
  void release(const std::vector<int>& followers) {
    for (const int follower : followers) {
      if (--tasks_[index(follower)].waits_for == 0) begin(follower);
    }
  }

  void begin(int task) {
    tasks_[index(task)].phase = Phase::latency;
    timers_.emplace(now_ + tasks_[index(task)].step->latency.count(), task);
  }

  // Its phase has ended.
  void proceed(int task) {
    auto& what = tasks_[index(task)];
    if (what.phase == Phase::latency) {
      what.phase = Phase::moving;
      for (std::size_t i = 0; i < what.step->messages.size(); ++i) {
        const auto& messages = what.step->messages[i];
        if (messages.bytes > 0 && !messages.loads.empty()) move(task, static_cast<int>(i), messages);
      }
      if (what.moving > 0) return;
    }
    if (what.phase == Phase::moving) release(what.followers_of_sending);
    if (what.phase == Phase::moving && what.step->receive > Seconds{}) {
      what.phase = Phase::receiving;
      auto& free_at = receiver_free_at_[index(what.step->receiver)];
      free_at = std::max(free_at, now_) + what.step->receive.count();
      timers_.emplace(free_at, task);
      return;
    }
    auto& end = chunk_ends_[index(what.chunk)];
    end = std::max(end, now_);
    release(what.followers);
  }
  void move(int task, int kind, const PipelineMessages& messages) {
    ++tasks_[index(task)].moving;
    moving_.push_back({task, tasks_[index(task)].first_kind + kind, &messages});
    changed_ = true;
  }

  // The same kinds move together again and again.
  void share() {
    std::sort(moving_.begin(), moving_.end(), [](const auto& a, const auto& b) { return a.kind < b.kind; });
    std::vector<int> kinds;
    for (const auto& one : moving_) kinds.push_back(one.kind);
    const auto [entry, is_new] = known_.try_emplace(std::move(kinds));
    if (is_new) entry->second = speeds();
    for (std::size_t i = 0; i < moving_.size(); ++i) moving_[i].speed = entry->second[i];
    changed_ = false;
    if (known_.size() > kMostKnown) known_.clear();
  }

  // The rate of every message rises until a link is full; those on it stay there.
  [[nodiscard]] std::vector<double> speeds() {
    std::vector<int> links;
    for (const auto& one : moving_) {
      for (const auto& load : one.messages->loads) links.push_back(load.link);
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    for (const int link : links) remaining_[index(link)] = bandwidths_[index(link)];
    std::vector<double> speeds(moving_.size(), 0);  // 0: rising
    for (auto left = moving_.size(); left > 0;) {
      for (const int link : links) weights_[index(link)] = 0;
      for (std::size_t i = 0; i < speeds.size(); ++i) {
        if (speeds[i] > 0) continue;
        const auto& messages = *moving_[i].messages;
        for (const auto& load : messages.loads) weights_[index(load.link)] += load.bytes / messages.bytes;
      }
      double rate = std::numeric_limits<double>::infinity();
      for (const int link : links) {
        if (weights_[index(link)] > 0) rate = std::min(rate, remaining_[index(link)] / weights_[index(link)]);
      }
      std::vector<std::size_t> stopped;
      for (std::size_t i = 0; i < speeds.size(); ++i) {
        const auto& loads = moving_[i].messages->loads;
        if (speeds[i] == 0 && std::any_of(loads.begin(), loads.end(), [&](const auto& load) {
              return remaining_[index(load.link)] <= weights_[index(load.link)] * rate * (1 + 1e-9);
            })) {
          stopped.push_back(i);
        }
      }
      for (const auto i : stopped) {
        const auto& messages = *moving_[i].messages;
        speeds[i] = rate / messages.bytes;
        for (const auto& load : messages.loads) {
          auto& remaining = remaining_[index(load.link)];
          remaining = std::max(remaining - speeds[i] * load.bytes, 1e-12 * bandwidths_[index(load.link)]);
        }
      }
      left -= stopped.size();
    }
    return speeds;
  }

  static constexpr std::size_t kMostKnown = 10'000;

  const PipelinedCollective& collective_;
  std::vector<double> bandwidths_;
  std::vector<double> remaining_, weights_;  // by link
  std::vector<Task> tasks_;
  int kinds_ = 0;
  std::vector<double> receiver_free_at_;
  std::vector<double> chunk_ends_;
  using Timer = std::pair<double, int>;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<Moving> moving_;
  bool changed_ = false;
  std::map<std::vector<int>, std::vector<double>> known_;
  double now_ = 0;
};

}  // namespace

Seconds pipeline_time(const PipelinedCollective& collective) {
  int most = 0;
  double tasks = 0;  // of one chunk
  for (const auto& channel : collective.channels) {
    most = std::max(most, channel.chunks);
    tasks += static_cast<double>(channel.steps.size());
  }
  if (tasks == 0 || most == 0) return Seconds{};
  const int looked_at = std::min(most, std::max(kLeastChunks, static_cast<int>(kMostTasks / tasks)));
  Pipeline pipeline(collective, looked_at);
  pipeline.run();
  if (looked_at == most) return Seconds(pipeline.end());
  // Neither the first nor the last ones, which have the links to themselves.
  const int from = looked_at / 4;
  const int to = 3 * looked_at / 4;
  const double pace = (pipeline.end_of_chunk(to) - pipeline.end_of_chunk(from)) / (to - from);
  return Seconds(pipeline.end() + pace * (most - looked_at));
}

}  // namespace tandem
