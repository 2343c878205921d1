// Full mesh: every device has a cable to every other one. The most that direct links can do, at N-1 ports a device.
#include <algorithm>

#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

constexpr int kRack = 16;  // devices whose cables to each other are short

// Cables in the order of their ends (i,j), i < j.
class FullMesh final : public Topology {
 public:
  FullMesh(int devices, int planes, const PluginContext& context) : Topology(context, planes) {
    instance_ = fmt::format("full-mesh:devices={},planes={}", devices, planes);
    check_size(instance_, devices, pairs(devices));
    devices_ = devices;
    vertices_ = devices;
    links_.reserve(2 * static_cast<std::size_t>(pairs(devices)));
    for (int i = 0; i < devices; ++i) {
      for (int j = i + 1; j < devices; ++j) connect(i, j, LinkKind::direct);
    }
  }

  void route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const int low = std::min(src.value, dst.value);
    const int high = std::max(src.value, dst.value);
    const auto before = pairs(devices_) - pairs(devices_ - low);  // cables of devices with lower numbers
    const auto cable = static_cast<int>(before) + high - low - 1;
    path.push_back(LinkId{2 * cable + (src.value < dst.value ? 0 : 1)});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override { return fmt::format("device {}", vertex); }

  [[nodiscard]] std::vector<int> radices() const override { return {devices_}; }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    result.devices = devices_;
    result.links = pairs(devices_) * planes_;
    result.ports_per_device = static_cast<double>(std::int64_t{devices_ - 1} * planes_);
    result.diameter = devices_ > 1 ? 1 : 0;
    result.mean_path = devices_ > 1 ? 1 : 0;
    // Every pair of devices on different sides has a cable of its own, and there is no other choice.
    result.bisection_links = static_cast<double>(std::int64_t{devices_ / 2} * (devices_ - devices_ / 2) * planes_);
    result.bisection_proved = true;
    return result;
  }

  // Racks of 16 devices: cables inside of one are copper, between them optical.
  [[nodiscard]] CostItems cost_items() const override {
    const auto all = pairs(devices_) * planes_;
    const auto copper = (devices_ / kRack * pairs(kRack) + pairs(devices_ % kRack)) * planes_;
    return {.device_ports = 2 * all, .copper_cables = copper, .optical_cables = all - copper};
  }
  [[nodiscard]] LengthClass length_class(LinkId id) const override {
    return link(id).from / kRack == link(id).to / kRack ? LengthClass::copper : LengthClass::optical;
  }

 private:
  [[nodiscard]] static std::int64_t pairs(std::int64_t devices) { return devices * (devices - 1) / 2; }
};

std::unique_ptr<Topology> make_full_mesh(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto devices = arguments.has("devices") ? arguments.integer("devices", 1, kMostDevices) : context.devices;
  return std::make_unique<FullMesh>(static_cast<int>(devices), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, full_mesh, "full-mesh", "a cable between every two devices", make_full_mesh,
                {{"devices", ParameterType::integer, "", "devices (as many as wanted when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
