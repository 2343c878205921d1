#include "platforms/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::array<std::pair<std::string_view, Failure::Kind>, 3> kKinds{{
    {"link:", Failure::Kind::link},
    {"switch:", Failure::Kind::vertex},
    {"rank:", Failure::Kind::rank},
}};

// Where the next ",kind:" begins, behind `from`.
std::size_t next_failure(const std::string& text, std::size_t from) {
  auto next = std::string::npos;
  for (const auto& [prefix, kind] : kKinds) next = std::min(next, text.find("," + std::string(prefix), from));
  return next;
}

Failure parse_failure(const std::string& text) {
  for (const auto& [prefix, kind] : kKinds) {
    if (!text.starts_with(prefix) || text.size() == prefix.size() || text.ends_with(',')) continue;
    return {kind, text.substr(prefix.size())};
  }
  throw usage_error(fmt::format(
      "--failure is '{}': it must be link:NAME, switch:NAME or rank:R (tandem topology --links shows names)", text));
}

std::uint64_t pair_hash(DeviceId src, DeviceId dst, FlowHash flow) {
  const auto pair =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(src.value)) << 32) | static_cast<std::uint32_t>(dst.value);
  return mix(mix(pair) ^ flow);
}

// Names in files that split at blanks are written without them.
std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

// What the user may have meant; of the names in a large network only the first ones are looked at.
std::string near_or_first(const std::string& name, std::int64_t count,
                          const std::function<std::string(std::int64_t)>& name_of) {
  constexpr std::int64_t kMostCompared = 100'000;
  if (count == 0) return "it has none at all";
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < std::min(count, kMostCompared); ++i) names.push_back(name_of(i));
  const auto near = closest(name, names);
  return near.empty() ? fmt::format("its first one is '{}'", names.front()) : fmt::format("did you mean '{}'?", near);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<Failure> parse_failures(const std::string& text) {
  std::vector<Failure> failures;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(next_failure(text, begin), text.size());
    failures.push_back(parse_failure(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (failures.empty()) failures.push_back(parse_failure(text));
  return failures;
}

std::string to_text(const Failure& failure) {
  for (const auto& [prefix, kind] : kKinds) {
    if (kind == failure.kind) return std::string(prefix) + failure.name;
  }
  return failure.name;
}

LinkId find_link(const Network& network, const std::string& name) {
  const auto links = static_cast<std::int64_t>(network.links().size());
  if (is_number(name)) {
    return LinkId{static_cast<std::int32_t>(parse_integer(name, 0, links - 1, "the number of a link of --failure"))};
  }
  const auto wanted = without_blanks(name);
  for (std::int32_t id = 0; id < links; ++id) {
    if (without_blanks(network.link_name(LinkId{id})) == wanted) return LinkId{id};
  }
  throw usage_error(fmt::format(
      "--failure names the link '{}', which the network does not have; {} ('tandem topology --links' shows them all)",
      name, near_or_first(name, links, [&](std::int64_t id) {
        return network.link_name(LinkId{static_cast<std::int32_t>(id)});
      })));
}

int find_switch(const Network& network, const std::string& name) {
  const auto wanted = without_blanks(name);
  for (int vertex = network.devices(); vertex < network.vertices(); ++vertex) {
    if (without_blanks(network.vertex_name(vertex)) == wanted) return vertex;
  }
  const auto switches = network.vertices() - network.devices();
  throw usage_error(fmt::format("--failure names the switch '{}', which the network does not have; {}", name,
                                near_or_first(name, switches, [&](std::int64_t number) {
                                  return network.vertex_name(network.devices() + static_cast<int>(number));
                                })));
}

void FailedParts::fail_link(const Network& network, LinkId link) {
  links_.resize(network.links().size(), 0);
  const auto& one = network.link(link);
  links_[link.index()] = 1;
  // The other direction has the next or the previous id (Network::add_cable); a network read from a file may have none.
  const auto other = link.index() ^ 1U;
  if (other >= links_.size()) return;
  const auto& back = network.links()[other];
  if (back.from == one.to && back.to == one.from) links_[other] = 1;
}

void FailedParts::fail_vertex(const Network& network, int vertex) {
  vertices_.resize(static_cast<std::size_t>(network.vertices()), 0);
  links_.resize(network.links().size(), 0);
  vertices_[static_cast<std::size_t>(vertex)] = 1;
  for (std::size_t id = 0; id < links_.size(); ++id) {
    const auto& link = network.links()[id];
    if (link.from == vertex || link.to == vertex) links_[id] = 1;
  }
}

bool FailedParts::hits(const std::vector<LinkId>& path) const {
  return std::any_of(path.begin(), path.end(), [this](LinkId id) { return failed(id); });
}

const std::vector<int>& FailedParts::distances_to(const Network& network, DeviceId dst) const {
  constexpr std::size_t kMostKept = 16'777'216;  // distances: 64 MiB
  const auto keep = [this](LinkId id) { return !failed(id); };
  if (!leaving_) {
    leaving_ = std::make_unique<Adjacency>(network, keep);
    entering_ = std::make_unique<Adjacency>(network, keep, Adjacency::Of::entering);
  }
  const auto vertices = static_cast<std::size_t>(network.vertices());
  if ((distances_.size() + 1) * vertices > std::max(kMostKept, vertices)) distances_.clear();
  auto [known, is_new] = distances_.try_emplace(dst);
  if (is_new) known->second = entering_->distances(dst.value);
  return known->second;
}

std::optional<std::vector<LinkId>> FailedParts::detour(const Network& network, DeviceId src, DeviceId dst,
                                                       FlowHash flow) const {
  if (failed(src.value) || failed(dst.value)) return std::nullopt;
  const auto& distance = distances_to(network, dst);
  if (distance[static_cast<std::size_t>(src.value)] < 0) return std::nullopt;
  std::vector<LinkId> path;
  std::vector<std::pair<LinkId, int>> choices;
  auto hash = pair_hash(src, dst, flow);
  for (int at = src.value; at != dst.value;) {
    choices.clear();
    leaving_->for_each(at, [&](LinkId id, int to) {
      const bool nearer = distance[static_cast<std::size_t>(to)] == distance[static_cast<std::size_t>(at)] - 1;
      if (nearer) choices.emplace_back(id, to);
    });
    hash = mix(hash);
    const auto& [id, to] = choices[hash % choices.size()];
    path.push_back(id);
    at = to;
  }
  return path;
}

}  // namespace tandem
