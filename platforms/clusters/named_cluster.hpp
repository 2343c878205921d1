// Clusters that people know by name: what `--cluster NAME[:nodes=N]` sets, and where each number is from. A cluster
// sets options of the network by their names on the command line; those that are given beside it override its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/registry.hpp"

namespace tandem {

class NamedCluster {
 public:
  static constexpr const char* plugin_kind = "cluster";
  static constexpr const char* plugin_help = "named clusters: what --cluster sets, with sources";
  struct PluginContext {};

  struct Setting {
    std::string option;  // without its dashes
    std::string value;
    std::string source;  // a document, or what was assumed and why
  };

  explicit NamedCluster(std::vector<Setting> settings) : settings_(std::move(settings)) {}
  [[nodiscard]] const std::vector<Setting>& settings() const { return settings_; }

 private:
  std::vector<Setting> settings_;
};

[[nodiscard]] inline ParameterSpec nodes_parameter(const char* default_value, const char* help) {
  return {"nodes", ParameterType::integer, default_value, help};
}
[[nodiscard]] inline std::int64_t nodes_of(const Arguments& arguments) {
  return arguments.integer("nodes", 1, 131'072);
}

}  // namespace tandem
