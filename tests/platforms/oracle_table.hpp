// Tables of values that others measured, in tests/platforms/*.csv.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "sim/core/text.hpp"

namespace tandem::testing {

// Rows of the table, comments and header left out; ';' in an instance (the first cell) stands for its ','. A last
// cell that is empty is there.
inline std::vector<std::vector<std::string>> oracle_rows(const std::string& name) {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/platforms/" + name);
  std::vector<std::vector<std::string>> result;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line.starts_with("instance,")) continue;
    auto cells = split(line, ',');
    std::replace(cells[0].begin(), cells[0].end(), ';', ',');
    result.push_back(std::move(cells));
  }
  return result;
}

// "~5.561": from a sample of devices that are not alike, or of another random graph.
struct Measured {
  explicit Measured(const std::string& cell)
      : sampled(cell.starts_with('~')), value(std::stod(cell.substr(sampled ? 1 : 0))) {}
  bool sampled;
  double value;
};

// By how much the busiest link and the least split of two random graphs of one kind differ.
constexpr double kOfRandomGraphs = 0.25;

}  // namespace tandem::testing
