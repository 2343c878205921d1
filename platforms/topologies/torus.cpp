// Torus of any number of dimensions (a ring is one of one dimension; a hypercube one of many dimensions of 2). Devices
// are joined directly: in each dimension to the next and the previous coordinate, modulo the size. A dimension of 2 has
// one cable between its two coordinates, not two, and one of 1 has none.
//
// Address: the first dimension given is the least significant digit of the device number.
//
// Routing is dimension by dimension in that order, the shorter way round. Where both ways are equally long, the choice
// alternates with the parity of (coordinate mod n/2) + the lower coordinates of the source + the higher coordinates of
// the destination: these are all that differs between the flows that meet on one ring. Uniform traffic then loads both
// directions equally, exactly so where n/2 is even or another dimension has an even size.
#include <algorithm>

#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

constexpr int kMostDimensions = 22;  // 2^22 devices
constexpr int kBlock = 4;            // devices of a rack along each dimension

class Torus final : public Topology {
 public:
  Torus(std::vector<int> sizes, int planes, const PluginContext& context)
      : Topology(context, planes), sizes_(std::move(sizes)) {
    instance_ = fmt::format("torus:dims={},planes={}", joined(sizes_), planes);
    const auto wanted = capped_product(sizes_);
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, cables(wanted));
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_;
    links_.reserve(2 * static_cast<std::size_t>(cables(wanted)));
    int stride = 1;
    for (const int size : sizes_) {
      rings_.push_back({size, stride, static_cast<int>(links_.size() / 2)});
      build(rings_.back());
      stride *= size;
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    // What decides ties: lower coordinates of the source (added as the loop passes them), higher ones of the
    // destination.
    int parity = 0;
    for (const auto& ring : rings_) parity += ring.coordinate(dst.value);
    int at = src.value;
    for (const auto& ring : rings_) {
      const int from = ring.coordinate(at);
      const int to = ring.coordinate(dst.value);
      parity -= to;
      const int forward = (to - from + ring.size) % ring.size;
      const int backward = (from - to + ring.size) % ring.size;
      const bool tie_forward = (parity + from % std::max(1, ring.size / 2)) % 2 == 0;
      if (forward < backward || (forward == backward && tie_forward)) {
        for (int step = 0; step < forward; ++step) at = step_forward(ring, at, path);
      } else {
        for (int step = 0; step < backward; ++step) at = step_backward(ring, at, path);
      }
      parity += from;
    }
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    std::vector<int> digits;
    for (const auto& ring : rings_) digits.push_back(ring.coordinate(vertex));
    return fmt::format("device {} ({})", vertex, fmt::join(digits, ","));
  }

  [[nodiscard]] std::vector<int> radices() const override { return sizes_; }

  [[nodiscard]] Characteristics characteristics() const override;
  [[nodiscard]] CostItems cost_items() const override;
  [[nodiscard]] LengthClass length_class(LinkId id) const override;

 private:
  struct Ring {
    int size;
    int stride;
    int first_cable;
    [[nodiscard]] int coordinate(int device) const { return device / stride % size; }
  };

  // Cable in the ring's direction that starts at `device`. A pair has only the one that starts at coordinate 0.
  [[nodiscard]] static int cable_from(const Ring& ring, int device) {
    if (ring.size > 2) return ring.first_cable + device;
    return ring.first_cable + device / (2 * ring.stride) * ring.stride + device % ring.stride;
  }

  static int step_forward(const Ring& ring, int at, std::vector<LinkId>& path) {
    const int coordinate = ring.coordinate(at);
    const bool reversed = ring.size == 2 && coordinate == 1;
    path.push_back(LinkId{2 * cable_from(ring, at) + (reversed ? 1 : 0)});
    return at + (coordinate + 1 == ring.size ? 1 - ring.size : 1) * ring.stride;
  }

  static int step_backward(const Ring& ring, int at, std::vector<LinkId>& path) {
    const int coordinate = ring.coordinate(at);
    const int next = at + (coordinate == 0 ? ring.size - 1 : -1) * ring.stride;
    const bool forward = ring.size == 2 && coordinate == 0;
    path.push_back(LinkId{2 * cable_from(ring, next) + (forward ? 0 : 1)});
    return next;
  }

  void build(const Ring& ring) {
    if (ring.size == 1) return;
    for (int device = 0; device < devices_; ++device) {
      const int coordinate = ring.coordinate(device);
      if (ring.size == 2 && coordinate == 1) continue;
      const int next = device + (coordinate + 1 == ring.size ? 1 - ring.size : 1) * ring.stride;
      connect(device, next, LinkKind::direct);
    }
  }

  [[nodiscard]] static std::int64_t cables_of(int size, std::int64_t devices) {
    return size == 1 ? 0 : size == 2 ? devices / 2 : devices;
  }
  [[nodiscard]] std::int64_t cables(std::int64_t devices) const {
    std::int64_t sum = 0;
    for (const int size : sizes_) sum += cables_of(size, devices);
    return sum;
  }

