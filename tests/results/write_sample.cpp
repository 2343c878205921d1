// write_sample FILE: the sample results through the C++ writer, for the tests of the Python scripts.
#include <fmt/format.h>

#include <cstdio>

#include "sim/core/error.hpp"
#include "tests/results/sample_results.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    tandem::write_results(argv[1], tandem::testing::sample_provenance(), tandem::testing::sample_runs());
  } catch (const tandem::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return error.exit_status();
  }
  return 0;
}
