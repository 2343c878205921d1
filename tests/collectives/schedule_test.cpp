// The contract of every registered collective, checked on data: every worker ends with every worker's contribution
// exactly once, at every byte; and the textbook's number of bytes is moved.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "platforms/cluster.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

// What a byte holds: whose contributions, sorted, repeated where they were added twice.
using Byte = std::vector<std::int16_t>;
using Buffer = std::vector<Byte>;
constexpr std::int16_t kUndefined = -1;  // in a byte that its holder does not bring

struct Outcome {
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
  std::int64_t messages = 0;
};

using Holds = std::function<Byte(int member, std::int64_t byte)>;

// Carries the schedule out on data with the same rules as the engine: a member enters a step when its own sends and
// receives of the one before are done. Messages are delivered in a fixed but arbitrary order.
Outcome carry_out(const CollectiveSchedule& schedule, const Holds& initially) {
  const auto members = static_cast<std::size_t>(schedule.members());
  Outcome outcome;
  outcome.buffers.resize(members);
  outcome.sent.assign(members, 0);
  outcome.received.assign(members, 0);
  for (std::size_t m = 0; m < members; ++m) {
    for (std::int64_t b = 0; b < schedule.extent(); ++b) {
      outcome.buffers[m].push_back(initially(static_cast<int>(m), b));
    }
  }
  struct Message {
    int step;
    Send send;
    Buffer data;
  };
  std::vector<int> step(members, -1);
  std::vector<int> received(members, 0);
  std::deque<Message> wire;
  std::vector<Send> sends;
  const auto enter_next = [&](std::size_t m) {
    ++step[m];
    received[m] = 0;
    if (step[m] >= schedule.steps()) return;
    schedule.sends(step[m], static_cast<int>(m), sends);
    for (const auto& send : sends) {
      const auto begin = outcome.buffers[m].begin();
      wire.push_back({step[m], send, Buffer(begin + send.range.begin, begin + send.range.end)});
      outcome.sent[m] += send.range.size();
      outcome.received[static_cast<std::size_t>(send.to)] += send.range.size();
      ++outcome.messages;
    }
  };
  for (std::size_t m = 0; m < members; ++m) enter_next(m);
  bool progress = true;
  while (progress) {
    progress = false;
    for (std::size_t m = 0; m < members; ++m) {
      while (step[m] < schedule.steps() && received[m] == schedule.receives(step[m], static_cast<int>(m))) {
        enter_next(m);
        progress = true;
      }
    }
    for (auto message = wire.begin(); message != wire.end();) {
      const auto to = static_cast<std::size_t>(message->send.to);
      if (step[to] != message->step) {
        ++message;
        continue;
      }
      for (std::size_t i = 0; i < message->data.size(); ++i) {
        auto& mine = outcome.buffers[to][static_cast<std::size_t>(message->send.range.begin) + i];
        if (!message->send.reduce) mine.clear();
        mine.insert(mine.end(), message->data[i].begin(), message->data[i].end());
        std::sort(mine.begin(), mine.end());
      }
      ++received[to];
      message = wire.erase(message);
      progress = true;
    }
  }
  for (std::size_t m = 0; m < members; ++m) EXPECT_EQ(step[m], schedule.steps()) << "member " << m << " is stuck";
  EXPECT_TRUE(wire.empty());
  return outcome;
}

// An operation's definition on data: what members bring, and what they must end with.
class Definition {
 public:
  Definition(CollectiveOperation operation, const CollectiveSchedule& schedule, int root)
      : operation_(operation), schedule_(schedule), root_(static_cast<std::int16_t>(root)), owner_(owners()) {
    for (std::int16_t m = 0; m < schedule.members(); ++m) {
      if (schedule.contributes(m)) all_.push_back(m);
    }
  }

  [[nodiscard]] Byte brought(int member, std::int64_t byte) const {
    const auto self = static_cast<std::int16_t>(member);
    if (!schedule_.contributes(member)) return {};
    switch (operation_) {
      case CollectiveOperation::all_reduce:
      case CollectiveOperation::reduce_scatter:
        return {self};
      case CollectiveOperation::all_gather:
      case CollectiveOperation::gather:
        return {owner(byte) == self ? self : kUndefined};
      case CollectiveOperation::broadcast:
      case CollectiveOperation::scatter:
        return {self == root_ ? self : kUndefined};
      case CollectiveOperation::all_to_all:
        return {byte / size() == member ? self : kUndefined};
    }
    return {};
  }

