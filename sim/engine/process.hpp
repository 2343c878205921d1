// One simulation a process: SimGrid's clock goes on from engine to engine, which is silently wrong. The child hands
// its answer back through a pipe; it must not touch files of the parent.
#pragma once

#include <functional>
#include <string>

namespace tandem {

// Runs `body` in a forked child and returns its bytes. An Error thrown by the body is thrown here again; a child that
// dies (SimGrid aborts on what it dislikes) is an internal error with its last words.
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& body);

}  // namespace tandem
