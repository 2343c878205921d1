// Steps of collectives as tasks that share links.
//
// A step of one chunk is a task: it waits for other tasks, then for its latency, then its messages move, and then their
// receivers work on them. What moves at once shares links by max-min fairness among messages (Bertsekas and Gallager,
// Data Networks, 1992, section 6.5), where messages of one kind move at the speed of the slowest of them.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

// A link, or a class of links that all steps load alike.
struct PipelineLoad {
  int link = 0;      // index into the bandwidths
  double bytes = 0;  // of the step's messages that take it
};

// Messages of one step that are alike: they begin together, and are as large and as fast as each other.
struct PipelineMessages {
  double bytes = 0;  // of one, the largest
  std::vector<PipelineLoad> loads;
};

struct PipelineStep {
  Seconds latency{};
  std::vector<PipelineMessages> messages;
  Seconds receive{};             // what its busiest receiver does then
  int receiver = 0;              // steps of one receiver are received one after another, as they come
  std::vector<int> after;        // steps of the same chunk, all before this one
  std::vector<int> after_sent;   // the same, of which only the messages must be through, not what receivers do
  std::vector<int> after_chunk;  // steps of the chunk before
  std::vector<int> after_chunk_sent;
};

struct PipelinedChannel {
  int chunks = 1;  // all alike
  std::vector<PipelineStep> steps;
};

struct PipelinedCollective {
  std::vector<PipelinedChannel> channels;
  std::vector<double> bandwidths;  // of links, in bytes/s; empty: loads name the links of a network

  // Of all chunks.
  [[nodiscard]] double tasks() const;
};

// Collectives under way at once. Its clock stands still but for advance().
class StepNetwork {
 public:
  using Id = std::int64_t;  // of a collective under way

  explicit StepNetwork(std::vector<double> bandwidths) : bandwidths_(std::move(bandwidths)) {}
  StepNetwork(const StepNetwork&) = delete;
  StepNetwork& operator=(const StepNetwork&) = delete;

  // For what only one collective takes. Returns the index of the link.
  int add_link(double bandwidth);
  // Begins now, or began `ahead` seconds before and was alone since. The collective stays where it is until the end of
  // the network, has at least one step, and of each channel its first chunks are looked at, up to `most_chunks`.
  Id add(const PipelinedCollective& collective, double ahead = 0, int most_chunks = std::numeric_limits<int>::max());
  void remove(Id id);

  [[nodiscard]] double now() const { return now_; }
  // When something happens, where nothing is added before; infinity: never.
  [[nodiscard]] double next();
  // Up to a date, with all that happens then. Returns the collectives that are done, which stay until they are removed.
  std::vector<Id> advance(double date);
  [[nodiscard]] std::size_t tasks(Id id) const { return runs_.at(id).tasks.size(); }
  // Of its tasks, the part that is done.
  [[nodiscard]] double progress(Id id) const;
  // When the chunk was through its last step, in all channels that have as many.
  [[nodiscard]] double end_of_chunk(Id id, int chunk) const;

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
  struct Run {
    std::vector<Task> tasks;
    std::size_t done = 0;
    std::vector<double> receiver_free_at;
    std::vector<double> chunk_ends;
  };
  // Messages of one kind of a task.
  struct Moving {
    Id run = 0;
    int task = 0;
    int kind = 0;  // tells what moves, without the chunk
    const PipelineMessages* messages = nullptr;
    double left = 1;   // down to 0
    double speed = 0;  // a second
  };
  using Timer = std::tuple<double, Id, int>;  // and the task

  Id insert(const PipelinedCollective& collective, int most_chunks);
  void insert_channel(Run& run, const PipelinedChannel& channel, int first_kind, int chunks);
  Id take_over(StepNetwork& other, Id id);
  static void wait(Run& run, int task, int before, std::vector<int> Task::*followers);
  void release(Id id, Run& run, const std::vector<int>& followers);
  void begin(Id id, Run& run, int task);
  void proceed(Id id, Run& run, int task);
  void move(Id id, Run& run, int task, int kind, const PipelineMessages& messages);
  void let_time_pass(double then);
  void happen(double then, std::vector<Id>& done);
  void share();
  [[nodiscard]] std::vector<double> speeds();

  // Of a link, while speeds are looked for.
  struct Share {
    int rising = 0;  // loads of messages whose speeds are not known yet
    double remaining = 0;
    double weight = 0;
    std::vector<std::size_t> moving;
  };

  std::vector<double> bandwidths_;
  std::vector<Share> share_of_;
  std::map<Id, Run> runs_;
  Id next_id_ = 0;
  std::map<const PipelinedCollective*, int> first_kinds_;
  int kinds_ = 0;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::vector<Moving> moving_;
  bool changed_ = false;
  std::map<std::vector<int>, std::vector<double>> known_;  // speeds of kinds that move together
  std::size_t known_size_ = 0;
  double now_ = 0;
};

}  // namespace tandem