  // Nothing where it does not matter.
  [[nodiscard]] std::optional<Byte> wanted(int member, std::int64_t byte) const {
    if (!schedule_.contributes(member)) return {};
    switch (operation_) {
      case CollectiveOperation::all_reduce:
        return all_;
      case CollectiveOperation::reduce_scatter:
        return owner(byte) == member ? std::optional(all_) : std::nullopt;
      case CollectiveOperation::all_gather:
        return Byte{owner(byte)};
      case CollectiveOperation::gather:
        return member == root_ ? std::optional(Byte{owner(byte)}) : std::nullopt;
      case CollectiveOperation::broadcast:
        return Byte{root_};
      case CollectiveOperation::scatter:
        return owner(byte) == member ? std::optional(Byte{root_}) : std::nullopt;
      case CollectiveOperation::all_to_all: {
        const auto part = part_of({0, size()}, schedule_.members(), member);
        const auto place = byte % size();
        if (place < part.begin || place >= part.end) return {};
        return Byte{static_cast<std::int16_t>(byte / size())};
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::int64_t size() const { return schedule_.bytes().count(); }
  [[nodiscard]] std::int16_t owner(std::int64_t byte) const { return owner_[static_cast<std::size_t>(byte)]; }

  // Whose part each byte of the buffer is; parts are disjoint, cover it, and are equal but for one byte.
  [[nodiscard]] std::vector<std::int16_t> owners() const {
    std::vector<std::int16_t> owners(static_cast<std::size_t>(size()), kUndefined);
    if (operation_ == CollectiveOperation::all_reduce || operation_ == CollectiveOperation::all_to_all) return owners;
    std::int64_t parts = 0;
    for (int m = 0; m < schedule_.members(); ++m) parts += schedule_.contributes(m) ? 1 : 0;
    const auto least = size() / parts;
    for (int m = 0; m < schedule_.members(); ++m) {
      const auto own = schedule_.own(m);
      const bool contributes = schedule_.contributes(m);
      EXPECT_GE(own.size(), contributes ? least : 0);
      EXPECT_LE(own.size(), contributes ? least + (size() % parts == 0 ? 0 : 1) : 0);
      for (auto b = own.begin; b < own.end; ++b) {
        EXPECT_EQ(owners[static_cast<std::size_t>(b)], kUndefined) << "byte " << b << " has two owners";
        owners[static_cast<std::size_t>(b)] = static_cast<std::int16_t>(m);
      }
    }
    EXPECT_EQ(std::count(owners.begin(), owners.end(), kUndefined), 0) << "bytes without an owner";
    return owners;
  }

  CollectiveOperation operation_;
  const CollectiveSchedule& schedule_;
  std::int16_t root_;
  std::vector<std::int16_t> owner_;
  Byte all_;
};

Outcome carry_out(const CollectiveSchedule& schedule, CollectiveOperation operation = CollectiveOperation::all_reduce,
                  int root = 0) {
  const Definition definition(operation, schedule, root);
  return carry_out(schedule, [&](int member, std::int64_t byte) { return definition.brought(member, byte); });
}

void expect_complete(const CollectiveSchedule& schedule, const std::string& what,
                     CollectiveOperation operation = CollectiveOperation::all_reduce, int root = 0) {
  const auto outcome = carry_out(schedule, operation, root);
  const Definition definition(operation, schedule, root);
  for (int m = 0; m < schedule.members(); ++m) {
    for (std::int64_t b = 0; b < schedule.extent(); ++b) {
      const auto wanted = definition.wanted(m, b);
      if (!wanted) continue;
      ASSERT_EQ(outcome.buffers[static_cast<std::size_t>(m)][static_cast<std::size_t>(b)], *wanted)
          << what << ": member " << m << ", byte " << b;
    }
  }
}

// Of the first `workers` devices.
std::shared_ptr<const SwitchTree> tree_on(const std::string& topology, int workers) {
  const auto network = make_topology(topology, {workers, BytesPerSecond(1e9), Seconds(1e-6)});
  std::vector<DeviceId> devices;
  for (int i = 0; i < workers; ++i) devices.push_back(DeviceId{i});
  return std::make_shared<SwitchTree>(switch_tree(*network, devices));
}

GroupShape plain(int workers) {
  GroupShape shape;
  shape.workers = workers;
  shape.node_size = 1;
  if (workers > 1) shape.digits = {{workers, DigitKind::switched}};
  return shape;
}

// With the switch of a star where the algorithm has switches as members.
GroupShape plain_for(const CollectiveAlgorithm& algorithm, int workers) {
  auto shape = plain(workers);
  if (algorithm.in_switches()) shape.tree = tree_on("star", workers);
  return shape;
}

GroupShape with_digits(std::vector<Digit> digits, int node_size) {
  GroupShape shape;
  shape.digits = std::move(digits);
  shape.node_size = node_size;
  for (const auto& digit : shape.digits) shape.workers *= digit.radix;
  return shape;
}

const auto& algorithms() {
  return Registry<CollectiveAlgorithm>::instance();
}

GroupShape on(const std::string& topology) {
  const auto network = make_topology(topology, {1, BytesPerSecond(1e9), Seconds(1e-6)});
  std::vector<DeviceId> devices;
  for (int i = 0; i < network->devices(); ++i) devices.push_back(DeviceId{i});
  return group_shape(*network, devices, 1);
}

// Algorithms that take no plain number of ranks are tried on the shapes that they are made for. Any other name is tried
// on plain ones, so that none goes untried.
const std::map<std::string, std::vector<std::string>>& only_on() {
  static const std::map<std::string, std::vector<std::string>> shapes{
      {"two-ring",
       {"torus:dims=3x3", "torus:dims=4x4", "torus:dims=5x5", "torus:dims=4x8", "torus:dims=8x4", "torus:dims=16x4",
        "torus:dims=10x10", "torus:dims=3x9", "hamming-mesh:a=2,b=2,x=2,y=4"}}};
  return shapes;
}

// Every operation of every registered algorithm that does the work itself. `auto` leaves it to the others.
void expect_all_complete(int n, int bytes) {
  for (const auto& name : algorithms().names()) {
    if (name == "auto" || only_on().contains(name)) continue;
    const auto algorithm = algorithms().make(name);
    for (const auto operation : collective_operations()) {
      if (!algorithm->supports(operation)) continue;
      const std::set<int> roots{0, has_root(operation) ? n / 2 : 0, has_root(operation) ? n - 1 : 0};
      for (const int root : roots) {
        expect_complete(*algorithm->schedule(operation, plain_for(*algorithm, n), Bytes(bytes), root),
                        fmt::format("{} {} n={} bytes={} root={}", to_text(operation), name, n, bytes, root), operation,
                        root);
      }
    }
  }
}

TEST(CollectiveContract, EveryContributionExactlyOnceForAnyNumberOfRanks) {
  for (int n : {1, 2, 3, 5, 6, 7, 8, 12, 16, 27}) {
    for (int bytes : {0, 1, 5, 64}) expect_all_complete(n, bytes);
  }
}

TEST(CollectiveContract, EveryContributionExactlyOnceWithManyMembers) {
  for (int n : {64, 100}) expect_all_complete(n, n + 3);
}

TEST(CollectiveContract, EveryContributionExactlyOnceOnShapesThatAnAlgorithmNeeds) {
  for (const auto& [name, topologies] : only_on()) {
    const auto algorithm = algorithms().make(name);
    ASSERT_FALSE(topologies.empty()) << name << " is tried nowhere";
    EXPECT_THROW((void)algorithm->all_reduce(plain(8), Bytes(8)), Error) << name << " needs no entry";
    expect_complete(*algorithm->all_reduce(plain(1), Bytes(5)), name);
    for (const auto& topology : topologies) {
      for (const int bytes : {0, 1, 5, 230}) {
        expect_complete(*algorithm->all_reduce(on(topology), Bytes(bytes)),
                        fmt::format("{} on {}, bytes={}", name, topology, bytes));
      }
    }
  }
}

TEST(CollectiveContract, EveryContributionExactlyOnceOnNativeNetworks) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"hrr:rails=halving", {"mesh-rail-cube:m=8,n=8", "mesh-rail-cube:m=4,n=4x4", "mesh-rail-cube:m=4,n=8x2"}},
      {"hrr:rails=direct", {"mesh-rail-cube:m=4,n=3x5", "mesh-rail-cube:m=6,n=3x1x2", "mesh-rail-cube:m=4,n=4x4,t=2"}},
      {"hrr:rails=ring", {"mesh-rail-cube:m=4,n=3x5", "mesh-rail-cube:m=6,n=2x3x2,t=2", "mesh-torus:m=4,dims=4x3"}},
      {"hrr",
       {"mesh-rail-cube:m=4,n=3x5,module=ring", "mesh-rail-cube:m=6,n=1x3x1", "mesh-rail-cube:m=6,n=2x1x4",
        "mesh-rail-cube:m=3,n=1x1x4,module=ring", "mesh-rail-cube:m=4,n=1", "mesh-rail-cube:m=1,n=7",
        "mesh-rail-cube:m=8,n=2x2x2x2,t=3", "mesh-clos-rails:m=4,n=6", "torus:dims=4x3x2", "fat-tree:k=4"}},
      {"bml", {"torus:dims=4x3x2", "mesh-rail-cube:m=4,n=3x2", "fat-tree:k=4"}},
      {"bml:exchange=ring", {"torus:dims=4x3x2"}},
      {"bml:exchange=halving", {"torus:dims=4x2x2"}},
      {"torus-ring", {"torus:dims=4x3x2", "torus:dims=5", "mesh-rail-cube:m=4,n=3x2"}}};
  for (const auto& [name, topologies] : cases) {
    for (const auto& topology : topologies) {
      for (const int bytes : {3, 241}) {
        expect_complete(*algorithms().make(name)->all_reduce(on(topology), Bytes(bytes)),
                        fmt::format("{} on {}, bytes={}", name, topology, bytes));
      }
    }
  }
}

