#include "sim/collectives/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

// How devices are joined is the network's nature, which a failure does not change: routes are those as built.
bool is_direct(const Network& network, DeviceId from, DeviceId to) {
  std::vector<LinkId> path;
  network.route_as_built(from, to, 0, path);
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

struct Rectangle {
  std::vector<int> sides;  // empty: there is none
  std::vector<DeviceId> devices;
};

// The smallest one that the devices lie in.
Rectangle rectangle_around(const std::vector<int>& radices, const std::vector<DeviceId>& devices) {
  Rectangle box{{}, {DeviceId{0}}};
  std::vector<std::set<std::int64_t>> values;
  std::int64_t product = 1;
  std::int64_t below = 1;
  for (const int radix : radices) {
    auto& of_digit = values.emplace_back();
    for (const auto device : devices) of_digit.insert(device.value / below % radix);
    box.sides.push_back(static_cast<int>(of_digit.size()));
    product *= static_cast<std::int64_t>(of_digit.size());
    below *= radix;
  }
  if (product > 2 * static_cast<std::int64_t>(devices.size())) return {};
  below = 1;
  for (std::size_t l = 0; l < radices.size(); below *= radices[l++]) {
    std::vector<DeviceId> next;
    for (const auto value : values[l]) {
      for (const auto device : box.devices) next.push_back({static_cast<std::int32_t>(device.value + value * below)});
    }
    box.devices = std::move(next);
  }
  return box;
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
  network.route_as_built(from, to, 0, path);
  return std::any_of(path.begin(), path.end(), [&](LinkId id) {
    const int end = network.link(id).to;
    return end < network.devices() && end != to.value;
  });
}

std::vector<std::uint32_t> reach_of(const Network& network, const Rectangle& box) {
  const auto& [sides, devices] = box;
  const auto uppers = sides.begin() + (sides.empty() ? 0 : 1);
  const bool has_upper = std::any_of(uppers, sides.end(), [](int side) { return side > 1; });
  std::vector<std::uint32_t> reach(has_upper ? static_cast<std::size_t>(sides[0]) : 0, 0);
  for (std::size_t position = 0; position < reach.size(); ++position) {
    auto stride = reach.size();
    for (std::size_t l = 1; l < sides.size(); stride *= static_cast<std::size_t>(sides[l++])) {
      if (sides[l] == 1) continue;
      if (!passes_devices(network, devices[position], devices[position + stride])) {
        reach[position] |= std::uint32_t{1} << l;
      }
    }
  }
  return reach;
}

std::vector<Digit> digits_of(const Network& network, const Rectangle& box, const std::vector<std::uint32_t>& reach) {
  std::vector<Digit> digits;
  int stride = 1;
  for (std::size_t l = 0; l < box.sides.size(); ++l) {
    const int side = box.sides[l];
    if (side == 1) continue;
    // The first line, or the first one of a position that reaches along the digit.
    const auto reaches = [&](std::uint32_t levels) { return (levels >> l & 1U) != 0; };
    const auto found = std::find_if(reach.begin(), reach.end(), reaches);
    const int base = found == reach.end() ? 0 : static_cast<int>(found - reach.begin());
    digits.push_back({side, digit_kind(network, box.devices, base, stride, side)});
    stride *= side;
  }
  return digits;
}

// Whether the way that a device had to the next one along a digit still works.
bool way_works(const Network& network, DeviceId from, DeviceId to) {
  std::vector<LinkId> path;
  network.route_as_built(from, to, 0, path);
  return std::all_of(path.begin(), path.end(), [&](LinkId id) { return network.works(id); });
}

std::vector<std::pair<int, int>> cut_pairs(const Network& network, const Rectangle& box) {
  std::vector<std::pair<int, int>> cut;
  const int side = box.sides[0];
  for (int first = 0; first < static_cast<int>(box.devices.size()); first += side) {
    for (int a = first; a < first + side; ++a) {
      for (int b = a + 1; b < first + side; ++b) {
        const auto from = box.devices[static_cast<std::size_t>(a)];
        const auto to = box.devices[static_cast<std::size_t>(b)];
        if (!way_works(network, from, to) || !way_works(network, to, from)) cut.emplace_back(a, b);
      }
    }
  }
  return cut;
}

// Nothing where devices are missing that have not failed.
std::shared_ptr<const BrokenRectangle> remains_of(const Network& network, const Rectangle& box,
                                                  const std::vector<std::uint32_t>& reach,
                                                  const std::vector<DeviceId>& devices) {
  auto remains = std::make_shared<BrokenRectangle>();
  remains->sides = box.sides;
  remains->digits = digits_of(network, box, reach);
  const auto positions = static_cast<std::size_t>(box.sides[0]);
  remains->broken.assign(positions, 0);
  int present = 0;
  for (std::size_t place = 0; place < box.devices.size(); ++place) {
    const auto device = box.devices[place];
    auto& broken = remains->broken[place % positions];
    const bool is_there = std::binary_search(devices.begin(), devices.end(), device);
    if (!is_there && network.works(device)) return nullptr;
    remains->members.push_back(is_there ? present++ : -1);
    if (!is_there) broken = 1;
    auto stride = positions;
    for (std::size_t l = 1; l < box.sides.size() && broken == 0; stride *= static_cast<std::size_t>(box.sides[l++])) {
      const auto side = static_cast<std::size_t>(box.sides[l]);
      if (side == 1 || (reach[place % positions] >> l & 1U) == 0) continue;
      const bool is_last = place / stride % side == side - 1;
      const auto next = is_last ? place - (side - 1) * stride : place + stride;
      if (!way_works(network, device, box.devices[next])) broken = 1;
    }
  }
  if (box.sides[0] > 1 && remains->digits[0].kind == DigitKind::full_mesh) remains->cut = cut_pairs(network, box);
  return remains;
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
  const auto box = ascending ? rectangle_around(network.radices(), devices) : Rectangle{};
  if (!box.sides.empty()) {
    const auto reach = reach_of(network, box);
    if (box.devices.size() == devices.size()) {
      shape.sides = box.sides;
      shape.reach = reach;
      shape.digits = digits_of(network, box, reach);
    }
    if (network.has_failures()) shape.remains = remains_of(network, box, reach, devices);
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
