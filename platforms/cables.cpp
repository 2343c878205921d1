#include "platforms/cables.hpp"

namespace tandem {

std::vector<Bundle> bundles_of(const Network& network) {
  const auto& links = network.links();
  std::vector<Bundle> bundles;
  bundles.reserve(links.size() / 2);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& link = links[i];
    const LinkId id{static_cast<std::int32_t>(i)};
    const bool pair = i + 1 < links.size() && links[i + 1].from == link.to && links[i + 1].to == link.from;
    bundles.push_back({id, pair ? LinkId{id.value + 1} : LinkId{}, link.from, link.to, link.width});
    if (pair) ++i;
  }
  return bundles;
}

std::vector<Cable> cables_of(const Topology& topology) {
  const int planes = topology.planes();
  const auto bundles = bundles_of(topology);
  std::vector<std::int64_t> ports(static_cast<std::size_t>(topology.vertices()), 0);  // of one plane
  for (const auto& bundle : bundles) {
    ports[static_cast<std::size_t>(bundle.from)] += bundle.width / planes;
    ports[static_cast<std::size_t>(bundle.to)] += bundle.width / planes;
  }
  std::vector<std::int64_t> next(ports.size(), 0);
  const auto port = [&](int vertex, int plane, int cable) {
    const auto at = static_cast<std::size_t>(vertex);
    return next[at] + cable + (vertex < topology.devices() ? plane * ports[at] : 0);
  };
  std::vector<Cable> cables;
  for (const auto& bundle : bundles) {
    const int in_plane = bundle.width / planes;
    const auto length = topology.length_class(bundle.there);
    for (int plane = 0; plane < planes; ++plane) {
      for (int cable = 0; cable < in_plane; ++cable) {
        cables.push_back({bundle.there, plane, port(bundle.from, plane, cable), port(bundle.to, plane, cable), length});
      }
    }
    next[static_cast<std::size_t>(bundle.from)] += in_plane;
    next[static_cast<std::size_t>(bundle.to)] += in_plane;
  }
  return cables;
}

const char* to_text(LengthClass length) {
  switch (length) {
    case LengthClass::board:
      return "board";
    case LengthClass::copper:
      return "copper";
    case LengthClass::optical:
      break;
  }
  return "optical";
}

}  // namespace tandem