TEST(CollectiveContract, EveryContributionExactlyOnceInSwitches) {
  const auto algorithm = algorithms().make("in-network");
  for (const auto& [topology, workers] :
       {std::pair{"leaf-spine:leaves=4,down=4", 16}, std::pair{"leaf-spine:leaves=4,down=4", 6},
        std::pair{"fat-tree:k=4", 16}, std::pair{"fat-tree:k=4", 7}, std::pair{"dragonfly:p=2,a=4,h=2", 72},
        std::pair{"slim-fly:q=5", 100}, std::pair{"jellyfish:switches=10,degree=4,t=2", 20}}) {
    auto shape = plain(workers);
    shape.tree = tree_on(topology, workers);
    for (const auto operation : collective_operations()) {
      if (!algorithm->supports(operation)) continue;
      for (const int bytes : {0, 3, 241}) {
        for (const int root : {0, has_root(operation) ? workers - 2 : 0}) {
          expect_complete(*algorithm->schedule(operation, shape, Bytes(bytes), root),
                          fmt::format("{} on {}, {} bytes", to_text(operation), topology, bytes), operation, root);
        }
      }
    }
  }
}

// Part of the machine: whole modules keep their turns over the levels, some positions alone have no rails of the
// others.
TEST(CollectiveContract, RotatingRailsOnPartOfTheMachine) {
  const auto network = make_topology("mesh-rail-cube:m=4,n=4x4", {1, BytesPerSecond(1e9), Seconds(1e-6)});
  const auto part = [&](const std::function<bool(int)>& taken) {
    std::vector<DeviceId> devices;
    for (int i = 0; i < network->devices(); ++i) {
      if (taken(i)) devices.push_back(DeviceId{i});
    }
    return group_shape(*network, devices, 1);
  };
  const auto hrr = algorithms().make("hrr");
  expect_complete(*hrr->all_reduce(part([](int i) { return i / 4 % 4 < 3; }), Bytes(99)), "three columns of modules");
  expect_complete(*hrr->all_reduce(part([](int i) { return i / 16 == 2; }), Bytes(99)), "one row of modules");
  expect_complete(*hrr->all_reduce(part([](int i) { return i % 4 == 1 || i % 4 == 2; }), Bytes(99)), "two positions");
  expect_complete(*hrr->all_reduce(part([](int i) { return i % 4 == 1 && i / 4 % 4 == 0; }), Bytes(99)), "one rail");
  EXPECT_THROW((void)hrr->all_reduce(part([](int i) { return i % 2 == 0; }), Bytes(99)), Error);
  EXPECT_THROW((void)hrr->all_reduce(part([](int i) { return i % 4 == 3; }), Bytes(99)), Error);
  EXPECT_THROW((void)hrr->all_reduce(part([](int i) { return i != 5; }), Bytes(99)), Error);
}

