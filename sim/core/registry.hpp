// One registry for every kind of plug-in. A plug-in is one file that ends in TANDEM_REGISTER: its public kebab-case
// name, a one-line help and its parameters. The registry parses "name:key=value,key=value", checks it against the
// declared parameters and makes the plug-in; `tandem list` reads the same declarations.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace tandem {

enum class ParameterType { integer, number, boolean, bytes, seconds, bandwidth, text, integer_list };

struct ParameterSpec {
  std::string name;
  ParameterType type = ParameterType::text;
  std::string default_value;  // "" means unset: the plug-in chooses, and its help says how
  std::string help;
};

// The values given to one plug-in: explicit ones over defaults, all checked to parse as their declared type.
class Arguments {
 public:
  Arguments() = default;
  // `text` is "key=value,key=value"; an item without '=' goes to the first parameter (as in "file:hosts.txt").
  // List values are joined with 'x' ("dims=4x4x4"). Throws a usage error that names `owner`.
  Arguments(std::string_view owner, std::string_view text, const std::vector<ParameterSpec>& specs);

  [[nodiscard]] bool has(const std::string& name) const;  // given, or has a default
  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] Bytes bytes(const std::string& name) const;
  [[nodiscard]] Seconds seconds(const std::string& name) const;
  [[nodiscard]] BytesPerSecond bandwidth(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] std::vector<int> integers(const std::string& name, int least, int most) const;

 private:
  std::string owner_;
  std::map<std::string, std::string> values_;
};

struct PluginInfo {
  std::string name;
  std::string help;
  std::vector<ParameterSpec> parameters;
};

// What `tandem list` sees of a registry, whatever it makes.
class RegistryBase {
 public:
  explicit RegistryBase(std::string kind, std::string help);
  virtual ~RegistryBase() = default;
  RegistryBase(const RegistryBase&) = delete;
  RegistryBase& operator=(const RegistryBase&) = delete;

  [[nodiscard]] const std::string& kind() const { return kind_; }
  [[nodiscard]] const std::string& help() const { return help_; }
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const PluginInfo& info(std::string_view name) const;  // usage error with "did you mean"

  // Every registry of the program by kind.
  [[nodiscard]] static std::vector<const RegistryBase*> all();

 protected:
  void declare(PluginInfo info);  // internal error on a duplicate name
  std::map<std::string, PluginInfo, std::less<>> infos_;

 private:
  std::string kind_;
  std::string help_;
};

// The part before the first ':' and the part behind it.
struct PluginText {
  std::string name;
  std::string arguments;
};
[[nodiscard]] PluginText split_plugin_text(std::string_view text);

// Interface needs two static members, `plugin_kind` (kebab-case) and `plugin_help`, and a type
// `PluginContext`: what a factory is given besides its arguments (an empty struct where nothing is).
template <class Interface>
class Registry : public RegistryBase {
 public:
  using Context = typename Interface::PluginContext;
  using Factory = std::function<std::unique_ptr<Interface>(const Arguments&, const Context&)>;

  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  bool add(PluginInfo info, Factory factory) {
    factories_[info.name] = std::move(factory);
    declare(std::move(info));
    return true;
  }

  [[nodiscard]] std::unique_ptr<Interface> make(std::string_view text, const Context& context = {}) const {
    const auto [name, arguments] = split_plugin_text(text);
    const auto& declared = info(name);
    return factories_.find(name)->second(Arguments(kind() + " '" + name + "'", arguments, declared.parameters),
                                         context);
  }

 private:
  Registry() : RegistryBase(Interface::plugin_kind, Interface::plugin_help) {}
  std::map<std::string, Factory, std::less<>> factories_;
};

// The one registration line of a plug-in, e.g.
//   TANDEM_REGISTER(Topology, star, "star", "every device on one switch", make_star, {...ParameterSpec...})
#define TANDEM_REGISTER(Interface, identifier, name, help, factory, ...) \
  [[maybe_unused]] static const bool tandem_registered_##identifier =    \
      ::tandem::Registry<Interface>::instance().add({name, help, __VA_ARGS__}, factory);

}  // namespace tandem
