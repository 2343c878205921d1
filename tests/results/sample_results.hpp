// Results with every type of value, as a sweep over two cases and three sizes writes them.
#pragma once

#include <string>
#include <vector>

#include "sim/results/record.hpp"

namespace tandem::testing {

// A run of `case_name` on `ranks` ranks; the parts of the iteration time sum to the whole.
[[nodiscard]] inline RunRecord sample_run(const std::string& case_name, std::int64_t ranks) {
  const double exposed = 0.001 * static_cast<double>(ranks) * (case_name == "torus" ? 2 : 1);
  RunRecord run;
  run.row = {{"case", "1", case_name},
             {"trace", "1", std::string("vgg16-cpu")},
             {"ranks", "1", ranks},
             {"iteration_time_s", "s", 0.1 + exposed},
             {"compute_time_s", "s", 0.1},
             {"exposed_comm_time_s", "s", exposed},
             {"bubble_time_s", "s", 0.0},
             {"idle_time_s", "s", 0.0},
             {"input_time_s", "s", 0.0},
             {"scaling_efficiency", "1", 0.1 / (0.1 + exposed)},
             {"bytes_injected", "bytes", ranks * 553'430'176},
             {"bottleneck_link", "1", std::string("switch 0 → NIC 3, \"up\"")},
             {"ports_per_device", "1", std::int64_t{case_name == "torus" ? 6 : 8}},
             {"cost_per_device", "USD", case_name == "torus" ? 812.5 : 2131.0},
             {"device", "1", std::string("v100")}};
  run.details = {
      {"ranks",
       {{"rank", "1", std::vector<std::int64_t>{0, 1}}, {"compute_time_s", "s", std::vector<double>{0.1, 0.099}}}},
      {"links",
       {{"link", "1", std::vector<std::string>{"a→b", "b→a"}}, {"bytes", "bytes", std::vector<std::int64_t>{10, 20}}}}};
  return run;
}

[[nodiscard]] inline std::vector<RunRecord> sample_runs() {
  std::vector<RunRecord> runs;
  for (const char* name : {"mesh-rail-cube", "torus"}) {
    for (const std::int64_t ranks : {8, 16, 64}) runs.push_back(sample_run(name, ranks));
  }
  return runs;
}

// One entry is longer than an HDF5 attribute can be.
[[nodiscard]] inline Provenance sample_provenance() {
  return {{{"command", "tandem sweep größe.ini"}, {"options", std::string(100'000, 'x')}, {"code_version", "0.1.0"}}};
}

}  // namespace tandem::testing
