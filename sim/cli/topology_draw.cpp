// The picture of a topology.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/cli/topology_files.hpp"
#include "sim/cli/topology_layout.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr int kMostVertices = 800;
constexpr std::size_t kMostBundles = 6000;
constexpr double kMargin = 40;
constexpr double kDeviceRadius = 9;

// "edge 1.0" -> "edge" and "1.0"; "rail switch (*;3)" -> "rail switch" and "(*;3)".
std::pair<std::string, std::string> kind_and_number(const std::string& name) {
  const auto first = std::min(name.find_first_of("0123456789("), name.size());
  auto kind = name.substr(0, first);
  kind.erase(kind.find_last_not_of(' ') + 1);
  return {kind, name.substr(first)};
}

const char* colour(LengthClass length) {
  switch (length) {
    case LengthClass::board:
      return "#7a8794";
    case LengthClass::copper:
      return "#c8641e";
    case LengthClass::optical:
      break;
  }
  return "#1f78a8";
}

class Picture {
 public:
  Picture(const Topology& topology, const std::vector<Bundle>& bundles, const Layout& layout)
      : topology_(topology), bundles_(bundles), layout_(layout) {}

  std::string svg() {
    for (const auto& bundle : bundles_) add_link(bundle);
    for (int vertex = 0; vertex < topology_.vertices(); ++vertex) add_vertex(vertex);
    const double left = least_.x - kMargin - (layout_.shape == Layout::Shape::layers ? kRowNames : 0);
    if (layout_.shape == Layout::Shape::layers) add_row_names(left + 8);
    const double top = least_.y - kTitle;
    const double width = std::max(most_.x + kMargin - left, 520.0);
    const double height = most_.y + kLegend - top;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{2:.0f}\" height=\"{3:.0f}\" "
               "viewBox=\"{0:.0f} {1:.0f} {2:.0f} {3:.0f}\" font-family=\"sans-serif\">\n"
               "<path d=\"M{0:.0f} {1:.0f}h{2:.0f}v{3:.0f}h-{2:.0f}z\" fill=\"white\"/>\n"
               "<text x=\"{4:.0f}\" y=\"{5:.0f}\" font-size=\"15\">{6}</text>\n",
               left, top, width, height, left + 12, top + 26, xml_escaped(title())) +
           "<g fill=\"none\" stroke-opacity=\"0.7\">\n" + links_ +
           "</g>\n<g font-size=\"8\" text-anchor=\"middle\">\n" + vertices_ + "</g>\n" +
           legend(left + 12, most_.y + kLegend - 24) + "</svg>\n";
  }

 private:
  static constexpr double kTitle = 56;
  static constexpr double kLegend = 62;
  static constexpr double kRowNames = 84;

  [[nodiscard]] Point at(int vertex) const { return layout_.at[static_cast<std::size_t>(vertex)]; }
  // Makes room for what is drawn around a point.
  void stretch(Point point, double half_width) {
    least_ = {std::min(least_.x, point.x - half_width), std::min(least_.y, point.y - kDeviceRadius)};
    most_ = {std::max(most_.x, point.x + half_width), std::max(most_.y, point.y + kDeviceRadius)};
  }

  [[nodiscard]] std::string title() const {
    return fmt::format("{}: {} devices, {} switches", topology_.instance(), topology_.devices(),
                       topology_.vertices() - topology_.devices());
  }

  void add_link(const Bundle& bundle) {
    const auto a = at(bundle.from);
    const auto b = at(bundle.to);
    const double by = bend(layout_, bundle);
    const double length = std::max(1e-9, std::hypot(b.x - a.x, b.y - a.y));
    // The control point of a quadratic curve lies twice as far out as the curve.
    const Point control{(a.x + b.x) / 2 + 2 * by * (b.y - a.y) / length,
                        (a.y + b.y) / 2 - 2 * by * (b.x - a.x) / length};
    if (by != 0) stretch({(a.x + b.x) / 4 + control.x / 2, (a.y + b.y) / 4 + control.y / 2}, kDeviceRadius);
    const auto length_class = topology_.length_class(bundle.there);
    used_.insert(length_class);
    links_ += by == 0 ? fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"", a.x, a.y, b.x, b.y)
                      : fmt::format("<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\"", a.x, a.y, control.x,
                                    control.y, b.x, b.y);
    const auto title = topology_.vertex_name(bundle.from) + " - " + topology_.vertex_name(bundle.to);
    links_ += fmt::format(" stroke=\"{}\" stroke-width=\"{:.1f}\"><title>{}, {}{}</title></path>\n",
                          colour(length_class), 1 + 0.7 * std::log2(bundle.width), xml_escaped(title),
                          to_text(length_class), bundle.width > 1 ? fmt::format(", {} cables", bundle.width) : "");
  }

  void add_vertex(int vertex) {
    const auto point = at(vertex);
    const auto name = topology_.vertex_name(vertex);
    if (vertex < topology_.devices()) {
      stretch(point, kDeviceRadius);
      vertices_ += fmt::format(
          "<g><circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2}\" fill=\"#e8eef4\" stroke=\"#34495e\"/><text x=\"{0:.1f}\" "
          "y=\"{3:.1f}\">{4}</text><title>{5}</title></g>\n",
          point.x, point.y, kDeviceRadius, point.y + 3, vertex, xml_escaped(name));
      return;
    }
    const auto label = kind_and_number(name).second;
    const double half = std::max(13.0, 2.4 * static_cast<double>(label.size()) + 3);
    stretch(point, half);
    vertices_ += fmt::format(
        "<g><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" rx=\"3\" fill=\"#fdf3d8\" "
        "stroke=\"#7d6608\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text><title>{}</title></g>\n",
        point.x - half, point.y - 8, 2 * half, point.x, point.y + 3, xml_escaped(label), xml_escaped(name));
  }

  void add_row_names(double x) {
    for (std::size_t row = 0; row < layout_.row_y.size(); ++row) {
      std::set<std::string> kinds;
      for (std::size_t vertex = 0; vertex < layout_.row.size(); ++vertex) {
        if (layout_.row[vertex] != static_cast<int>(row)) continue;
        kinds.insert(kind_and_number(topology_.vertex_name(static_cast<int>(vertex))).first);
      }
      vertices_ += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor=\"start\">{}</text>\n", x,
                               layout_.row_y[row] + 4, xml_escaped(fmt::format("{}", fmt::join(kinds, ", "))));
    }
  }

  [[nodiscard]] std::string legend(double x, double y) const {
    std::string text = "<g font-size=\"12\">\n";
    for (const auto length : used_) {
      text += fmt::format(
          "<path d=\"M{0:.0f} {1:.0f}h26\" stroke=\"{2}\" stroke-width=\"2\"/><text x=\"{3:.0f}\" "
          "y=\"{4:.0f}\">{5}</text>\n",
          x, y, colour(length), x + 32, y + 4,
          length == LengthClass::board ? "board" : fmt::format("{} cable", to_text(length)));
      x += 130;
    }
    return text + "</g>\n";
  }

  const Topology& topology_;
  const std::vector<Bundle>& bundles_;
  const Layout& layout_;
  Point least_;
  Point most_;
  std::string links_;
  std::string vertices_;
  std::set<LengthClass> used_;
};

}  // namespace

std::string drawing(const Topology& topology) {
  const auto bundles = bundles_of(topology);
  if (topology.vertices() > kMostVertices || bundles.size() > kMostBundles) {
    throw usage_error(
        fmt::format("--draw: {} has {} devices and switches and {} links; at most {} and {} can be read in a picture: "
                    "draw a smaller instance of the same kind",
                    topology.instance(), topology.vertices(), bundles.size(), kMostVertices, kMostBundles));
  }
  const auto layout = layout_of(topology, bundles);
  return Picture(topology, bundles, layout).svg();
}

}  // namespace tandem
