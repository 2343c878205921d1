// The network file of ASTRA-sim 2.0's analytical backend (Won et al., ISPASS 2023):
//
//   topology: [ Ring, FullyConnected, Switch ]
//   npus_count: [ 4, 8, 2 ]
//   bandwidth: [ 200.0, 100.0, 50.0 ]  # GB/s
//   latency: [ 50.0, 500.0, 2000.0 ]   # ns
//
// One entry a dimension; the first is the least significant digit of a device's number. Devices that differ in one
// digit only are a group, joined as the dimension says: each to its two neighbours (one cable where they are two),
// each to every other, or each to a switch of the group.
//
// What the numbers mean is taken from the backend's source (astra-network-analytical, commit 599a047), which files
// rely on: `bandwidth` is the rate of each single link in each direction (congestion_aware/basic-topology/*.cpp), so it
// is neither split over the two directions of a ring nor over the n - 1 links of a fully connected device; a gigabyte
// is 2^30 bytes (common/NetworkFunction.cpp), whatever the comment in the file says; `latency` is that of one link, and
// a switch is passed over two. Rings are bidirectional; the shorter way is taken, in the rising direction where both
// are equally long. Messages between devices that differ in several digits, which that backend refuses or cuts short,
// go dimension by dimension here, the first one first.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostDimensions = 8;
constexpr std::uintmax_t kMostFileBytes = 64 << 10;  // real ones have less than one kilobyte

enum class Block { ring, fully_connected, switched };

// One dimension of the file.
struct Dimension {
  Block block = Block::ring;
  int size = 2;
  BytesPerSecond bandwidth{};
  Seconds latency{};
};

// ---- the file ----

// What an error shows of the file, or of what yaml-cpp says about it.
std::string printable(std::string text) {
  text = text.substr(0, 80);
  for (auto& c : text) c = c < 0x20 || c > 0x7e ? '?' : c;
  return text;
}

std::string shown(const YAML::Node& node) {
  if (!node.IsScalar()) return node.IsNull() ? "nothing" : "a list or a map";
  return fmt::format("'{}'", printable(node.Scalar()));
}

double number_of(const YAML::Node& node, std::string_view key) {
  double value = 0;
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw input_error(fmt::format("'{}' has {} where a number is expected", key, shown(node)));
  }
  return value;
}

class NetworkFile {
 public:
  explicit NetworkFile(const std::string& text) {
    root_ = YAML::Load(text);
    if (!root_.IsMap()) throw input_error("it is not a YAML map of 'topology', 'npus_count', 'bandwidth', 'latency'");
    const std::vector<std::string> keys{"topology", "npus_count", "bandwidth", "latency"};
    for (const auto& entry : root_) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        throw input_error(fmt::format("unknown key {}{}", shown(entry.first), suggestion(key, keys)));
      }
    }
  }

  [[nodiscard]] std::vector<Dimension> dimensions(double gigabyte) const {
    const auto blocks = list("topology");
    std::vector<Dimension> result(blocks.size());
    const auto counts = list("npus_count");
    const auto bandwidths = list("bandwidth");
    const auto latencies = list("latency");
    for (std::size_t d = 0; d < result.size(); ++d) {
      result[d].block = block_of(blocks[d]);
      result[d].size = size_of(counts[d]);
      result[d].bandwidth = BytesPerSecond(rate_of(bandwidths[d]) * gigabyte);
      result[d].latency = Seconds(latency_of(latencies[d]) * 1e-9);
    }
    return result;
  }

 private:
  // As many entries as `topology` has.
  [[nodiscard]] std::vector<YAML::Node> list(const std::string& key) const {
    const YAML::Node node = root_[key];
    if (!node || !node.IsSequence()) throw input_error(fmt::format("'{}' is missing, or is no list", key));
    if (node.size() < 1 || node.size() > kMostDimensions) {
      throw input_error(
          fmt::format("'{}' has {} entries; 1 to {} dimensions are accepted", key, node.size(), kMostDimensions));
    }
    if (const auto wanted = root_["topology"].size(); node.size() != wanted) {
      throw input_error(fmt::format("'{}' has {} entries where 'topology' has {}", key, node.size(), wanted));
    }
    std::vector<YAML::Node> entries;
    for (const auto& entry : node) entries.push_back(entry);
    return entries;
  }

  static Block block_of(const YAML::Node& node) {
    const std::string name = node.IsScalar() ? node.Scalar() : "";
    if (name == "Ring") return Block::ring;
    if (name == "FullyConnected") return Block::fully_connected;
    if (name == "Switch") return Block::switched;
    throw input_error(fmt::format("'topology' has {}; accepted are Ring, FullyConnected, Switch", shown(node)));
  }

  static int size_of(const YAML::Node& node) {
    const double value = number_of(node, "npus_count");
    if (value < 2 || value > kMostDevices || value != std::floor(value)) {
      throw input_error(
          fmt::format("'npus_count' has {}; a whole number from 2 to {} is expected", shown(node), kMostDevices));
    }
    return static_cast<int>(value);
  }

  static double rate_of(const YAML::Node& node) {
    const double value = number_of(node, "bandwidth");
    if (value <= 0 || value > 1e9) {
      throw input_error(fmt::format("'bandwidth' has {}; GB/s above 0 and up to 1e9 are expected", shown(node)));
    }
    return value;
  }

  static double latency_of(const YAML::Node& node) {
    const double value = number_of(node, "latency");
    if (value < 0 || value > 1e15) {
      throw input_error(fmt::format("'latency' has {}; ns from 0 to 1e15 are expected", shown(node)));
    }
    return value;
  }

  YAML::Node root_;
};

