// Looks at ONNX files as bytes, before they are parsed.
#pragma once

#include <string_view>

namespace tandem {

// Whether these first bytes of a file begin a model: a version (field 1), then texts, then the graph (field 7), which
// begins with a field of its own.
[[nodiscard]] bool begins_onnx_model(std::string_view head);

// Input errors for a model that is damaged or cut off, or that has more nodes, names and attributes than any model: the
// parser makes an object of a hundred bytes or two of what takes two bytes in a file.
void check_onnx_pieces(std::string_view model);

}  // namespace tandem
