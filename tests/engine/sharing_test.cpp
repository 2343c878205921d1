// Link sharing: equal shares whatever the latency, and the dates of random flow sets against an independent max-min
// solver (maxmin.py, which shares nothing with the product).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/core/random.hpp"
#include "tests/engine/programs.hpp"

namespace tandem {
namespace {

using nlohmann::json;

// -------------------------------------------------------------------------------- hand-made networks

// Links and routes as given: route of device 2i to device 2i+1 is routes[i]. Vertices say nothing.
class DrawnNetwork : public Network {
 public:
  DrawnNetwork(const std::vector<std::pair<double, double>>& links, std::vector<std::vector<int>> routes)
      : routes_(std::move(routes)) {
    for (const auto& [bandwidth, latency] : links) {
      add_link({0, 1, BytesPerSecond(bandwidth), Seconds(latency), LinkKind::direct, 1});
    }
    devices_ = 2 * static_cast<int>(routes_.size());
    vertices_ = devices_;
  }
  void route(DeviceId src, DeviceId, FlowHash, std::vector<LinkId>& path) const override {
    path.clear();
    for (const int link : routes_[src.index() / 2]) path.push_back(LinkId{link});
  }
  [[nodiscard]] std::string vertex_name(int vertex) const override { return fmt::format("vertex {}", vertex); }
  [[nodiscard]] std::vector<int> radices() const override { return {}; }

