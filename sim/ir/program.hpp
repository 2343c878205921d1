// A Program emits operations: all at the start where the schedule is static, or as events arrive where it cannot be
// known ahead (first-come-first-served servers, k of n with cancellation, failures).
#pragma once

#include <vector>

#include "sim/ir/op.hpp"

namespace tandem {

struct Event {
  enum class Kind {
    tick,            // asked for with Emit::tick
    rank_failure,    // `rank` has stopped: its operations and transfers are gone
    link_bandwidth,  // `link` now runs at `bandwidth`
  };
  Kind kind = Kind::tick;
  Seconds date{};
  std::int64_t tag = 0;  // tick
  Rank rank;             // rank_failure
  LinkId link;           // link_bandwidth
  BytesPerSecond bandwidth{};
};

class Emit {
 public:
  virtual ~Emit() = default;
  // Hands over an operation; ids count up from 0 in order of emission. Dependencies must name earlier operations.
  virtual OpId emit(Op op) = 0;
  // Stops every unfinished operation of the group, queued or running, on all ranks.
  virtual void cancel(CancelGroup group) = 0;
  // Calls on_event with a tick at `date` (not before now).
  virtual void tick(Seconds date, std::int64_t tag) = 0;
  [[nodiscard]] virtual Seconds now() const = 0;
};

class Program {
 public:
  virtual ~Program() = default;
  // Workers, then dedicated servers: every rank that needs a device.
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual std::vector<StreamSpec> streams() const = 0;
  virtual void start(Emit& emit) = 0;
  virtual void on_done(OpId, Rank, Seconds, Emit&) {}  // only for operations with `notify`
  virtual void on_event(const Event&, Emit&) {}
};

// The simplest Program: everything is known at the start.
class StaticProgram : public Program {
 public:
  StaticProgram(int ranks, std::vector<StreamSpec> streams, std::vector<Op> ops)
      : ranks_(ranks), streams_(std::move(streams)), ops_(std::move(ops)) {}
  [[nodiscard]] int ranks() const override { return ranks_; }
  [[nodiscard]] std::vector<StreamSpec> streams() const override { return streams_; }
  void start(Emit& emit) override {
    for (const auto& op : ops_) emit.emit(op);
  }
  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }

 private:
  int ranks_;
  std::vector<StreamSpec> streams_;
  std::vector<Op> ops_;
};

}  // namespace tandem
