#include "sim/estimate/chunk_pipeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

namespace tandem {
namespace {

constexpr double kMostTasks = 30'000;
constexpr int kLeastChunks = 6;

class Pipeline {
 public:
  Pipeline(const PipelinedCollective& collective, int most_chunks)
      : collective_(collective), bandwidths_(collective.bandwidths) {
    // Receivers do one thing at a time, which is a link that all of them share.
    receivers_ = static_cast<int>(bandwidths_.size());
    bandwidths_.push_back(1);
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
      const double timer = timers_.empty() ? std::numeric_limits<double>::infinity() : timers_.top().first;
      double move_ends = std::numeric_limits<double>::infinity();
      for (const int task : moving_) move_ends = std::min(move_ends, now_ + left_of(task));
      const double then = std::min(timer, move_ends);
      for (const int task : moving_) tasks_[index(task)].left -= (then - now_) * tasks_[index(task)].speed;
      now_ = then;
      // Equal steps end together: rounding must not let one go ahead by a moment, at a speed of its own.
      const double together = now_ * (1 + 1e-12);
      std::vector<int> ended;
      std::erase_if(moving_, [&](int task) {
        if (now_ + left_of(task) > together) return false;
        ended.push_back(task);
        return true;
      });
      if (!ended.empty()) changed_ = true;
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
  enum class Phase { waiting, latency, moving, receiving, done };
  struct Task {
    const PipelineStep* step = nullptr;
    int kind = 0;  // tasks of one step, of all chunks
    int chunk = 0;
    int waits_for = 0;
    Phase phase = Phase::waiting;
    double left = 0;  // of its messages, or of its receiving: from 1 to 0
    double speed = 0;
    std::vector<int> followers;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void add_channel(const PipelinedChannel& channel, int chunks) {
    const int first = static_cast<int>(tasks_.size());
    const int steps = static_cast<int>(channel.steps.size());
    chunk_ends_.resize(std::max(chunk_ends_.size(), index(chunks)));
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int s = 0; s < steps; ++s) {
        auto& task = tasks_.emplace_back();
        task.step = &channel.steps[index(s)];
        task.kind = kinds_ + s;
        task.chunk = chunk;
        const int here = first + chunk * steps;
        for (const int before : task.step->after) wait(here + s, here + before);
        if (chunk == 0) continue;
        for (const int before : task.step->after_chunk) wait(here + s, here - steps + before);
      }
    }
    kinds_ += steps;
  }
  void wait(int task, int before) {
    ++tasks_[index(task)].waits_for;
    tasks_[index(before)].followers.push_back(task);
  }

  [[nodiscard]] double left_of(int task) const {
    const auto& what = tasks_[index(task)];
    return std::max(0.0, what.left) / what.speed;
  }

  void begin(int task) {
    tasks_[index(task)].phase = Phase::latency;
    timers_.emplace(now_ + tasks_[index(task)].step->latency.count(), task);
  }

  // Its phase has ended.
  void proceed(int task) {
    auto& what = tasks_[index(task)];
    if (what.phase == Phase::latency && what.step->message_bytes > 0 && !what.step->loads.empty()) {
      return move(task, Phase::moving);
    }
    if (what.phase != Phase::receiving && what.step->receive > Seconds{}) return move(task, Phase::receiving);
    what.phase = Phase::done;
    auto& end = chunk_ends_[index(what.chunk)];
    end = std::max(end, now_);
    for (const int follower : what.followers) {
      if (--tasks_[index(follower)].waits_for == 0) begin(follower);
    }
  }
  void move(int task, Phase phase) {
    tasks_[index(task)].phase = phase;
    tasks_[index(task)].left = 1;
    moving_.push_back(task);
    changed_ = true;
  }

  // A step and whether it is receiving: what a task moves.
  [[nodiscard]] int kind_of(int task) const {
    return 2 * tasks_[index(task)].kind + (tasks_[index(task)].phase == Phase::receiving ? 1 : 0);
  }

  // The speeds of what moves. The same steps move together again and again.
  void share() {
    std::sort(moving_.begin(), moving_.end(), [&](int a, int b) { return kind_of(a) < kind_of(b); });
    std::vector<int> kinds;
    for (const int task : moving_) kinds.push_back(kind_of(task));
    const auto [entry, is_new] = known_.try_emplace(std::move(kinds));
    if (is_new) entry->second = speeds();
    for (std::size_t i = 0; i < moving_.size(); ++i) tasks_[index(moving_[i])].speed = entry->second[i];
    changed_ = false;
    if (known_.size() > kMostKnown) known_.clear();
  }

  struct Moving {
    double message = 0;
    std::vector<PipelineLoad> loads;
    double speed = 0;  // parts of it a second; 0: rising
  };

  [[nodiscard]] std::vector<double> speeds() {
    std::vector<Moving> all;
    for (const int task : moving_) {
      const auto& what = tasks_[index(task)];
      if (what.phase == Phase::receiving) {
        const double time = what.step->receive.count();
        all.push_back({time, {{receivers_, time}}, 0});
      } else {
        all.push_back({what.step->message_bytes, what.step->loads, 0});
      }
    }
    std::vector<int> links;
    for (const auto& one : all) {
      for (const auto& load : one.loads) links.push_back(load.link);
    }
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    for (const int link : links) remaining_[index(link)] = bandwidths_[index(link)];
    // The rate of every message rises until a link is full; tasks on it stay there.
    for (auto left = all.size(); left > 0;) {
      for (const int link : links) weights_[index(link)] = 0;
      for (const auto& one : all) {
        if (one.speed > 0) continue;
        for (const auto& load : one.loads) weights_[index(load.link)] += load.bytes / one.message;
      }
      double rate = std::numeric_limits<double>::infinity();
      for (const int link : links) {
        if (weights_[index(link)] > 0) rate = std::min(rate, remaining_[index(link)] / weights_[index(link)]);
      }
      std::vector<std::size_t> stopped;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].speed > 0) continue;
        const bool is_full = std::any_of(all[i].loads.begin(), all[i].loads.end(), [&](const auto& load) {
          return remaining_[index(load.link)] <= weights_[index(load.link)] * rate * (1 + 1e-9);
        });
        if (is_full) stopped.push_back(i);
      }
      for (const auto i : stopped) {
        all[i].speed = std::max(rate / all[i].message, std::numeric_limits<double>::min());
        for (const auto& load : all[i].loads) {
          auto& remaining = remaining_[index(load.link)];
          remaining = std::max(remaining - all[i].speed * load.bytes, 1e-12 * bandwidths_[index(load.link)]);
        }
      }
      left -= stopped.size();
    }
    std::vector<double> result;
    for (const auto& one : all) result.push_back(one.speed);
    return result;
  }

  static constexpr std::size_t kMostKnown = 10'000;

  const PipelinedCollective& collective_;
  std::vector<double> bandwidths_;
  int receivers_ = 0;                        // index of the link that receivers are
  std::vector<double> remaining_, weights_;  // by link
  std::vector<Task> tasks_;
  int kinds_ = 0;
  std::vector<double> chunk_ends_;
  using Timer = std::pair<double, int>;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<int> moving_;
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
  const int middle = looked_at / 2;
  const double pace = (pipeline.end_of_chunk(looked_at - 1) - pipeline.end_of_chunk(middle - 1)) / (looked_at - middle);
  return Seconds(pipeline.end() + pace * (most - looked_at));
}

}  // namespace tandem
