#include "traces/models/models.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/models/families.hpp"

namespace tandem {
namespace {

constexpr std::pair<const char*, Trace (*)(std::int64_t)> kModels[] = {
    {"alexnet", alexnet},   {"googlenet", googlenet}, {"lenet5", lenet5}, {"resnet18", resnet18},
    {"resnet50", resnet50}, {"resnet101", resnet101}, {"vgg16", vgg16}};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& [name, build] : kModels) names.emplace_back(name);
  return names;
}

Trace build_model(const std::string& name, std::int64_t batch) {
  constexpr std::int64_t most = 65536;
  if (batch < 1 || batch > most) throw usage_error(fmt::format("batch {}: from 1 to {} is accepted", batch, most));
  for (const auto& [known, build] : kModels) {
    if (name == known) return build(batch);
  }
  throw usage_error(fmt::format("unknown model '{}'{}", name, suggestion(name, model_names())));
}

}  // namespace tandem
