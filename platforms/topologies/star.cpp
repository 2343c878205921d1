// Star: every device on one non-blocking switch. The idealised network that closed forms of collectives assume.
#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

// Cable i joins device i and the switch: link 2i goes up, 2i+1 down.
class Star final : public Topology {
 public:
  Star(int devices, int planes, const PluginContext& context) : Topology(context, planes) {
    instance_ = fmt::format("star:devices={},planes={}", devices, planes);
    check_size(instance_, devices, devices);
    devices_ = devices;
    vertices_ = devices + 1;
    links_.reserve(2 * static_cast<std::size_t>(devices));
    for (int device = 0; device < devices; ++device) connect(device, devices, LinkKind::device_port);
  }

  void route(DeviceId src, DeviceId dst, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    path.push_back(LinkId{2 * src.value});
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    return vertex < devices_ ? fmt::format("device {}", vertex) : "switch";
  }

  [[nodiscard]] std::vector<int> radices() const override { return {devices_}; }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    result.devices = devices_;
    result.switches = planes_;
    result.max_switch_radix = devices_;
    result.links = std::int64_t{devices_} * planes_;
    result.ports_per_device = planes_;
    result.switch_ports_per_device = planes_;
    result.diameter = devices_ > 1 ? 2 : 0;
    result.mean_path = devices_ > 1 ? 2 : 0;
    // Any two halves are joined by as many cable-disjoint paths (up, down) as the smaller has devices.
    result.bisection_links = static_cast<double>(std::int64_t{devices_ / 2} * planes_);
    result.bisection_proved = true;
    return result;
  }

  [[nodiscard]] CostItems cost_items() const override {
    const auto cables = std::int64_t{devices_} * planes_;
    return {.switch_ports = cables, .device_ports = cables, .copper_cables = cables};
  }
};

std::unique_ptr<Topology> make_star(const Arguments& arguments, const Topology::PluginContext& context) {
  const auto devices = arguments.has("devices") ? arguments.integer("devices", 1, kMostDevices) : context.devices;
  return std::make_unique<Star>(static_cast<int>(devices), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, star, "star", "every device on one non-blocking switch", make_star,
                {{"devices", ParameterType::integer, "", "devices (as many as wanted when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
