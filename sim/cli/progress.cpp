#include "sim/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace tandem {
namespace {

constexpr std::chrono::seconds kBetweenLines{5};
constexpr int kBarWidth = 30;

std::string minutes(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string what, std::int64_t before)
    : what_(std::move(what)),
      before_(before),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      last_line_(begin_) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

void Progress::show(std::int64_t done, std::int64_t total, const std::string& text) {
  const auto now = Clock::now();
  if (!terminal_ && now - last_line_ < kBetweenLines) return;
  last_line_ = now;
  const double passed = std::chrono::duration<double>(now - begin_).count();
  auto line = fmt::format("{} {}/{}", what_, done, total);
  const auto now_done = done - before_;
  if (now_done > 0 && done < total) {
    line +=
        fmt::format(", {} left", minutes(passed * static_cast<double>(total - done) / static_cast<double>(now_done)));
  }
  if (!text.empty()) line += ", " + text;
  if (!terminal_) {
    fmt::print(stderr, "{}\n", line);
    return;
  }
  const int filled = total > 0 ? static_cast<int>(kBarWidth * done / total) : 0;
  fmt::print(stderr, "\r[{:<{}}] {}\033[K", std::string(static_cast<std::size_t>(filled), '#'), kBarWidth, line);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::say(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
}

}  // namespace tandem
