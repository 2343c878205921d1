// write_model NAME BATCH FILE: a built-in model as a trace without times, for tests of programs that write traces.
#include <exception>
#include <iostream>
#include <string>

#include "traces/models/models.hpp"
#include "traces/trace.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: write_model NAME BATCH FILE\n";
    return 2;
  }
  try {
    tandem::write_trace(tandem::build_model(argv[1], std::stoll(argv[2])), argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
