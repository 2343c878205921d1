#include "sim/collectives/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

bool is_direct(const Network& network, DeviceId from, DeviceId to) {
  std::vector<LinkId> path;
  network.route(from, to, 0, path);
  return path.size() == 1;
}

// Looks at one line of devices along the digit: members base, base + stride, ...
DigitKind digit_kind(const Network& network, const std::vector<DeviceId>& devices, int base, int stride, int radix) {
  const auto at = [&](int i) { return devices[static_cast<std::size_t>(base + i * stride)]; };
  bool full = true;
  bool ring = true;
  for (int i = 0; i < radix && (full || ring); ++i) {
    ring = ring && is_direct(network, at(i), at((i + 1) % radix));
    for (int j = 0; j < radix && full; ++j) full = i == j || is_direct(network, at(i), at(j));
  }
  if (full) return DigitKind::full_mesh;
  return ring ? DigitKind::ring : DigitKind::switched;
}

// The radices of the rectangle that the devices fill, or nothing where they do not fill one.
std::vector<int> rectangle(const std::vector<int>& radices, const std::vector<DeviceId>& devices) {
  std::vector<int> sides;
  std::int64_t product = 1;
  std::int64_t below = 1;
  for (const int radix : radices) {
    std::set<std::int64_t> values;
    for (const auto device : devices) values.insert(device.value / below % radix);
    sides.push_back(static_cast<int>(values.size()));
    product *= static_cast<std::int64_t>(values.size());
    below *= radix;
  }
  // Distinct devices lie in the product of their digit sets, so equal numbers mean that they fill it.
  return product == static_cast<std::int64_t>(devices.size()) ? sides : std::vector<int>{};
}

Error unsupported(CollectiveOperation operation) {
  const auto& registry = Registry<CollectiveAlgorithm>::instance();
  std::vector<std::string> able;
  for (const auto& name : registry.names()) {
    try {
      if (registry.make(name)->supports(operation)) able.push_back(name);
    } catch (const Error&) {
      // one that cannot be made without parameters is not what a message should point at
    }
  }
  return usage_error(fmt::format("this collective algorithm does not know {}; these do: {}", to_text(operation),
                                 fmt::join(able, ", ")));
}

bool passes_devices(const Network& network, DeviceId from, DeviceId to) {
  std::vector<LinkId> path;
  try {
    network.route(from, to, 0, path);
  } catch (const Error&) {
    return true;  // failures have left no way
  }
  return std::any_of(path.begin(), path.end(), [&](LinkId id) {
    const int end = network.link(id).to;
    return end < network.devices() && end != to.value;
  });
}

// Looks from the first module upwards and from the last one downwards: one failed link is no property of the network.
std::vector<std::uint32_t> reach_of(const Network& network, const std::vector<DeviceId>& devices,
                                    const std::vector<int>& sides) {
  const auto uppers = sides.begin() + (sides.empty() ? 0 : 1);
  const bool has_upper = std::any_of(uppers, sides.end(), [](int side) { return side > 1; });
  std::vector<std::uint32_t> reach(has_upper ? static_cast<std::size_t>(sides[0]) : 0, 0);
  for (std::size_t position = 0; position < reach.size(); ++position) {
    const auto last = devices.size() - reach.size() + position;
    auto stride = reach.size();
    for (std::size_t l = 1; l < sides.size(); stride *= static_cast<std::size_t>(sides[l++])) {
      if (sides[l] == 1) continue;
      if (!passes_devices(network, devices[position], devices[position + stride]) ||
          !passes_devices(network, devices[last], devices[last - stride])) {
        reach[position] |= std::uint32_t{1} << l;
      }
    }
  }
  return reach;
}

}  // namespace

std::shared_ptr<const CollectiveSchedule> CollectiveAlgorithm::schedule(CollectiveOperation operation,
                                                                        const GroupShape& shape, Bytes bytes,
                                                                        int root) const {
  if (!supports(operation)) throw unsupported(operation);
  if (root < 0 || root >= shape.workers) {
    throw internal_error(fmt::format("member {} of {} as the root", root, shape.workers));
  }
  if (operation == CollectiveOperation::all_reduce) return all_reduce(shape, bytes);
  return steps_of(operation, shape, bytes, root);
}

std::shared_ptr<const CollectiveSchedule> CollectiveAlgorithm::all_reduce(const GroupShape& shape, Bytes bytes) const {
  if (!supports(CollectiveOperation::all_reduce)) throw unsupported(CollectiveOperation::all_reduce);
  return steps_of(CollectiveOperation::all_reduce, shape, bytes, 0);
}

