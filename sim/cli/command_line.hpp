// A subcommand's options and words, their help text, and what was given. Behind it stands Boost.Program_options; its
// exceptions leave here as usage errors of one line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct OptionSpec {
  std::string name;          // "link-bandwidth"
  std::string argument;      // what stands for its value in the help; empty: a flag
  std::string default_text;  // what holds where it is not given, as the help states it
  std::string help;
  std::string group;  // heading in the help; "Options" where empty
  char letter = 0;    // "-b"
  bool repeatable = false;
  int words = 1;  // how many words its value takes
};

struct CommandSpec {
  std::string synopsis;  // "tandem run [options]"
  std::string help;
  std::vector<OptionSpec> options;
  std::string word_name;  // what a word besides the options is: "FILE"
  std::size_t least_words = 0;
  std::size_t most_words = 0;
  std::string epilogue;
};

class CommandLine {
 public:
  CommandLine(const CommandSpec& spec, std::map<std::string, std::vector<std::string>> given,
              std::vector<std::string> words);

  [[nodiscard]] bool has(const std::string& name) const { return given_.contains(name); }
  // The value given, or the default text. The names are the spec's own.
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> all(const std::string& name) const;  // of a repeatable option
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::string> defaults_;
  std::map<std::string, std::vector<std::string>> given_;
  std::vector<std::string> words_;
};

// Nothing where --help was asked for: then the help has been printed. Usage errors name the option, with "did you
// mean".
[[nodiscard]] std::optional<CommandLine> parse_command_line(const CommandSpec& spec,
                                                            const std::vector<std::string>& arguments);

[[nodiscard]] std::string help_text(const CommandSpec& spec);

}  // namespace tandem
