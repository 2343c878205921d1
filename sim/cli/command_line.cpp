#include "sim/cli/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>

#include "sim/cli/output.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

namespace po = boost::program_options;

po::options_description description_of(const CommandSpec& spec) {
  po::options_description description;
  description.add_options()("help,h", "");
  for (const auto& option : spec.options) {
    const auto name = option.letter == 0 ? option.name : fmt::format("{},{}", option.name, option.letter);
    if (option.argument.empty()) {
      description.add_options()(name.c_str(), "");
    } else {
      description.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  return description;
}

const OptionSpec* find_option(const CommandSpec& spec, const std::string& name) {
  const auto found =
      std::find_if(spec.options.begin(), spec.options.end(), [&](const auto& o) { return o.name == name; });
  return found == spec.options.end() ? nullptr : &*found;
}

// "--route 1 5" -> "--route=1 5": Boost's own options of several words swallow whatever follows them.
std::vector<std::string> join_words(const CommandSpec& spec, const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* option = arguments[i].starts_with("--") ? find_option(spec, arguments[i].substr(2)) : nullptr;
    if (option == nullptr || option->words < 2) {
      joined.push_back(arguments[i]);
      continue;
    }
    const auto words = static_cast<std::size_t>(option->words);
    if (arguments.size() - i <= words) {
      throw usage_error(fmt::format("option '--{}' needs {} values: {}", option->name, words, option->argument));
    }
    std::string value = arguments[++i];
    for (std::size_t w = 1; w < words; ++w) value += " " + arguments[++i];
    joined.push_back(fmt::format("--{}={}", option->name, value));
  }
  return joined;
}

std::string dashed(const std::string& name) {
  if (name.starts_with("-")) return name;
  return (name.size() == 1 ? "-" : "--") + name;
}

Error unknown_option(const CommandSpec& spec, std::string name) {
  name = name.substr(0, name.find('='));
  std::vector<std::string> names{"--help"};
  for (const auto& option : spec.options) names.push_back("--" + option.name);
  const auto near = closest(dashed(name), names);
  return usage_error(
      fmt::format("unknown option '{}'; {}", dashed(name),
                  near.empty() ? "--help lists what there is" : fmt::format("did you mean '{}'?", near)));
}

po::parsed_options boost_parse(const CommandSpec& spec, const std::vector<std::string>& arguments) {
  try {
    using namespace po::command_line_style;
    const auto description = description_of(spec);
    return po::command_line_parser(join_words(spec, arguments))
        .options(description)
        .positional(po::positional_options_description().add(" word", -1))
        .style(unix_style & ~allow_guessing & ~allow_sticky)
        .run();
  } catch (const po::unknown_option& error) {
    throw unknown_option(spec, error.get_option_name());
  } catch (const po::invalid_command_line_syntax& error) {
    const auto name = dashed(error.get_option_name());
    switch (error.kind()) {
      case po::invalid_syntax::missing_parameter:
      case po::invalid_syntax::empty_adjacent_parameter:
        throw usage_error(fmt::format("option '{}' needs a value", name));
      case po::invalid_syntax::extra_parameter:
        throw usage_error(fmt::format("option '{}' takes no value", name));
      default:
        throw usage_error(fmt::format("'{}' is not an option", error.get_option_name()));
    }
  } catch (const po::error& error) {
    throw usage_error(error.what());
  }
}

void check_words(const CommandSpec& spec, const std::vector<std::string>& words) {
  if (words.size() > spec.most_words) {
    const auto& extra = words[spec.most_words];
    throw usage_error(spec.most_words == 0 ? fmt::format("'{}' is not expected: options start with --", extra)
                                           : fmt::format("'{}' is one {} too many", extra, spec.word_name));
  }
  if (words.size() < spec.least_words) {
    throw usage_error(fmt::format("{} is missing: {}", spec.word_name, spec.synopsis));
  }
}

// Words of `text` in lines of at most `width` characters, the second and later ones indented.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  for (const auto& word : split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      result.push_back('\n');
      result.append(indent, ' ');
      column = 0;
    }
    if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string option_help(const OptionSpec& option) {
  constexpr std::size_t kHelpColumn = 32;
  constexpr std::size_t kHelpWidth = 78;
  auto line = fmt::format("  {}--{}{}{}", option.letter == 0 ? "" : fmt::format("-{}, ", option.letter), option.name,
                          option.argument.empty() ? "" : " ", option.argument);
  if (line.size() + 2 > kHelpColumn) {
    line.push_back('\n');
    line.append(kHelpColumn, ' ');
  } else {
    line.resize(kHelpColumn, ' ');
  }
  return line + wrapped(fmt::format("{} (default: {})", option.help, option.default_text), kHelpWidth, kHelpColumn) +
         "\n";
}

}  // namespace

CommandLine::CommandLine(const CommandSpec& spec, std::map<std::string, std::vector<std::string>> given,
                         std::vector<std::string> words)
    : given_(std::move(given)), words_(std::move(words)) {
  for (const auto& option : spec.options) defaults_[option.name] = option.default_text;
}

const std::string& CommandLine::text(const std::string& name) const {
  const auto found = given_.find(name);
  if (found != given_.end()) return found->second.front();
  const auto fallback = defaults_.find(name);
  if (fallback == defaults_.end()) throw internal_error(fmt::format("no option is called '{}'", name));
  return fallback->second;
}

std::vector<std::string> CommandLine::all(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<CommandLine> parse_command_line(const CommandSpec& spec, const std::vector<std::string>& arguments) {
  const auto parsed = boost_parse(spec, arguments);
  std::map<std::string, std::vector<std::string>> given;
  std::vector<std::string> words;
  for (const auto& option : parsed.options) {
    if (option.position_key >= 0) {
      words.insert(words.end(), option.value.begin(), option.value.end());
      continue;
    }
    if (option.string_key == "help") {
      print(help_text(spec));
      return std::nullopt;
    }
    auto& values = given[option.string_key];
    if (!values.empty() && !find_option(spec, option.string_key)->repeatable) {
      throw usage_error(fmt::format("option '--{}' is given twice", option.string_key));
    }
    values.push_back(option.value.empty() ? "yes" : option.value.front());
  }
  check_words(spec, words);
  return CommandLine(spec, std::move(given), std::move(words));
}

std::string help_text(const CommandSpec& spec) {
  auto text = fmt::format("Usage: {}\n\n{}\n", spec.synopsis, wrapped(spec.help, 110, 0));
  std::vector<std::string> groups;
  for (const auto& option : spec.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const auto& group : groups) {
    text += fmt::format("\n{}:\n", group.empty() ? "Options" : group);
    for (const auto& option : spec.options) {
      if (option.group == group) text += option_help(option);
    }
  }
  if (!spec.epilogue.empty()) text += "\n" + spec.epilogue + "\n";
  return text;
}

}  // namespace tandem
