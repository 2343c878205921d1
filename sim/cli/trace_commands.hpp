// What the files of `tandem trace` share.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "traces/trace.hpp"

namespace tandem {

[[nodiscard]] int trace_import(const std::vector<std::string>& arguments);
[[nodiscard]] int trace_export(const std::vector<std::string>& arguments);

// A subcommand that takes so many words besides its options.
[[nodiscard]] CommandSpec trace_spec(const char* synopsis, const char* help, const char* word, std::size_t words);

// A shipped trace or file, or a built-in model, which has no times.
[[nodiscard]] Trace trace_or_model(const std::string& name);

}  // namespace tandem
