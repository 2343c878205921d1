// The contract of a collective algorithm: one file each in sim/collectives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platforms/network.hpp"
#include "sim/collectives/operation.hpp"
#include "sim/collectives/switch_tree.hpp"
#include "sim/core/registry.hpp"
#include "sim/estimate/alpha_beta.hpp"
#include "sim/ir/collective_schedule.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

// How the devices of one digit of an address are joined: decides the exchange that uses their links best.
enum class DigitKind { full_mesh, ring, switched };

struct Digit {
  int radix = 1;
  DigitKind kind = DigitKind::switched;
};

// A full rectangle of addresses, as GroupShape has it, of which failures have taken members, or links that members
// used.
struct BrokenRectangle {
  std::vector<Digit> digits;
  std::vector<int> sides;
  std::vector<int> members;  // by place, in order of address; -1 where it is gone
  // By value of the lowest digit: whether one of its members is gone, or its way along another digit is.
  std::vector<char> broken;
  // Pairs of places in one line of the lowest digit, a full mesh, whose cable is gone; the lower one first.
  std::vector<std::pair<int, int>> cut;
};

// What an algorithm sees of a group: pure numbers. Members are indexed 0 .. workers-1, dedicated servers follow.
struct GroupShape {
  int workers = 1;
  // Digits of the members' addresses, least significant first, of radix above 1, where the group is a full rectangle
  // of the network's address space and members stand in order of address. Empty otherwise.
  std::vector<Digit> digits;
  // The rectangle's sides along all of the network's digits, those of 1 included; may be left empty where none is 1.
  std::vector<int> sides;
  // By value of the lowest digit (a position in a module): bit l is set where such members get at those that differ in
  // digit l without passing other devices. Empty where it is not known.
  std::vector<std::uint32_t> reach;
  // After failures, of members that stand in order of address; a rectangle that has lost members is no rectangle above.
  // What is said above is as it was before the failures.
  std::shared_ptr<const BrokenRectangle> remains;
  // Where switches are members, behind the servers: what all hang on. Empty for algorithms that are not in_switches.
  std::shared_ptr<const SwitchTree> tree;
  // Members of one node, where all nodes hold equally many consecutive members; 0 otherwise.
  int node_size = 0;
  // Which of the operation's channels the schedule is for: algorithms may send channels different ways round.
  int channel = 0;
};

// One operation of a group as it will run.
struct CollectiveRequest {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  GroupShape shape;
  Bytes bytes{};
  int channels = 1;
  Bytes chunk{};  // 0: not cut
  int root = 0;   // member
};

// Where it will run, for algorithms that choose by what the choice costs.
struct CollectiveSite {
  const Network& network;
  const std::vector<DeviceId>& devices;  // of the members
  AlphaBetaOptions costs;
};

// A choice between algorithms, and why: the candidates in order of their estimates, then those that cannot do it.
struct CollectiveChoice {
  struct Candidate {
    std::string algorithm;
    Seconds estimate{};
    std::string refusal;  // why it cannot; empty where it can
  };
  std::vector<Candidate> candidates;
  [[nodiscard]] const std::string& picked() const { return candidates.front().algorithm; }
};

class CollectiveAlgorithm {
 public:
  static constexpr const char* plugin_kind = "collective";
  static constexpr const char* plugin_help = "algorithms of all-reduce and other collective operations";
  struct PluginContext {};

  virtual ~CollectiveAlgorithm() = default;
  // Dedicated server ranks that it needs besides `workers` workers.
  [[nodiscard]] virtual int servers(int workers) const { return 0 * workers; }
  // Whether switches of the network are members, behind the servers: those of the tree that the workers hang on.
  [[nodiscard]] virtual bool in_switches() const { return false; }
  // Whether members must stand in order of address (digit-wise algorithms) and not of rank.
  [[nodiscard]] virtual bool by_address() const { return false; }
  [[nodiscard]] virtual bool supports(CollectiveOperation operation) const {
    return operation == CollectiveOperation::all_reduce;
  }

  // What it comes down to in a group that lacks the structure it is made for, as a sentence. Empty otherwise.
  [[nodiscard]] virtual std::string note(const GroupShape&) const { return ""; }

  // The steps of an operation (operation.hpp) on buffers of `bytes` bytes; `root` is a member. Usage error where the
  // algorithm does not know the operation, or the shape does not allow it.
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> schedule(CollectiveOperation operation,
                                                                   const GroupShape& shape, Bytes bytes,
                                                                   int root = 0) const;
  // The same for all-reduce: what an algorithm that knows nothing else overrides.
  [[nodiscard]] virtual std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                             Bytes bytes) const;

  // An algorithm that stands for others says here which of them serves the request best. Nothing where the algorithm
  // does the work itself.
  [[nodiscard]] virtual std::optional<CollectiveChoice> choose(const CollectiveRequest& request,
                                                               const CollectiveSite& site) const;

 protected:
  // Of the operations that it supports, for algorithms that know several.
  [[nodiscard]] virtual std::shared_ptr<const CollectiveSchedule> steps_of(CollectiveOperation operation,
                                                                           const GroupShape& shape, Bytes bytes,
                                                                           int root) const;
};

// The group of these devices (workers only; by_address: devices in ascending order), nodes of `devices_per_node`.
[[nodiscard]] GroupShape group_shape(const Network& network, const std::vector<DeviceId>& devices,
                                     int devices_per_node);

// `bytes` cut for `channels` channels, and each channel's share into chunks of at most `chunk` bytes (0: not cut).
// Channels and chunks differ by at most one byte.
struct PiecePlan {
  std::int32_t channel = 0;
  Bytes bytes{};
};
[[nodiscard]] std::vector<PiecePlan> cut_into_pieces(Bytes bytes, int channels, Bytes chunk);

// The same as pieces of one operation; pieces of one channel and size share a schedule.
[[nodiscard]] std::vector<CollectivePiece> collective_pieces(const CollectiveAlgorithm& algorithm,
                                                             const CollectiveRequest& request);
[[nodiscard]] std::vector<CollectivePiece> all_reduce_pieces(const CollectiveAlgorithm& algorithm, GroupShape shape,
                                                             Bytes bytes, int channels, Bytes chunk);

// The same, and the choice where the algorithm leaves the work to another.
struct PlannedCollective {
  std::vector<CollectivePiece> pieces;
  std::optional<CollectiveChoice> choice;
};
[[nodiscard]] PlannedCollective plan_collective(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request,
                                                const CollectiveSite& site);

}  // namespace tandem
