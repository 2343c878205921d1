// SimGrid as clock and network: the only code that includes SimGrid (with its implementation file).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/backend.hpp"
#include "sim/ir/result.hpp"

namespace tandem {

struct NetworkModelOptions {
  enum class Model {
    alpha_beta,  // CM02 without cross-traffic and TCP-gamma, latencies waited for outside: equals alpha + n/B
    lv08         // SimGrid's default TCP model: latency x 13.01, bandwidth x 0.97, cross-traffic
  };
  Model model = Model::alpha_beta;
  double bandwidth_factor = 1;  // of every link
  double latency_factor = 1;
  std::vector<std::string> configuration;  // "key:value", handed to SimGrid as they are
  bool measure_saturation = false;         // LinkUse::saturated; costs one look at the used links per date
};

// One engine a process: SimGrid's clock cannot be reset. See sim/engine/process.hpp.
class SimgridBackend final : public Backend {
 public:
  SimgridBackend(const Network& network, const NetworkModelOptions& options);
  ~SimgridBackend() override;

  [[nodiscard]] Seconds now() const override;
  void at(Seconds date, Listener& listener, Token token) override;
  std::int32_t start_flow(DeviceId from, DeviceId to, const std::vector<LinkId>& path, Bytes bytes, Listener& listener,
                          Token token) override;
  void cancel_flow(std::int32_t flow) override;
  void set_bandwidth(LinkId link, BytesPerSecond bandwidth) override;

  void run();                                            // until no timer and no flow is left
  [[nodiscard]] std::vector<LinkUse> link_uses() const;  // of links that carried something

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

[[nodiscard]] std::string simgrid_version();
[[nodiscard]] std::string simgrid_precision();  // the settings below SimGrid's defaults

}  // namespace tandem
