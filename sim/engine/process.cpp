#include "sim/engine/process.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

constexpr char kGood = 'R';  // otherwise '0' + ErrorKind

[[noreturn]] void child(const std::function<std::string()>& body, int out) {
  std::string answer;
  try {
    answer = kGood + body();
  } catch (const Error& error) {
    answer = static_cast<char>('0' + static_cast<int>(error.kind())) + std::string(error.what());
  } catch (const std::bad_alloc&) {
    answer = static_cast<char>('0' + static_cast<int>(ErrorKind::model)) + std::string("the run needs too much memory");
  } catch (const std::exception& error) {
    answer = static_cast<char>('0' + static_cast<int>(ErrorKind::internal)) + std::string(error.what());
  }
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
  // No destructors and no flushing of what the parent had buffered.
  ::_exit(0);
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

std::string run_in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw model_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::FILE* words = std::tmpfile();  // what the child says before it dies
  std::fflush(nullptr);
  const auto pid = ::fork();
  if (pid < 0) {
    const auto reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    if (words != nullptr) std::fclose(words);
    throw model_error(fmt::format("cannot start a process for the simulation: {}", std::strerror(reason)));
  }
  if (pid == 0) {
    ::close(ends[0]);
    if (words != nullptr) ::dup2(::fileno(words), STDERR_FILENO);
    child(body, ends[1]);
  }
  ::close(ends[1]);
  const auto answer = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const auto last_words = words == nullptr ? std::string() : first_line_of(words);
  if (words != nullptr) std::fclose(words);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty()) {
    const auto how = WIFSIGNALED(status)
                         ? fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                         : fmt::format("exit status {}", WEXITSTATUS(status));
    throw internal_error(
        fmt::format("the simulation process ended by {}{}{}", how, last_words.empty() ? "" : ": ", last_words));
  }
  if (answer[0] != kGood) throw Error(static_cast<ErrorKind>(answer[0] - '0'), answer.substr(1));
  return answer.substr(1);
}

}  // namespace tandem
