#include "partitioners/partitioner.hpp"

#include <fmt/format.h>

#include <map>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

int look_up(const std::map<std::string, int>& table, const std::string& name, const char* what) {
  const auto found = table.find(name);
  if (found != table.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : table) names.push_back(known);
  throw usage_error(fmt::format("unknown {} '{}'{}", what, name, suggestion(name, names)));
}

}  // namespace

int dtype_bytes(const std::string& dtype) {
  return look_up({{"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}}, dtype, "data type");
}

int optimizer_copies(const std::string& optimizer) {
  return look_up({{"sgd", 0}, {"momentum", 1}, {"adam", 2}}, optimizer, "optimizer");
}

}  // namespace tandem
