// Reads SimGrid's platform file. Whatever changes what a route is or how fast a link is, and is not read here, is
// refused: <cluster>, <peer>, bypass routes, FATPIPE and WIFI links on routes, rates that vary over time.
#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>

#include "platforms/topologies/listed_network.hpp"
#include "platforms/topologies/platform_file.hpp"
#include "sim/core/csv_text.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kMostNameBytes = 200;

using Attributes = std::map<std::string, std::string>;

const std::string& attribute(const Attributes& attributes, const char* name) {
  const auto found = attributes.find(name);
  if (found == attributes.end() || found->second.empty()) {
    throw input_error(fmt::format("attribute '{}' is missing", name));
  }
  return found->second;
}

std::string attribute_or(const Attributes& attributes, const char* name, const char* otherwise) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? otherwise : found->second;
}

// A number and one of SimGrid's units; without a unit, as SimGrid reads it: the unit of factor 1.
double quantity(const std::string& text, const char* what, const std::map<std::string_view, double>& units) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto unit = units.find(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  if (code != std::errc{} || !std::isfinite(value) || unit == units.end()) {
    throw input_error(fmt::format("{} is {}: it must be a number with a unit, such as {}", what, shown(text),
                                  std::string_view(what) == "latency" ? "50us" : "125MBps or 1Gbps"));
  }
  return value * unit->second;
}

double bandwidth_value(const std::string& text) {
  static const std::map<std::string_view, double> units = [] {
    std::map<std::string_view, double> table{{"", 1}};
    struct Prefix {
      std::string_view bits, bytes;
      double factor;
    };
    constexpr double ki = 1024;
    for (const auto& [bits, bytes, factor] : std::initializer_list<Prefix>{{"bps", "Bps", 1},
                                                                           {"kbps", "kBps", 1e3},
                                                                           {"Mbps", "MBps", 1e6},
                                                                           {"Gbps", "GBps", 1e9},
                                                                           {"Tbps", "TBps", 1e12},
                                                                           {"Pbps", "PBps", 1e15},
                                                                           {"Kibps", "KiBps", ki},
                                                                           {"Mibps", "MiBps", ki * ki},
                                                                           {"Gibps", "GiBps", ki * ki * ki},
                                                                           {"Tibps", "TiBps", ki * ki * ki * ki}}) {
      table[bits] = factor / 8;
      table[bytes] = factor;
    }
    return table;
  }();
  return quantity(text, "bandwidth", units);
}

double latency_value(const std::string& text) {
  static const std::map<std::string_view, double> units{{"", 1},      {"s", 1},      {"ms", 1e-3}, {"us", 1e-6},
                                                        {"ns", 1e-9}, {"ps", 1e-12}, {"m", 60},    {"h", 3600},
                                                        {"d", 86400}, {"w", 604800}};
  return quantity(text, "latency", units);
}

class PlatformReader {
 public:
  PlatformFile read(const std::string& text);

 private:
  struct Link {
    std::string policy;
    int up = -1, down = -1;  // resources; SHARED links have one
  };
  struct Use {              // a <link_ctn>
    int forward, backward;  // resources that the route and its reverse pass
  };
  struct Route {  // a <route> or <zoneRoute> that is being read
    bool of_zones = false;
    Attributes attributes;
    std::vector<Use> uses;
  };

  // What expat calls. Exceptions must not pass through it.
  static void XMLCALL on_start(void* self, const char* name, const char** attributes);
  static void XMLCALL on_end(void* self, const char* name);
  static void XMLCALL on_doctype(void* self, const char*, const char*, const char*, int has_subset);
  static void XMLCALL on_skipped_entity(void* self, const char* name, int);
  template <class Body>
  void guard(Body&& body);

  void start(const std::string& name, const Attributes& attributes);
  void end(const std::string& name);
  void open_zone(const Attributes& attributes);
  void close_zone();
  void add_point(const std::string& element, const Attributes& attributes);
  void add_link(const std::string& element, const Attributes& attributes);
  void add_host_link(const Attributes& attributes);
  void add_use(const Attributes& attributes);
  void close_route();
  void add_hop(int from, int to, int gate_from, int gate_to, std::vector<int> resources);
  void finish();

