#include "traces/chakra_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 10> kCollectives = {
    "all-reduce", "reduce",         "all-gather",           "gather", "scatter", "broadcast",
    "all-to-all", "reduce-scatter", "reduce-scatter-block", "barrier"};

// A base-128 number, least significant group first, at most ten bytes; nothing where it is cut off or longer.
std::optional<std::uint64_t> take_varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

template <class Message>
Message parse(std::string_view bytes, std::string_view what) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw input_error(fmt::format("{} bytes that are no {} of a Chakra trace", bytes.size(), what));
  }
  return message;
}

// "1.0.1", "1.0.2-chakra.0.0.4"
bool looks_like_version(std::string_view text) {
  return text.size() >= 3 && text.size() < 64 && text[0] >= '0' && text[0] <= '9' && text[1] == '.' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// The leading part of the message that is made of whole fields, where it has only the two that metadata has, both with
// a length: other formats made of protobuf messages fail here. The message may be cut off.
std::optional<std::string_view> whole_metadata_fields(std::string_view bytes, bool cut_off) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t start = at;
    const char tag = bytes[at++];
    if (tag != 0x0a && tag != 0x12) return std::nullopt;
    const auto length = take_varint(bytes, at);
    if (!length || *length > bytes.size() - at) {
      return cut_off ? std::optional(bytes.substr(0, start)) : std::nullopt;
    }
    at += *length;
  }
  return bytes;
}

bool looks_like_metadata(std::string_view bytes, bool cut_off) {
  const auto fields = whole_metadata_fields(bytes, cut_off);
  chakra::Metadata metadata;
  if (!fields || !metadata.ParseFromArray(fields->data(), static_cast<int>(fields->size()))) return false;
  const auto* schema = find_attribute(metadata.attributes(), "schema");
  return schema != nullptr ? schema->has_text() : looks_like_version(metadata.version());
}

}  // namespace

std::string_view chakra_collective(std::int64_t comm_type) {
  return comm_type >= 0 && comm_type < static_cast<std::int64_t>(kCollectives.size())
             ? kCollectives[static_cast<std::size_t>(comm_type)]
             : std::string_view();
}

std::optional<std::int64_t> chakra_collective_type(std::string_view operation) {
  const auto* const found = std::find(kCollectives.begin(), kCollectives.end(), operation);
  if (found == kCollectives.end()) return std::nullopt;
  return found - kCollectives.begin();
}

std::string_view ChakraReader::next() {
  const std::size_t start = at_;
  const auto length = take_varint(content_, at_);
  if (!length) throw input_error(fmt::format("byte {}: the length of a message is cut off", start));
  const std::size_t left = content_.size() - at_;
  if (*length > left) {
    throw input_error(
        fmt::format("byte {}: a message of {} bytes, where the file has {} more: it is cut off", start, *length, left));
  }
  if (*length > kMostChakraMessage) {
    throw input_error(
        fmt::format("byte {}: a message of {} bytes; at most {} are accepted", start, *length, kMostChakraMessage));
  }
  const auto message = content_.substr(at_, *length);
  at_ += *length;
  return message;
}

chakra::Metadata parse_chakra_metadata(std::string_view bytes) {
  return parse<chakra::Metadata>(bytes, "metadata");
}
chakra::Node parse_chakra_node(std::string_view bytes) {
  return parse<chakra::Node>(bytes, "node");
}

void append_chakra(std::string& file, const google::protobuf::MessageLite& message) {
  std::string bytes;
  message.SerializeToString(&bytes);
  if (bytes.size() > kMostChakraMessage) {
    throw input_error(
        fmt::format("a message of {} bytes; at most {} can be read back", bytes.size(), kMostChakraMessage));
  }
  for (std::size_t length = bytes.size();; length >>= 7) {
    const bool last = length < 0x80;
    file += static_cast<char>((length & 0x7fU) | (last ? 0U : 0x80U));
    if (last) break;
  }
  file += bytes;
}

bool looks_like_chakra(std::string_view head) {
  std::size_t at = 0;
  const auto length = take_varint(head, at);
  if (!length || *length == 0 || *length > kMostChakraMessage) return false;
  const auto metadata = head.substr(at, *length);
  if (!looks_like_metadata(metadata, metadata.size() < *length)) return false;
  at += metadata.size();
  if (at == head.size()) return true;  // nothing but metadata
  const auto node = take_varint(head, at);
  return node && (at == head.size() || head[at] == 0x08 || head[at] == 0x12);  // id, or the name of node 0
}

const chakra::Attribute* find_attribute(const ChakraAttributes& attributes, std::string_view name) {
  for (const auto& attribute : attributes) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::optional<std::int64_t> whole_number(const chakra::Attribute* attribute) {
  if (attribute == nullptr) return std::nullopt;
  const auto narrow = [](std::uint64_t value) -> std::optional<std::int64_t> {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(value);
  };
  switch (attribute->value_case()) {
    case chakra::Attribute::kInt32Value:
      return attribute->int32_value();
    case chakra::Attribute::kInt64Value:
      return attribute->int64_value();
    case chakra::Attribute::kUint32Value:
      return attribute->uint32_value();
    case chakra::Attribute::kUint64Value:
      return narrow(attribute->uint64_value());
    case chakra::Attribute::kSint32Value:
      return attribute->sint32_value();
    case chakra::Attribute::kSint64Value:
      return attribute->sint64_value();
    case chakra::Attribute::kFixed32Value:
      return attribute->fixed32_value();
    case chakra::Attribute::kFixed64Value:
      return narrow(attribute->fixed64_value());
    case chakra::Attribute::kSfixed32Value:
      return attribute->sfixed32_value();
    case chakra::Attribute::kSfixed64Value:
      return attribute->sfixed64_value();
    case chakra::Attribute::kFlag:
      return attribute->flag() ? 1 : 0;
    default:
      return std::nullopt;
  }
}

}  // namespace tandem
