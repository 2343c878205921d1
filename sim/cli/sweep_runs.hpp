// The runs of a study file, as `sweep` names them and writes them into rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/results/record.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/study_file.hpp"
#include "sim/study/sweep.hpp"

namespace tandem {

struct SweepRuns {
  std::vector<StudyRun> runs;
  std::vector<RunConfig> configs;
  std::vector<std::string> varied;  // options that differ between runs
  bool has_cases = false;
  std::map<std::size_t, RunSize> sizes;  // of the runs that were looked at for their level, where it is theirs
};

// Mistakes in any run, and traces that cannot be read, are found here, before the first one starts. To settle levels of
// fidelity, at most `jobs` runs are looked at at a time.
[[nodiscard]] SweepRuns read_sweep(const std::string& path, int jobs);

// size_all of these runs; where it takes long, how far it is on standard error.
[[nodiscard]] std::vector<Outcome<RunSize>> look_at(const SweepRuns& sweep, const std::vector<std::size_t>& which,
                                                    int jobs);

// Processor seconds of a run of this size, very roughly.
[[nodiscard]] double time_of(const RunConfig& config, const RunSize& size);
// "12 runs, very roughly 20 min with 2 at a time"
[[nodiscard]] std::string time_text(std::size_t runs, double time, int jobs);
// A line for the user where these runs take more than about ten minutes, all together. Empty otherwise. Of many runs
// some are looked at; `which` begins with the largest.
[[nodiscard]] std::string long_sweep_warning(const SweepRuns& sweep, const std::vector<std::size_t>& which, int jobs);

// "case torus, ranks=16"
[[nodiscard]] std::string name_of(const SweepRuns& sweep, std::size_t run);

// The case, then what the run is and gives; a varied option that is no result of its own comes right after the case.
[[nodiscard]] Record row_of(const SweepRuns& sweep, std::size_t run, const Record& result);
// What is known of a run that gave no result.
[[nodiscard]] Record row_of_failed(const SweepRuns& sweep, std::size_t run);

// The rows without the columns that are the same for all or of little interest.
[[nodiscard]] std::vector<Record> narrow(const SweepRuns& sweep, const std::vector<Record>& rows);

}  // namespace tandem
