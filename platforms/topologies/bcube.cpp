// BCube(n,k): devices with k+1 ports and small switches of n ports, no cable between switches (Guo et al., SIGCOMM
// 2009).
//
//   device a_k..a_0, digits below n, number = sum of a_l * n^l
//   switch <l; a_k..a_(l+1) a_(l-1)..a_0>, l = 0..k, joins the n devices that differ in a_l only
//
// Routing corrects digits, two links each, and devices pass on what is not for them. By default the highest digit comes
// first (BCubeRouting). routing=rotated starts at a digit hashed from (src, dst, flow) and goes down from there,
// cyclically. routing=parallel hashes one of the k+1 paths of BuildPathSet, which share no cable: path i starts at
// digit i as above, or, where digit i does not differ, by a detour to the next device on that digit's switch, which is
// corrected last; that path has four links more than the shortest.
#include <algorithm>

#include "platforms/topologies/box_cut.hpp"
#include "platforms/topologies/build.hpp"
#include "platforms/topologies/levels.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

enum class BCubeRouting { fixed, rotated, parallel };

constexpr const char* kRoutings[] = {"fixed", "rotated", "parallel"};

// Cable d * (k+1) + l leads from device d to its switch of level l.
class BCube final : public Topology {
 public:
  BCube(Levels levels, BCubeRouting routing, int planes, const PluginContext& context)
      : Topology(context, planes), n_(levels.n), digits_(levels.k + 1), routing_(routing) {
    instance_ = fmt::format(
        "bcube:n={},k={}{},planes={}", n_, levels.k,
        routing == BCubeRouting::fixed ? "" : fmt::format(",routing={}", kRoutings[static_cast<std::size_t>(routing)]),
        planes);
    const auto wanted = capped_product(radices());
    check_size(instance_, wanted, 0);
    check_size(instance_, wanted, wanted * digits_);
    devices_ = static_cast<int>(wanted);
    vertices_ = devices_ + digits_ * (devices_ / n_);
    for (int level = 0, stride = 1; level < digits_; ++level, stride *= n_) stride_.push_back(stride);
    links_.reserve(2 * static_cast<std::size_t>(devices_) * static_cast<std::size_t>(digits_));
    for (int device = 0; device < devices_; ++device) {
      for (int level = 0; level < digits_; ++level) connect(device, switch_of(device, level), LinkKind::device_port);
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    int first = digits_ - 1;
    if (routing_ != BCubeRouting::fixed) {
      first = static_cast<int>(flow_hash(src, dst, flow) % static_cast<unsigned>(digits_));
    }
    int at = src.value;
    const bool detour = routing_ == BCubeRouting::parallel && digit(src.value, first) == digit(dst.value, first);
    if (detour) at = correct(at, first, (digit(at, first) + 1) % n_, path);
    // A detour's own digit comes last.
    for (int step = detour ? 1 : 0; step < digits_ + (detour ? 1 : 0); ++step) {
      const int level = (first - step + 2 * digits_) % digits_;
      at = correct(at, level, digit(dst.value, level), path);
    }
  }

  [[nodiscard]] bool shortest_routing() const override { return routing_ != BCubeRouting::parallel || digits_ == 1; }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    if (vertex < devices_) return fmt::format("device {} ({})", vertex, address(vertex, -1));
    const int level = (vertex - devices_) / (devices_ / n_);
    const int line = (vertex - devices_) % (devices_ / n_);
    const int below = stride_[static_cast<std::size_t>(level)];
    return fmt::format("switch {} ({})", level, address(line / below * below * n_ + line % below, level));
  }

  [[nodiscard]] std::vector<int> radices() const override {
    return std::vector<int>(static_cast<std::size_t>(digits_), n_);
  }

  [[nodiscard]] Characteristics characteristics() const override;

