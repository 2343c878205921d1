#include "sim/study/provenance.hpp"

#include <fmt/format.h>

#include <bit>

#include "sim/core/random.hpp"
#include "sim/engine/simgrid_backend.hpp"
#include "sim/study/predict.hpp"

namespace tandem {
namespace {

class Hash {
 public:
  void add(std::uint64_t word) { state_ = mix(state_ ^ word); }
  void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  void add(std::int32_t word) { add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(word))); }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(const std::string& text) {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  void add(const Samples& samples) {
    add(static_cast<std::uint64_t>(samples.seconds.size()));
    for (const double value : samples.seconds) add(value);
  }
  void add(const Shape& shape) {
    add(static_cast<std::uint64_t>(shape.size()));
    for (const auto extent : shape) add(extent);
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

void add_layer(Hash& hash, const Layer& layer) {
  hash.add(layer.name);
  hash.add(static_cast<std::int32_t>(layer.kind));
  for (const auto input : layer.inputs) hash.add(input.value);
  for (const auto& shape : layer.input_shapes) hash.add(shape);
  hash.add(layer.output_shape);
  for (const auto* values : {&layer.kernel, &layer.stride, &layer.pad_begin, &layer.pad_end, &layer.dilation}) {
    for (const int value : *values) hash.add(std::int32_t{value});
  }
  hash.add(std::int32_t{layer.groups});
  hash.add(std::int32_t{layer.needs_input_gradient});
  for (const auto& parameter : layer.parameters) hash.add(parameter.shape);
  hash.add(layer.activation_bytes.count());
  for (const auto flops : layer.flops) hash.add(flops.count());
  for (const auto& samples : layer.samples) hash.add(samples);
  for (const auto& split : layer.splits) {
    hash.add(static_cast<std::int32_t>(split.axis));
    hash.add(split.fraction);
    for (const auto& samples : split.samples) hash.add(samples);
  }
}

}  // namespace

std::uint64_t trace_hash(const Trace& trace) {
  Hash hash;
  hash.add(trace.model);
  hash.add(trace.batch);
  hash.add(trace.device);
  for (const auto& layer : trace.layers) add_layer(hash, layer);
  for (const auto& outside : trace.outside) {
    hash.add(static_cast<std::int32_t>(outside.kind));
    hash.add(outside.samples.typical().count());
  }
  for (const auto& collective : trace.collectives) {
    hash.add(collective.operation);
    hash.add(collective.bytes.count());
  }
  return hash.value();
}

std::uint64_t platform_hash(const Network& network) {
  Hash hash;
  hash.add(std::int32_t{network.devices()});
  for (const auto& link : network.links()) {
    hash.add(link.from);
    hash.add(link.to);
    hash.add(link.bandwidth.count());
    hash.add(link.latency.count());
    hash.add(static_cast<std::int32_t>(link.kind));
    hash.add(link.width);
  }
  return hash.value();
}

std::string hash_text(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

Provenance provenance(const std::string& command, const std::vector<RunConfig>& configs) {
  Provenance result;
  const auto add = [&](const std::string& name, const std::string& text) { result.entries.emplace_back(name, text); };
  add("command", command);
  add("tandem_version", TANDEM_VERSION);
  add("simgrid_version", simgrid_version());
  if (!configs.empty()) {
    const auto& network = configs.front().network;
    add("simgrid_network_model", network.model == NetworkModelOptions::Model::alpha_beta
                                     ? "CM02, crosstraffic 0, TCP-gamma 0, latencies waited for outside of the links"
                                     : "LV08");
    std::string configuration;
    for (const auto& item : network.configuration) configuration += (configuration.empty() ? "" : " ") + item;
    add("simgrid_configuration", configuration);
    add("simgrid_precision", simgrid_precision());
    for (const auto& [name, value] : configs.front().options) {
      // What differs between the runs of a sweep stands in the rows.
      bool same = true;
      for (const auto& config : configs) {
        for (const auto& [other, text] : config.options) same = same && (other != name || text == value);
      }
      add("option_" + name, same ? value : "(varies)");
    }
  }
  return result;
}

}  // namespace tandem
