// A network typed or exported as tables of links, nodes and, where wanted, routes: platforms/LINK_LIST.md is the
// format. Every link has its own rate and latency, also in each direction. Routes that the file does not give are
// shortest paths (platforms/shortest_paths.hpp), found when they are asked for.
#include <algorithm>
#include <charconv>
#include <memory>
#include <unordered_map>

#include "platforms/shortest_paths.hpp"
#include "platforms/topologies/listed_network.hpp"
#include "sim/core/csv_text.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostNameBytes = 200;
constexpr std::size_t kMostDigits = 16;
constexpr std::int64_t kMostCables = 1'000'000;  // of one line

// ---- tables ----

// A row's cells in the order of the columns that the reader knows; empty where the file has none.
struct Row {
  int line = 0;
  std::vector<std::string> cells;
};

// Position in `columns` of each cell of the header.
std::vector<std::size_t> read_header(const CsvRecord& record, const std::vector<std::string>& columns,
                                     std::size_t required) {
  std::vector<std::size_t> order;
  for (const auto& cell : record.cells) {
    const auto found = std::find(columns.begin(), columns.end(), cell.text);
    if (found == columns.end()) {
      throw input_error(fmt::format("line {}: unknown column {}{}", record.line, shown(cell.text),
                                    suggestion(cell.text.substr(0, 40), columns)));
    }
    const auto column = static_cast<std::size_t>(found - columns.begin());
    if (std::find(order.begin(), order.end(), column) != order.end()) {
      throw input_error(fmt::format("line {}: column '{}' is there twice", record.line, cell.text));
    }
    order.push_back(column);
  }
  for (std::size_t column = 0; column < required; ++column) {
    if (std::find(order.begin(), order.end(), column) == order.end()) {
      throw input_error(
          fmt::format("line {}: the header has no column '{}'; it must have {}", record.line, columns[column],
                      fmt::join(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(required), ", ")));
    }
  }
  return order;
}

// Calls visit(row) for every row below the header; errors name the file and the line.
template <class Visit>
void read_table(const std::string& path, const std::vector<std::string>& columns, std::size_t required, Visit&& visit) {
  with_context(path, [&] {
    const auto text = file_contents(path, kMostNetworkFileBytes);
    CsvReader reader(text);
    std::vector<std::size_t> order;
    Row row;
    while (const auto record = reader.next()) {
      if (record->kind == CsvRecord::Kind::section) {
        throw input_error(fmt::format("line {}: there are no sections here: {}", record->line,
                                      shown("[" + record->cells[0].text + "]")));
      }
      if (record->kind != CsvRecord::Kind::row) continue;
      if (order.empty()) {
        order = read_header(*record, columns, required);
        continue;
      }
      if (record->cells.size() > order.size()) {
        throw input_error(
            fmt::format("line {} has {} cells under a header of {}", record->line, record->cells.size(), order.size()));
      }
      row.line = record->line;
      row.cells.assign(columns.size(), "");
      for (std::size_t i = 0; i < record->cells.size(); ++i) row.cells[order[i]] = record->cells[i].text;
      with_context(fmt::format("line {}", row.line), [&] { visit(row); });
    }
    if (order.empty()) throw input_error("the file has no header");
  });
}

// A value with a unit, as on the command line; what is wrong with it is the file's mistake here.
template <class Parse>
auto value_of(const std::string& text, const char* what, Parse&& parse) {
  if (text.empty()) throw input_error(fmt::format("{} is missing", what));
  if (text.size() > 40) throw input_error(fmt::format("{} is {}", what, shown(text)));
  try {
    return parse(text);
  } catch (const Error&) {
    throw input_error(fmt::format("{} is {}: it must be a number with its unit, such as {}", what, shown(text),
                                  std::string_view(what) == "latency" ? "5us" : "100Gbps"));
  }
}

int whole(const std::string& text, std::int64_t least, std::int64_t most, const char* what) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    throw input_error(fmt::format("{} is {}: it must be a whole number from {} to {}", what, shown(text), least, most));
  }
  return static_cast<int>(value);
}

void check_name(const std::string& name, const char* what) {
  if (name.empty()) throw input_error(fmt::format("the name of '{}' is missing", what));
  const bool plain = std::all_of(name.begin(), name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '>'; });
  if (!plain || name.size() > kMostNameBytes) {
    throw input_error(fmt::format("{} is no name: at most {} bytes without control characters and '>' are accepted",
                                  shown(name), kMostNameBytes));
  }
}

// ---- vertices ----

