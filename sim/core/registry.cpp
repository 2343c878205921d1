#include "sim/core/registry.hpp"

#include <algorithm>

#include "sim/core/text.hpp"

namespace tandem {
namespace {

std::vector<const RegistryBase*>& registries() {
  static std::vector<const RegistryBase*> list;
  return list;
}

std::vector<int> parse_integer_list(const std::string& text, int least, int most, const std::string& what) {
  std::vector<int> values;
  for (const auto& part : split(text, 'x')) values.push_back(static_cast<int>(parse_integer(part, least, most, what)));
  return values;
}

void check_type(ParameterType type, const std::string& value, const std::string& what) {
  switch (type) {
    case ParameterType::integer:
      (void)parse_integer(value, INT64_MIN, INT64_MAX, what);
      break;
    case ParameterType::number:
      (void)parse_number(value, what);
      break;
    case ParameterType::boolean:
      if (value != "yes" && value != "no")
        throw usage_error(fmt::format("{} is '{}': it must be yes or no", what, value));
      break;
    case ParameterType::bytes:
      (void)parse_bytes(value);
      break;
    case ParameterType::seconds:
      (void)parse_seconds(value);
      break;
    case ParameterType::bandwidth:
      (void)parse_bandwidth(value);
      break;
    case ParameterType::text:
      break;
    case ParameterType::integer_list:
      (void)parse_integer_list(value, INT32_MIN, INT32_MAX, what);
      break;
  }
}

}  // namespace

Arguments::Arguments(std::string_view owner, std::string_view text, const std::vector<ParameterSpec>& specs)
    : owner_(owner) {
  std::vector<std::string> names;
  for (const auto& spec : specs) {
    names.push_back(spec.name);
    if (!spec.default_value.empty()) values_[spec.name] = spec.default_value;
  }
  std::map<std::string, bool> given;
  for (const auto& item : split(text, ',')) {
    const auto equals = item.find('=');
    std::string key = equals == std::string::npos ? "" : item.substr(0, equals);
    std::string value = equals == std::string::npos ? item : item.substr(equals + 1);
    if (equals == std::string::npos) {
      if (specs.empty()) throw usage_error(fmt::format("{} takes no parameters, but '{}' was given", owner, item));
      key = specs.front().name;
    }
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == key; });
    if (spec == specs.end()) {
      throw usage_error(fmt::format("{} has no parameter '{}'{}", owner, key,
                                    names.empty() ? std::string(": it takes none") : suggestion(key, names)));
    }
    if (value.empty()) throw usage_error(fmt::format("{}: parameter '{}' has no value", owner, key));
    if (!given.emplace(key, true).second)
      throw usage_error(fmt::format("{}: parameter '{}' is given twice", owner, key));
    with_context(owner, [&] { check_type(spec->type, value, "'" + key + "'"); });
    values_[key] = value;
  }
}

bool Arguments::has(const std::string& name) const {
  return values_.contains(name);
}

const std::string& Arguments::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw usage_error(fmt::format("{}: parameter '{}' must be given", owner_, name));
  return found->second;
}

std::int64_t Arguments::integer(const std::string& name, std::int64_t least, std::int64_t most) const {
  return with_context(owner_, [&] { return parse_integer(text(name), least, most, "'" + name + "'"); });
}
double Arguments::number(const std::string& name) const {
  return parse_number(text(name), name);
}
bool Arguments::boolean(const std::string& name) const {
  return text(name) == "yes";
}
Bytes Arguments::bytes(const std::string& name) const {
  return parse_bytes(text(name));
}
Seconds Arguments::seconds(const std::string& name) const {
  return parse_seconds(text(name));
}
BytesPerSecond Arguments::bandwidth(const std::string& name) const {
  return parse_bandwidth(text(name));
}
std::vector<int> Arguments::integers(const std::string& name, int least, int most) const {
  return with_context(owner_, [&] { return parse_integer_list(text(name), least, most, "'" + name + "'"); });
}

RegistryBase::RegistryBase(std::string kind, std::string help) : kind_(std::move(kind)), help_(std::move(help)) {
  registries().push_back(this);
}

std::vector<std::string> RegistryBase::names() const {
  std::vector<std::string> result;
  for (const auto& [name, info] : infos_) result.push_back(name);
  return result;
}

const PluginInfo& RegistryBase::info(std::string_view name) const {
  const auto found = infos_.find(name);
  if (found == infos_.end())
    throw usage_error(fmt::format("unknown {} '{}'{}", kind_, name, suggestion(name, names())));
  return found->second;
}

std::vector<const RegistryBase*> RegistryBase::all() {
  auto list = registries();
  std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->kind() < b->kind(); });
  return list;
}

void RegistryBase::declare(PluginInfo info) {
  const auto name = info.name;
  if (!infos_.emplace(name, std::move(info)).second) {
    throw internal_error(fmt::format("{} '{}' is registered twice", kind_, name));
  }
}

PluginText split_plugin_text(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

}  // namespace tandem
