#include "sim/study/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/study/details.hpp"

namespace tandem {
namespace {

struct Share {
  const char* what;
  const char* field;
};
constexpr Share kShares[]{{"compute", "compute_time_s"},
                          {"exposed communication", "exposed_comm_time_s"},
                          {"pipeline bubbles", "bubble_time_s"},
                          {"waiting for other ranks", "idle_time_s"},
                          {"waiting for input", "input_time_s"}};

std::string where_the_time_goes(const Record& row) {
  const double total = number(row, "iteration_time_s");
  std::string text;
  for (const auto& [what, field] : kShares) {
    const double share = number(row, field) / total;
    if (share < 0.0005) continue;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", what, 100 * share);
  }
  return "time goes to: " + text;
}

std::string what_bounds_it(const RunConfig& config, const Record& row, const Explanation& what_if) {
  const double time = number(row, "iteration_time_s");
  struct Lever {
    const char* bound;
    double saved;
  };
  const Lever levers[]{{"compute", time - what_if.with_double_device_speed.count()},
                       {"link bandwidth", time - what_if.with_double_bandwidth.count()},
                       {config.step_overhead.count() > 0 ? "latency and the software's step overhead" : "latency",
                        time - what_if.with_half_latency.count()}};
  const auto best = std::max_element(std::begin(levers), std::end(levers),
                                     [](const Lever& a, const Lever& b) { return a.saved < b.saved; });
  if (best->saved < 0.005 * time) return "nothing single bounds it: no lever below saves 0.5 %";
  return fmt::format("the iteration is bound by {}: changing it by a factor of two saves {:.1f} %", best->bound,
                     100 * best->saved / time);
}

std::string busiest_link_sentence(const RunConfig& config, const Setup& setup, const RunResult& result,
                                  Seconds communication) {
  const auto link = busiest_link(config, setup, result);
  if (link.utilization == 0) return "no link carries anything";
  if (setup.fidelity == Fidelity::analytic) {
    return fmt::format("the busiest link is {}: {:.1f} % utilized", link.name, 100 * link.utilization);
  }
  const double saturated = result.end.count() > 0 ? link.saturated / result.end : 0;
  std::string text = fmt::format("the busiest link is {}: {:.1f} % utilized, saturated {:.1f} % of the time", link.name,
                                 100 * link.utilization, 100 * saturated);
  if (link.saturated.count() < 0.05 * communication.count()) {
    text += "; no link is saturated for long, so latency and step overhead matter more than the network's rates";
  }
  return text;
}

std::string switch_links_sentence(const Setup& setup, const RunResult& result) {
  if (setup.fidelity == Fidelity::analytic) return "";  // saturation is not measured
  double most = 0;
  bool any = false;
  for (const auto& use : result.links) {
    if (setup.cluster->link(use.link).kind != LinkKind::switch_link) continue;
    any = true;
    most = std::max(most, use.saturated.count());
  }
  if (!any || most > 0) return "";
  return "links between switches are never saturated: another topology of the same ports would change little";
}

}  // namespace

Explanation explain(const RunConfig& config, const Setup& setup, const RunResult& result, const Record& row) {
  Explanation explanation;
  Variation variation;
  variation.bandwidth = 2;
  explanation.with_double_bandwidth = iteration_time(simulate(setup, config, variation), config);
  variation = {};
  variation.latency = 0.5;
  explanation.with_half_latency = iteration_time(simulate(setup, config, variation), config);
  variation = {};
  variation.device_speed = 2;
  explanation.with_double_device_speed = iteration_time(simulate(setup, config, variation), config);

  auto& sentences = explanation.sentences;
  sentences.push_back(where_the_time_goes(row));
  sentences.push_back(what_bounds_it(config, row, explanation));
  sentences.push_back(busiest_link_sentence(config, setup, result, Seconds(number(row, "comm_time_s"))));
  if (const auto text = switch_links_sentence(setup, result); !text.empty()) sentences.push_back(text);
  const double hidden = number(row, "comm_time_s") - number(row, "exposed_comm_time_s");
  if (number(row, "comm_time_s") > 0) {
    sentences.push_back(fmt::format("{:.0f} % of the communication is hidden behind compute",
                                    std::clamp(100 * hidden / number(row, "comm_time_s"), 0.0, 100.0)));
  }
  return explanation;
}

}  // namespace tandem
