// Binary hypercube of q dimensions: 2^q devices, each joined directly to the q others whose numbers differ from its own
// in one bit (Seitz, Communications of the ACM 1985).
//
// Routing is e-cube: the bits that differ are corrected from the lowest to the highest (Sullivan and Bashkow, ISCA
// 1977). With routing=hashed their order is drawn from (src, dst, flow): h differing bits have h! paths, all shortest.
#include <algorithm>
#include <bit>

#include "platforms/topologies/build.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostDimensions = 22;  // 2^22 devices
constexpr int kRackDimensions = 4;   // the 16 devices of a rack

// Cables of a dimension follow each other in the order of their ends, the dimension's bit left out.
class Hypercube final : public Topology {
 public:
  Hypercube(int dimensions, bool hashed, int planes, const PluginContext& context)
      : Topology(context, planes), dimensions_(dimensions), hashed_(hashed) {
    instance_ = fmt::format("hypercube:dimensions={}{},planes={}", dimensions, hashed ? ",routing=hashed" : "", planes);
    const auto wanted = std::int64_t{1} << dimensions;
    check_size(instance_, wanted, wanted / 2 * dimensions);
    devices_ = 1 << dimensions;
    vertices_ = devices_;
    links_.reserve(static_cast<std::size_t>(devices_) * static_cast<std::size_t>(dimensions));
    for (int dimension = 0; dimension < dimensions; ++dimension) {
      const int bit = 1 << dimension;
      for (int device = 0; device < devices_; ++device) {
        if ((device & bit) == 0) connect(device, device | bit, LinkKind::direct);
      }
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    auto missing = static_cast<unsigned>(src.value ^ dst.value);
    Random random(hashed_ ? flow_hash(src, dst, flow) : 0);
    for (int at = src.value; missing != 0;) {
      auto bit = missing & (~missing + 1);
      if (hashed_) {
        auto rest = missing;
        const auto skipped = random.below(static_cast<std::uint32_t>(std::popcount(missing)));
        for (std::uint32_t i = 0; i < skipped; ++i) rest &= rest - 1;
        bit = rest & (~rest + 1);
      }
      path.push_back(link_across(at, std::countr_zero(bit)));
      at ^= static_cast<int>(bit);
      missing ^= bit;
    }
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    return dimensions_ == 0 ? fmt::format("device {}", vertex)
                            : fmt::format("device {} ({:0{}b})", vertex, vertex, dimensions_);
  }

  [[nodiscard]] std::vector<int> radices() const override {
    return dimensions_ == 0 ? std::vector<int>{1} : std::vector<int>(static_cast<std::size_t>(dimensions_), 2);
  }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    result.devices = devices_;
    result.links = cables() * planes_;
    result.ports_per_device = dimensions_ * planes_;
    result.diameter = dimensions_;
    if (devices_ > 1) result.mean_path = dimensions_ / 2.0 * devices_ / (devices_ - 1.0);
    // Halves along one dimension. Uniform traffic loads every link with N/2 of the N^2/4 pairs that have to cross: no
    // cut is smaller.
    result.bisection_links = static_cast<double>(std::int64_t{devices_ / 2} * planes_);
    result.bisection_proved = true;
    return result;
  }

  // A rack holds a cube of four dimensions, with copper cables; those of higher dimensions are optical.
  [[nodiscard]] CostItems cost_items() const override {
    const auto all = cables() * planes_;
    const auto copper = std::int64_t{devices_ / 2} * std::min(dimensions_, kRackDimensions) * planes_;
    return {.device_ports = 2 * all, .copper_cables = copper, .optical_cables = all - copper};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return link(id).from >> kRackDimensions == link(id).to >> kRackDimensions ? LengthClass::copper
                                                                              : LengthClass::optical;
  }

 private:
  [[nodiscard]] std::int64_t cables() const { return std::int64_t{devices_ / 2} * dimensions_; }

  [[nodiscard]] LinkId link_across(int device, int dimension) const {
    const int above = device >> (dimension + 1) << dimension;
    const int below = device & ((1 << dimension) - 1);
    const bool downward = (device >> dimension & 1) != 0;
    return LinkId{2 * (dimension * (devices_ / 2) + above + below) + (downward ? 1 : 0)};
  }

  int dimensions_;
  bool hashed_;
};

std::unique_ptr<Topology> make_hypercube(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto& routing = arguments.text("routing");
  if (routing != "e-cube" && routing != "hashed") {
    throw usage_error(fmt::format("topology 'hypercube': unknown routing '{}'{}", routing,
                                  suggestion(routing, {"e-cube", "hashed"})));
  }
  const int dimensions = arguments.has("dimensions")
                             ? static_cast<int>(arguments.integer("dimensions", 0, kMostDimensions))
                             : std::bit_width(static_cast<unsigned>(context.devices - 1));
  return std::make_unique<Hypercube>(dimensions, routing == "hashed", planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, hypercube, "hypercube", "binary hypercube: direct links across every bit of the number",
                make_hypercube,
                {{"dimensions", ParameterType::integer, "",
                  "2^dimensions devices (the smallest that fits when left out)"},
                 {"routing", ParameterType::text, "e-cube", "order of the bits: e-cube (lowest first) or hashed"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
