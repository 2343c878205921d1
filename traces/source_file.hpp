// A file of another tool, in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

struct SourceFile {
  std::string path;
  std::string content;  // unpacked where the file is gzipped
};

// 2 GiB: several times the largest profile that people keep; more than that is refused.
inline constexpr std::int64_t kMostSourceBytes = std::int64_t{1} << 31;

// Reads a file whole; gzip is recognized by its first bytes. Input errors: no such file, a folder, damaged or cut off
// gzip, one that unpacks to more than kMostSourceBytes or that grows so much (over 16 MiB from less than a two
// hundredth of it) that it was made to fill memory.
[[nodiscard]] SourceFile read_source(const std::string& path);

// gzip in memory; `packed` that is not gzip comes back as it is.
[[nodiscard]] std::string unpack(std::string packed);
// The other way round, without name or date, so that equal content gives equal bytes.
[[nodiscard]] std::string pack(std::string_view content);

}  // namespace tandem
