#include "sim/engine/process.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr char kGood = 'R';  // otherwise '0' + ErrorKind

std::string answer_of(const std::function<std::string()>& body) {
  const auto failed = [](ErrorKind kind, const char* what) {
    return static_cast<char>('0' + static_cast<int>(kind)) + std::string(what);
  };
  try {
    return kGood + body();
  } catch (const Error& error) {
    return failed(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ErrorKind::machine, "the run needs too much memory");
  } catch (const std::exception& error) {
    return failed(ErrorKind::internal, error.what());
  }
}

[[noreturn]] void work(const std::function<std::string()>& body, int out) {
  const auto answer = answer_of(body);
  const char* data = answer.data();
  std::size_t left = answer.size();
  while (left > 0) {
    const auto written = ::write(out, data, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    data += written;
    left -= static_cast<std::size_t>(written);
  }
  ::close(out);
  ::_exit(0);  // no destructors and no flushing of what the parent had buffered
}

// A parent that is killed cannot end its child, and a simulation may go on for an hour.
void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it was gone before
}

std::string read_all(int in) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto count = ::read(in, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string first_line_of(std::FILE* file) {
  std::rewind(file);
  char line[400] = "";
  if (std::fgets(line, sizeof line, file) == nullptr) return "";
  std::string text(line);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

Child start_child(const std::function<std::string()>& body, const std::function<void()>& prepare) {
  int ends[2];
  if (::pipe(ends) != 0) throw machine_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) {
    const auto reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw machine_error(fmt::format("cannot start a process for the simulation: {}", std::strerror(reason)));
  }
  if (pid == 0) {
    end_with(parent);
    ::close(ends[0]);
    if (prepare) prepare();
    work(body, ends[1]);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

std::string take_answer(const Child& child, const std::string& bytes, const std::function<std::string()>& last_words) {
  ::close(child.in);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    throw machine_error("the simulation process was killed: is there enough memory for a run of this size?");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || bytes.empty()) {
    const auto how = WIFSIGNALED(status)
                         ? fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                         : fmt::format("exit status {}", WEXITSTATUS(status));
    const auto words = last_words ? last_words() : std::string();
    throw internal_error(fmt::format("the simulation process ended by {}{}{}", how, words.empty() ? "" : ": ", words));
  }
  if (bytes[0] != kGood) throw Error(static_cast<ErrorKind>(bytes[0] - '0'), bytes.substr(1));
  return bytes.substr(1);
}

std::string run_in_child(const std::function<std::string()>& body) {
  // What the child says before it dies.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> words(
      std::tmpfile(), [](std::FILE* file) { return file == nullptr ? 0 : std::fclose(file); });
  const auto child = start_child(body, [&] {
    if (words) ::dup2(::fileno(words.get()), STDERR_FILENO);
  });
  return take_answer(child, read_all(child.in), [&] { return words ? first_line_of(words.get()) : std::string(); });
}

}  // namespace tandem