  PlatformFile::Zone& zone() { return file_.zones[static_cast<std::size_t>(zone_)]; }
  int add_member(int id);
  int member(const std::string& name, const char* what);
  int gate(const Attributes& attributes, const char* name, int member_index);
  int resource(const std::string& name);
  void check_name(const std::string& name, std::set<std::string>& taken, const char* what);

  PlatformFile file_;
  XML_Parser parser_ = nullptr;
  std::exception_ptr failure_;
  std::vector<std::string> open_;  // elements around the current place
  int zone_ = -1;
  std::optional<Route> route_;
  std::unordered_map<std::string, int> points_;  // by name
  std::set<std::string> point_names_;            // and zones: SimGrid has one space of names for both
  std::set<std::string> link_names_;
  std::map<std::string, Link> links_;
  std::unordered_map<std::string, int> resources_;             // by name
  std::vector<char> used_;                                     // resources
  std::vector<std::unordered_map<std::string, int>> members_;  // of zones, by name
};

template <class Body>
void PlatformReader::guard(Body&& body) {
  if (failure_) return;
  try {
    with_context(fmt::format("line {}", XML_GetCurrentLineNumber(parser_)), body);
  } catch (...) {
    failure_ = std::current_exception();
    XML_StopParser(parser_, XML_FALSE);
  }
}

void PlatformReader::on_start(void* self, const char* name, const char** attributes) {
  auto& reader = *static_cast<PlatformReader*>(self);
  reader.guard([&] {
    Attributes given;
    for (; *attributes != nullptr; attributes += 2) given.emplace(attributes[0], attributes[1]);
    reader.start(name, given);
  });
}

void PlatformReader::on_end(void* self, const char* name) {
  auto& reader = *static_cast<PlatformReader*>(self);
  reader.guard([&] { reader.end(name); });
}

// SimGrid's own DOCTYPE names its DTD, which is not read. Whatever a file declares itself could stand for more text
// than it has.
void PlatformReader::on_doctype(void* self, const char*, const char*, const char*, int has_subset) {
  if (has_subset == 0) return;
  static_cast<PlatformReader*>(self)->guard(
      [] { throw input_error("declarations inside of DOCTYPE (entities, attributes) are not accepted"); });
}

void PlatformReader::on_skipped_entity(void* self, const char* name, int) {
  static_cast<PlatformReader*>(self)->guard(
      [&] { throw input_error(fmt::format("entity {} is not declared", shown(name))); });
}

