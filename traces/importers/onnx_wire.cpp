#include "traces/importers/onnx_wire.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostPieces = 4'000'000;

// Fields of a protobuf message one by one.
struct Wire {
  explicit Wire(std::string_view bytes) : rest(bytes) {}

  std::string_view rest;
  std::uint64_t field = 0;
  unsigned type = 0;
  std::string_view payload;  // of a length-delimited field; cut off where the bytes end

  enum class Step { field, end, damaged, cut };

  Step next() {
    if (rest.empty()) return Step::end;
    std::uint64_t key = 0;
    if (!varint(key)) return rest.empty() ? Step::cut : Step::damaged;
    field = key >> 3;
    type = static_cast<unsigned>(key & 7);
    if (field == 0) return Step::damaged;
    std::uint64_t size = type == 1 ? 8 : 4;
    switch (type) {
      case 0:
        return varint(size) ? Step::field : rest.empty() ? Step::cut : Step::damaged;
      case 2:
        if (!varint(size)) return rest.empty() ? Step::cut : Step::damaged;
        break;
      case 1:
      case 5:
        break;
      default:  // groups, which ONNX does not use
        return Step::damaged;
    }
    payload = rest.substr(0, size);
    rest.remove_prefix(payload.size());
    return payload.size() < size ? Step::cut : Step::field;
  }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
};

enum class Kind { model, graph, node, attribute, tensor, value_info, type, tensor_type, shape, leaf };

// What kind of message a field holds; leaf where none, or none that is read.
Kind kind_of_field(Kind message, std::uint64_t field) {
  switch (message) {
    case Kind::model:
      return field == 7 ? Kind::graph : Kind::leaf;
    case Kind::graph:
      return field == 1                   ? Kind::node
             : field == 5                 ? Kind::tensor
             : field >= 11 && field <= 13 ? Kind::value_info
                                          : Kind::leaf;
    case Kind::node:
      return field == 5 ? Kind::attribute : Kind::leaf;
    case Kind::attribute:
      return field == 5 ? Kind::tensor : Kind::leaf;
    case Kind::value_info:
      return field == 2 ? Kind::type : Kind::leaf;
    case Kind::type:
      return field == 1 ? Kind::tensor_type : Kind::leaf;
    case Kind::tensor_type:
      return field == 2 ? Kind::shape : Kind::leaf;
    default:
      return Kind::leaf;
  }
}

void check_pieces(std::string_view bytes, Kind message, std::int64_t& pieces) {
  Wire wire(bytes);
  for (;;) {
    const auto step = wire.next();
    if (step == Wire::Step::end) return;
    if (step != Wire::Step::field) {
      throw input_error(step == Wire::Step::cut ? "the file is cut off" : "the file is damaged: it is no ONNX model");
    }
    if (wire.type != 2) continue;
    if (++pieces > kMostPieces) {
      throw input_error(
          fmt::format("it has more than {} nodes, names and attributes, which no model has", kMostPieces));
    }
    const auto kind = kind_of_field(message, wire.field);
    if (kind != Kind::leaf) check_pieces(wire.payload, kind, pieces);
  }
}

}  // namespace

bool begins_onnx_model(std::string_view head) {
  Wire wire(head);
  bool version = false;
  for (;;) {
    const auto step = wire.next();
    if (step != Wire::Step::field && step != Wire::Step::cut) return false;
    if (wire.field == 1 && wire.type == 0 && !version) {
      version = true;
    } else if (wire.field == 7 && wire.type == 2 && version) {
      Wire graph(wire.payload);
      const auto first = graph.next();
      return (first == Wire::Step::field || first == Wire::Step::cut) && graph.type == 2 &&
             (graph.field <= 2 || graph.field == 5 || (graph.field >= 10 && graph.field <= 15));
    } else if (!version || wire.field > 25 || step == Wire::Step::cut) {
      return false;
    }
  }
}

void check_onnx_pieces(std::string_view model) {
  std::int64_t pieces = 0;
  check_pieces(model, Kind::model, pieces);
}

}  // namespace tandem
