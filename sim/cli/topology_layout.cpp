#include "sim/cli/topology_layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tandem {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Rows from the top: switches by links to the nearest device, devices, switches that have only board links.
std::vector<int> rows_of(const Topology& topology, const std::vector<Bundle>& bundles) {
  std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(topology.vertices()));
  std::vector<bool> only_board(neighbours.size(), true);
  for (const auto& bundle : bundles) {
    neighbours[static_cast<std::size_t>(bundle.from)].push_back(bundle.to);
    neighbours[static_cast<std::size_t>(bundle.to)].push_back(bundle.from);
    if (topology.length_class(bundle.there) == LengthClass::board) continue;
    only_board[static_cast<std::size_t>(bundle.from)] = false;
    only_board[static_cast<std::size_t>(bundle.to)] = false;
  }
  std::vector<int> height(neighbours.size(), -1);  // above the devices
  std::fill(height.begin(), height.begin() + topology.devices(), 0);
  std::vector<int> open(static_cast<std::size_t>(topology.devices()));
  std::iota(open.begin(), open.end(), 0);
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const int next : neighbours[static_cast<std::size_t>(open[i])]) {
      if (height[static_cast<std::size_t>(next)] >= 0) continue;
      height[static_cast<std::size_t>(next)] = height[static_cast<std::size_t>(open[i])] + 1;
      open.push_back(next);
    }
  }
  for (auto vertex = static_cast<std::size_t>(topology.devices()); vertex < height.size(); ++vertex) {
    height[vertex] = only_board[vertex] ? -1 : std::max(height[vertex], 1);
  }
  const int top = *std::max_element(height.begin(), height.end());
  for (auto& value : height) value = top - value;
  return height;
}

// Devices in groups of the lowest digit of their address; the other rows are spread over the same width.
Layout layers(const Topology& topology, const std::vector<Bundle>& bundles) {
  constexpr double kPitch = 24;
  constexpr double kGroupGap = 14;
  constexpr double kSwitchPitch = 34;
  Layout layout;
  layout.row = rows_of(topology, bundles);
  std::vector<std::vector<int>> members(
      static_cast<std::size_t>(1 + *std::max_element(layout.row.begin(), layout.row.end())));
  for (int vertex = 0; vertex < topology.vertices(); ++vertex) {
    members[static_cast<std::size_t>(layout.row[static_cast<std::size_t>(vertex)])].push_back(vertex);
  }
  const auto radices = topology.radices();
  const int group = radices.size() > 1 && radices[0] > 1 ? radices[0] : topology.devices();
  const double devices_width = (topology.devices() - 1) * kPitch + (topology.devices() - 1) / group * kGroupGap;
  double width = devices_width;
  for (const auto& list : members) {
    if (list.empty() || list.front() < topology.devices()) continue;
    width = std::max(width, static_cast<double>(list.size()) * kSwitchPitch);
  }
  layout.gap = std::clamp(width / 7, 130.0, 420.0);
  layout.at.resize(layout.row.size());
  for (const auto& list : members) {
    const double y = static_cast<double>(layout.row_y.size()) * layout.gap;
    layout.row_y.push_back(y);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto index = static_cast<double>(i);
      const bool device = list[i] < topology.devices();
      const double x = device ? (width - devices_width) / 2 + index * kPitch + list[i] / group * kGroupGap
                              : (index + 0.5) / static_cast<double>(list.size()) * width;
      layout.at[static_cast<std::size_t>(list[i])] = {x, y};
    }
  }
  return layout;
}

bool fits_a_grid(const Topology& topology, std::size_t bundles) {
  const auto radices = topology.radices();
  const auto dimensions =
      static_cast<std::size_t>(std::count_if(radices.begin(), radices.end(), [](int radix) { return radix > 1; }));
  return dimensions > 1 && bundles <= dimensions * static_cast<std::size_t>(topology.devices());
}

// What one step of each digit moves by.
std::vector<std::pair<int, Point>> grid_steps(const std::vector<int>& radices, double& straight) {
  constexpr double kPitch = 62;
  constexpr double kPanelGap = 30;
  constexpr Point kBack{20, -16};
  std::vector<int> digits = radices;
  std::array<double, 2> step{kPitch, kPitch};  // right, down
  const bool cube = digits.size() == 3 && digits[0] > 1 && digits[1] > 1 && digits[2] > 1;
  if (cube) step = {kBack.x * (digits[2] + 1), -kBack.y * (digits[2] + 1.5)};
  straight = std::max(step[0], step[1]) + 1;
  std::vector<std::pair<int, Point>> steps;
  std::size_t axis = 0;
  for (const int radix : digits) {
    if (cube && steps.size() == 2) {
      steps.push_back({radix, kBack});
      continue;
    }
    steps.push_back({radix, axis == 0 ? Point{step[0], 0} : Point{0, step[1]}});
    if (radix == 1) continue;
    step[axis] = step[axis] * radix + kPanelGap;
    axis = 1 - axis;
  }
  return steps;
}

Layout grid(const Topology& topology) {
  Layout layout;
  layout.shape = Layout::Shape::grid;
  const auto steps = grid_steps(topology.radices(), layout.straight);
  for (int device = 0; device < topology.devices(); ++device) {
    Point point;
    int rest = device;
    for (const auto& [radix, move] : steps) {
      point.x += rest % radix * move.x;
      point.y += rest % radix * move.y;
      rest /= radix;
    }
    layout.at.push_back(point);
  }
  return layout;
}

Point on_circle(double radius, int index, int count) {
  const double angle = 2 * kPi * index / count - kPi / 2;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

Layout circle(const Topology& topology) {
  constexpr double kArc = 24;  // from device to device
  Layout layout;
  layout.shape = Layout::Shape::circle;
  const auto radices = topology.radices();
  const int group = radices.size() > 1 && radices[0] > 2 ? radices[0] : 1;
  const int groups = (topology.devices() + group - 1) / group;
  const double small = group > 1 ? std::max(26.0, group * kArc / (2 * kPi)) : 0;
  const double large = std::max({110.0, 3 * small, groups * (2 * small + kArc) / (2 * kPi)});
  for (int device = 0; device < topology.devices(); ++device) {
    const auto middle = on_circle(large, device / group, groups);
    const auto from_middle = on_circle(small, device % group, group);
    layout.at.push_back({middle.x + from_middle.x, middle.y + from_middle.y});
  }
  return layout;
}

}  // namespace

Layout layout_of(const Topology& topology, const std::vector<Bundle>& bundles) {
  if (topology.vertices() > topology.devices()) return layers(topology, bundles);
  return fits_a_grid(topology, bundles.size()) ? grid(topology) : circle(topology);
}

double bend(const Layout& layout, const Bundle& bundle) {
  const auto a = layout.at[static_cast<std::size_t>(bundle.from)];
  const auto b = layout.at[static_cast<std::size_t>(bundle.to)];
  constexpr double kBesideTheRow = 24;  // between two rows of a grid
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  if (layout.shape == Layout::Shape::circle) return 0;
  if (layout.shape == Layout::Shape::grid) return length > layout.straight ? kBesideTheRow : 0;
  const int row = layout.row[static_cast<std::size_t>(bundle.from)];
  if (row != layout.row[static_cast<std::size_t>(bundle.to)]) return 0;
  // Arcs below the lowest row, above others; as high as fits between rows.
  const double height = std::min(14 + 0.33 * length, 0.8 * layout.gap);
  const bool lowest = row + 1 == static_cast<int>(layout.row_y.size());
  return (lowest ? height : -height) * (b.x >= a.x ? -1 : 1);
}

}  // namespace tandem
