// libFuzzer target of a topology that a file describes (TANDEM_NETWORK names which): a topology with routes, or Error
// with one line.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/core/error.hpp"

namespace {

// Networks of up to four million devices are legal and take seconds to build here: those are left to the tests, and the
// small ones and the impossible ones to the fuzzer.
bool is_large(const std::string& text) {
  double product = 1;
  const auto begin = text.find("npus_count");
  if (begin == std::string::npos) return false;
  const char* at = text.c_str() + begin;
  const char* end = text.c_str() + std::min(text.find_first_of("]\n", begin), text.size());
  while (at < end) {
    char* behind = nullptr;
    const double value = std::strtod(at, &behind);
    if (behind == at) {
      ++at;
      continue;
    }
    product *= value > 1 ? value : 1;
    at = behind;
  }
  return product > 50'000 && product < 1e8;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (is_large(std::string(reinterpret_cast<const char*>(data), size))) return -1;
  static const int file = ::memfd_create("network", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  try {
    const auto topology = tandem::make_topology(TANDEM_NETWORK + path, {});
    (void)topology->characteristics();
    std::vector<tandem::LinkId> links;
    topology->route(tandem::DeviceId{0}, tandem::DeviceId{topology->devices() - 1}, 0, links);
  } catch (const tandem::Error& error) {
    const std::string text = error.what();
    if (error.kind() == tandem::ErrorKind::internal || text.find('\n') != std::string::npos) {
      std::fprintf(stderr, "'%s'\n", text.c_str());
      std::abort();
    }
  }
  return 0;
}
