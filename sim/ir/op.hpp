// Operations: the plain data that a Program hands to the engine. An operation is stored once with the set of ranks
// that run it; its state is per rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/ir/collective_schedule.hpp"

namespace tandem {

using OpId = std::int32_t;
using StreamId = std::int32_t;
using CancelGroup = std::int32_t;
inline constexpr CancelGroup kNoCancelGroup = -1;

// An ordered set of ranks: first, first + stride, ..., or an explicit list without repetition.
class RankSet {
 public:
  RankSet() = default;
  [[nodiscard]] static RankSet range(int first, int count, int stride = 1);
  [[nodiscard]] static RankSet list(std::vector<Rank> ranks);
  [[nodiscard]] static RankSet one(Rank rank) { return range(rank.value, 1); }

  [[nodiscard]] int size() const { return count_; }
  [[nodiscard]] Rank at(int index) const;
  [[nodiscard]] int index_of(Rank rank) const;  // -1 where absent

 private:
  struct List {
    std::vector<Rank> ranks;
    std::vector<std::pair<std::int32_t, std::int32_t>> sorted;  // (rank, index)
  };
  std::int32_t first_ = 0;
  std::int32_t count_ = 0;
  std::int32_t stride_ = 1;
  std::shared_ptr<const List> list_;
};

// Which rank of another operation (or which peer) rank r means.
struct RankMap {
  enum class Kind { same, shift, exchange, fixed, all, map };
  Kind kind = Kind::same;
  std::int32_t value = 0;                          // shift: r + value; exchange: r xor value; fixed: value
  std::shared_ptr<const std::vector<Rank>> table;  // map: table[r]

  [[nodiscard]] static RankMap same() { return {}; }
  [[nodiscard]] static RankMap shift(int by) { return {Kind::shift, by, nullptr}; }
  [[nodiscard]] static RankMap exchange(int mask) { return {Kind::exchange, mask, nullptr}; }
  [[nodiscard]] static RankMap fixed(Rank rank) { return {Kind::fixed, rank.value, nullptr}; }
  [[nodiscard]] static RankMap all() { return {Kind::all, 0, nullptr}; }
  [[nodiscard]] static RankMap map(std::vector<Rank> table) {
    return {Kind::map, 0, std::make_shared<const std::vector<Rank>>(std::move(table))};
  }
  [[nodiscard]] Rank of(Rank rank) const;  // not for `all`
};

// Operation `op` must be done on the ranks that the map names before this one may start.
struct Dependency {
  OpId op = -1;
  RankMap from;
};

// One pipelined piece of a collective: a chunk of one channel.
struct CollectivePiece {
  std::shared_ptr<const CollectiveSchedule> schedule;
  std::int32_t channel = 0;  // channels run at once, chunks of one channel in a pipeline; also the path choice
};

struct Op {
  enum class Kind { compute, transfer, collective, delay };
  // What the breakdown calls a delay: waiting for input data, or simply idle.
  enum class DelayKind { idle, input };

  Kind kind = Kind::compute;
  std::string name;  // for timelines and messages: "forward conv1", "all-reduce bucket 2"
  RankSet ranks;     // a collective's ordered group
  StreamId stream = 0;
  std::int32_t priority = 0;  // larger first, on streams that serve by priority
  std::vector<Dependency> waits_for;
  std::int32_t needed = -1;  // how many of the dependencies' arrivals suffice; -1: all
  CancelGroup cancel_group = kNoCancelGroup;
  bool notify = false;  // call Program::on_done

  Seconds duration{};  // compute, delay
  DelayKind delay_kind = DelayKind::idle;
  Bytes bytes{};                        // transfer
  RankMap peer;                         // transfer: receiver of rank r
  std::vector<CollectivePiece> pieces;  // collective
  // Collective of a Program whose ranks each stand for several equal ones: the devices of the schedules' members. They
  // begin when all `ranks` have come, and the ranks go on when all members are done. Empty: the members are `ranks`.
  std::shared_ptr<const std::vector<DeviceId>> members;

  // What the operation belongs to, for reports; -1 where it does not apply.
  std::int32_t layer = -1;
  std::int32_t pass = -1;
  std::int32_t bucket = -1;
  std::int32_t iteration = 0;
};

// A rank's stream is a serial queue: one operation at a time.
struct StreamSpec {
  enum class Role { compute, communication, copy, server };
  enum class Discipline {
    in_order,    // in order of emission; the head blocks what is behind it (a CUDA stream)
    by_arrival,  // in order of becoming ready (a first-come-first-served server)
    by_priority  // the ready operation of highest priority; no preemption once started
  };
  std::string name;
  Role role = Role::compute;
  Discipline discipline = Discipline::in_order;
};

}  // namespace tandem
