// tandem list: the plug-ins there are, from their own registrations.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "platforms/clusters/named_cluster.hpp"
#include "sim/cli/output.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/registry.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

using json = nlohmann::ordered_json;

std::string type_text(ParameterType type) {
  switch (type) {
    case ParameterType::integer:
      return "whole number";
    case ParameterType::number:
      return "number";
    case ParameterType::boolean:
      return "yes|no";
    case ParameterType::bytes:
      return "size, e.g. 25MiB";
    case ParameterType::seconds:
      return "duration, e.g. 5us";
    case ParameterType::bandwidth:
      return "bandwidth, e.g. 100Gbps";
    case ParameterType::text:
      return "text";
    case ParameterType::integer_list:
      return "whole numbers, e.g. 4x4x4";
  }
  return "";
}

const RegistryBase& find_registry(const std::string& kind) {
  std::vector<std::string> kinds;
  for (const auto* registry : RegistryBase::all()) {
    if (registry->kind() == kind) return *registry;
    kinds.push_back(registry->kind());
  }
  throw usage_error(fmt::format("unknown kind '{}'{}", kind, suggestion(kind, kinds)));
}

// What a named cluster sets, with its default size; nothing for other plug-ins.
std::vector<NamedCluster::Setting> settings_of(const RegistryBase& registry, const std::string& name) {
  if (registry.kind() != NamedCluster::plugin_kind) return {};
  return Registry<NamedCluster>::instance().make(name)->settings();
}

json plugin_json(const RegistryBase& registry, const std::string& name) {
  const auto& info = registry.info(name);
  json parameters = json::array();
  for (const auto& parameter : info.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"type", type_text(parameter.type)},
                          {"default", parameter.default_value},
                          {"help", parameter.help}});
  }
  json plugin{{"kind", registry.kind()}, {"name", info.name}, {"help", info.help}, {"parameters", parameters}};
  for (const auto& [option, value, source] : settings_of(registry, name)) {
    plugin["settings"].push_back({{"option", option}, {"value", value}, {"source", source}});
  }
  return plugin;
}

std::string kinds_table() {
  std::vector<std::vector<std::string>> rows{{"kind", "plug-ins", "what they are"}};
  for (const auto* registry : RegistryBase::all()) {
    rows.push_back({registry->kind(), fmt::format("{}", fmt::join(registry->names(), " ")), registry->help()});
  }
  return aligned(rows) + "\n'tandem list KIND' and 'tandem list KIND NAME' say more.\n";
}

std::string names_table(const RegistryBase& registry) {
  std::vector<std::vector<std::string>> rows{{"name", "help"}};
  for (const auto& name : registry.names()) rows.push_back({name, registry.info(name).help});
  return aligned(rows);
}

std::string plugin_table(const RegistryBase& registry, const std::string& name) {
  const auto& info = registry.info(name);
  auto text = fmt::format("{} {}: {}\n", registry.kind(), info.name, info.help);
  if (info.parameters.empty()) return text + "It takes no parameters.\n";
  std::vector<std::vector<std::string>> rows{{"parameter", "type", "default", "help"}};
  for (const auto& parameter : info.parameters) {
    rows.push_back({parameter.name, type_text(parameter.type),
                    parameter.default_value.empty() ? "(unset)" : parameter.default_value, parameter.help});
  }
  const auto& first = info.parameters.front();
  text += aligned(rows, "  ") + fmt::format("Written '{}:{}=VALUE,...'.\n", info.name, first.name);
  for (const auto& [option, value, source] : settings_of(registry, name)) {
    text += fmt::format("  --{} {}\n      {}\n", option, value, source);
  }
  return text;
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string as_csv(const json& plugins) {
  std::string text = "kind,name,help,parameters\n";
  for (const auto& plugin : plugins) {
    std::vector<std::string> parameters;
    for (const auto& parameter : plugin["parameters"]) parameters.push_back(parameter["name"].get<std::string>());
    text += fmt::format("{},{},{},{}\n", plugin["kind"].get<std::string>(), plugin["name"].get<std::string>(),
                        quoted(plugin["help"].get<std::string>()), fmt::join(parameters, " "));
  }
  return text;
}

json all_plugins(const std::vector<std::string>& words) {
  json plugins = json::array();
  for (const auto* registry : RegistryBase::all()) {
    if (!words.empty() && registry != &find_registry(words[0])) continue;
    for (const auto& name : registry->names()) {
      if (words.size() < 2 || name == words[1]) plugins.push_back(plugin_json(*registry, name));
    }
  }
  return plugins;
}

int list_command(const std::vector<std::string>& arguments) {
  CommandSpec spec;
  spec.synopsis = "tandem list [KIND [NAME]] [options]";
  spec.help = "The plug-ins of a kind, or one plug-in's parameters with their types and defaults.";
  spec.options = {format_option()};
  spec.word_name = "name";
  spec.most_words = 2;
  const auto line = parse_command_line(spec, arguments);
  if (!line) return 0;
  const auto& words = line->words();
  if (words.size() > 1) (void)find_registry(words[0]).info(words[1]);  // an unknown name is an error in every format
  switch (format_of(*line)) {
    case Format::json:
      print(all_plugins(words).dump(2) + "\n");
      break;
    case Format::csv:
      print(as_csv(all_plugins(words)));
      break;
    case Format::table:
      print(words.empty()       ? kinds_table()
            : words.size() == 1 ? names_table(find_registry(words[0]))
                                : plugin_table(find_registry(words[0]), words[1]));
  }
  return 0;
}

}  // namespace

Subcommand list_subcommand() {
  return {"list", "plug-ins of a kind, or one plug-in's parameters", list_command};
}

}  // namespace tandem