// Names and numbers of vertices: devices first.
class Vertices {
 public:
  std::vector<std::string> names;
  int devices = 0;
  std::vector<int> radices;

  void read(const std::string& path) {
    std::vector<Node> nodes;
    std::unordered_map<std::string, int> lines;
    read_table(path, {"name", "kind", "address"}, 2, [&](const Row& row) {
      check_name(row.cells[0], "name");
      const auto [first, is_new] = lines.emplace(row.cells[0], row.line);
      if (!is_new) throw input_error(fmt::format("{} is on line {} already", shown(row.cells[0]), first->second));
      nodes.push_back(node_of(row));
    });
    with_context(path, [&] { number(nodes); });
    open_ = false;
    where_ = path;
  }

  // Number of the vertex of that name; without a file of nodes a new name is a new device.
  int find(const std::string& name, const char* what) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    check_name(name, what);
    if (!open_) {
      const auto near = names.size() > 1000 ? "" : closest(name, names);
      throw input_error(fmt::format("{} is not in {}{}", shown(name), where_,
                                    near.empty() ? "" : fmt::format("; did you mean {}?", shown(near))));
    }
    if (devices == kMostDevices) throw input_error(fmt::format("there are more than {} devices", kMostDevices));
    names.push_back(name);
    numbers_.emplace(name, devices);
    return devices++;
  }
  [[nodiscard]] bool knows(const std::string& name) const { return numbers_.contains(name); }
  void close() {
    open_ = false;
    where_ = "the file of links";
  }

 private:
  struct Node {
    std::string name;
    bool device = false;
    std::vector<int> digits;
    int line = 0;
  };

  static Node node_of(const Row& row) {
    Node node{row.cells[0], row.cells[1] == "device", {}, row.line};
    if (!node.device && row.cells[1] != "switch") {
      throw input_error(fmt::format("kind is {}: it must be device or switch", shown(row.cells[1])));
    }
    const auto& address = row.cells[2];
    if (address.empty()) return node;
    if (!node.device) throw input_error("a switch has no address");
    for (const auto& digit : split(address, '.')) {
      node.digits.push_back(whole(digit, 0, kMostDevices - 1, "a digit of the address"));
    }
    if (node.digits.size() > kMostDigits) {
      throw input_error(fmt::format("the address has more than {} digits", kMostDigits));
    }
    return node;
  }

  void number(const std::vector<Node>& nodes) {
    std::vector<const Node*> order;
    for (const auto& node : nodes) {
      if (node.device) order.push_back(&node);
    }
    if (order.empty()) throw input_error("no node is a device");
    if (order.size() > static_cast<std::size_t>(kMostDevices) || nodes.size() > static_cast<std::size_t>(INT32_MAX)) {
      throw input_error(fmt::format("there are more than {} devices", kMostDevices));
    }
    devices = static_cast<int>(order.size());
    by_address(order);
    for (const auto& node : nodes) {
      if (!node.device) order.push_back(&node);
    }
    for (const auto* node : order) {
      numbers_.emplace(node->name, static_cast<int>(names.size()));
      names.push_back(node->name);
    }
  }

  // Devices sorted by address where they have one: all of them, every address below the largest digits taken once.
  void by_address(std::vector<const Node*>& order) {
    const auto digits = order.front()->digits.size();
    for (const auto* node : order) {
      if (node->digits.size() != digits) {
        throw input_error(fmt::format("line {}: {} has an address of {} digits where {} has one of {}", node->line,
                                      shown(node->name), node->digits.size(), shown(order.front()->name), digits));
      }
    }
    if (digits == 0) return;
    radices.assign(digits, 1);
    for (const auto* node : order) {
      for (std::size_t d = 0; d < digits; ++d) radices[d] = std::max(radices[d], node->digits[d] + 1);
    }
    if (capped_product(radices) != devices) {
      throw input_error(fmt::format("addresses up to {} make {} devices, but there are {}: every address must be taken",
                                    fmt::join(radices, "x"), capped_product(radices), devices));
    }
    std::vector<const Node*> sorted(order.size(), nullptr);
    for (const auto* node : order) {
      std::size_t id = 0;
      for (std::size_t d = digits; d-- > 0;) {
        id = id * static_cast<std::size_t>(radices[d]) + static_cast<std::size_t>(node->digits[d]);
      }
      if (sorted[id] != nullptr) {
        throw input_error(fmt::format("line {}: {} has the address of {} on line {}", node->line, shown(node->name),
                                      shown(sorted[id]->name), sorted[id]->line));
      }
      sorted[id] = node;
    }
    order = std::move(sorted);
  }

  std::unordered_map<std::string, int> numbers_;
  bool open_ = true;
  std::string where_;
};