// After failures, in what is left of the machine.
GroupShape after(const std::string& topology, const std::string& failures, const std::vector<int>& lost = {}) {
  ClusterOptions options;
  options.topology = topology;
  options.ranks = 1;
  if (!failures.empty()) options.failures = parse_failures(failures);
  Cluster cluster(options);
  std::vector<DeviceId> devices;
  for (int i = 0; i < cluster.devices(); ++i) {
    if (std::find(lost.begin(), lost.end(), i) == lost.end()) devices.push_back(DeviceId{i});
  }
  for (const int device : lost) cluster.fail_device(DeviceId{device});
  return group_shape(cluster, devices, 1);
}

TEST(CollectiveContract, RotatingRailsAroundFailures) {
  const std::string rail = "switch:rail switch (*;1)";
  struct Failed {
    const char* topology;
    std::string failures;
    std::vector<int> lost;
  };
  for (const char* name : {"hrr", "hrr:rails=ring", "hrr:rails=direct"}) {
    for (const auto& [topology, failures, lost] :
         {Failed{"mesh-rail-cube:m=4,n=4", rail, {}}, Failed{"mesh-rail-cube:m=4,n=4", "link:0", {}},
          Failed{"mesh-rail-cube:m=4,n=4", rail + ",switch:rail switch (*;2)", {}},
          Failed{"mesh-rail-cube:m=4,n=3", "link:device 4 (1;0) -> rail switch (*;0)", {}},
          Failed{"mesh-rail-cube:m=4,n=4", "", {5}}, Failed{"mesh-rail-cube:m=4,n=4", rail, {0, 14}},
          Failed{"mesh-rail-cube:m=4,n=4", "link:0,link:2," + rail, {}},
          Failed{"mesh-rail-cube:m=5,n=3", "link:0", {3}},
          Failed{"mesh-rail-cube:m=5,n=3", "link:0,link:2,link:4," + rail, {}},
          Failed{"mesh-rail-cube:m=3,n=2", "link:0,link:2", {}}, Failed{"mesh-rail-cube:m=2,n=3", "link:0", {}},
          Failed{"mesh-rail-cube:m=2,n=5", "", {3}}, Failed{"mesh-rail-cube:m=4,n=4x4", "link:0", {}},
          Failed{"mesh-clos-rails:m=4,n=4", "", {9}}}) {
      for (const int bytes : {0, 3, 241}) {
        expect_complete(*algorithms().make(name)->all_reduce(after(topology, failures, lost), Bytes(bytes)),
                        fmt::format("{} on {} without {} and {} ranks", name, topology, failures, lost.size()));
      }
    }
  }
  // Every position has lost a rank, and levels that take turns need them all.
  for (const auto& [topology, lost] : {std::pair{"mesh-rail-cube:m=4,n=4", std::vector{0, 5, 10, 15}},
                                       std::pair{"mesh-rail-cube:m=4,n=4x4", std::vector{9}}}) {
    try {
      (void)algorithms().make("hrr")->all_reduce(after(topology, "", lost), Bytes(8));
      ADD_FAILURE() << topology;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("use ring"), std::string::npos) << error.what();
    }
  }
}

TEST(CollectiveShape, IsTheNetworksNotItsFailures) {
  const auto whole = after("mesh-rail-cube:m=4,n=4", "");
  EXPECT_FALSE(whole.remains);
  const auto cut = after("mesh-rail-cube:m=4,n=4", "switch:rail switch (*;1),link:0");
  EXPECT_EQ(cut.sides, whole.sides);
  EXPECT_EQ(cut.reach, whole.reach);
  EXPECT_EQ(cut.digits[0].kind, DigitKind::full_mesh);
  ASSERT_TRUE(cut.remains);
  EXPECT_EQ(cut.remains->broken, (std::vector<char>{0, 1, 0, 0}));
  const auto lost = after("mesh-rail-cube:m=4,n=4", "", {6});
  EXPECT_TRUE(lost.digits.empty());
  EXPECT_EQ(lost.remains->sides, whole.sides);
  EXPECT_EQ(lost.remains->members[6], -1);
  EXPECT_EQ(lost.remains->members[7], 6);
  EXPECT_EQ(lost.remains->broken, (std::vector<char>{0, 0, 1, 0}));
}

TEST(CollectiveContract, EveryOperationHasAnAlgorithm) {
  for (const auto operation : collective_operations()) {
    int known = 0;
    for (const auto& name : algorithms().names()) {
      if (name != "auto" && algorithms().make(name)->supports(operation)) ++known;
    }
    EXPECT_GE(known, 2) << to_text(operation) << ": nothing to choose between";
    EXPECT_EQ(collective_operation_from_text(to_text(operation)), operation);
  }
}

