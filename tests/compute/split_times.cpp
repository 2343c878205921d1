// What ComputeModel says about parts of layers, for scripts/studies/splits/check.py.
//
// split_times TRACE reads lines "LAYER AXIS FRACTION" and writes one line each: for forward, backward-data and
// backward-weight the ratio of the part's time to the whole layer's and where it comes from. Recorded points of that
// layer, axis and fraction are left out before.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "sim/compute/compute_model.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr Pass kTimed[] = {Pass::forward, Pass::backward_data, Pass::backward_weight};

const char* text(Origin origin) {
  constexpr const char* texts[] = {"measured", "interpolated", "extrapolated", "modelled"};
  return texts[static_cast<std::size_t>(origin)];
}

Shard shard_of(SplitCurve::Axis axis, double fraction) {
  Shard shard;
  switch (axis) {
    case SplitCurve::Axis::batch:
      shard.batch = fraction;
      break;
    case SplitCurve::Axis::height:
      shard.height = fraction;
      break;
    case SplitCurve::Axis::output_channel:
      shard.output_channel = fraction;
      break;
    case SplitCurve::Axis::input_channel:
      shard.input_channel = fraction;
      break;
    case SplitCurve::Axis::width:
      throw usage_error("no shard is cut along the width");
  }
  return shard;
}

void answer(Trace trace, const std::string& name, SplitCurve::Axis axis, double fraction) {
  std::size_t id = 0;
  while (id < trace.layers.size() && trace.layers[id].name != name) ++id;
  if (id == trace.layers.size()) throw usage_error("no layer '" + name + "'");
  constexpr double same = 1e-6;
  std::erase_if(trace.layers[id].splits, [&](const SplitCurve& split) {
    return split.axis == axis && std::abs(split.fraction - fraction) < same;
  });
  const ComputeModel model(trace, {});
  const LayerId layer{static_cast<std::int32_t>(id)};
  const Shard shard = shard_of(axis, fraction);
  for (const Pass pass : kTimed) {
    const double whole = model.time(layer, pass).count();
    const double part = model.time(layer, pass, shard).count();
    std::printf("%.9g %s ", whole > 0 ? part / whole : 0, text(model.origin(layer, pass, shard)));
  }
  std::printf("\n");
}

int run(const std::string& path) {
  const Trace trace = read_trace(path);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name, axis_text;
    double fraction = 0;
    words >> name >> axis_text >> fraction;
    const auto axis = split_axis_from_text(axis_text);
    if (!words || !axis) throw usage_error("'" + line + "' is no LAYER AXIS FRACTION");
    answer(trace, name, *axis, fraction);
  }
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw tandem::usage_error("usage: split_times TRACE");
    return tandem::run(argv[1]);
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
