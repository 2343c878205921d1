// The placement policies: packed, spread, random and from a file.
#include "platforms/placement.hpp"

#include <algorithm>
#include <fstream>
#include <unordered_map>

#include "sim/core/random.hpp"

namespace tandem {
namespace {

class Packed final : public PlacementPolicy {
 public:
  [[nodiscard]] std::vector<DeviceId> place(const Cluster&, int ranks) const override {
    std::vector<DeviceId> devices;
    for (int rank = 0; rank < ranks; ++rank) devices.push_back(DeviceId{rank});
    return devices;
  }
};

// Round robin over nodes, which are themselves spread evenly over the cluster where there are more of them than ranks.
class Spread final : public PlacementPolicy {
 public:
  [[nodiscard]] std::vector<DeviceId> place(const Cluster& cluster, int ranks) const override {
    const int used = std::min(ranks, cluster.nodes());
    std::vector<DeviceId> devices;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto node = static_cast<int>(std::int64_t{rank % used} * cluster.nodes() / used);
      devices.push_back(DeviceId{node * cluster.options().devices_per_node + rank / used});
    }
    return devices;
  }
};

class Shuffled final : public PlacementPolicy {
 public:
  explicit Shuffled(std::uint64_t seed) : seed_(seed) {}
  [[nodiscard]] std::vector<DeviceId> place(const Cluster& cluster, int ranks) const override {
    std::vector<DeviceId> devices;
    for (int device = 0; device < cluster.devices(); ++device) devices.push_back(DeviceId{device});
    Random(seed_).shuffle(devices);
    devices.resize(static_cast<std::size_t>(ranks));
    return devices;
  }

 private:
  std::uint64_t seed_;
};

// A device number a line, in the order of ranks; '#' starts a comment and empty lines are skipped. A file may name more
// devices than there are ranks: one file then serves a sweep.
class FromFile final : public PlacementPolicy {
 public:
  explicit FromFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::vector<DeviceId> place(const Cluster& cluster, int ranks) const override {
    std::ifstream file(path_);
    if (!file) throw input_error(fmt::format("{}: the placement file cannot be opened", path_));
    std::vector<DeviceId> devices;
    std::unordered_map<std::int32_t, int> line_of;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const auto text = stripped(line);
      if (text.empty()) continue;
      const auto device = parse_line(text, number, cluster.devices());
      const auto [first, is_new] = line_of.emplace(device.value, number);
      if (!is_new) {
        throw input_error(
            fmt::format("{}:{}: device {} is already taken by line {}", path_, number, device.value, first->second));
      }
      devices.push_back(device);
    }
    if (file.bad()) throw input_error(fmt::format("{}: the placement file cannot be read", path_));
    if (devices.size() < static_cast<std::size_t>(ranks)) {
      throw input_error(fmt::format("{}: {} devices are named for {} ranks", path_, devices.size(), ranks));
    }
    devices.resize(static_cast<std::size_t>(ranks));
    return devices;
  }

 private:
  static std::string stripped(const std::string& line) {
    const auto text = line.substr(0, line.find('#'));
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
  }

  [[nodiscard]] DeviceId parse_line(const std::string& text, int number, int devices) const {
    try {
      return DeviceId{static_cast<std::int32_t>(parse_integer(text, 0, devices - 1, "the device"))};
    } catch (const Error& error) {
      throw input_error(fmt::format("{}:{}: {}", path_, number, error.what()));
    }
  }

  std::string path_;
};

std::unique_ptr<PlacementPolicy> make_packed(const Arguments&, const PlacementPolicy::PluginContext&) {
  return std::make_unique<Packed>();
}
std::unique_ptr<PlacementPolicy> make_spread(const Arguments&, const PlacementPolicy::PluginContext&) {
  return std::make_unique<Spread>();
}
std::unique_ptr<PlacementPolicy> make_random(const Arguments& arguments, const PlacementPolicy::PluginContext&) {
  return std::make_unique<Shuffled>(static_cast<std::uint64_t>(arguments.integer("seed", 0, INT64_MAX)));
}
std::unique_ptr<PlacementPolicy> make_from_file(const Arguments& arguments, const PlacementPolicy::PluginContext&) {
  return std::make_unique<FromFile>(arguments.text("path"));
}

TANDEM_REGISTER(PlacementPolicy, packed, "packed", "rank r on device r", make_packed, {})
TANDEM_REGISTER(PlacementPolicy, spread, "spread", "round robin over nodes, evenly over the cluster", make_spread, {})
TANDEM_REGISTER(PlacementPolicy, random, "random", "devices drawn at random", make_random,
                {{"seed", ParameterType::integer, "1", "of the draw"}})
TANDEM_REGISTER(PlacementPolicy, file, "file", "devices named by a file, one number a line, in the order of ranks",
                make_from_file, {{"path", ParameterType::text, "", "the file"}})

}  // namespace

std::vector<DeviceId> place(const std::string& text, const Cluster& cluster, int ranks) {
  const auto policy = Registry<PlacementPolicy>::instance().make(text);
  if (ranks < 1 || ranks > cluster.devices()) {
    throw usage_error(
        fmt::format("{} ranks cannot be placed on {} devices: a device runs one rank", ranks, cluster.devices()));
  }
  return with_context(fmt::format("placement '{}'", text), [&] { return policy->place(cluster, ranks); });
}

}  // namespace tandem
