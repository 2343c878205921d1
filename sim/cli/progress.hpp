// Progress on standard error: a bar that is redrawn where a person watches, a line every few seconds otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem {

class Progress {
 public:
  // "recording", "runs"; `before` of them were done before and tell nothing of the time that is left.
  explicit Progress(std::string what, std::int64_t before = 0);
  ~Progress();  // takes the bar away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::int64_t done, std::int64_t total, const std::string& text = "");
  // A line of its own, with the bar out of its way.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::string what_;
  std::int64_t before_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point last_line_;
};

}  // namespace tandem