// The check itself: a schedule that does too little, too much, or to the wrong member is seen.
TEST(CollectiveContract, IsBrokenByASchedulesFault) {
  class Faulty final : public CollectiveSchedule {
   public:
    Faulty(std::shared_ptr<const CollectiveSchedule> base, int fault)
        : CollectiveSchedule(base->members(), base->bytes()), base_(std::move(base)), fault_(fault) {}
    [[nodiscard]] int steps() const override { return base_->steps(); }
    [[nodiscard]] std::int64_t extent() const override { return base_->extent(); }
    [[nodiscard]] int receives(int step, int member) const override { return base_->receives(step, member); }
    void sends(int step, int member, std::vector<Send>& out) const override {
      base_->sends(step, member, out);
      if (step != 0 || member != 0 || out.empty()) return;
      if (fault_ == 1) --out.front().range.end;
      if (fault_ == 2) out.front().reduce = !out.front().reduce;
      if (fault_ == 3) out.front().range = {0, 1};
    }

   private:
    std::shared_ptr<const CollectiveSchedule> base_;
    int fault_;
  };
  const std::vector<std::pair<const char*, CollectiveOperation>> cases{
      {"ring", CollectiveOperation::reduce_scatter}, {"ring", CollectiveOperation::all_gather},
      {"pairwise", CollectiveOperation::all_to_all}, {"tree", CollectiveOperation::broadcast},
      {"direct", CollectiveOperation::scatter},
  };
  for (const auto& [name, operation] : cases) {
    for (const int fault : {0, 1, 2, 3}) {
      const Faulty schedule(algorithms().make(name)->schedule(operation, plain(4), Bytes(16)), fault);
      const auto outcome = carry_out(schedule, operation);
      const Definition definition(operation, schedule, 0);
      int wrong = 0;
      for (int m = 0; m < 4; ++m) {
        for (std::int64_t b = 0; b < schedule.extent(); ++b) {
          const auto wanted = definition.wanted(m, b);
          if (wanted && outcome.buffers[static_cast<std::size_t>(m)][static_cast<std::size_t>(b)] != *wanted) ++wrong;
        }
      }
      EXPECT_EQ(wrong > 0, fault > 0) << name << " " << to_text(operation) << ", fault " << fault;
    }
  }
}

TEST(CollectiveContract, DigitWiseAndHierarchicalShapes) {
  const std::vector<GroupShape> shapes{
      with_digits({{8, DigitKind::full_mesh}, {4, DigitKind::switched}}, 8),
      with_digits({{4, DigitKind::ring}, {3, DigitKind::ring}, {2, DigitKind::full_mesh}}, 4),
      with_digits({{2, DigitKind::switched}, {5, DigitKind::switched}, {3, DigitKind::full_mesh}}, 2)};
  for (const auto& shape : shapes) {
    for (const char* name : {"blueconnect", "blueconnect:exchange=ring", "blueconnect:exchange=direct", "hierarchical",
                             "hierarchical:intra=direct,inter=ring", "parameter-server:servers=3",
                             "parameter-server:servers=2,colocated=yes", "parameter-server:servers=1,colocated=yes"}) {
      const auto algorithm = algorithms().make(name);
      for (const auto operation : collective_operations()) {
        if (!algorithm->supports(operation)) continue;
        expect_complete(*algorithm->schedule(operation, shape, Bytes(241)),
                        fmt::format("{} {}", to_text(operation), name), operation);
      }
    }
  }
}

TEST(CollectiveContract, RotatedChannelsAreCompleteToo) {
  auto shape = with_digits({{4, DigitKind::ring}, {3, DigitKind::ring}, {2, DigitKind::full_mesh}}, 0);
  for (shape.channel = 0; shape.channel < 7; ++shape.channel) {
    const auto schedule = algorithms().make("blueconnect:rotate=yes")->all_reduce(shape, Bytes(97));
    expect_complete(*schedule, fmt::format("channel {}", shape.channel));
  }
}

// Bytes sent by each member; the textbook's numbers.
TEST(CollectiveBytes, RingDirectAndHalvingSendTwiceTheirShare) {
  for (const char* name : {"ring", "direct", "halving-doubling", "blueconnect"}) {
    for (int n : {2, 4, 16}) {
      const auto outcome = carry_out(*algorithms().make(name)->all_reduce(plain(n), Bytes(64 * 3)));
      for (const auto sent : outcome.sent) EXPECT_EQ(sent, 2 * (n - 1) * 192 / n) << name << " n=" << n;
    }
  }
}

TEST(CollectiveBytes, FoldedPairsCostTheEvenMemberItsWholeBufferOnce) {
  const auto outcome = carry_out(*algorithms().make("halving-doubling")->all_reduce(plain(5), Bytes(64)));
  EXPECT_EQ(outcome.sent[0], 64);                   // hands over, then only listens
  EXPECT_EQ(outcome.sent[1], 2 * 3 * 64 / 4 + 64);  // takes part for both, then hands back
  EXPECT_EQ(outcome.sent[4], 2 * 3 * 64 / 4);
}

TEST(CollectiveBytes, MeshRailPhases) {
  // m=8 mesh, n=4 rail: S/m on each of 7 mesh links and (1-1/n) S/m on the rail port, each way (topologies.md 4.1).
  const auto shape = with_digits({{8, DigitKind::full_mesh}, {4, DigitKind::switched}}, 0);
  const auto outcome = carry_out(*algorithms().make("blueconnect")->all_reduce(shape, Bytes(320)));
  for (const auto sent : outcome.sent) EXPECT_EQ(sent, 2 * (7 * 40 + 30));
}

