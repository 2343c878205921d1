#include "sim/study/study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostRuns = 1'000'000;
constexpr std::size_t kMostBytes = 16 << 20;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_blank(text[i])) continue;
    if (i > begin) words.emplace_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

class Parser {
 public:
  explicit Parser(std::string name) : name_(std::move(name)) {}

  void line(std::string_view text) {
    ++number_;
    text = trimmed(without_comment(text));
    if (text.empty()) return;
    if (text.front() == '[') {
      section(text);
    } else {
      option(text);
    }
  }

  [[nodiscard]] Study finish() {
    if (study_.options.empty() && study_.cases.empty()) throw usage_error(name_ + ": the study has no options");
    return std::move(study_);
  }

 private:
  [[nodiscard]] Error mistake(const std::string& message) const {
    return usage_error(fmt::format("{}:{}: {}", name_, number_, message));
  }

  void section(std::string_view text) {
    if (text.back() != ']') throw mistake(fmt::format("'{}' has no closing ']'", text));
    const auto words = words_of(text.substr(1, text.size() - 2));
    if (words.size() != 2 || words[0] != "case") {
      throw mistake(fmt::format("'{}': a section is written [case NAME], with a name without blanks", text));
    }
    for (const auto& other : study_.cases) {
      if (other.name == words[1]) throw mistake(fmt::format("case '{}' stands twice", words[1]));
    }
    study_.cases.push_back({words[1], {}});
  }

  void option(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) throw mistake(fmt::format("'{}' is not of the form OPTION = VALUES", text));
    const std::string name(trimmed(text.substr(0, equals)));
    if (name.empty() || name.find_first_of(" \t") != std::string::npos) {
      throw mistake(fmt::format("'{}' is not of the form OPTION = VALUES", text));
    }
    auto values = words_of(text.substr(equals + 1));
    if (values.empty()) throw mistake(fmt::format("option '{}' has no value", name));
    auto& options = study_.cases.empty() ? study_.options : study_.cases.back().options;
    for (const auto& other : options) {
      if (other.name == name) throw mistake(fmt::format("option '{}' stands twice: list its values in one line", name));
    }
    options.push_back({name, std::move(values)});
  }

  std::string name_;
  int number_ = 0;
  Study study_;
};

// Common options in their order with the case's own values in their place, then what only the case has.
std::vector<StudyOption> options_of(const Study& study, const StudyCase& one) {
  auto options = study.options;
  for (const auto& own : one.options) {
    const auto common = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == own.name; });
    if (common == options.end()) {
      options.push_back(own);
    } else {
      *common = own;
    }
  }
  return options;
}

void check_count(const std::vector<StudyOption>& options, std::size_t before) {
  std::size_t product = 1;
  for (const auto& option : options) {
    product *= option.values.size();
    if (before + product > kMostRuns) throw usage_error(fmt::format("the study has more than {} runs", kMostRuns));
  }
}

void expand_case(const std::string& name, const std::vector<StudyOption>& options, std::vector<StudyRun>& runs) {
  check_count(options, runs.size());
  std::vector<std::size_t> at(options.size(), 0);
  for (;;) {
    StudyRun run{name, {}};
    for (std::size_t i = 0; i < options.size(); ++i) run.options[options[i].name] = options[i].values[at[i]];
    runs.push_back(std::move(run));
    std::size_t i = options.size();
    while (i > 0 && ++at[i - 1] == options[i - 1].values.size()) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace

Study parse_study(std::string_view text, const std::string& name) {
  Parser parser(name);
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // some editors put it in front
  std::size_t begin = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  while (begin < text.size()) {
    const auto end = std::min(text.find('\n', begin), text.size());
    parser.line(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parser.finish();
}

Study read_study(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) throw input_error(path + ": cannot be read: it is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::string text(kMostBytes + 1, '\0');  // a device such as /dev/zero never ends
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMostBytes) {
    throw input_error(fmt::format("{}: is no study: it has more than {} bytes", path, kMostBytes));
  }
  if (in.bad()) throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return parse_study(text, path);
}

std::vector<StudyRun> expand(const Study& study) {
  std::vector<StudyRun> runs;
  if (study.cases.empty()) expand_case("", study.options, runs);
  for (const auto& one : study.cases) expand_case(one.name, options_of(study, one), runs);
  return runs;
}

std::vector<std::string> varied_options(const Study& study, const std::vector<StudyRun>& runs) {
  std::vector<std::string> names;
  const auto consider = [&](const std::vector<StudyOption>& options) {
    for (const auto& option : options) {
      const auto& name = option.name;
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const auto text = [&](const StudyRun& run) { return run.options.contains(name) ? run.options.at(name) : ""; };
      if (std::any_of(runs.begin(), runs.end(), [&](const auto& run) { return text(run) != text(runs.front()); })) {
        names.push_back(name);
      }
    }
  };
  consider(study.options);
  for (const auto& one : study.cases) consider(one.options);
  return names;
}

}  // namespace tandem
