// The events of a PyTorch profiler (Kineto) file, read as a stream: names are kept once, times are whole nanoseconds,
// and what no step of the import needs is counted and forgotten. A file of a million events fits beside its text.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tandem::kineto {

// The names of categories changed over the versions; these are what they mean.
enum class Category : std::uint8_t {
  other,
  host_operator,  // Operator, cpu_op
  annotation,     // user_annotation; the old format has them among the operators
  runtime,        // Runtime, cuda_runtime, cuda_driver
  kernel,
  copy,          // Memcpy, gpu_memcpy
  fill,          // Memset, gpu_memset
  launch_start,  // flow (async, ac2g) from the call of the runtime ...
  launch_end,    // ... to the kernel
  link_start,    // flow (fwdbwd) from the forward operator ...
  link_end,      // ... to its backward node
};
[[nodiscard]] inline bool on_device(Category c) {
  return c == Category::kernel || c == Category::copy || c == Category::fill;
}

using Nanoseconds = std::int64_t;
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

struct Event {
  Nanoseconds start = 0, duration = 0;
  std::int64_t correlation = -1;  // of a launch and its kernel; of a flow its id
  std::int64_t external = -1;     // of an operator and what it launched
  std::int64_t sequence = -1;     // of a forward operator and its backward node
  std::int64_t bytes = -1;        // of a copy; of a collective's message
  std::uint32_t name = 0;
  std::uint32_t thread = 0;          // index among threads of all processes
  std::uint32_t shapes = kNone;      // index among input shapes
  std::uint32_t values = kNone;      // index among names: the concrete inputs, separated by '|'
  std::uint32_t first_type = kNone;  // index among names: the type of the first input
  std::int32_t device = -1, stream = -1;
  std::int32_t grid = 0, block = 0;  // threads launched: grid x block; 0 unknown or too many to matter
  Category category = Category::other;

  [[nodiscard]] Nanoseconds end() const { return start + duration; }
};

// The shape of each input of an operator, in order; those of a list of tensors follow each other under one position.
struct InputShape {
  int position = 0;
  Shape shape;
  friend auto operator<=>(const InputShape&, const InputShape&) = default;
};

struct Process {
  std::string pid, tid;
  friend auto operator<=>(const Process&, const Process&) = default;
};

struct Events {
  std::vector<Event> events;  // those with a category of use, in the order of the file
  std::vector<std::string> names;
  std::vector<std::vector<InputShape>> shapes;
  std::vector<Process> threads;
  std::map<std::int64_t, std::string> device_names;
  std::int64_t counters = 0;  // everything else: instants, metadata, counters, Python functions
  std::int64_t world_size = 0;

  [[nodiscard]] const std::string& name(const Event& event) const { return names[event.name]; }
};

// Of one element, by the profiler's name of its type ("float", "c10::Half", "Long").
[[nodiscard]] std::int64_t bytes_of_type(std::string_view type);

// Input errors name the event by its number (from 1) or the byte: JSON that is none or nested deeper than 64, times
// that are no numbers, negative or beyond all calendars, more than 2^25 events.
[[nodiscard]] Events read_events(std::string_view content);

}  // namespace tandem::kineto
