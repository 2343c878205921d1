// From the messages of a collective's steps to the pipeline of its chunks.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "platforms/network.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/estimate/chunk_pipeline.hpp"
#include "sim/estimate/loads.hpp"
#include "sim/estimate/step_messages.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

// Members of a channel that take part in the same steps, with members of the same roles. Halving and doubling of 24 has
// three: those that hand their data to another first, those others, and those that can begin at once.
struct Roles {
  int count = 1;
  std::vector<int> of_member;  // from 0
};
// Where they would make more than `most_kinds` of messages in a channel, they are told apart less finely, or not at
// all. `differences`, by channel and member: members of unlike ones are told apart, too.
[[nodiscard]] std::vector<Roles> roles_of(const std::vector<CollectivePiece>& channels,
                                          const std::vector<std::vector<std::uint64_t>>& differences, int most_kinds);

// A task of the pipeline is what the members of one role send to those of one role in a step, of all its repetitions or
// a part of them. It begins when all of its senders are through the steps before.
class PipelineBuilder {
 public:
  // `channels` are folded; of each, `chunks` follow each other.
  PipelineBuilder(const std::vector<CollectivePiece>& channels, const std::vector<int>& chunks,
                  std::vector<Roles> roles, const Network& network, const AlphaBetaOptions& options);

  // Messages [begin, end) are those of a channel in its step `number`; in order of steps.
  void add(const StepMessages& step, std::size_t begin, std::size_t end, int channel, int number);

  [[nodiscard]] const PipelinedCollective& finish();
  // Loads name the links of the network: collectives of different members can share them.
  [[nodiscard]] PipelinedCollective finish_on_all_links();

 private:
  struct Task {
    int number = 0;  // of the step
    int from = 0;    // roles
    int to = 0;
    std::vector<int> senders;
  };
  struct Channel {
    Roles roles;
    std::vector<Task> tasks;  // of PipelinedChannel::steps
    std::vector<int> first;   // task of a step
    std::vector<int> last;    // step in which a member took part, so far; -1: none
    std::vector<int> last_of_stage;
    std::size_t stage_begin = 0;  // task
    int stage = -1;
  };
  struct Stored {
    std::int32_t link = 0;
    float bytes = 0;
  };

  void add_task(const StepMessages& step, const std::vector<std::size_t>& which, int channel, Task task);
  void add_kinds(PipelineStep& gathered, const StepMessages& step, const std::vector<std::size_t>& which);
  void keep_loads();
  void end_stage(int channel);
  void wait_for(const Channel& channel, const std::vector<int>& members, const std::vector<int>& steps,
                std::vector<int>& done, std::vector<int>& sent) const;
  void add_receivers(PipelineStep& gathered, const StepMessages& step, const std::vector<std::size_t>& which);
  [[nodiscard]] double bandwidth(std::size_t link) const;
  void choose_links();
  void assign_links(const std::vector<int>& numbers);
  void unfold(std::size_t channel);

  const std::vector<CollectivePiece>& pieces_;
  const Network& network_;
  const AlphaBetaOptions& options_;
  PipelinedCollective collective_;
  std::vector<Channel> channels_;
  Loads loads_;                                       // of one kind of messages
  std::vector<std::vector<Stored>> stored_;           // by kind of message of a task, in the order they were added
  std::vector<std::pair<int, int>> order_;            // channel and task, in that order
  std::vector<std::uint64_t> signatures_;             // by link, of all its loads
  std::vector<double> seconds_;                       // by link, for all its loads
  std::unordered_map<std::uint64_t, int> receivers_;  // sets of members, by a hash
};

}  // namespace tandem