// Two trees: a member sends half of the buffer up either one, but not from a root, and down to each of its children.
TEST(CollectiveBytes, DoubleBinaryTreesGiveNobodyMoreThanTwiceTheBuffer) {
  for (int n : {2, 3, 4, 5, 8, 16, 27, 100}) {
    const auto outcome = carry_out(*algorithms().make("double-binary-tree")->all_reduce(plain(n), Bytes(100)));
    std::int64_t sum = 0;
    for (std::size_t m = 0; m < static_cast<std::size_t>(n); ++m) {
      EXPECT_LE(outcome.sent[m], 200) << n << ": " << m;
      EXPECT_LE(outcome.received[m], 200) << n << ": " << m;
      sum += outcome.sent[m];
    }
    EXPECT_EQ(sum, 2 * (n - 1) * 100) << n;
    EXPECT_EQ(outcome.messages, 4 * (n - 1)) << n;
  }
}

TEST(CollectiveBytes, AllPortsShareTheRingsLoad) {
  for (const auto& [name, topology] : {std::pair{"bml", "torus:dims=4x4"}, std::pair{"torus-ring", "torus:dims=4x4x4"},
                                       std::pair{"two-ring", "torus:dims=8x4"}}) {
    const auto shape = on(topology);
    const auto outcome = carry_out(*algorithms().make(name)->all_reduce(shape, Bytes(24 * shape.workers)));
    for (const auto sent : outcome.sent) EXPECT_EQ(sent, 2 * (shape.workers - 1) * 24) << name;
  }
}

TEST(CollectiveBytes, ParameterServer) {
  const auto outcome = carry_out(*algorithms().make("parameter-server:servers=2")->all_reduce(plain(4), Bytes(100)));
  EXPECT_EQ(outcome.sent, (std::vector<std::int64_t>{100, 100, 100, 100, 200, 200}));
}

// What each cable of the tree carries: a rank's the buffer up and the buffer down, an uplink the same however many
// ranks lie below it.
TEST(CollectiveBytes, SwitchesThatAddSendTheBufferOnce) {
  auto shape = plain(16);
  shape.tree = tree_on("fat-tree:k=4", 16);
  const auto algorithm = algorithms().make("in-network");
  const auto sent = [&](CollectiveOperation operation) {
    return carry_out(*algorithm->schedule(operation, shape, Bytes(160), 5), operation, 5).sent;
  };
  // Sixteen ranks, then the switches by their places in the network: eight edges, one aggregation a pod, one core.
  ASSERT_EQ(shape.tree->switches.size(), 8u + 4 + 1);
  const auto expect = [&](CollectiveOperation operation, std::int64_t rank, std::int64_t edge, std::int64_t aggregation,
                          std::int64_t core) {
    const auto bytes = sent(operation);
    for (std::size_t m = 0; m < bytes.size(); ++m) {
      EXPECT_EQ(bytes[m], m < 16 ? rank : m < 24 ? edge : m < 28 ? aggregation : core) << to_text(operation) << m;
    }
  };
  expect(CollectiveOperation::all_reduce, 160, 160 + 2 * 160, 160 + 2 * 160, 4 * 160);
  expect(CollectiveOperation::reduce_scatter, 160, 160 + 2 * 10, 160 + 2 * 20, 4 * 40);
  expect(CollectiveOperation::all_gather, 10, 20 + 2 * 150, 40 + 2 * 140, 4 * 120);
  const auto broadcast = sent(CollectiveOperation::broadcast);
  EXPECT_EQ(broadcast[5], 160);
  EXPECT_EQ(std::accumulate(broadcast.begin(), broadcast.end(), std::int64_t{0}), 28 * 160);  // all cables of the tree
}

TEST(SwitchTree, IsTheShallowestAndSaysWhereThereIsNone) {
  EXPECT_EQ(tree_on("star", 5)->switches, (std::vector<int>{5}));
  EXPECT_EQ(tree_on("star", 1)->switches.size(), 0u);
  EXPECT_EQ(tree_on("leaf-spine:leaves=4,down=4", 4)->switches, (std::vector<int>{16}));  // one leaf
  const auto tree = tree_on("leaf-spine:leaves=4,down=4", 16);
  EXPECT_EQ(tree->switches, (std::vector<int>{16, 17, 18, 19, 20}));  // all leaves, the first spine
  EXPECT_EQ(tree->nodes[20].parent, -1);
  EXPECT_EQ(tree->nodes[3].depth, 2);
  for (const char* topology : {"torus:dims=4x4", "mesh-rail-cube:m=4,n=4", "bcube:n=4,k=1"}) {
    try {
      (void)tree_on(topology, 16);
      ADD_FAILURE() << topology;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("no way over switches alone leads from device 0"), std::string::npos)
          << error.what();
    }
  }
}

TEST(CollectiveBytes, HalvesOfAnAllReduceSendTheirShareOnce) {
  for (const char* name : {"ring", "direct", "halving-doubling", "blueconnect", "hierarchical"}) {
    for (const auto operation : {CollectiveOperation::reduce_scatter, CollectiveOperation::all_gather}) {
      for (int n : {2, 4, 16}) {
        const auto outcome = carry_out(*algorithms().make(name)->schedule(operation, plain(n), Bytes(192)), operation);
        for (const auto sent : outcome.sent) EXPECT_EQ(sent, (n - 1) * 192 / n) << name << " n=" << n;
      }
    }
  }
}

