#include "traces/source_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // zlib's way to ask for gzip's header and checksum

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, kGzip) != Z_OK) throw internal_error("zlib cannot be set up");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

void check_growth(std::size_t packed, std::size_t unpacked) {
  constexpr std::size_t harmless = std::size_t{16} << 20;
  constexpr std::size_t most_growth = 200;  // profiles in JSON shrink to a tenth or a thirtieth
  if (unpacked > harmless && unpacked / most_growth > packed) {
    throw input_error(fmt::format("gzip that grows from {} bytes to over {}: no trace does that", packed, unpacked));
  }
  if (unpacked > static_cast<std::size_t>(kMostSourceBytes)) {
    throw input_error(fmt::format("unpacks to more than {} bytes", kMostSourceBytes));
  }
}

}  // namespace

std::string unpack(std::string packed) {
  if (!is_gzip(packed)) return packed;
  Inflater inflater;
  auto& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string content;
  std::string block(std::size_t{1} << 20, '\0');
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    content.append(block, 0, block.size() - stream.avail_out);
    check_growth(stream.total_in, content.size());
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) return content;
      // Members one behind the other are one file; anything else behind the end is not gzip.
      const std::string_view rest(reinterpret_cast<const char*>(stream.next_in), stream.avail_in);
      if (!is_gzip(rest)) throw input_error(fmt::format("{} bytes follow the end of the gzip data", rest.size()));
      if (inflateReset(&stream) != Z_OK) throw internal_error("zlib cannot be reset");
      continue;
    }
    if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      throw input_error("the gzip data is cut off");
    }
    if (status != Z_OK) {
      throw input_error(fmt::format("damaged gzip data ({})", stream.msg != nullptr ? stream.msg : "unknown reason"));
    }
  }
}

std::string pack(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw internal_error("zlib cannot be set up");
  }
  std::string packed(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw internal_error("zlib cannot pack");
  return packed;
}

SourceFile read_source(const std::string& path) {
  return with_context(path, [&] {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw input_error("is a directory");
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
      throw input_error("is not a regular file");  // a pipe or a device may never end
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) throw input_error(fmt::format("cannot read: {}", std::strerror(errno)));
    std::string bytes;
    const auto size = std::filesystem::file_size(path, ignored);
    if (!ignored && size <= static_cast<std::uintmax_t>(kMostSourceBytes)) bytes.reserve(size);
    std::string block(std::size_t{1} << 20, '\0');
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
      bytes.append(block, 0, static_cast<std::size_t>(file.gcount()));
      if (bytes.size() > static_cast<std::size_t>(kMostSourceBytes)) {
        throw input_error(fmt::format("is larger than {} bytes", kMostSourceBytes));
      }
    }
    if (file.bad()) throw input_error(fmt::format("cannot read: {}", std::strerror(errno)));
    if (bytes.empty()) throw input_error("the file is empty");
    return SourceFile{path, unpack(std::move(bytes))};
  });
}

}  // namespace tandem
