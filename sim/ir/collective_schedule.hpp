// What a collective algorithm does, step by step, computed on demand so that it stays small at any number of ranks.
//
// A collective works on one buffer of `bytes()` bytes that every contributing member holds its own version of. A step
// is a set of transfers; a member enters step k+1 when its own sends and receives of step k are done, so a step is not
// a barrier. A transfer carries a byte range, which the receiver adds to its own (reduce) or overwrites it with.
//
// All-to-all has p x p blocks, one for each sender and receiver; its byte ranges lie in the members' send buffers, one
// behind the other: block (i, j) is part j of the i-th `bytes()` bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace tandem {

struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
};

// Part `index` of `range` cut into `parts` nearly equal parts; the first ones are one byte longer, so that the largest
// is ceil(size/parts).
[[nodiscard]] constexpr ByteRange part_of(ByteRange range, std::int64_t parts, std::int64_t index) {
  const std::int64_t share = range.size() / parts;
  const std::int64_t longer = range.size() % parts;
  const auto offset = [&](std::int64_t i) { return range.begin + i * share + (i < longer ? i : longer); };
  return {offset(index), offset(index + 1)};
}

struct Send {
  int to = 0;  // member index
  ByteRange range;
  bool reduce = false;
  LinkId cable{};  // which it takes, to or from a switch that is a member; else the network's route
};

class CollectiveSchedule {
 public:
  CollectiveSchedule(int members, Bytes bytes) : members_(members), bytes_(bytes) {}
  virtual ~CollectiveSchedule() = default;

  [[nodiscard]] int members() const { return members_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  [[nodiscard]] virtual int steps() const = 0;
  // Replaces `out` by what `member` sends in `step`. Empty ranges are real messages: they cost a latency.
  virtual void sends(int step, int member, std::vector<Send>& out) const = 0;
  // How many messages `member` receives in `step`.
  [[nodiscard]] virtual int receives(int step, int member) const = 0;

  // How many equal steps, one after another, `step` stands for: each costs a message's latency.
  [[nodiscard]] virtual int repetitions(int step) const { return 1 + 0 * step; }

  // Where byte ranges end: the buffer, or all-to-all's buffers of all members.
  [[nodiscard]] virtual std::int64_t extent() const { return bytes_.count(); }
  // What a member keeps of reduce-scatter and scatter, and brings to all-gather and gather. These parts are disjoint,
  // cover the buffer and differ by at most one byte; their order is the algorithm's.
  [[nodiscard]] virtual ByteRange own(int member) const { return part_of({0, bytes_.count()}, members_, member); }

  // Steps of one stage use the same links; with chunks, a member works on one chunk a stage at a time, and different
  // stages on different chunks at once (pipelining).
  [[nodiscard]] virtual int stage(int step) const { return 0 * step; }
  [[nodiscard]] virtual int stages() const { return 1; }
  // Members that bring data and want the result. A dedicated server does neither.
  [[nodiscard]] virtual bool contributes(int member) const { return member >= 0; }
  // A server listens all the time: sends to it need not wait until it has entered the collective itself.
  [[nodiscard]] virtual bool eager() const { return false; }

 private:
  int members_;
  Bytes bytes_;
};

}  // namespace tandem
