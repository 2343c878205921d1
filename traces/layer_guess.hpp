// What a source leaves open about a layer, from what it does say: names, shapes and counts tell more than they seem to.
// All of these are guesses, which importers note. None throws where there is nothing to guess from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace tandem {

// "conv2/5x5_s1" -> conv, "layer1.0.bn2" -> bn, "pool5" -> max-pool; the last telling part of the name counts.
[[nodiscard]] std::optional<OpKind> kind_from_name(std::string_view name);

// 4 for float32; nothing for a type that is not known.
[[nodiscard]] std::optional<std::int64_t> element_bytes(std::string_view dtype);

// Fills in what is missing (empty) of stride, pads and dilation of a layer with a kernel. Where the spatial extents of
// its first input and its output are known, stride and pads follow from them: the smallest stride that leads from one
// to the other, with the same pads on both sides for a convolution and the rest behind the end for a pool, which is how
// rounding up looks. Otherwise stride 1 (a pool's: its kernel) and no pads. False where the shapes contradict a window.
bool complete_window(Layer& layer, bool shapes_known);

// Sets the weight and bias that a convolution, a fully connected or a normalization layer with these shapes and this
// many parameters must have. A convolution's square kernel follows from the count where it is not known; `kernel` is
// set then. Where the shapes do not explain the count, one tensor holds it all and the result is false.
bool set_parameters_from_count(Layer& layer, std::int64_t count);

// Weight, and bias where `bias`, of a convolution or fully connected layer whose shapes (and kernel) are known; nothing
// is set for another.
void set_parameters_from_shapes(Layer& layer, bool bias);

// The built-in model whose input and whose convolutions, fully connected layers and pools have the shapes of this
// trace's, in its order: windows and parameters that are missing are taken from it. "" where there is none.
std::string complete_from_model(Trace& trace);

}  // namespace tandem
