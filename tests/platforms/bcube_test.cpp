// bcube: routes by hand, BuildPathSet, the bisection of corners, choice of sizes, refused parameters.
#include <gtest/gtest.h>

#include <set>

#include "tests/platforms/graph.hpp"
#include "tests/platforms/walks.hpp"

namespace tandem {
namespace {

using namespace testing;

TEST(BCube, RoutesByHand) {
  const auto cube = make("bcube:n=4,k=1");
  // 13 = 3*4 + 1. The highest digit first.
  EXPECT_EQ(stops(*cube, 0, 13),
            (Names{"device 0 (0,0)", "switch 1 (*,0)", "device 12 (3,0)", "switch 0 (3,*)", "device 13 (3,1)"}));
  EXPECT_EQ(stops(*cube, 4, 6), (Names{"device 4 (1,0)", "switch 0 (1,*)", "device 6 (1,2)"}));
  EXPECT_EQ(stops(*cube, 6, 14), (Names{"device 6 (1,2)", "switch 1 (*,2)", "device 14 (3,2)"}));
}

TEST(BCube, RotatedStartsAtEveryDigit) {
  const auto cube = make("bcube:n=3,k=2,routing=rotated");
  std::set<Names> seen;
  for (FlowHash flow = 0; flow < 100; ++flow) seen.insert(stops(*cube, 0, 26, flow));
  // Digits 2,1,0; 1,0,2; 0,2,1.
  EXPECT_EQ(seen, (std::set<Names>{
                      {"device 0 (0,0,0)", "switch 2 (*,0,0)", "device 18 (2,0,0)", "switch 1 (2,*,0)",
                       "device 24 (2,2,0)", "switch 0 (2,2,*)", "device 26 (2,2,2)"},
                      {"device 0 (0,0,0)", "switch 1 (0,*,0)", "device 6 (0,2,0)", "switch 0 (0,2,*)",
                       "device 8 (0,2,2)", "switch 2 (*,2,2)", "device 26 (2,2,2)"},
                      {"device 0 (0,0,0)", "switch 0 (0,0,*)", "device 2 (0,0,2)", "switch 2 (*,0,2)",
                       "device 20 (2,0,2)", "switch 1 (2,*,2)", "device 26 (2,2,2)"},
                  }));
}

// Guo et al., theorem 4: the k+1 paths of BuildPathSet meet in no device and in no switch but at their ends.
TEST(BCube, ParallelPathsAreDisjoint) {
  for (const char* text : {"bcube:n=2,k=1,routing=parallel", "bcube:n=3,k=2,routing=parallel",
                           "bcube:n=2,k=3,routing=parallel", "bcube:n=5,k=1,routing=parallel"}) {
    const auto cube = make(text);
    const auto k_plus_1 = cube->radices().size();
    for (int src = 0; src < cube->devices(); ++src) {
      for (int dst = 0; dst < cube->devices(); ++dst) {
        if (src == dst) continue;
        std::set<std::vector<LinkId>> paths;
        for (FlowHash flow = 0; flow < 200; ++flow) paths.insert(route(*cube, src, dst, flow));
        ASSERT_EQ(paths.size(), k_plus_1) << text << " " << src << " " << dst;
        std::set<int> inside;
        std::size_t vertices = 0;
        const auto shortest = static_cast<std::size_t>(distances(*cube, src)[static_cast<std::size_t>(dst)]);
        for (const auto& path : paths) {
          ASSERT_LE(path.size(), shortest + 4);
          for (std::size_t i = 0; i + 1 < path.size(); ++i) inside.insert(cube->link(path[i]).to);
          vertices += path.size() - 1;
        }
        ASSERT_EQ(inside.size(), vertices) << text << " " << src << " " << dst;
      }
    }
  }
}

// (1,0) to (1,2) with the start at digit 1, which does not differ: by the next device of that digit, and back.
TEST(BCube, ParallelDetourByHand) {
  const auto cube = make("bcube:n=4,k=1,routing=parallel");
  std::set<Names> seen;
  for (FlowHash flow = 0; flow < 100; ++flow) seen.insert(stops(*cube, 4, 6, flow));
  EXPECT_EQ(seen, (std::set<Names>{
                      {"device 4 (1,0)", "switch 0 (1,*)", "device 6 (1,2)"},
                      {"device 4 (1,0)", "switch 1 (*,0)", "device 8 (2,0)", "switch 0 (2,*)", "device 10 (2,2)",
                       "switch 1 (*,2)", "device 6 (1,2)"},
                  }));
}

TEST(BCube, MaxFlowIsTheNumberOfPorts) {
  for (const char* text : {"bcube:n=8,k=1", "bcube:n=4,k=2", "bcube:n=2,k=4"}) {
    const auto cube = make(text);
    const auto ports = static_cast<std::int64_t>(cube->radices().size());
    for (const int dst : {1, cube->devices() / 2 + 1, cube->devices() - 1}) {
      EXPECT_EQ(max_flow(*cube, DeviceId{0}, DeviceId{dst}), ports) << text << " " << dst;
    }
  }
}

// The N/2 that is often given is the cut between halves along one digit; a corner of 6 columns of 5 and a bit cuts
// less.
TEST(BCube, ACornerIsCheaperThanAHalf) {
  const auto cube = make("bcube:n=8,k=1");
  std::vector<bool> half;
  std::vector<bool> corner;
  for (int device = 0; device < 64; ++device) {
    const int a0 = device % 8;
    const int a1 = device / 8;
    half.push_back(a1 < 4);
    corner.push_back(a0 < 6 && a1 < 6 && !(a0 == 5 && a1 >= 2));
  }
  ASSERT_EQ(std::count(corner.begin(), corner.end(), true), 32);
  EXPECT_EQ(min_cut(*cube, half), 32);
  EXPECT_EQ(min_cut(*cube, corner), 28);
  EXPECT_EQ(cube->characteristics().bisection_links, 28);
}

TEST(BCube, ChoosesSizes) {
  const auto chosen = [](const std::string& text, int devices) { return make(text, devices)->instance(); };
  EXPECT_EQ(chosen("bcube", 1), "bcube:n=2,k=1,planes=1");
  EXPECT_EQ(chosen("bcube", 64), "bcube:n=8,k=1,planes=1");
  EXPECT_EQ(chosen("bcube", 512), "bcube:n=8,k=2,planes=1");
  EXPECT_EQ(chosen("bcube", 4096), "bcube:n=64,k=1,planes=1");
  EXPECT_EQ(chosen("bcube", 32768), "bcube:n=32,k=2,planes=1");
  EXPECT_EQ(chosen("bcube:n=4", 65), "bcube:n=4,k=3,planes=1");
  EXPECT_EQ(chosen("bcube:k=3", 4097), "bcube:n=9,k=3,planes=1");
  EXPECT_EQ(chosen("bcube:k=0", 1000), "bcube:n=1000,k=0,planes=1");
}

TEST(BCube, RefusesWhatDoesNotFit) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"bcube:n=1,k=1", "'n' is '1'"},
      {"bcube:n=0", "'n' is '0'"},
      {"bcube:n=8,k=-1", "'k' is '-1'"},
      {"bcube:n=8,k=22", "'k' is '22'"},
      {"bcube:n=65536,k=21", "at most 4194304 devices"},
      {"bcube:n=2,k=21", "at most 33554432 cables"},
      {"bcube:routing=paralel", "unknown routing 'paralel'; did you mean 'parallel'?"},
  };
  for (const auto& [text, says] : table) EXPECT_EQ(refusal_fault(text, 1, says), "") << text;
  EXPECT_EQ(refusal_fault("bcube:n=4,k=1", 17, "has 16 devices, but 17 are wanted"), "");
  EXPECT_EQ(refusal_fault("bcube:n=5000", 4'194'304, "with n=5000 holds 4194304 devices"), "");
}

}  // namespace
}  // namespace tandem
