// The options of `run`, once: their names, help and defaults, and what they set. `sweep` takes the same from study
// files, `collective` and `topology` take some of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "sim/study/predict.hpp"

namespace tandem {

struct RunOption {
  OptionSpec spec;
  // Sets what the option stands for; usage errors name the option. Default texts parse too.
  void (*parse)(const std::string& text, RunConfig& config);
};

// In the order in which they are listed and written to results.
[[nodiscard]] const std::vector<RunOption>& run_options();
// Their specs; only those of `names` where it is not empty.
[[nodiscard]] std::vector<OptionSpec> run_option_specs(const std::vector<std::string>& names = {});

// Options by name over the defaults; RunConfig::options gets every option as text. A flag's text is "yes" or "no".
[[nodiscard]] RunConfig parse_run(const std::map<std::string, std::string>& given);

// Those options of `run` that the command line gives, a repeated one joined with commas.
[[nodiscard]] std::map<std::string, std::string> given_run_options(const CommandLine& line);

}  // namespace tandem