 private:
  std::vector<std::vector<int>> routes_;
};

struct Flow {
  DeviceId from, to;
  std::int64_t bytes = 0;
  double start = 0;
};

// Flow i is sent by rank 2i to rank 2i+1, ranks placed on its two devices, after a delay of its start.
RunResult run_flows(const Network& network, const std::vector<Flow>& flows, const NetworkModelOptions& model = {}) {
  std::vector<Op> ops;
  std::vector<DeviceId> placement;
  for (const auto& flow : flows) {
    const int sender = static_cast<int>(placement.size());
    ops.push_back(delay_op("wait", only(sender), flow.start, 0));
    ops.push_back(transfer_op("flow", only(sender), from(sender + 1), flow.bytes, 0));
    placement.push_back(flow.from);
    placement.push_back(flow.to);
  }
  StaticProgram program(static_cast<int>(placement.size()),
                        {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, ops);
  return run({{&program, placement, Seconds(0), {}, {}}}, network, {model, true});
}

std::vector<double> ends_of(const RunResult& result, std::size_t flows) {
  std::vector<double> ends(flows, -1);
  for (const auto& span : result.jobs[0].spans) {
    if (span.op % 2 == 1) ends[static_cast<std::size_t>(span.op) / 2] = span.end.count();
  }
  return ends;
}

std::vector<Flow> one_flow_a_route(const std::vector<std::pair<std::int64_t, double>>& bytes_and_start) {
  std::vector<Flow> flows;
  for (const auto& [bytes, start] : bytes_and_start) {
    const auto device = static_cast<std::int32_t>(2 * flows.size());
    flows.push_back({DeviceId{device}, DeviceId{device + 1}, bytes, start});
  }
  return flows;
}

// -------------------------------------------------------------------------------- fairness

TEST(FairSharing, DoesNotDependOnLatency) {
  // Two flows of 1 GB on one link of 1 GB/s; access links of 10 GB/s give the routes their latencies.
  // Flow a starts at a latency of la, flow b at lb > la. a alone carries (lb - la) GB; then half the link each: a has
  // 1 - (lb - la) GB left, which takes twice that; when a ends b has lb - la left, alone.
  for (const auto& [la, lb] : {std::pair{1e-6, 10e-6}, std::pair{0.0, 1e-6}, std::pair{1e-6, 1e-6}}) {
    const DrawnNetwork network({{1e9, 0}, {10e9, la}, {10e9, lb}}, {{1, 0}, {2, 0}});
    const auto ends = ends_of(run_flows(network, one_flow_a_route({{1'000'000'000, 0}, {1'000'000'000, 0}})), 2);
    const double a = lb + 2 * (1 - (lb - la));
    EXPECT_NEAR(ends[0], a, 1e-9 * a) << la << " and " << lb;
    EXPECT_NEAR(ends[1], a + (lb - la), 1e-9 * a) << la << " and " << lb;
  }
}

TEST(FairSharing, IsMaxMin) {
  // Links X (100 B/s) and Y (50 B/s); flows: a on X, b on X and Y, c on Y, all of 100 B from 0.
  // Y offers b and c 25 each; a gets the other 75 of X and ends at 4/3. b has 66 2/3 left and goes on at 25, bound by
  // Y: b and c end at 4.
  const DrawnNetwork network({{100, 0}, {50, 0}}, {{0}, {0, 1}, {1}});
  const auto ends = ends_of(run_flows(network, one_flow_a_route({{100, 0}, {100, 0}, {100, 0}})), 3);
  EXPECT_NEAR(ends[0], 4.0 / 3, 1e-9);
  EXPECT_NEAR(ends[1], 4, 1e-9);
  EXPECT_NEAR(ends[2], 4, 1e-9);
}

// -------------------------------------------------------------------------------- saturation

LinkUse use_of(const RunResult& result, int link) {
  for (const auto& use : result.links) {
    if (use.link.value == link) return use;
  }
  ADD_FAILURE() << "link " << link << " carried nothing";
  return {};
}

TEST(Saturation, OfALinkThatIsFullAllAlongAndOneThatIsHeldBackElsewhere) {
  // X has 100 B/s, Y 50: a flow of 200 B from 1 on takes 4 s, Y full, X half used.
  NetworkModelOptions model;
  model.measure_saturation = true;
  const DrawnNetwork network({{100, 0}, {50, 0}}, {{0, 1}});
  const auto result = run_flows(network, one_flow_a_route({{200, 1}}), model);
  EXPECT_NEAR(use_of(result, 0).busy.count(), 4, 1e-9);
  EXPECT_NEAR(use_of(result, 0).saturated.count(), 0, 1e-9);
  EXPECT_NEAR(use_of(result, 1).busy.count(), 4, 1e-9);
  EXPECT_NEAR(use_of(result, 1).saturated.count(), 4, 1e-9);
  EXPECT_EQ(use_of(result, 1).bytes, 200);
}

TEST(Saturation, ChangesWithTheFlows) {
  // As above, and a second flow of 100 B on X alone from 2 to 4: it takes the other 50 B/s, X is full for 2 s of 4.
  // A third on X from 10 to 11.
  NetworkModelOptions model;
  model.measure_saturation = true;
  const DrawnNetwork network({{100, 0}, {50, 0}}, {{0, 1}, {0}, {0}});
  const auto result = run_flows(network, one_flow_a_route({{200, 1}, {100, 2}, {100, 10}}), model);
  EXPECT_NEAR(use_of(result, 0).busy.count(), 5, 1e-9);
  EXPECT_NEAR(use_of(result, 0).saturated.count(), 3, 1e-9);
  EXPECT_NEAR(use_of(result, 1).saturated.count(), 4, 1e-9);
}

TEST(Saturation, OfEqualStepsAddsUp) {
  // A ring of four on a star, alpha 1 s, 100 B a step: 6 steps of 2 s, each link full for 1 s of each.
  NetworkModelOptions model;
  model.measure_saturation = true;
  StaticProgram program(4, {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}},
                        {all_reduce_op("all-reduce", RankSet::range(0, 4), 400, 0)});
  const auto result = run_one(program, *slow_star(4), {}, {}, {model, false});
  EXPECT_NEAR(result.end.count(), 12, 1e-9);
  ASSERT_EQ(result.links.size(), 8u);
  for (const auto& use : result.links) {
    EXPECT_NEAR(use.busy.count(), 6, 1e-9);
    EXPECT_NEAR(use.saturated.count(), 6, 1e-9);
    EXPECT_EQ(use.bytes, 600);
  }
}

// -------------------------------------------------------------------------------- against the independent solver

struct FlowSet {
  std::string label;
  std::shared_ptr<Network> network;
  std::vector<Flow> flows;
  std::vector<std::vector<std::size_t>> after;  // of each flow, those that end before it starts; empty: of none
};

std::shared_ptr<Network> random_network(Random& random, std::size_t index) {
  const BytesPerSecond bandwidth(12.5e9);
  const Seconds latency(500e-9);
  const std::array<const char*, 10> topologies{"fat-tree:k=4",
                                               "torus:dims=4x4x2",
                                               "mesh-rail-cube:m=4,n=4",
                                               "fat-tree:k=8,oversubscription=2",
                                               "torus:dims=5x3",
                                               "mesh-rail-cube:m=4,n=4x2",
                                               "fat-tree:k=4,routing=ecmp,planes=2",
                                               "torus:dims=16",
                                               "mesh-rail-cube:m=8,n=8",
                                               "node"};
  const std::string chosen = topologies[index % topologies.size()];
  if (chosen != "node") return make_topology(chosen, {1, bandwidth, latency});
  ClusterOptions options;  // links of three rates
  options.topology = "fat-tree";
  options.ranks = 32;
  options.devices_per_node = 4;
  options.nics_per_node = random.below(2) == 0 ? 1 : 2;
  options.host_bandwidth = BytesPerSecond(16e9);
  return std::make_shared<Cluster>(options);
}

FlowSet random_set(std::size_t index) {
  Random random(1000 + index);
  FlowSet set;
  set.network = random_network(random, index);
  const auto* topology = dynamic_cast<const Topology*>(set.network.get());
  set.label = fmt::format("set {} on {}", index, topology == nullptr ? "nodes" : topology->instance());
  const auto devices = static_cast<std::uint32_t>(set.network->devices());
  const auto count = 2 + random.below(60);
  // Dense to sparse: starts spread over a time in which the flows would fill few or many links.
  const double spread = 0.004 * random.uniform() * count;
  for (std::uint32_t f = 0; f < count; ++f) {
    Flow flow;
    flow.from = DeviceId{static_cast<std::int32_t>(random.below(devices))};
    flow.to = DeviceId{static_cast<std::int32_t>(random.below(devices))};
    flow.bytes = std::max<std::int64_t>(1, std::llround(std::exp(random.uniform() * std::log(1e9))));
    if (random.below(2) == 0) flow.bytes = 10'000'000 + static_cast<std::int64_t>(random.uniform() * 9e8);
    if (random.below(4) == 0) flow.bytes = 100'000'000;  // several that are equal
    flow.start = random.below(4) == 0 ? 0 : random.uniform() * spread;
    set.flows.push_back(flow);
  }
  return set;
}

// The path that the executor's flows take: its hash of (source, destination, channel 0).
std::vector<LinkId> path_of(const Network& network, const Flow& flow) {
  const auto hash =
      mix((static_cast<std::uint64_t>(flow.from.value) << 32) ^ static_cast<std::uint64_t>(flow.to.value));
  std::vector<LinkId> path;
  network.route(flow.from, flow.to, static_cast<FlowHash>(hash), path);
  return path;
}

json problem_of(const FlowSet& set) {
  json links = json::array();
  for (const auto& link : set.network->links()) links.push_back(link.bandwidth.count());
  json flows = json::array();
  for (const auto& flow : set.flows) {
    const auto path = path_of(*set.network, flow);
    json indices = json::array();
    for (const auto link : path) indices.push_back(link.value);
    flows.push_back({{"start", flow.start + set.network->route_latency(path).count()},
                     {"bytes", flow.bytes},
                     {"links", std::move(indices)}});
    if (!set.after.empty()) flows.back()["after"] = set.after[flows.size() - 1];
  }
  return {{"links", std::move(links)}, {"flows", std::move(flows)}};
}

// All sets in one call of the solver.
std::vector<std::vector<double>> solve(const std::vector<FlowSet>& sets) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tandem-maxmin-{}", ::getpid());
  std::filesystem::create_directories(folder);
  json problem;
  for (const auto& set : sets) problem["sets"].push_back(problem_of(set));
  std::ofstream(folder / "problem.json") << problem;
  const auto command = fmt::format("'{}' '{}/tests/engine/maxmin.py' <'{}' >'{}'", TANDEM_PYTHON, TANDEM_SOURCE_DIR,
                                   (folder / "problem.json").string(), (folder / "ends.json").string());
  std::vector<std::vector<double>> ends;
  if (std::system(command.c_str()) == 0) {
    std::ifstream answer(folder / "ends.json");
    ends = json::parse(answer).at("ends").get<std::vector<std::vector<double>>>();
  }
  std::filesystem::remove_all(folder);
  return ends;
}

std::vector<FlowSet> random_sets(std::size_t count) {
  std::vector<FlowSet> sets;
  for (std::size_t i = 0; i < count; ++i) sets.push_back(random_set(i));
  return sets;
}

// Whether the flow had to share: it took longer than alone on its slowest link.
bool was_slowed(const FlowSet& set, std::size_t flow, double end) {
  const auto path = path_of(*set.network, set.flows[flow]);
  double alone = 0;
  for (const auto link : path)
    alone = std::max(alone, (Bytes(set.flows[flow].bytes) / set.network->link(link).bandwidth).count());
  return end - set.flows[flow].start - set.network->route_latency(path).count() > 1.01 * alone + 1e-12;
}

double largest_difference(const std::vector<double>& found, const std::vector<double>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0 && found[i] == 0) continue;  // to itself, from 0 on
    largest = std::max(largest, std::abs(found[i] - expected[i]) / expected[i]);
  }
  return largest;
}

