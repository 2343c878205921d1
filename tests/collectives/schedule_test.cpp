// The contract of every registered collective, checked on data: every worker ends with every worker's contribution
// exactly once, at every byte; and the textbook's number of bytes is moved.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <map>
#include <numeric>

#include "platforms/topology.hpp"
#include "sim/collectives/collective.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

// counts[member][byte][contributor]: how often the contribution is in the member's byte.
using Buffer = std::vector<std::vector<int>>;

struct Outcome {
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> sent;
  std::int64_t messages = 0;
};

// Carries the schedule out on data with the same rules as the engine: a member enters a step when its own sends and
// receives of the one before are done. Messages are delivered in a fixed but arbitrary order.
Outcome carry_out(const CollectiveSchedule& schedule) {
  const auto members = static_cast<std::size_t>(schedule.members());
  const auto bytes = static_cast<std::size_t>(schedule.bytes().count());
  Outcome outcome;
  outcome.buffers.assign(members, Buffer(bytes, std::vector<int>(members, 0)));
  outcome.sent.assign(members, 0);
  for (std::size_t m = 0; m < members; ++m) {
    if (!schedule.contributes(static_cast<int>(m))) continue;
    for (auto& byte : outcome.buffers[m]) byte[m] = 1;
  }
  struct Message {
    int step, from, to;
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
      Message message{step[m], static_cast<int>(m), send.to, send, {}};
      for (auto b = send.range.begin; b < send.range.end; ++b) {
        message.data.push_back(outcome.buffers[m][static_cast<std::size_t>(b)]);
      }
      outcome.sent[m] += send.range.size();
      ++outcome.messages;
      wire.push_back(std::move(message));
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
      const auto to = static_cast<std::size_t>(message->to);
      if (step[to] != message->step) {
        ++message;
        continue;
      }
      for (std::size_t i = 0; i < message->data.size(); ++i) {
        auto& mine = outcome.buffers[to][static_cast<std::size_t>(message->send.range.begin) + i];
        for (std::size_t c = 0; c < members; ++c) {
          mine[c] = (message->send.reduce ? mine[c] : 0) + message->data[i][c];
        }
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

void expect_complete(const CollectiveSchedule& schedule, const std::string& what) {
  const auto outcome = carry_out(schedule);
  for (int m = 0; m < schedule.members(); ++m) {
    if (!schedule.contributes(m)) continue;
    for (std::size_t b = 0; b < outcome.buffers[static_cast<std::size_t>(m)].size(); ++b) {
      for (int c = 0; c < schedule.members(); ++c) {
        ASSERT_EQ(outcome.buffers[static_cast<std::size_t>(m)][b][static_cast<std::size_t>(c)],
                  schedule.contributes(c) ? 1 : 0)
            << what << ": member " << m << ", byte " << b << ", contribution of " << c;
      }
    }
  }
}

GroupShape plain(int workers) {
  GroupShape shape;
  shape.workers = workers;
  shape.node_size = 1;
  if (workers > 1) shape.digits = {{workers, DigitKind::switched}};
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

TEST(CollectiveContract, EveryContributionExactlyOnceForAnyNumberOfRanks) {
  for (const auto& name : algorithms().names()) {
    const auto algorithm = algorithms().make(name);
    for (int n : {1, 2, 3, 5, 6, 7, 8, 12, 16, 27}) {
      for (int bytes : {0, 1, 5, 64}) {
        expect_complete(*algorithm->all_reduce(plain(n), Bytes(bytes)),
                        fmt::format("{} n={} bytes={}", name, n, bytes));
      }
    }
  }
}

TEST(CollectiveContract, EveryContributionExactlyOnceWithManyMembers) {
  for (const auto& name : algorithms().names()) {
    for (int n : {64, 100}) {
      expect_complete(*algorithms().make(name)->all_reduce(plain(n), Bytes(n + 3)), fmt::format("{} n={}", name, n));
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
      expect_complete(*algorithms().make(name)->all_reduce(shape, Bytes(241)), name);
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

TEST(CollectiveBytes, ParameterServer) {
  const auto outcome = carry_out(*algorithms().make("parameter-server:servers=2")->all_reduce(plain(4), Bytes(100)));
  EXPECT_EQ(outcome.sent, (std::vector<std::int64_t>{100, 100, 100, 100, 200, 200}));
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
  EXPECT_THROW((void)algorithms().make("parameter-server:servers=9,colocated=yes")->all_reduce(plain(8), Bytes(8)),
               Error);
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
