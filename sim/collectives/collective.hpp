// The contract of a collective algorithm: one file each in sim/collectives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platforms/network.hpp"
#include "sim/core/registry.hpp"
#include "sim/ir/collective_schedule.hpp"
#include "sim/ir/op.hpp"

namespace tandem {

// How the devices of one digit of an address are joined: decides the exchange that uses their links best.
enum class DigitKind { full_mesh, ring, switched };

struct Digit {
  int radix = 1;
  DigitKind kind = DigitKind::switched;
};

// What an algorithm sees of a group: pure numbers. Members are indexed 0 .. workers-1, dedicated servers follow.
struct GroupShape {
  int workers = 1;
  // Digits of the members' addresses, least significant first, of radix above 1, where the group is a full rectangle
  // of the network's address space and members stand in order of address. Empty otherwise.
  std::vector<Digit> digits;
  // Members of one node, where all nodes hold equally many consecutive members; 0 otherwise.
  int node_size = 0;
  // Which of the operation's channels the schedule is for: algorithms may send channels different ways round.
  int channel = 0;
};

class CollectiveAlgorithm {
 public:
  static constexpr const char* plugin_kind = "collective";
  static constexpr const char* plugin_help = "all-reduce algorithms";
  struct PluginContext {};

  virtual ~CollectiveAlgorithm() = default;
  // Dedicated server ranks that it needs besides `workers` workers.
  [[nodiscard]] virtual int servers(int workers) const { return 0 * workers; }
  // Whether members must stand in order of address (digit-wise algorithms) and not of rank.
  [[nodiscard]] virtual bool by_address() const { return false; }
  // Sums `bytes` bytes over the workers, the result on every worker. Usage error where the shape does not allow it.
  [[nodiscard]] virtual std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                             Bytes bytes) const = 0;
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

// The same as pieces of one all-reduce operation; pieces of one channel and size share a schedule.
[[nodiscard]] std::vector<CollectivePiece> all_reduce_pieces(const CollectiveAlgorithm& algorithm, GroupShape shape,
                                                             Bytes bytes, int channels, Bytes chunk);

}  // namespace tandem