std::shared_ptr<const CollectiveSchedule> CollectiveAlgorithm::steps_of(CollectiveOperation operation,
                                                                        const GroupShape&, Bytes, int) const {
  throw internal_error(fmt::format("a collective algorithm supports {} and has no steps for it", to_text(operation)));
}

std::optional<CollectiveChoice> CollectiveAlgorithm::choose(const CollectiveRequest&, const CollectiveSite&) const {
  return {};
}

GroupShape group_shape(const Network& network, const std::vector<DeviceId>& devices, int devices_per_node) {
  GroupShape shape;
  shape.workers = static_cast<int>(devices.size());
  const bool ascending = std::is_sorted(devices.begin(), devices.end());
  if (ascending) {
    int stride = 1;
    shape.sides = rectangle(network.radices(), devices);
    shape.reach = reach_of(network, devices, shape.sides);
    for (std::size_t l = 0; l < shape.sides.size(); ++l) {
      const int side = shape.sides[l];
      if (side == 1) continue;
      // The first line, or the first one of a position that reaches along the digit.
      const auto reaches = [&](std::uint32_t levels) { return (levels >> l & 1U) != 0; };
      const auto found = std::find_if(shape.reach.begin(), shape.reach.end(), reaches);
      const int base = found == shape.reach.end() ? 0 : static_cast<int>(found - shape.reach.begin());
      shape.digits.push_back({side, digit_kind(network, devices, base, stride, side)});
      stride *= side;
    }
  }
  int run = 1;  // members of the first one's node, itself included
  while (run < shape.workers &&
         devices[static_cast<std::size_t>(run)].value / devices_per_node == devices[0].value / devices_per_node) {
    ++run;
  }
  const auto node = [&](int member) { return devices[static_cast<std::size_t>(member)].value / devices_per_node; };
  std::set<int> nodes;
  bool uniform = shape.workers % run == 0;
  for (int first = 0; uniform && first < shape.workers; first += run) {
    uniform = nodes.insert(node(first)).second;
    for (int i = 0; i < run; ++i) uniform = uniform && node(first + i) == node(first);
  }
  shape.node_size = uniform ? run : 0;
  return shape;
}

std::vector<PiecePlan> cut_into_pieces(Bytes bytes, int channels, Bytes chunk) {
  std::vector<PiecePlan> pieces;
  for (int c = 0; c < channels; ++c) {
    const auto share = part_of({0, bytes.count()}, channels, c).size();
    const auto chunks = chunk.count() > 0 ? std::max<std::int64_t>(1, (share + chunk.count() - 1) / chunk.count()) : 1;
    if (chunks > 1'000'000) throw usage_error("a chunk that small cuts one collective into more than a million pieces");
    for (std::int64_t k = 0; k < chunks; ++k) pieces.push_back({c, Bytes(part_of({0, share}, chunks, k).size())});
  }
  return pieces;
}

std::vector<CollectivePiece> collective_pieces(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request) {
  std::vector<CollectivePiece> pieces;
  auto shape = request.shape;
  for (const auto& piece : cut_into_pieces(request.bytes, request.channels, request.chunk)) {
    const bool as_before =
        !pieces.empty() && pieces.back().channel == piece.channel && pieces.back().schedule->bytes() == piece.bytes;
    shape.channel = piece.channel;
    pieces.push_back(
        {as_before ? pieces.back().schedule : algorithm.schedule(request.operation, shape, piece.bytes, request.root),
         piece.channel});
  }
  return pieces;
}

std::vector<CollectivePiece> all_reduce_pieces(const CollectiveAlgorithm& algorithm, GroupShape shape, Bytes bytes,
                                               int channels, Bytes chunk) {
  return collective_pieces(algorithm, {CollectiveOperation::all_reduce, std::move(shape), bytes, channels, chunk, 0});
}

PlannedCollective plan_collective(const CollectiveAlgorithm& algorithm, const CollectiveRequest& request,
                                  const CollectiveSite& site) {
  auto choice = algorithm.choose(request, site);
  if (!choice) return {collective_pieces(algorithm, request), {}};
  const auto picked = Registry<CollectiveAlgorithm>::instance().make(choice->picked());
  return {collective_pieces(*picked, request), std::move(choice)};
}

}  // namespace tandem
