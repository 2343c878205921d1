// Small text helpers shared by every parser and message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Parts of `text` between separators; an empty text has no parts.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// The candidate nearest to `name` by edit distance, or "" where none is near enough to be a slip of the finger.
[[nodiscard]] std::string closest(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" or "; known: a, b, c": the tail of every unknown-name error.
[[nodiscard]] std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

// "2,000", "-1,048,576".
[[nodiscard]] std::string grouped(std::int64_t number);
// "1 run", "2,000 runs".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

// Text inside of XML elements and attributes in double quotes; control characters, which XML cannot hold, are blanks.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace tandem
