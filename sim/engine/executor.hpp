// Runs one Program: resolves dependencies, keeps the ranks' streams, walks collectives step by step, and asks the
// backend for timers and flows. Knows nothing of SimGrid.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "platforms/network.hpp"
#include "sim/engine/backend.hpp"
#include "sim/engine/history.hpp"
#include "sim/ir/program.hpp"

namespace tandem {

struct ExecutorOptions;

// How long collectives take, where their messages are not simulated.
class CollectiveModel {
 public:
  virtual ~CollectiveModel() = default;
  // Calls listener.on_timer(token) when the collective is done. Returns the bytes of its messages.
  virtual std::int64_t start(const Op& op, const std::vector<DeviceId>& placement, const ExecutorOptions& options,
                             Backend::Listener& listener, Token token) = 0;
  // Ends one that was started with these; nobody is called. Returns the bytes that it has not sent; nothing where none
  // is under way.
  virtual std::optional<std::int64_t> cancel(const Backend::Listener& listener, Token token) = 0;
};

struct ExecutorOptions {
  Seconds step_overhead{};       // added to the route's latency before every transfer
  BytesPerSecond reduce_rate{};  // at which a receiver adds what it received; 0: free
  BytesPerSecond copy_rate{};    // at which a receiver stores what it need not add; 0: free
  double overlap_slowdown = 1;   // compute takes this many times as long while the rank communicates
  double latency_factor = 1;
  bool wait_for_latency = true;          // false where the network model itself delays flows (lv08)
  std::vector<double> compute_slowdown;  // a rank; empty: 1
  // Members of a collective begin together, when the last one has come: at that date the others' waiting ends.
  bool start_together = false;
  CollectiveModel* collectives = nullptr;  // takes over from there; none: their messages are simulated
};

class Executor final : public Backend::Listener, private Emit {
 public:
  // `placement[r]` is the device of rank r, or the vertex of a switch that is a collective's member. The program must
  // outlive the executor.
  Executor(Program& program, std::vector<DeviceId> placement, Seconds start, const Network& network, Backend& backend,
           ExecutorOptions options, std::vector<Event> events);

  void start();                 // before the backend runs
  void check_complete() const;  // throws a model error that names what is unfinished and why
  [[nodiscard]] const History& history() const { return history_; }
  [[nodiscard]] std::int64_t flows() const { return flows_; }
  [[nodiscard]] std::int64_t bytes_injected() const { return bytes_injected_; }

  void on_timer(Token token) override;
  void on_flow_done(Token token) override;

 private:
  struct StreamState {
    std::deque<OpId> queue;  // in order of emission, or of becoming ready
    OpId running = -1;
    OpId last = -1;
    std::uint32_t generation = 0;  // tells stale timers
    double remaining = 0;          // compute: work left, in seconds at full speed
    double updated = 0;
  };
  struct RankState {
    std::vector<StreamState> streams;
    int communicating = 0;          // collectives and transfers entered and not done
    double receive_busy_until = 0;  // serial reduction and copying of what arrives
    bool dead = false;
  };
  struct Dependent {
    OpId op;
    std::int32_t dependency;
  };
  struct PieceMember {
    std::int32_t step = -1;
    std::int32_t outstanding = 0;
    std::vector<std::pair<std::int32_t, std::int32_t>> early;  // (step, messages) received ahead of entering it
  };
  struct StageQueue {
    std::int32_t busy = -1;  // piece
    std::deque<std::int32_t> waiting;
  };
  struct CollectiveState {
    std::vector<char> entered;
    std::vector<std::int32_t> pieces_left;
    std::vector<std::vector<std::int32_t>> held;   // by receiver: transfers that wait for its entry
    std::vector<std::vector<PieceMember>> pieces;  // [piece][member]
    std::map<std::int64_t, StageQueue> stages;     // key: (channel, stage, member)
    std::vector<char> pipelined;                   // by channel: has several chunks
    int stages_per_channel = 1;
    int members_left = 0;                    // where ranks stand for several members
    std::vector<double> receive_busy_until;  // the same: by member
  };
  struct OpState {
    std::vector<Dependent> dependents;
    std::int32_t done = 0;
    std::int32_t transfers_active = 0;
    std::int32_t arrived = 0;  // ranks at a collective whose members begin together
    std::unique_ptr<CollectiveState> collective;
  };
  struct Transfer {
    enum class Phase { free, held, latency, flowing, receiving };
    Phase phase = Phase::free;
    OpId op = -1;
    std::int32_t piece = -1;  // -1: a plain transfer
    std::int32_t step = 0;
    std::int32_t from = 0, to = 0;  // member indices; for a plain transfer the sender's index, and unused
    Rank sender, receiver;          // where ranks stand for several members: those' indices
    std::int64_t bytes = 0;
    bool reduce = false;
    LinkId cable;  // Send::cable
    std::int32_t flow = -1;
    std::uint32_t generation = 0;
  };

