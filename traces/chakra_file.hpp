// Chakra execution traces (MLCommons) as a sequence of messages, each behind its length as a varint: one with what
// holds for the whole file, then one a node. What the importers and the exporter share.
#pragma once

#include <chakra.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Kinds of nodes and of collectives, by the schema's numbers.
enum class ChakraNodeType { compute = 4, send = 5, receive = 6, collective = 7 };
[[nodiscard]] std::string_view chakra_collective(std::int64_t comm_type);  // "all-reduce"; "" unknown
[[nodiscard]] std::optional<std::int64_t> chakra_collective_type(std::string_view operation);  // 0 for "all-reduce"

// No tool writes longer messages; small fields unpack to some thirty times their size, and memory is bounded so.
inline constexpr std::size_t kMostChakraMessage = std::size_t{16} << 20;

// Cuts a file into its messages. Input errors name the byte: a length that is cut off, that lies beyond the end or
// beyond kMostChakraMessage.
class ChakraReader {
 public:
  explicit ChakraReader(std::string_view content) : content_(content) {}
  [[nodiscard]] bool done() const { return at_ == content_.size(); }
  [[nodiscard]] std::size_t position() const { return at_; }
  // The bytes of the next message.
  [[nodiscard]] std::string_view next();

 private:
  std::string_view content_;
  std::size_t at_ = 0;
};

// Input errors: bytes that are no such message.
[[nodiscard]] chakra::Metadata parse_chakra_metadata(std::string_view bytes);
[[nodiscard]] chakra::Node parse_chakra_node(std::string_view bytes);

// Length and message behind `file`. Input error where it is longer than a reader accepts.
void append_chakra(std::string& file, const google::protobuf::MessageLite& message);

// Whether the content begins like a Chakra file: metadata with a schema or a version, then a node.
[[nodiscard]] bool looks_like_chakra(std::string_view head);

using ChakraAttributes = google::protobuf::RepeatedPtrField<chakra::Attribute>;
[[nodiscard]] const chakra::Attribute* find_attribute(const ChakraAttributes& attributes, std::string_view name);
// The value as a whole number, whatever its width; nothing where it has none that fits 64 bits.
[[nodiscard]] std::optional<std::int64_t> whole_number(const chakra::Attribute* attribute);

}  // namespace tandem