std::uint64_t key(int from, int to) {
  return (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
}

// Names joined by '>' where there is one, else by blanks.
std::vector<std::string> stops_of(const std::string& text) {
  const bool arrows = text.find('>') != std::string::npos;
  std::vector<std::string> stops;
  for (auto part : split(text, arrows ? '>' : ' ')) {
    part.erase(0, std::min(part.find_first_not_of(" \t"), part.size()));
    part.erase(part.find_last_not_of(" \t") + 1);
    if (!part.empty() || arrows) stops.push_back(std::move(part));
  }
  return stops;
}

// ---- the network ----

struct Files {
  std::string links;
  std::string nodes;   // "": every vertex is a device
  std::string routes;  // "": shortest paths
};

class LinkList final : public ListedNetwork {
 public:
  LinkList(const Files& files, int planes, const PluginContext& context) : ListedNetwork(context, planes) {
    instance_ =
        fmt::format("link-list:links={}{}{},planes={}", files.links, files.nodes.empty() ? "" : ",nodes=" + files.nodes,
                    files.routes.empty() ? "" : ",routes=" + files.routes, planes);
    read_links(files);
    with_context(files.links, [&] { check_connected(); });
    if (!files.routes.empty()) read_routes(files.routes);
    shortest_ = routes_.empty();
    paths_ = std::make_unique<ShortestPaths>(*this);
    vertices_by_name_ = {};
    joined_.clear();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const auto hash = flow_hash(src, dst, flow);
    if (const auto found = routes_.find(key(src.value, dst.value)); found != routes_.end()) {
      path = found->second[hash % found->second.size()];
    } else {
      paths_->find(src.value, dst.value, hash, path);
    }
  }

 private:
  struct Joined {
    LinkId id;
    int line = 0;
  };
  struct Line {
    int from, to, number;
    BytesPerSecond bandwidth;
    Seconds latency;
    int cables;
    std::string kind;
    bool both;
  };

  // Vertices are numbered before links are made: what is a device decides the kinds of links.
  void read_links(const Files& files) {
    auto& vertices = vertices_by_name_;
    if (!files.nodes.empty()) vertices.read(files.nodes);
    std::vector<Line> lines;
    read_table(files.links, {"from", "to", "bandwidth", "latency", "cables", "kind", "direction"}, 4,
               [&](const Row& row) { lines.push_back(line_of(row)); });
    vertices.close();
    if (vertices.devices == 0) throw input_error(fmt::format("{}: the file has no links", files.links));
    devices_ = vertices.devices;
    vertices_ = static_cast<int>(vertices.names.size());
    names_ = vertices.names;
    radices_ = vertices.radices;
    links_.reserve(2 * lines.size());
    with_context(files.links, [&] {
      // The directions of a cable that two lines describe follow each other, as those of other cables do.
      std::unordered_map<std::uint64_t, std::size_t> single;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i].both) single.emplace(key(lines[i].from, lines[i].to), i);
      }
      std::vector<bool> done(lines.size(), false);
      const auto join_once = [&](std::size_t i) {
        if (!done[i]) with_context(fmt::format("line {}", lines[i].number), [&] { join(lines[i]); });
        done[i] = true;
      };
      for (std::size_t i = 0; i < lines.size(); ++i) {
        join_once(i);
        const auto back = single.find(key(lines[i].to, lines[i].from));
        if (!lines[i].both && back != single.end()) join_once(back->second);
      }
    });
  }

  Line line_of(const Row& row) {
    Line line{};
    line.number = row.line;
    line.from = vertices_by_name_.find(row.cells[0], "from");
    line.to = vertices_by_name_.find(row.cells[1], "to");
    if (line.from == line.to) throw input_error(fmt::format("{} is linked to itself", shown(row.cells[0])));
    line.bandwidth = value_of(row.cells[2], "bandwidth", parse_bandwidth);
    line.latency = value_of(row.cells[3], "latency", parse_seconds);
    line.cables = row.cells[4].empty() ? 1 : whole(row.cells[4], 1, kMostCables, "cables");
    line.kind = row.cells[5];
    const auto& direction = row.cells[6];
    line.both = direction.empty() || direction == "both";
    if (!line.both && direction != "one") {
      throw input_error(fmt::format("direction is {}: it must be both or one", shown(direction)));
    }
    return line;
  }

  [[nodiscard]] LinkKind kind_of(const Line& line) const {
    const auto natural = kind_between(line.from, line.to);
    if (line.kind.empty()) return natural;
    const auto found = std::find(kLinkKindNames.begin(), kLinkKindNames.end(), line.kind);
    if (found == kLinkKindNames.end()) {
      throw input_error(
          fmt::format("kind is {}: it must be one of {}", shown(line.kind), fmt::join(kLinkKindNames, ", ")));
    }
    const auto kind = static_cast<LinkKind>(found - kLinkKindNames.begin());
    if (kind != LinkKind::intra_node && kind != LinkKind::host && kind != natural) {
      throw input_error(fmt::format("kind is '{}', but a link between {} and {} is '{}'", line.kind,
                                    described(line.from), described(line.to), to_text(natural)));
    }
    return kind;
  }
  [[nodiscard]] std::string described(int vertex) const {
    return (vertex < devices_ ? "device " : "switch ") + shown(vertex_name(vertex));
  }

  void join(const Line& line) {
    const auto kind = kind_of(line);
    const auto one_way = [&](int from, int to) {
      const auto known = joined_.find(key(from, to));
      if (known != joined_.end()) {
        throw input_error(fmt::format("{} -> {} is a link of line {} already; parallel cables are counted in 'cables'",
                                      shown(vertex_name(from)), shown(vertex_name(to)), known->second.line));
      }
      const auto id = list_link(from, to, line.bandwidth, line.latency, kind, line.cables);
      joined_.emplace(key(from, to), Joined{id, line.number});
    };
    one_way(line.from, line.to);
    if (line.both) one_way(line.to, line.from);
  }

  // Several rows of one pair are choices that flows are spread over.
  void read_routes(const std::string& file) {
    read_table(file, {"src", "dst", "path"}, 3, [&](const Row& row) {
      const int src = device_of(row.cells[0], "src");
      const int dst = device_of(row.cells[1], "dst");
      if (src == dst) throw input_error(fmt::format("{} has a route to itself", shown(row.cells[0])));
      routes_[key(src, dst)].push_back(path_of(src, dst, row.cells[2]));
    });
  }

  int device_of(const std::string& name, const char* what) {
    const int vertex = vertices_by_name_.find(name, what);
    if (vertex >= devices_) throw input_error(fmt::format("{} {} is a switch", what, shown(name)));
    return vertex;
  }

  std::vector<LinkId> path_of(int src, int dst, const std::string& text) {
    std::vector<int> stops{src};
    const auto names = vertices_by_name_.knows(text) ? std::vector<std::string>{text} : stops_of(text);
    for (const auto& name : names) {
      const int vertex = vertices_by_name_.find(name, "path");
      if (stops.size() == 1 && vertex == src) continue;  // the ends may be written or left out
      stops.push_back(vertex);
    }
    if (stops.back() != dst) stops.push_back(dst);
    std::vector<LinkId> path;
    for (std::size_t i = 1; i < stops.size(); ++i) {
      const auto found = joined_.find(key(stops[i - 1], stops[i]));
      if (found == joined_.end()) {
        throw input_error(
            fmt::format("there is no link {} -> {}", shown(vertex_name(stops[i - 1])), shown(vertex_name(stops[i]))));
      }
      path.push_back(found->second.id);
    }
    auto sorted = stops;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
      throw input_error(fmt::format("the path passes {} twice", shown(vertex_name(*twice))));
    }
    return path;
  }

  Vertices vertices_by_name_;                         // while the files are read
  std::unordered_map<std::uint64_t, Joined> joined_;  // by (from, to), while the files are read
  std::unordered_map<std::uint64_t, std::vector<std::vector<LinkId>>> routes_;  // by (src, dst)
  std::unique_ptr<ShortestPaths> paths_;
};

std::unique_ptr<Topology> make_link_list(const Arguments& arguments, const Topology::PluginContext& context) {
  refuse_other_rates("link-list", context);
  const auto optional = [&](const char* name) { return arguments.has(name) ? arguments.text(name) : std::string(); };
  const Files files{arguments.text("links"), optional("nodes"), optional("routes")};
  return std::make_unique<LinkList>(files, planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, link_list, "link-list",
                "a network given as CSV: links with rates and latencies, nodes, routes (platforms/LINK_LIST.md)",
                make_link_list,
                {{"links", ParameterType::text, "", "from,to,bandwidth,latency[,cables][,kind][,direction]; required"},
                 {"nodes", ParameterType::text, "", "name,kind[,address] (every vertex is a device when left out)"},
                 {"routes", ParameterType::text, "", "src,dst,path (shortest paths when left out)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