PlatformFile PlatformReader::read(const std::string& text) {
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> owner(XML_ParserCreate(nullptr), &XML_ParserFree);
  if (!owner) throw std::bad_alloc();
  parser_ = owner.get();
  XML_SetUserData(parser_, this);
  XML_SetElementHandler(parser_, &on_start, &on_end);
  XML_SetStartDoctypeDeclHandler(parser_, &on_doctype);
  XML_SetSkippedEntityHandler(parser_, &on_skipped_entity);
  const auto status = XML_Parse(parser_, text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (failure_) std::rethrow_exception(failure_);
  if (status != XML_STATUS_OK) {
    throw input_error(fmt::format("line {}: not XML: {}", XML_GetCurrentLineNumber(parser_),
                                  XML_ErrorString(XML_GetErrorCode(parser_))));
  }
  finish();
  return std::move(file_);
}

// ---- elements ----

bool is_description(const std::string& name) {
  return name == "prop" || name == "disk" || name == "mount";
}

void PlatformReader::start(const std::string& name, const Attributes& attributes) {
  if (open_.size() >= kMostDepth) throw input_error(fmt::format("elements are nested more than {} deep", kMostDepth));
  const std::string around = open_.empty() ? "" : open_.back();
  open_.push_back(name);
  const auto inside = [&](std::initializer_list<const char*> accepted) {
    if (std::find(accepted.begin(), accepted.end(), around) != accepted.end()) return;
    throw input_error(fmt::format("<{}> does not belong into {}", name,
                                  around.empty() ? "the file by itself" : fmt::format("<{}>", around)));
  };
  if (name == "platform") {
    if (!around.empty()) inside({});
    const auto version = attribute_or(attributes, "version", "");
    if (version != "4" && version != "4.1") {
      throw input_error(fmt::format("the platform's version is {}; accepted are 4 and 4.1", shown(version)));
    }
  } else if (name == "config" || (name == "prop" && around == "config")) {
    const auto id = attribute_or(attributes, "id", "");
    if (name == "prop" && (id.starts_with("network/") || id.starts_with("precision/") || id.starts_with("surf/"))) {
      throw input_error(
          fmt::format("the file configures {}: leave it out, and give --cfg or --network-model", shown(id)));
    }
  } else if (is_description(name)) {
    inside({"platform", "zone", "host", "link", "backbone", "router", "disk"});
  } else if (name == "zone") {
    inside({"platform", "zone"});
    open_zone(attributes);
  } else if (name == "host" || name == "router") {
    inside({"zone"});
    add_point(name, attributes);
  } else if (name == "link" || name == "backbone") {
    inside({"zone"});
    add_link(name, attributes);
  } else if (name == "host_link") {
    inside({"zone"});
    add_host_link(attributes);
  } else if (name == "route" || name == "zoneRoute") {
    inside({"zone"});
    route_ = Route{name == "zoneRoute", attributes, {}};
  } else if (name == "link_ctn") {
    inside({"route", "zoneRoute"});
    add_use(attributes);
  } else {
    throw input_error(
        fmt::format("<{}> is not read; accepted are zone, host, router, link, backbone, host_link, "
                    "route, zoneRoute, link_ctn, prop, disk and config",
                    shown(name)));
  }
}

void PlatformReader::end(const std::string& name) {
  open_.pop_back();
  if (name == "zone") close_zone();
  if (name == "route" || name == "zoneRoute") close_route();
}

void PlatformReader::check_name(const std::string& name, std::set<std::string>& taken, const char* what) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
  if (!plain || name.size() > kMostNameBytes) {
    throw input_error(fmt::format("{} is no name: at most {} bytes without control characters are accepted",
                                  shown(name), kMostNameBytes));
  }
  if (!taken.insert(name).second) throw input_error(fmt::format("{} {} is there twice", what, shown(name)));
}

int PlatformReader::add_member(int id) {
  zone().members.push_back(id);
  return static_cast<int>(zone().members.size()) - 1;
}

void PlatformReader::open_zone(const Attributes& attributes) {
  if (zone_ < 0 && !file_.zones.empty()) throw input_error("there is a second outermost zone");
  const auto& name = attribute(attributes, "id");
  check_name(name, point_names_, "zone");
  PlatformFile::Zone made;
  made.name = name;
  const auto& routing = attribute(attributes, "routing");
  if (routing == "Full") {
    made.routing = PlatformFile::Routing::full;
  } else if (routing == "Floyd" || routing == "Dijkstra" || routing == "DijkstraCache") {
    made.routing = PlatformFile::Routing::shortest;
  } else if (routing == "Cluster") {
    made.routing = PlatformFile::Routing::cluster;
  } else {
    throw input_error(
        fmt::format("routing is {}; accepted are Full, Floyd, Dijkstra, DijkstraCache and Cluster", shown(routing)));
  }
  const int id = static_cast<int>(file_.zones.size());
  if (zone_ >= 0) {
    if (zone().routing == PlatformFile::Routing::cluster) throw input_error("a Cluster zone may not hold zones");
    made.parent = zone_;
    made.depth = zone().depth + 1;
    made.member_of_parent = add_member(-1 - id);
    members_[static_cast<std::size_t>(zone_)].emplace(name, made.member_of_parent);
  }
  file_.zones.push_back(std::move(made));
  members_.emplace_back();
  zone_ = id;
}