std::vector<Dimension> read_dimensions(const std::string& path, double gigabyte) {
  return with_context(path, [&] {
    try {
      return NetworkFile(file_contents(path, kMostFileBytes)).dimensions(gigabyte);
    } catch (const YAML::Exception& error) {
      throw input_error(fmt::format("line {}: not YAML: {}", std::max(error.mark.line + 1, 1), printable(error.msg)));
    }
  });
}

// ---- the network ----

// Groups of a dimension: where their members, cables and switches are numbered.
struct Level {
  Block block = Block::ring;
  int size = 2;
  int stride = 1;       // product of the sizes below
  int first_cable = 0;  // cables of group g: first_cable + g * cables_of_group() ...
  int first_switch = 0;
  [[nodiscard]] int digit(int device) const { return device / stride % size; }
  [[nodiscard]] int group(int device) const { return device / (stride * size) * stride + device % stride; }
  [[nodiscard]] int member(int group, int digit) const {
    return group / stride * stride * size + digit * stride + group % stride;
  }
  [[nodiscard]] std::int64_t cables_of_group() const {
    const std::int64_t n = size;
    if (block == Block::fully_connected) return n * (n - 1) / 2;
    return block == Block::ring && n == 2 ? 1 : n;
  }
  // Cables cut in a group where its first `x` members are on one side, the switch where it costs less.
  [[nodiscard]] std::int64_t cut(std::int64_t x) const {
    const std::int64_t n = size;
    if (x == 0 || x == n) return 0;
    if (block == Block::fully_connected) return x * (n - x);
    if (block == Block::switched) return std::min(x, n - x);
    return n == 2 ? 1 : 2;
  }
  [[nodiscard]] int diameter() const { return block == Block::ring ? size / 2 : block == Block::switched ? 2 : 1; }
  // Links between two members, mean over all ordered pairs, equal ones too.
  [[nodiscard]] double mean() const {
    const double n = size;
    if (block == Block::fully_connected) return (n - 1) / n;
    if (block == Block::switched) return 2 * (n - 1) / n;
    return size % 2 == 0 ? n / 4 : (n * n - 1) / (4 * n);
  }
  // The most that a link carries when every member sends one unit to every other, split over equal paths.
  [[nodiscard]] double most_load() const {
    const double n = size;
    if (block == Block::fully_connected || size == 2) return 1;
    if (block == Block::switched) return n - 1;
    return size % 2 == 0 ? n * n / 8 : (n * n - 1) / 8;
  }
  [[nodiscard]] auto kind() const { return std::pair(block, size); }
};

class AstraSimNetwork final : public Topology {
 public:
  AstraSimNetwork(std::string name, const std::vector<Dimension>& dimensions, int planes, const PluginContext& context)
      : Topology(context, planes) {
    instance_ = std::move(name);
    number(dimensions);
    for (std::size_t d = 0; d < levels_.size(); ++d) build(levels_[d], dimensions[d]);
  }