// Steps x members is beyond 32 bits. In step s member m passes on part m - s - 1, which it got in the step before; and
// towards lower values, part m + s + 1.
TEST(CollectiveBytes, RingsOfManyMembersPassOnWhatTheyGot) {
  const std::int64_t n = 100'003;
  std::vector<Send> sends;
  for (const bool reversed : {false, true}) {
    Digit ring{static_cast<int>(n), DigitKind::ring};
    auto shape = with_digits({ring}, 1);
    shape.channel = reversed ? 1 : 0;
    const auto schedule =
        algorithms().make(reversed ? "blueconnect:exchange=ring,rotate=yes" : "ring")->all_reduce(shape, Bytes(3 * n));
    for (const std::int64_t step : {std::int64_t{0}, n / 3, n / 2, n - 2}) {
      for (const std::int64_t member : {std::int64_t{0}, n / 2, n - 1}) {
        schedule->sends(static_cast<int>(step), static_cast<int>(member), sends);
        ASSERT_EQ(sends.size(), 1u);
        const auto part = (reversed ? member + step + 1 : member - step - 1 + n) % n;
        EXPECT_EQ(sends[0].range.begin, 3 * part) << reversed << ' ' << step << ' ' << member;
        EXPECT_EQ(sends[0].range.end, 3 * part + 3) << reversed << ' ' << step << ' ' << member;
        EXPECT_EQ(sends[0].to, (member + (reversed ? n - 1 : 1)) % n);
      }
    }
  }
}

TEST(CollectiveBytes, FoldedHalves) {
  // Five members of 10 bytes each; 0 folds into 1, which stands for 20 bytes; 1, 2, 3, 4 halve.
  const auto algorithm = algorithms().make("halving-doubling");
  const auto scattered = carry_out(*algorithm->schedule(CollectiveOperation::reduce_scatter, plain(5), Bytes(50)),
                                   CollectiveOperation::reduce_scatter);
  // 0: all. 1: parts 3 and 4, then 2, then 0's back. 2: parts 3 and 4, then 0 and 1. 3: parts 0, 1, 2, then 4.
  EXPECT_EQ(scattered.sent, (std::vector<std::int64_t>{50, 40, 40, 40, 40}));
  const auto gathered = carry_out(*algorithm->schedule(CollectiveOperation::all_gather, plain(5), Bytes(50)),
                                  CollectiveOperation::all_gather);
  // 0: its part. 1: 20, then 30, then all back. 2: 10, then 30. 3, 4: 10, then 20.
  EXPECT_EQ(gathered.sent, (std::vector<std::int64_t>{10, 20 + 30 + 50, 40, 30, 30}));
}

TEST(CollectiveBytes, AllToAllSendsEveryBlockOnce) {
  for (const char* name : {"direct", "pairwise"}) {
    for (int n : {2, 5, 8}) {
      const auto outcome =
          carry_out(*algorithms().make(name)->schedule(CollectiveOperation::all_to_all, plain(n), Bytes(40)),
                    CollectiveOperation::all_to_all);
      EXPECT_EQ(outcome.messages, n * (n - 1)) << name;
      for (const auto sent : outcome.sent) EXPECT_EQ(sent, (n - 1) * 40 / n) << name << " n=" << n;
    }
  }
}

TEST(CollectiveBytes, BroadcastReachesEveryMemberOnce) {
  for (const char* name : {"tree", "ring"}) {
    const auto outcome =
        carry_out(*algorithms().make(name)->schedule(CollectiveOperation::broadcast, plain(13), Bytes(7), 4),
                  CollectiveOperation::broadcast, 4);
    EXPECT_EQ(outcome.messages, 12) << name;
    for (std::size_t m = 0; m < 13; ++m) EXPECT_EQ(outcome.received[m], m == 4 ? 0 : 7) << name;
    EXPECT_EQ(outcome.sent[4], std::string(name) == "tree" ? 4 * 7 : 7) << name;  // ceil(log2 13) children, or one
  }
}

TEST(CollectiveBytes, GatherAndScatterMoveSubtrees) {
  // Eight members of 10 bytes: four send 10, two 20, one 40; flat, seven send 10. The other way round for scatter.
  for (const auto& [name, total] : {std::pair{"tree", 120}, std::pair{"direct", 70}}) {
    const auto algorithm = algorithms().make(name);
    const auto gathered = carry_out(*algorithm->schedule(CollectiveOperation::gather, plain(8), Bytes(80), 3),
                                    CollectiveOperation::gather, 3);
    const auto scattered = carry_out(*algorithm->schedule(CollectiveOperation::scatter, plain(8), Bytes(80), 3),
                                     CollectiveOperation::scatter, 3);
    EXPECT_EQ(gathered.received[3], 70) << name;
    EXPECT_EQ(scattered.sent[3], 70) << name;
    EXPECT_EQ(std::accumulate(gathered.sent.begin(), gathered.sent.end(), std::int64_t{0}), total) << name;
    EXPECT_EQ(gathered.sent, scattered.received) << name;
    EXPECT_EQ(gathered.messages, 7) << name;
  }
}

TEST(CollectiveShape, ReadsDigitsAndNodesFromAddresses) {
  const auto mesh = make_topology("torus:dims=4x3", {12, BytesPerSecond(1e9), Seconds(1e-6)});
  std::vector<DeviceId> devices;
  for (int i = 0; i < 12; ++i) devices.push_back(DeviceId{i});
  const auto shape = group_shape(*mesh, devices, 1);
  ASSERT_EQ(shape.digits.size(), 2u);
  EXPECT_EQ(shape.digits[0].radix, 4);
  EXPECT_EQ(shape.digits[0].kind, DigitKind::ring);
  EXPECT_EQ(shape.digits[1].radix, 3);
  EXPECT_EQ(shape.digits[1].kind, DigitKind::full_mesh);  // a ring of three is a full mesh
  EXPECT_EQ(group_shape(*mesh, devices, 4).node_size, 4);
  // Three devices of a 4 x 3 torus that fill no rectangle, and an unequal share of nodes.
  EXPECT_TRUE(group_shape(*mesh, {DeviceId{0}, DeviceId{1}, DeviceId{4}}, 1).digits.empty());
  EXPECT_EQ(group_shape(*mesh, {DeviceId{0}, DeviceId{1}, DeviceId{4}}, 4).node_size, 0);
  // A 2 x 3 corner is one.
  const auto corner =
      group_shape(*mesh, {DeviceId{0}, DeviceId{1}, DeviceId{4}, DeviceId{5}, DeviceId{8}, DeviceId{9}}, 1);
  ASSERT_EQ(corner.digits.size(), 2u);
  EXPECT_EQ(corner.digits[0].radix, 2);
}

