// Where the vertices of a topology stand in its picture. Three layouts, none of which knows a topology by name:
//   layers  switches in rows by their distance from the nearest device, devices below them, switches that have only
//   board
//           links lowest; links within a row are arcs
//   grid    no switches and few links a device: the digits of the address lead right and down, a third one back; with
//           more digits right and down alternate, so that a torus of four dimensions is a grid of grids
//   circle  no switches and many links a device, or no address; groups of the lowest digit are circles of their own
#pragma once

#include <vector>

#include "platforms/cables.hpp"

namespace tandem {

struct Point {
  double x = 0;
  double y = 0;  // downwards
};

struct Layout {
  enum class Shape { layers, grid, circle };
  Shape shape = Shape::layers;
  std::vector<Point> at;      // by vertex
  std::vector<int> row;       // by vertex, in layers: from the top
  std::vector<double> row_y;  // of layers
  double gap = 0;             // between rows
  double straight = 0;        // in a grid: links no longer than this pass by no other vertex
};

[[nodiscard]] Layout layout_of(const Topology& topology, const std::vector<Bundle>& bundles);

// How far a link bends away from the straight line between its ends, to its left as seen from `bundle.from` where
// positive.
[[nodiscard]] double bend(const Layout& layout, const Bundle& bundle);

}  // namespace tandem