void PlatformReader::add_point(const std::string& element, const Attributes& attributes) {
  for (const auto* varying : {"availability_file", "speed_file", "state_file"}) {
    if (attributes.contains(varying)) {
      throw input_error(fmt::format("'{}': hosts that change over time are not modelled", varying));
    }
  }
  const auto& name = attribute(attributes, "id");
  check_name(name, point_names_, element == "host" ? "host" : "router");
  const int id = static_cast<int>(file_.points.size());
  file_.points.push_back({name, zone_});
  file_.member_index.push_back(add_member(id));
  members_[static_cast<std::size_t>(zone_)].emplace(name, file_.member_index.back());
  points_.emplace(name, id);
  if (element == "host") file_.hosts.push_back(id);
}

void PlatformReader::add_link(const std::string& element, const Attributes& attributes) {
  for (const auto* varying : {"bandwidth_file", "latency_file", "state_file"}) {
    if (attributes.contains(varying)) {
      throw input_error(fmt::format("'{}': links that change over time are not modelled", varying));
    }
  }
  const auto& name = attribute(attributes, "id");
  check_name(name, link_names_, "link");
  const BytesPerSecond bandwidth(bandwidth_value(attribute(attributes, "bandwidth")));
  const Seconds latency(latency_value(attribute_or(attributes, "latency", "0us")));
  if (!(bandwidth.count() > 0)) throw input_error(fmt::format("link {}: bandwidth must be above 0", shown(name)));
  if (!(latency.count() >= 0)) throw input_error(fmt::format("link {}: latency must be 0 or more", shown(name)));
  Link link{attribute_or(attributes, "sharing_policy", "SHARED")};
  const auto declare = [&](const std::string& resource_name) {
    const int id = static_cast<int>(file_.resources.size());
    if (!resources_.emplace(resource_name, id).second) {
      throw input_error(fmt::format("link {} is there twice", shown(resource_name)));
    }
    file_.resources.push_back({resource_name, bandwidth, latency});
    used_.push_back(0);
    return id;
  };
  if (link.policy == "SPLITDUPLEX") {
    link.up = declare(name + "_UP");
    link.down = declare(name + "_DOWN");
  } else if (link.policy == "SHARED") {
    link.up = link.down = declare(name);
  } else if (link.policy != "FATPIPE" && link.policy != "WIFI") {
    throw input_error(
        fmt::format("sharing_policy is {}; accepted are SHARED and SPLITDUPLEX, and FATPIPE for "
                    "loopbacks",
                    shown(link.policy)));
  }
  if (element == "backbone") {
    if (zone().routing != PlatformFile::Routing::cluster) {
      throw input_error("<backbone> belongs into a zone with routing 'Cluster'");
    }
    if (zone().backbone >= 0) throw input_error("the zone has a backbone already");
    if (link.policy != "SHARED") throw input_error(fmt::format("a backbone that is {} is not modelled", link.policy));
    zone().backbone = link.up;
    used_[static_cast<std::size_t>(link.up)] = 1;
  }
  links_.emplace(name, std::move(link));
}

// A link by the name that <host_link> and <link_ctn> without a direction use.
int PlatformReader::resource(const std::string& name) {
  if (const auto found = resources_.find(name); found != resources_.end()) {
    used_[static_cast<std::size_t>(found->second)] = 1;
    return found->second;
  }
  const auto link = links_.find(name);
  if (link == links_.end()) {
    std::vector<std::string> names;
    if (link_names_.size() <= 1000) names.assign(link_names_.begin(), link_names_.end());
    const auto near = closest(name.substr(0, kMostNameBytes), names);
    throw input_error(fmt::format("unknown link {}{}", shown(name),
                                  near.empty() ? "" : fmt::format("; did you mean {}?", shown(near))));
  }
  if (link->second.policy == "SPLITDUPLEX") {
    throw input_error(fmt::format("link {} is SPLITDUPLEX: say which direction is passed, UP or DOWN", shown(name)));
  }
  throw input_error(
      fmt::format("link {} is {}, which is not modelled between different hosts", shown(name), link->second.policy));
}