  std::vector<int> sizes_;
  std::vector<Ring> rings_;
};

// Cables cut around the first `count` devices in lexicographic order, the dimension at each level of the order chosen
// to cut least. Whole slabs are cut off at both their faces (one for a pair); the slab left over is split in turn.
std::int64_t lexicographic_cut(std::vector<int> sizes, std::int64_t count) {
  const auto devices = capped_product(sizes);
  if (count == 0 || count == devices) return 0;
  std::int64_t least = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int size = sizes[i];
    if (size == 1 || std::find(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), size) !=
                         sizes.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    auto rest = sizes;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const auto slab = devices / size;
    const auto whole = count / slab;
    const auto left = count % slab;
    std::int64_t faces = size == 2 ? slab : 2 * slab;
    // The partly filled slab comes first or last: its neighbours are all empty or all full.
    if (whole == 0) faces = (size == 2 ? 1 : 2) * left;
    if (whole == size - 1) faces = (size == 2 ? 1 : 2) * (slab - left);
    const auto cut = faces + lexicographic_cut(std::move(rest), left);
    if (least < 0 || cut < least) least = cut;
  }
  return least;
}

Characteristics Torus::characteristics() const {
  const std::int64_t devices = devices_;
  Characteristics result;
  result.devices = devices;
  result.links = cables(devices) * planes_;
  result.ports_per_device = 2 * static_cast<double>(result.links) / static_cast<double>(devices);
  double mean = 0;  // over all ordered pairs, equal ones too
  for (const double size : sizes_) {
    result.diameter += static_cast<int>(size) / 2;
    mean += static_cast<int>(size) % 2 == 0 ? size / 4 : (size * size - 1) / (4 * size);
  }
  if (devices > 1) result.mean_path = mean * static_cast<double>(devices) / static_cast<double>(devices - 1);
  // Where the largest size is even this is 2N/size (N/2 for a pair), and uniform traffic, which loads each of those
  // links with N*size/8 (N/2) of the N^2/4 pairs that must cross, proves that nothing is smaller.
  result.bisection_links = static_cast<double>(lexicographic_cut(sizes_, devices / 2) * planes_);
  result.bisection_proved = *std::max_element(sizes_.begin(), sizes_.end()) % 2 == 0;
  return result;
}

// Devices come in blocks of up to kBlock along each dimension (a rack; as in TPU v4, Jouppi et al., ISCA 2023): cables
// inside a block are copper, cables between blocks optical. Without switches, every cable end is a device port.
CostItems Torus::cost_items() const {
  CostItems items;
  for (const std::int64_t size : sizes_) {
    const auto all = cables_of(static_cast<int>(size), devices_) * planes_;
    const auto optical = size <= kBlock ? 0 : devices_ / size * ((size + kBlock - 1) / kBlock) * planes_;
    items.device_ports += 2 * all;
    items.copper_cables += all - optical;
    items.optical_cables += optical;
  }
  return items;
}

// A ring longer than a block leaves it behind the block's last coordinate, and behind its own.
LengthClass Torus::length_class(LinkId id) const {
  const auto& cable = link(LinkId{id.value / 2 * 2});
  for (const auto& ring : rings_) {
    const int from = ring.coordinate(cable.from);
    if (from == ring.coordinate(cable.to)) continue;
    const bool leaves = ring.size > kBlock && (from % kBlock == kBlock - 1 || from == ring.size - 1);
    return leaves ? LengthClass::optical : LengthClass::copper;
  }
  return LengthClass::copper;
}

std::vector<int> torus_sizes(const Arguments& arguments, int devices) {
  if (arguments.has("dims")) {
    auto sizes = arguments.integers("dims", 1, kMostDevices);
    if (sizes.size() > kMostDimensions) {
      throw usage_error(fmt::format("topology 'torus': {} dimensions are given, at most {} are accepted", sizes.size(),
                                    kMostDimensions));
    }
    if (arguments.has("dimensions")) {
      throw usage_error("topology 'torus': 'dims' already says how many dimensions there are; leave 'dimensions' out");
    }
    return sizes;
  }
  const auto dimensions =
      arguments.has("dimensions") ? static_cast<int>(arguments.integer("dimensions", 1, kMostDimensions)) : 3;
  return cube_like(devices, dimensions, kMostDevices);
}

std::unique_ptr<Topology> make_torus(const Arguments& arguments, const Topology::PluginContext& context) {
  return std::make_unique<Torus>(torus_sizes(arguments, context.devices), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, torus, "torus", "direct links to both neighbours in every dimension (a ring has one)",
                make_torus,
                {{"dims", ParameterType::integer_list, "",
                  "sizes, least significant first, e.g. 4x4x4 (when left out: the most cube-like that fits)"},
                 {"dimensions", ParameterType::integer, "", "how many, where dims is left out (3 when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