TEST(IndependentSolver, KnowsTheHandMadeCases) {
  FlowSet set{"",
              std::make_shared<DrawnNetwork>(std::vector<std::pair<double, double>>{{100, 0}, {50, 0}},
                                             std::vector<std::vector<int>>{{0}, {0, 1}, {1}}),
              one_flow_a_route({{100, 0}, {100, 0}, {50, 1}}),
              {}};
  // 0-1: Y offers b its 50, a has the other 50 of X. From 1 on c halves Y: b and c 25, a 75, its last 50 B until 5/3.
  // b and c have 50 B left each at 1: 3.
  const auto ends = solve({set});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NEAR(ends[0][0], 5.0 / 3, 1e-12);
  EXPECT_NEAR(ends[0][1], 3, 1e-12);
  EXPECT_NEAR(ends[0][2], 3, 1e-12);
  // c a second after the end of a: until then a and b have 50 each, and c is alone.
  set.after = {{}, {}, {0}};
  const auto later = solve({set});
  ASSERT_EQ(later.size(), 1u);
  EXPECT_NEAR(later[0][0], 2, 1e-12);
  EXPECT_NEAR(later[0][1], 2, 1e-12);
  EXPECT_NEAR(later[0][2], 2 + 1 + 1, 1e-12);
}

