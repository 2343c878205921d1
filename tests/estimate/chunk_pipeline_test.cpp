// Pipelines of chunks, by hand.
#include "sim/estimate/chunk_pipeline.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace tandem {
namespace {

PipelineStep step(double latency, double bytes, int link, std::vector<int> after, std::vector<int> after_chunk) {
  return {
      Seconds(latency), {{bytes, {{link, bytes}}}}, Seconds(0), 0, std::move(after), {}, std::move(after_chunk), {}};
}

double time_of(const PipelinedCollective& collective) {
  return pipeline_time(collective).count();
}

// Two stages on links of their own, 1 + 3 s and 1 + 5 s: the slower one is never idle once it has begun.
TEST(ChunkPipeline, StagesOnDifferentLinks) {
  const PipelinedChannel channel{10, {step(1, 3, 0, {}, {0}), step(1, 5, 1, {0}, {1})}};
  EXPECT_DOUBLE_EQ(time_of({{channel}, {1, 1}}), 4 + 10 * 6);
}

// Two equal stages on one link, 1 s of latency and 2 s alone: in step with each other they take 4 s together.
TEST(ChunkPipeline, StagesOnOneLink) {
  const PipelinedChannel channel{10, {step(1, 2, 0, {}, {0}), step(1, 2, 0, {0}, {1})}};
  EXPECT_DOUBLE_EQ(time_of({{channel}, {1}}), 3 + 9 * (1 + 4) + 3);
}

// Link 0 at 3 bytes/s has three messages of 6 bytes each (12 of one step, 6 of the other): 1 byte/s a message. The
// other step's second link would let it have 4.
TEST(ChunkPipeline, MessagesShareLinksFairly) {
  const PipelineStep two{Seconds(0), {{6, {{0, 12}}}}, Seconds(0), 0, {}, {}, {}, {}};
  const PipelineStep one{Seconds(0), {{6, {{0, 6}, {1, 6}}}}, Seconds(0), 0, {}, {}, {}, {}};
  EXPECT_DOUBLE_EQ(time_of({{{1, {two}}, {1, {one}}}, {3, 4}}), 6);
}

// The step on link 1 is held at 1 byte/s there; what it leaves of link 0 is the other's: 9 bytes/s.
TEST(ChunkPipeline, WhatAMessageCannotUseIsForOthers) {
  const PipelineStep slow{Seconds(0), {{10, {{0, 10}, {1, 10}}}}, Seconds(0), 0, {}, {}, {}, {}};
  const PipelineStep fast{Seconds(0), {{90, {{0, 90}}}}, Seconds(0), 0, {}, {}, {}, {}};
  EXPECT_NEAR(time_of({{{1, {slow}}, {1, {fast}}}, {10, 1}}), 10, 1e-9);
}

// Kinds of messages of one step move at their own speeds, and the step waits for the last.
TEST(ChunkPipeline, AStepIsAsLongAsItsSlowestMessages) {
  PipelineStep both{Seconds(1), {{4, {{0, 4}}}, {4, {{1, 4}}}}, Seconds(0), 0, {}, {}, {0}, {}};
  EXPECT_DOUBLE_EQ(time_of({{{3, {both}}}, {2, 1}}), 3 * (1 + 4));
}

// Receivers work on one chunk at a time, and on messages of the next while those move.
TEST(ChunkPipeline, ReceiversDoOneThingAtATime) {
  PipelineStep first{Seconds(0), {{2, {{0, 2}}}}, Seconds(3), 0, {}, {}, {0}, {}};
  EXPECT_DOUBLE_EQ(time_of({{{4, {first}}}, {1}}), 4 * (2 + 3));
  EXPECT_DOUBLE_EQ(time_of({{{1, {first}}, {1, {first}}}, {2}}), 2 + 2 * 3);
}

// Messages of 2 s, received in 3 s: where only the messages must be through, receivers are what is busy.
TEST(ChunkPipeline, SendersDoNotWaitForReceivers) {
  PipelineStep first{Seconds(0), {{2, {{0, 2}}}}, Seconds(3), 0, {}, {}, {}, {0}};
  EXPECT_DOUBLE_EQ(time_of({{{4, {first}}}, {1}}), 2 + 4 * 3);
  // Receivers of their own: the second channel's are not behind the first's.
  auto other = first;
  other.receiver = 1;
  EXPECT_DOUBLE_EQ(time_of({{{1, {first}}, {1, {other}}}, {2}}), 2 + 3);
}

TEST(ChunkPipeline, ManyChunksGoOnAtTheSamePace) {
  const PipelinedChannel channel{1'000'000, {step(1, 2, 0, {}, {0}), step(1, 2, 0, {0}, {1})}};
  EXPECT_NEAR(time_of({{channel}, {1}}), 3 + 999'999 * 5.0 + 3, 1e-6 * 5e6);
}

TEST(ChunkPipeline, Nothing) {
  EXPECT_EQ(time_of({}), 0);
  EXPECT_EQ(time_of({{{5, {}}}, {1}}), 0);
}

}  // namespace
}  // namespace tandem