void PlatformReader::add_host_link(const Attributes& attributes) {
  if (zone().routing != PlatformFile::Routing::cluster) {
    throw input_error("<host_link> belongs into a zone with routing 'Cluster'");
  }
  const int index = member(attribute(attributes, "id"), "host_link");
  const int point = zone().members[static_cast<std::size_t>(index)];
  const PlatformFile::Spoke spoke{resource(attribute(attributes, "up")), resource(attribute(attributes, "down"))};
  if (!zone().spokes.emplace(point, spoke).second) {
    throw input_error(fmt::format("host {} has a host_link already", shown(attribute(attributes, "id"))));
  }
}

void PlatformReader::add_use(const Attributes& attributes) {
  const auto& name = attribute(attributes, "id");
  const auto direction = attribute_or(attributes, "direction", "NONE");
  if (direction != "UP" && direction != "DOWN" && direction != "NONE") {
    throw input_error(fmt::format("direction is {}; accepted are UP, DOWN and NONE", shown(direction)));
  }
  const auto& around = route_->attributes;
  const bool loop = attribute(around, "src") == attribute(around, "dst");
  if (loop && link_names_.contains(name)) return;  // of a host to itself, where nothing is sent
  const auto link = links_.find(name);
  if (link == links_.end() || link->second.policy != "SPLITDUPLEX" || direction == "NONE") {
    const int id = resource(name);
    route_->uses.push_back({id, id});
    return;
  }
  const auto& [policy, up, down] = link->second;
  const bool rising = direction == "UP";
  route_->uses.push_back(rising ? Use{up, down} : Use{down, up});
}

// A host, router or zone of the current zone, as an index of its members.
int PlatformReader::member(const std::string& name, const char* what) {
  const auto& names = members_[static_cast<std::size_t>(zone_)];
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  if (names.size() <= 1000) {
    for (const auto& [each, index] : names) known.push_back(each);
    std::sort(known.begin(), known.end());
  }
  const auto near = closest(name.substr(0, kMostNameBytes), known);
  throw input_error(fmt::format("{}: zone {} has no host, router or zone {}{}", what, shown(zone().name), shown(name),
                                near.empty() ? "" : fmt::format("; did you mean {}?", shown(near))));
}

// The gateway that `attributes` names: a host or router inside of the zone that is the member.
int PlatformReader::gate(const Attributes& attributes, const char* name, int member_index) {
  const int child = -1 - zone().members[static_cast<std::size_t>(member_index)];
  const auto& gate_name = attribute(attributes, name);
  if (const auto found = points_.find(gate_name); found != points_.end()) {
    int around = file_.points[static_cast<std::size_t>(found->second)].zone;
    while (around > child) around = file_.zones[static_cast<std::size_t>(around)].parent;
    if (around == child) return found->second;
  }
  throw input_error(fmt::format("{}: zone {} has no host or router {}", name,
                                shown(file_.zones[static_cast<std::size_t>(child)].name), shown(gate_name)));
}

