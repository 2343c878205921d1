// tandem: finds the subcommand, and turns whatever goes wrong into one line and an exit status.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "sim/cli/output.hpp"
#include "sim/cli/subcommand.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

std::vector<Subcommand> subcommands() {
  return {run_subcommand(),      sweep_subcommand(), merge_subcommand(),  collective_subcommand(),
          topology_subcommand(), trace_subcommand(), record_subcommand(), list_subcommand()};
}

std::string overview() {
  std::string text =
      "Usage: tandem COMMAND [options]\n\n"
      "Predicts how long one iteration of distributed CNN training takes, and why.\n\nCommands:\n";
  for (const auto& command : subcommands()) text += fmt::format("  {:<12}{}\n", command.name, command.help);
  return text +
         "\n'tandem COMMAND --help' says more. Values carry units: 100Gbps, 12.5GBps, 5us, 25MiB.\n"
         "Exit status: 0 good, 1 failed, 2 a mistake on the command line.\n";
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print(overview());
    return 0;
  }
  if (words[0] == "--version") {
    print(fmt::format("tandem {}\n", TANDEM_VERSION));
    return 0;
  }
  std::vector<std::string> names;
  for (const auto& command : subcommands()) {
    if (command.name == words[0]) return command.function({words.begin() + 1, words.end()});
    names.push_back(command.name);
  }
  if (words[0].starts_with("-")) {
    throw usage_error(fmt::format("unknown option '{}' before the command{}", words[0],
                                  suggestion(words[0], {"--help", "--version"})));
  }
  throw usage_error(fmt::format("unknown command '{}'{}", words[0], suggestion(words[0], names)));
}

// One line: what a library adds in further lines (SimGrid lists all its settings) helps nobody.
int fail(int status, const std::string& message) {
  const auto line = fmt::format("error: {}\n", message.substr(0, message.find('\n')));
  std::fputs(line.c_str(), stderr);  // fmt::print would throw where standard error cannot be written
  return status;
}

// A file opened later must not take the number of a standard stream that was closed from the start: what is printed
// would end up in it. Standard output is opened for reading, so that printing to it fails.
void occupy_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == 1 ? O_RDONLY : O_RDWR) < 0) ::_exit(1);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  using namespace tandem;
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that grows too large
  try {
    const int status = dispatch({argv + std::min(argc, 1), argv + argc});
    flush_output();
    return status;
  } catch (const Error& error) {
    const auto* kind = error.kind() == ErrorKind::internal ? "internal error (please report it): " : "";
    return fail(error.exit_status(), std::string(kind) + error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, "there is not enough memory");
  } catch (const std::exception& error) {
    return fail(1, fmt::format("internal error (please report it): {}", error.what()));
  } catch (...) {
    return fail(1, "internal error (please report it): an exception of unknown type");
  }
}
