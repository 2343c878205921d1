// One simulation a process: SimGrid's clock goes on from engine to engine, which is silently wrong. The child hands
// its answer back through a pipe; it must not touch files of the parent, and it does not outlive it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace tandem {

struct Child {
  pid_t pid = -1;
  int in = -1;  // where its answer comes from; at its end the answer is whole
};

// Starts `body` in a forked child, which first runs `prepare` (to close what it must not hold). Machine error where
// there is no process or pipe to be had.
[[nodiscard]] Child start_child(const std::function<std::string()>& body, const std::function<void()>& prepare);

// Closes the pipe and waits for the child. `bytes` is all that came through the pipe. Gives what the body gave, or
// throws its Error; a child that died is an internal error with its last words, one that ran out of memory or was
// killed from outside a machine error.
[[nodiscard]] std::string take_answer(const Child& child, const std::string& bytes,
                                      const std::function<std::string()>& last_words);

// Runs `body` in a forked child and returns its bytes; errors as of take_answer (SimGrid aborts on what it dislikes).
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& body);

}  // namespace tandem