TEST(IndependentSolver, AgreesOnAHundredRandomFlowSets) {
  const auto sets = random_sets(100);
  const auto expected = solve(sets);
  ASSERT_EQ(expected.size(), sets.size());
  double largest = 0;
  std::size_t flows = 0;
  std::size_t slowed = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto found = ends_of(run_flows(*sets[i].network, sets[i].flows), sets[i].flows.size());
    ASSERT_EQ(found.size(), expected[i].size());
    const double difference = largest_difference(found, expected[i]);
    EXPECT_LT(difference, 1e-6) << sets[i].label;
    largest = std::max(largest, difference);
    flows += found.size();
    for (std::size_t f = 0; f < found.size(); ++f) slowed += was_slowed(sets[i], f, found[f]) ? 1 : 0;
  }
  EXPECT_GT(slowed, flows / 4) << "the sets hardly share any link";
  std::printf("%zu flows in %zu sets, %zu slowed by others: largest relative difference %.2e\n", flows, sets.size(),
              slowed, largest);
}

// All-to-all of the first 32 devices (two pods) of a fat-tree whose edge switches have one up port for four devices.
TEST(IndependentSolver, AgreesOnAnAllToAllOverAnOversubscribedTree) {
  constexpr int kWorkers = 32;
  constexpr std::int64_t kBlock = 1'000'000;
  constexpr double kBandwidth = 12.5e9;
  FlowSet set;
  set.network =
      make_topology("fat-tree:k=8,oversubscription=4", {kWorkers, BytesPerSecond(kBandwidth), Seconds(500e-9)});
  for (int i = 0; i < kWorkers; ++i) {
    for (int j = 0; j < kWorkers; ++j) {
      if (i != j) set.flows.push_back({DeviceId{i}, DeviceId{j}, kBlock, 0});
    }
  }
  const auto solved = solve({set});
  ASSERT_EQ(solved.size(), 1u);
  std::vector<double> expected(kWorkers, 0);  // a member is done with the last of its sends and receives
  for (std::size_t f = 0; f < set.flows.size(); ++f) {
    for (const auto member : {set.flows[f].from, set.flows[f].to}) {
      expected[member.index()] = std::max(expected[member.index()], solved[0][f]);
    }
  }
  const auto op =
      collective_op(*set.network, "direct",
                    {CollectiveOperation::all_to_all, {}, Bytes(kWorkers * kBlock), 1, Bytes(0), 0}, kWorkers);
  StaticProgram program(kWorkers, {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  const auto result = run({{&program, in_order(kWorkers), Seconds(0), {}, {}}}, *set.network, {{}, true});
  std::vector<double> found(kWorkers, -1);
  for (const auto& span : result.jobs[0].spans) found[span.rank.index()] = span.end.count();
  EXPECT_LT(largest_difference(found, expected), 1e-6);
  // 28 of the 31 blocks of each of four devices leave by the one up port: that, and not the devices' own, is the limit.
  EXPECT_GE(result.jobs[0].makespan.count(), 4 * 28 * kBlock / kBandwidth);
  std::printf("all-to-all on 4:1: %.6g s, largest relative difference %.2e\n", result.jobs[0].makespan.count(),
              largest_difference(found, expected));
}

// Of each of the first `members` devices of a network, one part of a ring all-reduce in a seeded random order: flow
// (step, member) follows the one that the member sent, and the one that it received, in the step before.
struct ShuffledRing {
  FlowSet set;
  std::vector<DeviceId> order;
  std::int64_t bytes = 0;
};

ShuffledRing shuffled_ring(const std::string& topology, int members) {
  constexpr std::int64_t kPart = 1'000'000;
  ShuffledRing ring{{topology, make_topology(topology, {members, BytesPerSecond(12.5e9), Seconds(500e-9)}), {}, {}},
                    in_order(members),
                    members * kPart};
  Random random(20240611);
  random.shuffle(ring.order);
  const auto count = static_cast<std::size_t>(members);
  for (std::size_t step = 0; step < 2 * (count - 1); ++step) {
    for (std::size_t member = 0; member < count; ++member) {
      ring.set.flows.push_back({ring.order[member], ring.order[(member + 1) % count], kPart, 0});
      ring.set.after.emplace_back();
      if (step == 0) continue;
      ring.set.after.back() = {(step - 1) * count + member, (step - 1) * count + (member + count - 1) % count};
    }
  }
  return ring;
}

std::vector<double> ends_of_members(const ShuffledRing& ring, const NetworkModelOptions& model = {}) {
  const int members = static_cast<int>(ring.order.size());
  const auto op = collective_op(*ring.set.network, "ring",
                                {CollectiveOperation::all_reduce, {}, Bytes(ring.bytes), 1, Bytes(0), 0}, members);
  StaticProgram program(members, {{"comm", StreamSpec::Role::communication, StreamSpec::Discipline::in_order}}, {op});
  const auto result = run({{&program, ring.order, Seconds(0), {}, {}}}, *ring.set.network, {model, true});
  std::vector<double> ends(ring.order.size(), -1);
  for (const auto& span : result.jobs[0].spans) ends[span.rank.index()] = span.end.count();
  return ends;
}

// Neighbours in the ring are anywhere, so that steps of different members meet on links, at different dates.
TEST(IndependentSolver, AgreesOnBadlyPlacedRings) {
  std::vector<ShuffledRing> rings;
  std::vector<FlowSet> sets;
  for (const auto& [topology, members] :
       {std::pair{"fat-tree:k=8,oversubscription=4", 32}, std::pair{"leaf-spine:leaves=4,down=8,spines=2,up=2", 32},
        std::pair{"torus:dims=6x4", 24}}) {
    rings.push_back(shuffled_ring(topology, members));
    sets.push_back(rings.back().set);
  }
  const auto solved = solve(sets);
  ASSERT_EQ(solved.size(), sets.size());
  NetworkModelOptions slow;
  slow.bandwidth_factor = 0.5;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const auto members = rings[i].order.size();
    std::vector<double> expected(members, 0);  // a member is done with its last send and its last receive
    for (std::size_t member = 0; member < members; ++member) {
      const auto* last = &solved[i][(2 * members - 3) * members];
      expected[member] = std::max(last[member], last[(member + members - 1) % members]);
    }
    const auto found = ends_of_members(rings[i]);
    EXPECT_LT(largest_difference(found, expected), 1e-6) << sets[i].label;
    EXPECT_GT(largest_difference(ends_of_members(rings[i], slow), expected), 1e-6) << sets[i].label;
    const double end = *std::max_element(found.begin(), found.end());
    const double alone = 2.0 * static_cast<double>(members - 1) * 1e6 / 12.5e9;
    EXPECT_GT(end, 1.5 * alone) << sets[i].label << ": the ring hardly meets itself";
    std::printf("shuffled ring of %zu on %s: %.6g s, %.2f times the ring alone, largest relative difference %.2e\n",
                members, sets[i].label.c_str(), end, end / alone, largest_difference(found, expected));
  }
}

// The comparisons above can fail: a network that is wrong in one number disagrees on every set.
TEST(IndependentSolver, DisagreesWithAWrongNetwork) {
  const auto sets = random_sets(10);
  const auto expected = solve(sets);
  ASSERT_EQ(expected.size(), sets.size());
  NetworkModelOptions slow;
  slow.bandwidth_factor = 0.5;
  NetworkModelOptions far;
  far.latency_factor = 10;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (const auto& wrong : {slow, far}) {
      const auto found = ends_of(run_flows(*sets[i].network, sets[i].flows, wrong), sets[i].flows.size());
      EXPECT_GT(largest_difference(found, expected[i]), 1e-6) << sets[i].label;
    }
  }
}

