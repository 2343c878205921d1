#include "sim/study/choices.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tandem {

std::string to_text(const CollectiveChoice& choice) {
  std::string text;
  for (const auto& candidate : choice.candidates) {
    if (!text.empty()) text += candidate.refusal.empty() ? ", " : "; ";
    text += candidate.refusal.empty() ? fmt::format("{} {}", candidate.algorithm, to_text(candidate.estimate))
                                      : fmt::format("not {}: {}", candidate.algorithm, candidate.refusal);
  }
  return text;
}

nlohmann::ordered_json to_json_value(const CollectiveChoice& choice) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& candidate : choice.candidates) {
    nlohmann::ordered_json entry{{"algorithm", candidate.algorithm}};
    if (candidate.refusal.empty()) {
      entry["estimate_s"] = candidate.estimate.count();
    } else {
      entry["refusal"] = candidate.refusal;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace tandem
