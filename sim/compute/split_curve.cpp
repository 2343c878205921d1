#include "sim/compute/split_curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace tandem {
namespace {

using Axis = SplitCurve::Axis;

bool combines_channels(const Layer& layer) {
  return layer.kind == OpKind::conv || layer.kind == OpKind::fc || layer.kind == OpKind::other;
}

double extent_of(const Layer& layer, Axis axis) {
  const auto& shape = axis == Axis::input_channel ? layer.input_shapes[0] : layer.output_shape;
  const std::size_t dimension = axis == Axis::batch ? 0 : axis == Axis::height ? 2 : axis == Axis::width ? 3 : 1;
  return dimension < shape.size() ? static_cast<double>(shape[dimension]) : 1;
}

// The extent that costs time, as a fraction of the whole one.
double costly_fraction(double fraction, double extent, int block) {
  if (block <= 1 || extent <= block || fraction >= 1) return fraction;
  constexpr double rounding = 1e-9;
  return std::min(1.0, std::ceil(fraction * extent / block - rounding) * block / extent);
}

struct Point {
  double fraction;
  double seconds;
};

// Recorded points along the axis, the whole among them: timed beside the parts where that was done, otherwise in its
// place in the iteration.
std::vector<Point> points_of(const Layer& layer, std::size_t pass, Axis axis) {
  std::vector<Point> points;
  bool whole = false;
  for (const auto& split : layer.splits) {
    const auto& samples = split.samples[pass];
    if (split.axis != axis || samples.seconds.empty()) continue;
    points.push_back({split.fraction, samples.typical().count()});
    whole = whole || split.fraction == 1;
  }
  if (!whole) points.push_back({1, layer.samples[pass].typical().count()});
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.fraction < b.fraction; });
  return points;
}

Ratio beyond(const Point& nearest, double whole, double cost, double nearest_cost) {
  return {nearest.seconds / whole * cost / nearest_cost, Origin::extrapolated};
}

}  // namespace

int channel_block(const Trace& trace) {
  return trace.framework == "oneDNN" ? 16 : 1;
}

Ratio split_ratio(const Layer& layer, Pass pass, Axis axis, double fraction, int block) {
  if (fraction == 1) return {};
  if (axis != Axis::batch && !combines_channels(layer)) return split_ratio(layer, pass, Axis::batch, fraction, 1);
  const auto points = points_of(layer, static_cast<std::size_t>(pass), axis);
  const double whole = points.back().seconds;
  if (!(whole > 0)) return {fraction, Origin::measured};  // nothing of nothing
  constexpr double same = 1e-9;
  for (const auto& point : points) {
    if (std::abs(point.fraction - fraction) < same) return {point.seconds / whole, Origin::measured};
  }
  const bool channels = axis == Axis::output_channel || axis == Axis::input_channel;
  const double extent = extent_of(layer, axis);
  const auto cost_of = [&](double f) { return channels ? costly_fraction(f, extent, block) : f; };
  const double cost = cost_of(fraction);
  if (fraction < points.front().fraction) return beyond(points.front(), whole, cost, cost_of(points.front().fraction));
  if (fraction > 1) return beyond(points.back(), whole, cost, 1);

  std::map<double, std::pair<double, int>> curve;  // cost -> sum of times, how many
  for (const auto& point : points) {
    auto& [sum, count] = curve[cost_of(point.fraction)];
    sum += point.seconds;
    ++count;
  }
  const auto mean = [](const auto& entry) { return entry.second.first / entry.second.second; };
  const auto above = curve.lower_bound(cost);
  if (above->first == cost) return {mean(*above) / whole, Origin::interpolated};
  const auto below = std::prev(above);
  const double position = (cost - below->first) / (above->first - below->first);
  return {(mean(*below) + position * (mean(*above) - mean(*below))) / whole, Origin::interpolated};
}

}  // namespace tandem
