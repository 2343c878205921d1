#include "platforms/topologies/cells.hpp"

#include <algorithm>
#include <cstdlib>

#include "platforms/graph_search.hpp"

namespace tandem {
namespace {

int stride_of(int level, Gateways gateways) {
  return gateways == Gateways::all ? 1 : 1 << level;
}

int offset_of(int level, Gateways gateways) {
  return gateways == Gateways::all ? 0 : (1 << (level - 1)) - 1;
}

}  // namespace

std::int64_t Cells::count_devices(int n, int k, Gateways gateways) {
  std::int64_t size = n;
  for (int level = 1; level <= k && size <= kMostDevices; ++level) size *= size / stride_of(level, gateways) + 1;
  return std::min<std::int64_t>(size, kMostDevices + 1);
}

Cells::Cells(const std::string& name, Levels levels, Gateways gateways, int planes, const PluginContext& context)
    : Topology(context, planes), n_(levels.n) {
  instance_ = fmt::format("{}:n={},k={},planes={}", name, levels.n, levels.k, planes);
  const auto wanted = count_devices(levels.n, levels.k, gateways);
  check_size(instance_, wanted, 0);
  devices_ = static_cast<int>(wanted);
  vertices_ = devices_ + devices_ / n_;
  int size = n_;
  for (int level = 1; level <= levels.k; ++level) {
    const int stride = stride_of(level, gateways);
    levels_.push_back({size / stride + 1, size, stride, offset_of(level, gateways), 0});
    size *= levels_.back().units;
  }
  check_size(instance_, wanted, cables());
  build();
}

std::int64_t Cells::cables() const {
  auto sum = std::int64_t{devices_};
  for (const auto& level : levels_) sum += devices_ / (level.units * level.size) * level.pairs();
  return sum;
}

// First the cables to switches, by device; then level by level, the pairs of sub-units in lexicographic order.
void Cells::build() {
  links_.reserve(2 * static_cast<std::size_t>(cables()));
  for (int device = 0; device < devices_; ++device) connect(device, devices_ + device / n_, LinkKind::device_port);
  for (auto& level : levels_) {
    level.first_cable = static_cast<int>(links_.size() / 2);
    const int whole = level.units * level.size;
    for (int first = 0; first < devices_; first += whole) {
      for (int i = 0; i < level.units; ++i) {
        for (int j = i + 1; j < level.units; ++j) {
          connect(first + i * level.size + level.gateway(i, j), first + j * level.size + level.gateway(j, i),
                  LinkKind::direct);
        }
      }
    }
  }
}

LinkId Cells::link_between(const Level& level, int instance, int from, int to) const {
  const int i = std::min(from, to);
  const int j = std::max(from, to);
  const auto pair = std::int64_t{i} * (2 * level.units - i - 1) / 2 + j - i - 1;
  const auto cable = level.first_cable + instance * level.pairs() + pair;
  return LinkId{static_cast<int>(2 * cable + (from < to ? 0 : 1))};
}

void Cells::route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const {
  path.clear();
  walk(src.value, dst.value, path);
}

void Cells::walk(int src, int dst, std::vector<LinkId>& path) const {
  if (src == dst) return;
  if (src / n_ == dst / n_) {
    path.push_back(LinkId{2 * src});
    path.push_back(LinkId{2 * dst + 1});
    return;
  }
  const auto joins = [&](const Level& level) {
    return src / level.size / level.units == dst / level.size / level.units;
  };
  const auto& level = *std::find_if(levels_.begin(), levels_.end(), joins);
  const int from = src / level.size % level.units;
  const int to = dst / level.size % level.units;
  walk(src, src / level.size * level.size + level.gateway(from, to), path);
  path.push_back(link_between(level, src / level.size / level.units, from, to));
  walk(dst / level.size * level.size + level.gateway(to, from), dst, path);
}

std::string Cells::vertex_name(int vertex) const {
  const bool is_device = vertex < devices_;
  const int cell = is_device ? vertex / n_ : vertex - devices_;
  std::vector<int> digits;
  if (is_device) digits.push_back(vertex % n_);
  int rest = cell;
  for (const auto& level : levels_) {
    digits.push_back(rest % level.units);
    rest /= level.units;
  }
  std::reverse(digits.begin(), digits.end());
  if (digits.empty()) return "switch";
  const auto address = fmt::format("({})", fmt::join(digits, ","));
  return is_device ? fmt::format("device {} {}", vertex, address) : "switch " + address;
}

std::vector<int> Cells::radices() const {
  std::vector<int> result{n_};
  for (const auto& level : levels_) result.push_back(level.units);
  return result;
}

Characteristics Cells::characteristics() const {
  Characteristics result;
  result.devices = devices_;
  result.switches = std::int64_t{devices_ / n_} * planes_;
  result.max_switch_radix = n_;
  result.links = cables() * planes_;
  result.ports_per_device = static_cast<double>((2 * cables() - devices_) * planes_) / devices_;
  result.switch_ports_per_device = planes_;
  add_paths(result);
  result.bisection_links = static_cast<double>(best_split().cables * planes_);
  result.bisection_proved = levels_.empty();
  return result;
}

// One level: a gateway reaches the n-1 others of its cell in 2 links, its peer in 1 and that cell's others in 3; of
// every further cell the peer of its own cell's gateway in 3, the gateway to its peer's cell in 4 and the others in 5.
// A device that is no gateway reaches one device of every other cell in 3 and the others in 5. (Through a third cell it
// takes 6.) Nothing as simple is known for more levels.
void Cells::add_paths(Characteristics& result) const {
  if (levels_.empty()) {
    result.diameter = 2;
    result.mean_path = 2;
    return;
  }
  if (levels_.size() > 1) {
    // Up to 5,256 devices (DCell(8,2)) all are searched from; from larger networks as many as take as long.
    constexpr std::size_t kMostLinksSeen = 150'000'000;
    const auto sources = std::clamp<std::size_t>(kMostLinksSeen / links_.size(), 16, kMostDevices);
    const auto found = search_paths(*this, static_cast<int>(sources));
    result.diameter = found.diameter;
    result.mean_path = found.mean_path;
    result.paths = found.sources == devices_ ? Characteristics::Paths::searched : Characteristics::Paths::sampled;
    return;
  }
  const double n = n_;
  const double gateways = levels_[0].units - 1;
  const double from_gateway = 2 * (n - 1) + 1 + 3 * (n - 1) + (gateways - 1) * (3 + 4 + 5 * (n - 2));
  const double from_other = 2 * (n - 1) + gateways * (3 + 5 * (n - 1));
  result.diameter = n_ > 2 || gateways < n ? 5 : 4;
  result.mean_path = (gateways * from_gateway + (n - gateways) * from_other) / n / (devices_ - 1);
}

// Switches are in the rack with their devices; cables between cells are optical.
CostItems Cells::cost_items() const {
  const auto to_switches = std::int64_t{devices_} * planes_;
  const auto between = cables() * planes_ - to_switches;
  return {.switch_ports = to_switches,
          .device_ports = to_switches + 2 * between,
          .copper_cables = to_switches,
          .optical_cables = between};
}

// ---- bisection ----

int Cells::Level::gateways_below(int device) const {
  return device <= offset ? 0 : std::min((device - offset + stride - 1) / stride, units - 1);
}

// Cables cut inside of a unit of a level between its last `count` devices and the others. Of its sub-units, q lie
// behind the cut whole and c before it; the sub-unit with number c may be cut itself. Its gateways are in the order of
// the sub-units that they lead to, so that those between the c-th one and the cut have their peers on the other side.
std::int64_t Cells::suffix_cut(std::size_t level, std::int64_t count) const {
  if (level == 0) return std::min(count, n_ - count);
  const auto& parts = levels_[level - 1];
  const auto q = count / parts.size;
  const auto rest = count % parts.size;
  const auto c = parts.units - 1 - q;
  if (c < 0) return 0;
  return q * c + std::abs(c - parts.gateways_below(static_cast<int>(parts.size - rest))) + suffix_cut(level - 1, rest);
}

// Devices that one of `units` units on a side gives up, in this order. With one level, first the gateways to units of
// the other side, then devices that are no gateways; with more, from the last device down, which moves whole sub-units.
int Cells::moved_device(int units, int index) const {
  const auto& top = levels_.back();
  if (levels_.size() > 1) return top.size - 1 - index;
  const int outward = top.units - units;
  if (index < outward || top.stride == 1) return (top.units - 2 - index) * top.stride + top.offset;
  return n_ - 1 - top.stride * (index - outward);
}

// How many can be given up without a cable inside of the side being cut.
int Cells::most_moved(int units) const {
  const auto& top = levels_.back();
  const int outward = top.units - units;
  if (levels_.size() == 1) return outward + n_ - (top.units - 1);
  // All behind the last gateway to a unit of the same side.
  return top.size - 1 - ((top.units - 2 - outward) * top.stride + top.offset);
}

// Cables cut inside of a unit that gives up `count` devices, less those to the other side that are not cut any more.
std::int64_t Cells::moving_cost(int units, int count) const {
  const auto& top = levels_.back();
  if (levels_.size() == 1) return suffix_cut(0, count) - std::min(count, top.units - units);
  return suffix_cut(levels_.size() - 1, count) - (top.units - 1 - top.gateways_below(top.size - count));
}

// `units` units on one side, which are more than half of the devices; as many units as needed give up `moved` devices
// each, the last one what is left. With none given up, units * (g - units) cables are cut.
Cells::Split Cells::cheapest_moves(int units) const {
  const auto& top = levels_.back();
  const auto base = std::int64_t{units} * (top.units - units);
  const auto surplus = std::int64_t{units} * top.size - devices_ / 2;
  Split best{-1, units, 0};
  if (surplus == 0) return {base, units, 1};
  for (int moved = 1; moved <= most_moved(units); ++moved) {
    if (std::int64_t{units} * moved < surplus) continue;
    const auto full = surplus / moved;
    const auto rest = static_cast<int>(surplus % moved);
    const auto cut = base + full * moving_cost(units, moved) + (rest > 0 ? moving_cost(units, rest) : 0);
    if (best.cables < 0 || cut < best.cables) best = {cut, units, moved};
  }
  return best;
}

// One level of which all devices are gateways, and the first s devices (the first `longer` units: s+1) of each of
// `units` units on one side: most of those that are given up had their peers given up as well. Gateway j-1 of unit i
// and gateway i of unit j > i are the two ends of a cable.
Cells::Split Cells::even_moves(int units) const {
  const int s = devices_ / 2 / units;
  const int longer = devices_ / 2 % units;
  std::int64_t cut = 0;
  for (int i = 0; i < units; ++i) {
    const int kept = s + (i < longer ? 1 : 0);
    const int later = std::max(0, std::min(units - 1, kept) - i);  // gateways to units behind it
    const int earlier = std::min(i, kept);
    // Of the cables to later units, those with both ends on the side.
    const int both = i < s ? later : i == s ? std::clamp(longer - i - 1, 0, later) : 0;
    cut += suffix_cut(0, kept) + std::max(0, kept - (units - 1)) + later + earlier - 2 * both;
  }
  return {cut, units, 0};
}

// The papers only give lower bounds. Searched: the first half of the devices against the second, and sides of more than
// half of the top level's units that give up devices, above all those whose cable to the other side is cut as long as
// they stay. For one level of DCell and large n the best of these is near 0.207 N (0.707 g units), against N/4 between
// halves.
Cells::Split Cells::best_split() const {
  if (levels_.empty()) return {n_ / 2, 0, 0};
  const auto& top = levels_.back();
  Split best{suffix_cut(levels_.size(), devices_ / 2), 0, 0};
  const bool even = levels_.size() == 1 && top.units == n_ + 1;
  for (int units = (top.units + 1) / 2; units < top.units; ++units) {
    const auto split = even ? even_moves(units) : cheapest_moves(units);
    if (split.cables >= 0 && split.cables < best.cables) best = split;
  }
  return best;
}

std::vector<bool> Cells::bisection_split() const {
  const auto split = best_split();
  std::vector<bool> side(static_cast<std::size_t>(devices_), false);
  if (split.units == 0) {
    std::fill_n(side.begin(), devices_ / 2, true);
    return side;
  }
  const int size = levels_.back().size;
  auto surplus = std::int64_t{split.units} * size - devices_ / 2;
  std::fill_n(side.begin(), std::int64_t{split.units} * size, true);
  for (int unit = 0; unit < split.units; ++unit) {
    const int kept = devices_ / 2 / split.units + (unit < devices_ / 2 % split.units ? 1 : 0);
    const auto moved = std::min<std::int64_t>(surplus, split.moved > 0 ? split.moved : size - kept);
    for (int index = 0; index < moved; ++index) {
      side[static_cast<std::size_t>(unit * size + moved_device(split.units, index))] = false;
    }
    surplus -= moved;
  }
  return side;
}

}  // namespace tandem