TEST(Saturation, MeasuringItMovesNoDate) {
  NetworkModelOptions measured;
  measured.measure_saturation = true;
  for (const auto& set : random_sets(20)) {
    const auto plain = run_flows(*set.network, set.flows);
    const auto sampled = run_flows(*set.network, set.flows, measured);
    EXPECT_LT(largest_difference(ends_of(sampled, set.flows.size()), ends_of(plain, set.flows.size())), 1e-9)
        << set.label;
    for (const auto& use : sampled.links) {
      EXPECT_LE(use.saturated.count(), use.busy.count() * (1 + 1e-9) + 1e-12) << set.label;
    }
  }
}

// -------------------------------------------------------------------------------- precision

TEST(Precision, SmallTransfersLateInALongRun) {
  // 1 kB at 12.5 GB/s is 80 ns: at 1,000 s and at 100,000 s it ends within 1e-9 s of its date.
  const DrawnNetwork network({{12.5e9, 1e-6}}, {{0}});
  for (const double start : {0.3, 1000.3, 100'000.7}) {
    for (const std::int64_t bytes : {1, 1000, 1'000'000}) {
      const double expected = start + 1e-6 + static_cast<double>(bytes) / 12.5e9;
      EXPECT_NEAR(ends_of(run_flows(network, one_flow_a_route({{bytes, start}})), 1)[0], expected, 1e-9)
          << bytes << " bytes at " << start;
    }
  }
}

TEST(Precision, LongTransfersEnd) {
  // Dates above 2^9 s are coarser than SimGrid's precision setting; flows that end there (after 1,000 s to 58 days)
  // must still be seen to end, to the last places of a double.
  Random random(7);
  for (const double bandwidth : {1e6, 1e3}) {
    const DrawnNetwork network({{bandwidth, 0.1}, {bandwidth, 0.2}, {bandwidth, 0.3}}, {{0}, {1}, {2}});
    for (int i = 0; i < 20; ++i) {
      std::vector<std::pair<std::int64_t, double>> flows;
      for (int f = 0; f < 3; ++f) flows.emplace_back(1'000'000'000LL + random.below(4'000'000'000u), random.uniform());
      const auto ends = ends_of(run_flows(network, one_flow_a_route(flows)), 3);
      for (std::size_t f = 0; f < 3; ++f) {
        const double alone = static_cast<double>(flows[f].first) / bandwidth;
        const double expected = flows[f].second + 0.1 * static_cast<double>(f + 1) + alone;
        EXPECT_NEAR(ends[f], expected, std::max(1e-9, 1e-15 * expected));
      }
    }
  }
}

}  // namespace
}  // namespace tandem
