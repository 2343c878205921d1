#include "traces/importers/python_text.hpp"

#include <charconv>

namespace tandem {
namespace {

class PythonParser {
 public:
  explicit PythonParser(std::string_view text) : text_(text) {}

  std::optional<PythonValue> parse() {
    auto result = value(0);
    skip_blanks();
    if (!result || at_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  [[nodiscard]] bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip_blanks() {
    while (at(' ')) ++at_;
  }

  std::optional<PythonValue> value(int depth) {
    constexpr int most = 8;
    skip_blanks();
    if (at('[') || at('(')) return depth < most ? list(depth) : std::nullopt;
    if (at('\'') || at('"')) return quoted();
    return bare();
  }

  std::optional<PythonValue> list(int depth) {
    PythonValue result;
    result.kind = PythonValue::Kind::list;
    const char close = text_[at_++] == '[' ? ']' : ')';
    while (true) {
      skip_blanks();
      if (at(close)) break;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      result.items.push_back(std::move(*item));
      skip_blanks();
      if (!at(',')) break;
      ++at_;
    }
    if (!at(close)) return std::nullopt;
    ++at_;
    return result;
  }

  std::optional<PythonValue> quoted() {
    const char quote = text_[at_++];
    const auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) return std::nullopt;
    PythonValue result;
    result.text = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }

  std::optional<PythonValue> bare() {
    const auto end = std::min(text_.find_first_of(",[]()'\" ", at_), text_.size());
    if (end == at_) return std::nullopt;
    PythonValue result;
    result.text = text_.substr(at_, end - at_);
    at_ = end;
    const char* const last = result.text.data() + result.text.size();
    const auto [next, error] = std::from_chars(result.text.data(), last, result.integer);
    if (error == std::errc() && next == last) result.kind = PythonValue::Kind::integer;
    return result;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> PythonValue::integers() const {
  if (!is_list()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const auto& item : items) {
    if (item.kind != Kind::integer) return std::nullopt;
    values.push_back(item.integer);
  }
  return values;
}

std::optional<PythonValue> parse_python(std::string_view text) {
  constexpr std::size_t most = 64 << 10;
  if (text.size() > most) return std::nullopt;
  return PythonParser(text).parse();
}

}  // namespace tandem
