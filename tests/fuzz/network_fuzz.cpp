// libFuzzer target of the topology that ASTRA-sim's network.yml describes: a topology, or Error with one line.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "platforms/topology.hpp"
#include "sim/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("network", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  try {
    const auto topology = tandem::make_topology("astra-sim-network:file=" + path, {});
    (void)topology->characteristics();
  } catch (const tandem::Error& error) {
    const std::string text = error.what();
    if (error.kind() == tandem::ErrorKind::internal || text.find('\n') != std::string::npos) {
      std::fprintf(stderr, "'%s'\n", text.c_str());
      std::abort();
    }
  }
  return 0;
}