TEST(CollectiveShape, SaysWhichPositionsReachAlongADigit) {
  // m=6, three levels, of which the second has one module: position j has rails of level j mod 3.
  const auto cube = on("mesh-rail-cube:m=6,n=4x1x2");
  EXPECT_EQ(cube.sides, (std::vector<int>{6, 4, 1, 2}));
  EXPECT_EQ(cube.digits.size(), 3u);
  EXPECT_EQ(cube.reach, (std::vector<std::uint32_t>{2, 0, 8, 2, 0, 8}));
  EXPECT_EQ(on("mesh-rail-cube:m=2,n=3x3,t=2").reach, (std::vector<std::uint32_t>{6, 6}));
  // Along the second dimension of a mesh of tori only odd positions have cables: it is a ring all the same.
  const auto tori = on("mesh-torus:m=4,dims=5x4");
  EXPECT_EQ(tori.reach, (std::vector<std::uint32_t>{2, 4, 2, 4}));
  EXPECT_EQ(tori.digits[1].kind, DigitKind::ring);
  EXPECT_EQ(tori.digits[2].kind, DigitKind::ring);
  EXPECT_TRUE(on("torus:dims=8").reach.empty());
}

// Finding out how a digit's devices are joined once took the square of their number.
TEST(CollectiveShape, OfAMillionDevicesIsFoundAtOnce) {
  constexpr int kDevices = 1'000'000;
  const auto network = make_topology("star", {kDevices, BytesPerSecond(1e9), Seconds(1e-6)});
  std::vector<DeviceId> devices;
  for (int i = 0; i < kDevices; ++i) devices.push_back(DeviceId{i});
  const auto shape = group_shape(*network, devices, 1);
  ASSERT_EQ(shape.digits.size(), 1u);
  EXPECT_EQ(shape.digits[0].kind, DigitKind::switched);
}

TEST(CollectiveErrors, ImpossibleShapesAreRefused) {
  GroupShape shapeless;
  shapeless.workers = 6;
  EXPECT_THROW((void)algorithms().make("blueconnect")->all_reduce(shapeless, Bytes(8)), Error);
  EXPECT_THROW((void)algorithms().make("hierarchical")->all_reduce(shapeless, Bytes(8)), Error);
  EXPECT_THROW((void)algorithms().make("blueconnect:exchange=halving")->all_reduce(plain(6), Bytes(8)), Error);
  EXPECT_THROW((void)algorithms().make("blueconnect:exchange=tree"), Error);
  for (const char* name : {"hrr", "bml", "torus-ring", "two-ring"}) {
    EXPECT_THROW((void)algorithms().make(name)->all_reduce(shapeless, Bytes(8)), Error) << name;
  }
  EXPECT_THROW((void)algorithms().make("hrr:rails=tree"), Error);
  EXPECT_THROW((void)algorithms().make("hrr:rails=halving")->all_reduce(on("mesh-rail-cube:m=4,n=6"), Bytes(8)), Error);
  for (const char* grid : {"torus:dims=4x3", "torus:dims=2x4", "torus:dims=4x4x4", "torus:dims=6x3"}) {
    EXPECT_THROW((void)algorithms().make("two-ring")->all_reduce(on(grid), Bytes(8)), Error) << grid;
  }
  EXPECT_THROW((void)algorithms().make("parameter-server:servers=9,colocated=yes")->all_reduce(plain(8), Bytes(8)),
               Error);
}

TEST(CollectiveErrors, AnOperationThatAnAlgorithmDoesNotKnowNamesThoseThatDo) {
  try {
    (void)algorithms().make("ring")->schedule(CollectiveOperation::all_to_all, plain(4), Bytes(8));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    const std::string message = error.what();
    for (const char* name : {"all-to-all", "direct", "pairwise"}) {
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
    EXPECT_EQ(message.find("ring"), std::string::npos) << message;
  }
  EXPECT_THROW((void)algorithms().make("pairwise")->all_reduce(plain(4), Bytes(8)), Error);
  EXPECT_THROW((void)collective_operation_from_text("all-gathr"), Error);
}

TEST(Pieces, AddUpAndDifferByOneByte) {
  EXPECT_TRUE(rc::check("cut_into_pieces keeps every byte", [] {
    const auto bytes = *rc::gen::inRange<std::int64_t>(0, 100000);
    const auto channels = *rc::gen::inRange(1, 9);
    const auto chunk = *rc::gen::inRange<std::int64_t>(0, 5000);
    const auto limit = chunk == 0 ? std::int64_t{0} : chunk + 10;
    std::int64_t sum = 0;
    for (const auto& piece : cut_into_pieces(Bytes(bytes), channels, Bytes(limit))) {
      sum += piece.bytes.count();
      RC_ASSERT(limit == 0 || piece.bytes.count() <= limit);
    }
    RC_ASSERT(sum == bytes);
  }));
}

}  // namespace
}  // namespace tandem
