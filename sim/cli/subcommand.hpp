// The subcommands of `tandem`: one file each.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct Subcommand {
  std::string name;
  std::string help;                                            // one line
  int (*function)(const std::vector<std::string>& arguments);  // the words after its name -> exit status
};

[[nodiscard]] Subcommand run_subcommand();
[[nodiscard]] Subcommand sweep_subcommand();
[[nodiscard]] Subcommand merge_subcommand();
[[nodiscard]] Subcommand collective_subcommand();
[[nodiscard]] Subcommand topology_subcommand();
[[nodiscard]] Subcommand trace_subcommand();
[[nodiscard]] Subcommand record_subcommand();
[[nodiscard]] Subcommand list_subcommand();

}  // namespace tandem
