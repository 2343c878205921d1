// The wrapper around a simulation's process: answers and errors come back whole, and nobody is left behind.
#include "sim/engine/process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sim/core/error.hpp"
#include "tests/engine/simulate.hpp"

namespace tandem {
namespace {

Error error_of(const std::function<std::string()>& body) {
  try {
    (void)run_in_child(body);
  } catch (const Error& error) {
    return error;
  }
  return internal_error("no error");
}

TEST(Process, AnswersComeBackWhole) {
  EXPECT_EQ(run_in_child([] { return std::string(); }), "");
  EXPECT_EQ(run_in_child([] { return std::string("a\0b", 3); }), std::string("a\0b", 3));
  const std::string large(10'000'000, 'x');
  EXPECT_EQ(run_in_child([&] { return large; }), large);
}

TEST(Process, ErrorsKeepTheirKind) {
  for (const auto kind :
       {ErrorKind::usage, ErrorKind::input, ErrorKind::model, ErrorKind::internal, ErrorKind::machine}) {
    const auto error = error_of([&]() -> std::string { throw Error(kind, "what went wrong"); });
    EXPECT_EQ(error.kind(), kind);
    EXPECT_STREQ(error.what(), "what went wrong");
  }
  EXPECT_EQ(error_of([]() -> std::string { throw std::bad_alloc(); }).kind(), ErrorKind::machine);
}

TEST(Process, AChildThatDiesIsQuoted) {
  const auto error = error_of([]() -> std::string {
    std::fprintf(stderr, "last words\nand more\n");
    std::abort();
  });
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_NE(std::string(error.what()).find("last words"), std::string::npos);
  EXPECT_EQ(std::string(error.what()).find("and more"), std::string::npos);
}

// The kernel kills what takes too much memory: no defect of this program.
TEST(Process, AChildThatIsKilledRanOutOfMemory) {
  const auto error = error_of([]() -> std::string {
    ::raise(SIGKILL);
    return "";
  });
  EXPECT_EQ(error.kind(), ErrorKind::machine);
  EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos);
}

// A killed parent takes its simulation with it: the pipe that both hold comes to its end.
TEST(Process, DoesNotOutliveItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto parent = ::fork();
  if (parent == 0) {
    (void)run_in_child([&]() -> std::string {
      (void)!::write(ends[1], "!", 1);
      ::sleep(60);
      return "";
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  pollfd watched{ends[0], POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 10'000), 1) << "the simulation goes on without its parent";
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

long most_memory_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss;
}

// Without latencies no timer fires during a collective; ended transfers were once kept until one did.
TEST(Process, EndedTransfersAreLetGoWithoutTimers) {
  constexpr int kRanks = 256;
  const auto with_latency = star(kRanks, 1e9, 1e-6);
  const auto without = star(kRanks, 1e9, 0);
  (void)all_reduce_time(*with_latency, "ring", Bytes(1 << 20), 0);
  const auto usual = most_memory_of_children();
  (void)all_reduce_time(*without, "ring", Bytes(1 << 20), 0);
  EXPECT_LT(most_memory_of_children(), usual + usual / 4);
}

}  // namespace
}  // namespace tandem