  void route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    int at = src.value;
    for (const auto& level : levels_) {
      const int from = level.digit(at);
      const int to = level.digit(dst.value);
      if (from == to) continue;
      append(level, level.group(at), from, to, path);
      at += (to - from) * level.stride;
    }
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < devices_) return fmt::format("device {} ({})", vertex, address(vertex, nullptr));
    const auto level = std::find_if(levels_.rbegin(), levels_.rend(), [&](const Level& l) {
      return l.block == Block::switched && l.first_switch <= vertex;
    });
    return fmt::format("switch ({})", address(level->member(vertex - level->first_switch, 0), &*level));
  }

  [[nodiscard]] std::vector<int> radices() const override {
    std::vector<int> sizes;
    for (const auto& level : levels_) sizes.push_back(level.size);
    return sizes;
  }

  [[nodiscard]] Characteristics characteristics() const override;

  // Direct links and those to switches are taken for copper cables: the file does not say how far they reach.
  [[nodiscard]] CostItems cost_items() const override {
    CostItems items;
    for (const auto& level : levels_) {
      const auto cables = devices_ / level.size * level.cables_of_group() * planes_;
      const bool switched = level.block == Block::switched;
      items.switch_ports += switched ? cables : 0;
      items.device_ports += switched ? cables : 2 * cables;
      items.copper_cables += cables;
    }
    return items;
  }

 private:
  void number(const std::vector<Dimension>& dimensions) {
    std::vector<int> sizes;
    for (const auto& dimension : dimensions) sizes.push_back(dimension.size);
    const auto devices = capped_product(sizes);
    check_size(instance_, devices, 0);
    devices_ = static_cast<int>(devices);
    vertices_ = devices_;
    std::int64_t cables = 0;
    int stride = 1;
    for (const auto& dimension : dimensions) {
      Level level{dimension.block, dimension.size, stride, static_cast<int>(cables), vertices_};
      cables += devices / level.size * level.cables_of_group();
      check_size(instance_, devices, cables);
      if (level.block == Block::switched) vertices_ += devices_ / level.size;
      stride *= level.size;
      levels_.push_back(level);
    }
    links_.reserve(2 * static_cast<std::size_t>(cables));
  }

  void build(const Level& level, const Dimension& dimension) {
    for (int group = 0; group < devices_ / level.size; ++group) {
      const auto join = [&](int from, int to, LinkKind kind) {
        add_cable(from, to, dimension.bandwidth * planes_, dimension.latency, kind, planes_);
      };
      for (int digit = 0; digit < level.size; ++digit) {
        const int from = level.member(group, digit);
        if (level.block == Block::switched) {
          join(from, level.first_switch + group, LinkKind::device_port);
        } else if (level.block == Block::fully_connected) {
          for (int to = digit + 1; to < level.size; ++to) join(from, level.member(group, to), LinkKind::direct);
        } else if (level.size > 2 || digit == 0) {
          join(from, level.member(group, (digit + 1) % level.size), LinkKind::direct);
        }
      }
    }
  }

  static void append(const Level& level, int group, int from, int to, std::vector<LinkId>& path) {
    const int first = level.first_cable + group * static_cast<int>(level.cables_of_group());
    const auto add = [&](int cable, bool back) { path.push_back(LinkId{2 * (first + cable) + (back ? 1 : 0)}); };
    const int n = level.size;
    if (level.block == Block::switched) {
      add(from, false);
      add(to, true);
    } else if (level.block == Block::fully_connected || n == 2) {
      const int low = std::min(from, to);
      add(low * (2 * n - low - 1) / 2 + std::abs(to - from) - 1, from > to);
    } else {
      const int rising = (to - from + n) % n;
      const bool back = n - rising < rising;
      for (int at = from; at != to;) {
        const int next = (at + (back ? n - 1 : 1)) % n;
        add(back ? next : at, back);
        at = next;
      }
    }
  }

  // Digits in the file's order, '*' for the dimension that a switch joins.
  [[nodiscard]] std::string address(int device, const Level* joined) const {
    std::vector<std::string> digits;
    for (const auto& level : levels_) {
      digits.push_back(&level == joined ? "*" : std::to_string(level.digit(device)));
    }
    return fmt::format("{}", fmt::join(digits, ","));
  }

  [[nodiscard]] std::int64_t bisection_cables() const;
  [[nodiscard]] std::int64_t prefix_cut(const std::vector<std::size_t>& order) const;

  std::vector<Level> levels_;
};

