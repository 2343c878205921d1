// Many predictions, each in a process of its own, several at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/study/effort.hpp"
#include "sim/study/predict.hpp"
#include "sim/study/study_file.hpp"

namespace tandem {

template <class Answer>
struct Outcome {
  std::optional<Answer> answer;  // or
  std::optional<Error> error;
};

struct SweepWatcher {
  // Called as runs finish, in any order: which one did, and what came of it.
  std::function<void(std::size_t index, Outcome<Prediction> outcome)> on_done;
  // Called about once a second, and after runs have finished.
  std::function<void()> on_wait;
};

// Predicts configs[i] for every i of `which`, at most `jobs` at a time. A failed run does not stop the others; an
// exception of the watcher does.
void predict_all(const std::vector<RunConfig>& configs, const std::vector<std::size_t>& which, int jobs,
                 const SweepWatcher& watcher);

// What a run will take.
struct RunSize {
  Fidelity fidelity = Fidelity::flow;
  Effort effort;         // at this level
  std::string instance;  // of the topology
};

// Of configs[i] for every i of `which`, in this order, without simulating: at most `jobs` at a time, each in a process
// of its own. `on_wait` is called as SweepWatcher's, with how many are known.
[[nodiscard]] std::vector<Outcome<RunSize>> size_all(const std::vector<RunConfig>& configs,
                                                     const std::vector<std::size_t>& which, int jobs,
                                                     const std::function<void(std::size_t)>& on_wait);

// Of the program that runs here. 16 hexadecimal digits. Input error where its file cannot be read.
[[nodiscard]] std::string program_hash();

// Equal for studies whose runs have the same cases, options, levels of fidelity (as settled along curves) and inputs:
// traces, and files that plug-ins' parameters name. 16 hexadecimal digits. Input error where such a file cannot be
// read.
[[nodiscard]] std::string study_hash(const std::vector<StudyRun>& runs, const std::vector<RunConfig>& configs);

}  // namespace tandem
