// CNNs whose layers, shapes and edges are known without recording them.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tandem {

[[nodiscard]] std::vector<std::string> model_names();  // "lenet5", "resnet18", ...

// The layers of a model in topological order, without times. Parameters stand in the framework's declaration order, so
// that the parameter tensors of all layers walked backwards are the order in which gradients become ready. Usage
// error for an unknown name ("did you mean") or a batch outside 1 .. 65,536.
[[nodiscard]] Trace build_model(const std::string& name, std::int64_t batch);

}  // namespace tandem
