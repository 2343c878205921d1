// The journals beside a result file, which `sweep` writes and `merge` joins.
#pragma once

#include <string>
#include <vector>

#include "sim/results/journal.hpp"

namespace tandem {

// "FILE.h5.journal", or of a shard "FILE.h5.shard-2-of-16.journal".
[[nodiscard]] std::string journal_path(const std::string& output, const StudyShard* shard);

// The journals of shards beside `output`, by name. Input error where there is none.
[[nodiscard]] std::vector<std::string> shard_journals(const std::string& output);

[[nodiscard]] std::size_t count_failed(const std::vector<RunRecord>& runs);

}  // namespace tandem