  // The switch of level 0 is in the rack; the others join racks.
  [[nodiscard]] CostItems cost_items() const override {
    const auto level = std::int64_t{devices_} * planes_;
    return {.switch_ports = level * digits_,
            .device_ports = level * digits_,
            .copper_cables = level,
            .optical_cables = level * (digits_ - 1)};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return id.value / 2 % digits_ == 0 ? LengthClass::copper : LengthClass::optical;
  }

 private:
  [[nodiscard]] int digit(int device, int level) const {
    return device / stride_[static_cast<std::size_t>(level)] % n_;
  }
  [[nodiscard]] int switch_of(int device, int level) const {
    const int below = stride_[static_cast<std::size_t>(level)];
    return devices_ + level * (devices_ / n_) + device / (below * n_) * below + device % below;
  }

  // From `at` to the device that has `value` in a digit, over that digit's switch.
  int correct(int at, int level, int value, std::vector<LinkId>& path) const {
    const int own = digit(at, level);
    if (own == value) return at;
    const int next = at + (value - own) * stride_[static_cast<std::size_t>(level)];
    path.push_back(LinkId{2 * (at * digits_ + level)});
    path.push_back(LinkId{2 * (next * digits_ + level) + 1});
    return next;
  }

  // "a_k,...,a_0", with '*' for the digit that a switch joins.
  [[nodiscard]] std::string address(int device, int joined_level) const {
    std::vector<std::string> digits;
    for (int level = digits_ - 1; level >= 0; --level) {
      digits.push_back(level == joined_level ? "*" : std::to_string(digit(device, level)));
    }
    return fmt::format("{}", fmt::join(digits, ","));
  }

  int n_;
  int digits_;  // k+1
  BCubeRouting routing_;
  std::vector<int> stride_;
};

Characteristics BCube::characteristics() const {
  const double devices = devices_;
  Characteristics result;
  result.devices = devices_;
  result.switches = std::int64_t{digits_} * (devices_ / n_) * planes_;
  result.max_switch_radix = n_;
  result.links = std::int64_t{digits_} * devices_ * planes_;
  result.ports_per_device = digits_ * planes_;
  result.switch_ports_per_device = digits_ * planes_;
  result.diameter = 2 * digits_;
  result.mean_path = 2 * digits_ * (1 - 1.0 / n_) * devices / (devices - 1);
  // Halves along one digit cost N/2 where n is even; a corner of the cube costs less for n >= 8 (28 for 32 cables of
  // BCube(8,1)). One switch: each device of the smaller half has its own cable. n = 2: the hypercube's N/2.
  result.bisection_links = static_cast<double>(
      BoxCut(radices(), std::vector<std::int64_t>(static_cast<std::size_t>(digits_), 1)).least() * planes_);
  result.bisection_proved = digits_ == 1 || n_ == 2;
  return result;
}

std::unique_ptr<Topology> make_bcube(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto& text = arguments.text("routing");
  const auto* const found = std::find(std::begin(kRoutings), std::end(kRoutings), text);
  if (found == std::end(kRoutings)) {
    throw usage_error(fmt::format("topology 'bcube': unknown routing '{}'{}", text,
                                  suggestion(text, {std::begin(kRoutings), std::end(kRoutings)})));
  }
  const auto levels = levels_of(arguments, context.devices,
                                {"bcube", 2, 1, [](int n, int k) {
                                   return capped_product(std::vector<int>(static_cast<std::size_t>(k) + 1, n));
                                 }});
  return std::make_unique<BCube>(levels, static_cast<BCubeRouting>(found - std::begin(kRoutings)), planes_of(arguments),
                                 context);
}

TANDEM_REGISTER(Topology, bcube, "bcube", "devices with k+1 ports on small switches, one for every digit (BCube)",
                make_bcube,
                {{"n", ParameterType::integer, "", "ports of a switch; n^(k+1) devices (as needed when left out)"},
                 {"k", ParameterType::integer, "", "levels above the first (as needed when left out)"},
                 {"routing", ParameterType::text, "fixed",
                  "order of the digits: fixed, rotated (start hashed) or parallel (hashed from k+1 disjoint paths)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