// Cables cut around the first half of the devices in lexicographic order of a box of digits, `order` naming the least
// significant digit first. In each dimension the devices of a group that are inside come first in it, so its cut is
// that of a count: full turns of the digit, the turn that is begun, and in it some groups with one member more. The
// smallest over the sizes of the box, each from half of the digit to all.
std::int64_t AstraSimNetwork::prefix_cut(const std::vector<std::size_t>& order) const {
  const std::int64_t half = devices_ / 2;
  const bool whole_boxes = levels_.size() > 5;  // few enough choices for any number of devices
  std::int64_t least = -1;
  const auto choose = [&](const auto& self, std::size_t i, std::int64_t lines, std::int64_t sum) -> void {
    const Level& level = levels_[order[i]];
    const bool last = i + 1 == order.size();
    for (int size = last || whole_boxes ? level.size : (level.size + 1) / 2; size <= level.size; ++size) {
      const auto slab = lines * size;
      const auto x = half % slab / lines;
      const auto more = half % slab % lines;
      const auto total =
          sum + half / slab * lines * level.cut(size) + more * level.cut(x + 1) + (lines - more) * level.cut(x);
      if (!last) {
        self(self, i + 1, slab, total);
      } else if (slab >= half && (least < 0 || total < least)) {
        least = total;
      }
    }
  };
  choose(choose, 0, 1, 0);
  return least;
}

std::int64_t AstraSimNetwork::bisection_cables() const {
  std::vector<std::size_t> order(levels_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) { return levels_[a].kind() < levels_[b].kind(); };
  std::sort(order.begin(), order.end(), before);
  std::int64_t least = -1;
  do {
    const auto cut = prefix_cut(order);
    if (least < 0 || (cut >= 0 && cut < least)) least = cut;
  } while (
      std::next_permutation(order.begin(), order.end(), before));  // dimensions that are alike stand for each other
  return least;
}

Characteristics AstraSimNetwork::characteristics() const {
  Characteristics result;
  const double devices = devices_;
  result.devices = devices_;
  result.switches = std::int64_t{vertices_ - devices_} * planes_;
  double mean = 0;
  double most_load = 0;
  for (const auto& level : levels_) {
    if (level.block == Block::switched)
      result.max_switch_radix = std::max<std::int64_t>(result.max_switch_radix, level.size);
    result.links += devices_ / level.size * level.cables_of_group() * planes_;
    result.diameter += level.diameter();
    mean += level.mean();
    most_load = std::max(most_load, level.most_load() * (devices / level.size));
  }
  const auto items = cost_items();
  result.ports_per_device = static_cast<double>(items.device_ports) / devices;
  result.switch_ports_per_device = static_cast<double>(items.switch_ports) / devices;
  result.mean_path = mean * devices / (devices - 1);
  const auto cables = bisection_cables();
  result.bisection_links = static_cast<double>(cables * planes_);
  // Uniform traffic moves so many pairs through links that carry at most `most_load` of them; a switch alone has as
  // many disjoint paths between its halves as the smaller has devices.
  const double pairs = std::floor(devices / 2) * std::ceil(devices / 2);
  const bool one_switch = levels_.size() == 1 && levels_[0].block == Block::switched;
  result.bisection_proved = one_switch || static_cast<double>(cables) <= std::ceil(pairs / most_load - 1e-9);
  return result;
}

std::unique_ptr<Topology> make_astra_sim_network(const Arguments& arguments, const Topology::PluginContext& context) {
  refuse_other_rates("astra-sim-network", context);
  const auto& file = arguments.text("file");
  const auto& gigabyte = arguments.text("gigabyte");
  if (gigabyte != "GiB" && gigabyte != "GB") {
    throw usage_error(fmt::format("topology 'astra-sim-network': unknown gigabyte '{}'{}", gigabyte,
                                  suggestion(gigabyte, {"GiB", "GB"})));
  }
  const int planes = planes_of(arguments);
  const auto dimensions = read_dimensions(file, gigabyte == "GiB" ? 1024.0 * 1024 * 1024 : 1e9);
  const auto name =
      fmt::format("astra-sim-network:file={}{},planes={}", file, gigabyte == "GB" ? ",gigabyte=GB" : "", planes);
  return std::make_unique<AstraSimNetwork>(name, dimensions, planes, context);
}

TANDEM_REGISTER(Topology, astra_sim_network, "astra-sim-network",
                "ASTRA-sim 2.0's network.yml, with the rates and latencies that the file states",
                make_astra_sim_network,
                {{"file", ParameterType::text, "", "the network file; it must be given"},
                 {"gigabyte", ParameterType::text, "GiB",
                  "bytes of the file's GB/s: GiB (2^30, as ASTRA-sim counts) or GB (10^9)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