  // Emit
  OpId emit(Op op) override;
  void cancel(CancelGroup group) override;
  void tick(Seconds date, std::int64_t tag) override;
  [[nodiscard]] Seconds now() const override { return backend_.now(); }

  void check_events() const;
  void check_op(const Op& op) const;
  void register_dependencies(OpId id);
  [[nodiscard]] bool satisfied(const Dependency& dependency, Rank rank) const;
  void arrive(OpId id, int index);
  void become_ready(OpId id, int index);
  void notify_dependents(OpId id, Rank rank);

  void pump(Rank rank, StreamId stream);
  void begin(OpId id, int index);
  void begin_compute(OpId id, int index);
  void set_compute_timer(Rank rank, StreamId stream);
  void reclock_compute(Rank rank, double old_rate);
  [[nodiscard]] double compute_rate(Rank rank) const;
  void set_communicating(Rank rank, int change);
  void finish(OpId id, int index);
  void drain();
  void complete(OpId id, int index);
  void stop_on_rank(OpId id, int index);
  void fail_rank(Rank rank);
  void handle_event(const Event& event);

  void arrive_at_collective(OpId id, int index);
  void enter_collective(OpId id, int member);
  void member_done(OpId id, int member);
  [[nodiscard]] DeviceId device_of(const Op& op, Rank rank) const;
  [[nodiscard]] double& receive_busy_until(const Transfer& transfer);
  void request_step(OpId id, int piece, int member, int step);
  void begin_step(OpId id, int piece, int member, int step);
  void step_message_done(OpId id, int piece, int member, int step, bool received);
  void advance(OpId id, int piece, int member);
  void release_stage(OpId id, int piece, int member, int step);
  [[nodiscard]] std::int64_t stage_key(const CollectiveState& state, const CollectivePiece& piece, int step,
                                       int member) const;

  std::int32_t new_transfer(OpId id, int piece, int step, int from, int to, Rank sender, Rank receiver,
                            std::int64_t bytes, bool reduce);
  void launch(std::int32_t slot);
  void start_flow(std::int32_t slot);
  void flow_arrived(std::int32_t slot);
  void received(std::int32_t slot);
  void kill_transfer(std::int32_t slot);
  void count_active(OpId id, int change);
  void route(const Transfer& transfer);
  [[nodiscard]] bool is_switch(const Op& op, Rank rank) const {
    return device_of(op, rank).value >= network_.devices();
  }
  [[nodiscard]] std::string describe(OpId id, int index) const;

  Program& program_;
  std::vector<DeviceId> placement_;
  const Network& network_;
  Backend& backend_;
  ExecutorOptions options_;
  std::vector<Event> events_;
  std::vector<Event> ticks_;

  History history_;
  std::vector<OpState> states_;
  std::vector<RankState> ranks_;
  std::vector<Transfer> transfers_;
  std::vector<std::int32_t> free_transfers_;
  std::map<CancelGroup, std::vector<OpId>> groups_;
  std::deque<std::pair<OpId, std::int32_t>> completions_;
  std::deque<std::pair<Rank, StreamId>> dirty_;
  std::vector<Send> sends_;   // scratch
  std::vector<LinkId> path_;  // scratch
  OpId cause_ = -1;
  Rank cause_rank_;
  bool in_event_ = false;
  bool draining_ = false;
  bool started_ = false;
  std::int64_t flows_ = 0;
  std::int64_t bytes_injected_ = 0;
};

}  // namespace tandem