void PlatformReader::close_route() {
  const auto route = std::move(*route_);
  route_.reset();
  const char* element = route.of_zones ? "zoneRoute" : "route";
  if (zone().routing == PlatformFile::Routing::cluster) {
    throw input_error(fmt::format("a Cluster zone has host_links, and no <{}>", element));
  }
  const int from = member(attribute(route.attributes, "src"), element);
  const int to = member(attribute(route.attributes, "dst"), element);
  const auto symmetrical = attribute_or(route.attributes, "symmetrical", "YES");
  const bool both = symmetrical == "YES" || symmetrical == "yes";
  if (!both && symmetrical != "NO" && symmetrical != "no") {
    throw input_error(fmt::format("symmetrical is {}; accepted are YES and NO", shown(symmetrical)));
  }
  if (from == to) return;
  const auto end_of = [&](int index, const char* gateway) {
    const int id = zone().members[static_cast<std::size_t>(index)];
    if ((id < 0) != route.of_zones) {
      throw input_error(route.of_zones ? "<zoneRoute> joins zones; hosts and routers have <route>"
                                       : "<route> joins hosts and routers; zones have <zoneRoute>");
    }
    return id < 0 ? gate(route.attributes, gateway, index) : id;
  };
  const int gate_from = end_of(from, "gw_src");
  const int gate_to = end_of(to, "gw_dst");
  if (route.uses.empty()) throw input_error("the route passes no link");
  std::vector<int> there, back;
  for (const auto& use : route.uses) {
    there.push_back(use.forward);
    back.push_back(use.backward);
    used_[static_cast<std::size_t>(use.forward)] = 1;
  }
  std::reverse(back.begin(), back.end());
  add_hop(from, to, gate_from, gate_to, std::move(there));
  if (!both) return;
  for (const int r : back) used_[static_cast<std::size_t>(r)] = 1;
  add_hop(to, from, gate_to, gate_from, std::move(back));
}

void PlatformReader::add_hop(int from, int to, int gate_from, int gate_to, std::vector<int> resources) {
  auto sorted = resources;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw input_error(
        fmt::format("the route passes link {} twice", shown(file_.resources[static_cast<std::size_t>(*twice)].name)));
  }
  auto& here = zone();
  const auto pair = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
  if (!here.hop_between.emplace(pair, here.hops.size()).second) {
    throw input_error("there is such a route already (routes are symmetrical unless they say NO)");
  }
  here.hops.push_back({from, to, gate_from, gate_to, std::move(resources)});
}

void PlatformReader::close_zone() {
  auto& here = zone();
  here.hops_from.resize(here.members.size());
  for (std::size_t h = 0; h < here.hops.size(); ++h) {
    here.hops_from[static_cast<std::size_t>(here.hops[h].from)].push_back(h);
  }
  if (here.routing == PlatformFile::Routing::cluster) {
    std::vector<int> routers;
    for (const int point : here.members) {
      const bool host = std::binary_search(file_.hosts.begin(), file_.hosts.end(), point);
      if (!host) routers.push_back(point);
      if (host && !here.spokes.contains(point)) {
        throw input_error(
            fmt::format("host {} has no host_link", shown(file_.points[static_cast<std::size_t>(point)].name)));
      }
    }
    if (here.backbone < 0 && routers.size() > 1) {
      throw input_error("a Cluster zone with two routers needs a backbone that joins them");
    }
    if (here.backbone < 0 && routers.empty()) {
      here.hub = static_cast<int>(file_.points.size());
      file_.points.push_back({here.name + " switch", zone_});
      file_.member_index.push_back(add_member(here.hub));
    } else if (here.backbone < 0) {
      here.hub = routers.front();
    }
  }
  zone_ = here.parent;
}

// Links that no route passes are dropped.
void PlatformReader::finish() {
  if (file_.zones.empty()) throw input_error("the platform has no zone");
  if (file_.hosts.empty()) throw input_error("the platform has no host");
  std::vector<int> number(file_.resources.size(), -1);
  std::vector<PlatformFile::Resource> kept;
  for (std::size_t r = 0; r < number.size(); ++r) {
    if (used_[r] == 0) continue;
    number[r] = static_cast<int>(kept.size());
    kept.push_back(std::move(file_.resources[r]));
  }
  file_.resources = std::move(kept);
  const auto renumber = [&](int& r) { r = r < 0 ? r : number[static_cast<std::size_t>(r)]; };
  for (auto& each : file_.zones) {
    renumber(each.backbone);
    for (auto& hop : each.hops) std::for_each(hop.resources.begin(), hop.resources.end(), renumber);
    for (auto& [point, spoke] : each.spokes) {
      renumber(spoke.up);
      renumber(spoke.down);
    }
  }
}

}  // namespace

PlatformFile read_platform(const std::string& path) {
  return with_context(path, [&] { return PlatformReader().read(file_contents(path, kMostNetworkFileBytes)); });
}

}  // namespace tandem
