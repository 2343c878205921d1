#include "sim/cli/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "platforms/clusters/named_cluster.hpp"
#include "sim/core/error.hpp"
#include "sim/core/registry.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostRanks = 1'048'576;
constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostBatch = 1'048'576;

constexpr const char* kModel = "Model and compute";
constexpr const char* kNetwork = "Network";
constexpr const char* kAlgorithms = "Parallelization and collectives";
constexpr const char* kStudy = "Study";
constexpr const char* kSimulation = "Simulation and output";

int whole(const std::string& text, std::int64_t least, std::int64_t most, const char* what) {
  return static_cast<int>(parse_integer(text, least, most, what));
}

double real(const std::string& text, double least, double most, const char* what) {
  const double value = parse_number(text, what);
  if (value < least || value > most) {
    throw usage_error(fmt::format("{} is '{}': it must be a number from {} to {}", what, text, least, most));
  }
  return value;
}

BytesPerSecond rate(const std::string& text, const char* what) {
  const auto value = with_context(what, [&] { return parse_bandwidth(text); });
  if (!(value > BytesPerSecond{})) throw usage_error(fmt::format("{} is '{}': it must be above 0", what, text));
  return value;
}

BytesPerSecond rate_or(const char* none, const std::string& text, const char* what) {
  return text == none ? BytesPerSecond{} : rate(text, what);
}

Seconds duration(const std::string& text, const char* what) {
  return with_context(what, [&] { return parse_seconds(text); });
}

Bytes size_or(const char* none, const std::string& text, const char* what) {
  if (text == none) return Bytes{};
  const auto value = with_context(what, [&] { return parse_bytes(text); });
  if (value.count() == 0) throw usage_error(fmt::format("{} is '{}': it must be above 0, or '{}'", what, text, none));
  return value;
}

bool yes(const std::string& text, const char* what) {
  if (text != "yes" && text != "no") throw usage_error(fmt::format("{} is '{}': it must be yes or no", what, text));
  return text == "yes";
}

std::string one_of(const std::string& text, const std::vector<std::string>& accepted, const char* what) {
  if (std::find(accepted.begin(), accepted.end(), text) == accepted.end()) {
    throw usage_error(fmt::format("{} is '{}'{}", what, text, suggestion(text, accepted)));
  }
  return text;
}

void check_parameters(const RegistryBase& registry, const std::string& text) {
  const auto [name, arguments] = split_plugin_text(text);
  (void)Arguments(registry.kind() + " '" + name + "'", arguments, registry.info(name).parameters);
}

// A plug-in's name, and the names and types of its parameters, are checked here, before anything is run; whether it can
// be made of them by whoever makes it.
std::string plugin(const std::string& text, const std::string& kind, const char* what) {
  for (const auto* registry : RegistryBase::all()) {
    if (registry->kind() == kind) with_context(what, [&] { check_parameters(*registry, text); });
  }
  return text;
}

std::string fidelity(const std::string& text) {
  return one_of(text, {"auto", "flow", "phase", "analytic"}, "--fidelity");
}

std::map<int, double> stragglers(const std::string& text) {
  std::map<int, double> factors;
  if (text == "none") return factors;
  for (const auto& item : split(text, ',')) {
    const auto colon = item.find(':');
    if (colon == std::string::npos) {
      throw usage_error(fmt::format("--straggler is '{}': it must be RANK:FACTOR, as 3:2.0", item));
    }
    const int rank = whole(item.substr(0, colon), 0, kMostRanks - 1, "the rank of --straggler");
    if (!factors.emplace(rank, real(item.substr(colon + 1), 0.001, 1000, "the factor of --straggler")).second) {
      throw usage_error(fmt::format("--straggler names rank {} twice", rank));
    }
  }
  return factors;
}

std::vector<std::string> simgrid_items(const std::string& text) {
  if (text == "none") return {};
  if (text.empty()) throw usage_error("--cfg is '': it must be KEY:VALUE");
  for (const auto& item : split(text, ',')) {
    if (item.find(':') == std::string::npos || item.front() == ':' || item.back() == ':') {
      throw usage_error(fmt::format("--cfg is '{}': it must be KEY:VALUE", item));
    }
  }
  return split(text, ',');
}

Details details(const std::string& text) {
  const auto name = one_of(text, {"none", "summary", "full"}, "--details");
  return name == "none" ? Details::none : name == "full" ? Details::full : Details::summary;
}

using Text = const std::string&;
using Config = RunConfig&;

OptionSpec option(const char* group, const char* name, const char* argument, const char* default_text,
                  const char* help) {
  return {name, argument, default_text, help, group, 0, false, 1};
}
OptionSpec flag(const char* group, const char* name, const char* help) {
  return option(group, name, "", "no", help);
}
OptionSpec repeatable(OptionSpec spec) {
  spec.repeatable = true;
  return spec;
}

std::vector<RunOption> model_options() {
  return {
      {option(kModel, "trace", "NAME|FILE", "resnet50-cpu",
              "a shipped trace (tandem trace list), a trace file, or with a named --device a built-in model"),
       [](Text t, Config c) { c.trace = t; }},
      {option(kModel, "batch", "SAMPLES", "recorded",
              "samples a replica computes in an iteration; 'recorded': as the trace"),
       [](Text t, Config c) { c.batch = t == "recorded" ? 0 : parse_integer(t, 1, kMostBatch, "--batch"); }},
      {option(kModel, "gradient-dtype", "TYPE", "float32",
              "of gradients on the wire: float16, bfloat16, float32, float64"),
       [](Text t, Config c) {
         c.gradient_dtype = one_of(t, {"float32", "float16", "bfloat16", "float64"}, "--gradient-dtype");
       }},
      {option(kModel, "activation-dtype", "TYPE", "float32", "of activations in memory and on the wire"),
       [](Text t, Config c) {
         c.activation_dtype = one_of(t, {"float32", "float16", "bfloat16", "float64"}, "--activation-dtype");
       }},
      {option(kModel, "optimizer", "NAME", "momentum", "sgd, momentum or adam: state that it keeps in memory"),
       [](Text t, Config c) {
         c.optimizer = one_of(t, {"sgd", "momentum", "adam"}, "--optimizer");
       }},
      {option(kModel, "device", "NAME", "recorded",
              "'recorded', or a named device (tandem list device): times are modelled then"),
       [](Text t, Config c) { c.device = t == "recorded" ? t : plugin(t, "device", "--device"); }},
      {option(kModel, "device-scale", "FACTOR", "1", "devices are this many times as fast"),
       [](Text t, Config c) { c.device_scale = real(t, 1e-6, 1e6, "--device-scale"); }},
      {option(kModel, "overheads", "none|recorded", "none",
              "'recorded': input wait, launch gaps, copies and unmatched work of the trace count too"),
       [](Text t, Config c) {
         c.overheads = one_of(t, {"none", "recorded"}, "--overheads") == "recorded";
       }},
      {option(kModel, "memory", "SIZE", "unchecked", "of a device; a run that needs more is an error"),
       [](Text t, Config c) { c.memory = size_or("unchecked", t, "--memory"); }},
  };
}

std::vector<RunOption> network_options() {
  return {
      {option(kNetwork, "cluster", "NAME[:nodes=N]", "none",
              "a named cluster sets what follows (tandem list cluster NAME); options given beside it override its own"),
       [](Text t, Config) {
         if (t != "none") (void)plugin(t, "cluster", "--cluster");
       }},
      {option(kNetwork, "topology", "NAME[:KEY=VALUE,...]", "star",
              "tandem list topology; sizes left out are chosen by --ranks"),
       [](Text t, Config c) { c.cluster.topology = plugin(t, "topology", "--topology"); }},
      {option(kNetwork, "ranks", "N", "8", "workers, one a device"),
       [](Text t, Config c) { c.cluster.ranks = whole(t, 1, kMostRanks, "--ranks"); }},
      {option(kNetwork, "nodes", "N", "unset", "instead of --ranks: nodes of --devices-per-node workers"),
       [](Text t, Config) {
         if (t != "unset") (void)whole(t, 1, kMostRanks, "--nodes");
       }},
      {option(kNetwork, "devices-per-node", "N", "1", "devices behind one node's NICs"),
       [](Text t, Config c) { c.cluster.devices_per_node = whole(t, 1, 1024, "--devices-per-node"); }},
      {option(kNetwork, "nics-per-node", "N", "1", "NICs of a node; must divide its devices"),
       [](Text t, Config c) { c.cluster.nics_per_node = whole(t, 1, 1024, "--nics-per-node"); }},
      {option(kNetwork, "link-bandwidth", "RATE", "100Gbps", "of one direction of one cable of the fabric"),
       [](Text t, Config c) { c.cluster.link_bandwidth = rate(t, "--link-bandwidth"); }},
      {option(kNetwork, "link-latency", "TIME", "500ns", "of one link of the fabric"),
       [](Text t, Config c) { c.cluster.link_latency = duration(t, "--link-latency"); }},
      {option(kNetwork, "intra-bandwidth", "RATE", "150GBps", "of a device's link inside its node, one direction"),
       [](Text t, Config c) { c.cluster.intra_bandwidth = rate(t, "--intra-bandwidth"); }},
      {option(kNetwork, "intra-latency", "TIME", "500ns", "of one link inside a node"),
       [](Text t, Config c) { c.cluster.intra_latency = duration(t, "--intra-latency"); }},
      {option(kNetwork, "host-bandwidth", "RATE", "unlimited",
              "of the link (PCIe) between a node's inside and each NIC"),
       [](Text t, Config c) { c.cluster.host_bandwidth = rate_or("unlimited", t, "--host-bandwidth"); }},
      {repeatable(
           option(kNetwork, "link-override", "PATTERN:bandwidth=RATE,latency=TIME", "none",
                  "other rates for links whose name or kind matches, with '*' and '?' (tandem topology --links); "
                  "may be repeated")),
       [](Text t, Config c) {
         if (t == "none") return;
         c.cluster.link_overrides = with_context("--link-override", [&] { return parse_link_overrides(t); });
       }},
      {repeatable(option(kNetwork, "failure", "WHAT", "none",
                         "gone from the start: link:NAME, switch:NAME (tandem topology --links) or rank:R; may be "
                         "repeated; the healthy time is reported beside")),
       [](Text t, Config c) {
         if (t != "none") c.cluster.failures = parse_failures(t);
       }},
      {option(kNetwork, "placement", "NAME[:KEY=VALUE,...]", "packed",
              "which device each rank runs on (tandem list placement)"),
       [](Text t, Config c) { c.placement = plugin(t, "placement", "--placement"); }},
  };
}

std::vector<RunOption> algorithm_options() {
  return {
      {option(kAlgorithms, "partitioner", "NAME", "data", "who computes what (tandem list partitioner)"),
       [](Text t, Config c) { c.partitioner = plugin(t, "partitioner", "--partitioner"); }},
      {option(kAlgorithms, "sync", "NAME", "bsp", "when workers wait for each other (tandem list sync)"),
       [](Text t, Config c) { c.sync = plugin(t, "sync", "--sync"); }},
      {option(kAlgorithms, "gradients", "NAME[:KEY=VALUE,...]", "ddp",
              "how gradients are grouped (tandem list gradients)"),
       [](Text t, Config c) { c.gradients = plugin(t, "gradients", "--gradients"); }},
      {option(kAlgorithms, "algorithm", "NAME[:KEY=VALUE,...]", "ring",
              "of all-reduce (tandem list collective); 'auto' picks by estimate"),
       [](Text t, Config c) { c.algorithm = plugin(t, "collective", "--algorithm"); }},
      {option(kAlgorithms, "channels", "N", "1", "parts of a collective that run at once"),
       [](Text t, Config c) { c.channels = whole(t, 1, 64, "--channels"); }},
      {option(kAlgorithms, "chunk", "SIZE", "whole", "a collective is cut into pipelined chunks of this size"),
       [](Text t, Config c) { c.chunk = size_or("whole", t, "--chunk"); }},
      {option(kAlgorithms, "step-overhead", "TIME", "0us", "software cost of a message, before its latency"),
       [](Text t, Config c) { c.step_overhead = duration(t, "--step-overhead"); }},
      {option(kAlgorithms, "reduce-rate", "RATE", "free", "at which a receiver adds what it received"),
       [](Text t, Config c) { c.reduce_rate = rate_or("free", t, "--reduce-rate"); }},
      {option(kAlgorithms, "copy-rate", "RATE", "free", "at which a receiver stores what it need not add"),
       [](Text t, Config c) { c.copy_rate = rate_or("free", t, "--copy-rate"); }},
      {option(kAlgorithms, "overlap-slowdown", "FACTOR", "1",
              "compute takes this many times as long during communication"),
       [](Text t, Config c) { c.overlap_slowdown = real(t, 1, 100, "--overlap-slowdown"); }},
  };
}

std::vector<RunOption> study_options() {
  return {
      {option(kStudy, "scaling", "weak|strong", "weak", "weak: a fixed batch a replica; strong: a fixed global batch"),
       [](Text t, Config c) {
         c.scaling = one_of(t, {"weak", "strong"}, "--scaling") == "weak" ? Scaling::weak : Scaling::strong;
       }},
      {option(kStudy, "global-batch", "SAMPLES", "baseline",
              "of strong scaling; 'baseline': --batch times --baseline-ranks"),
       [](Text t, Config c) {
         c.global_batch = t == "baseline" ? 0 : parse_integer(t, 1, kMostBatch * kMostRanks, "--global-batch");
       }},
      {option(kStudy, "baseline-ranks", "N", "1", "ranks whose throughput is efficiency 1"),
       [](Text t, Config c) { c.baseline_ranks = whole(t, 1, kMostRanks, "--baseline-ranks"); }},
      {option(kStudy, "iterations", "N", "1", "simulated one after the other; times are means"),
       [](Text t, Config c) { c.iterations = whole(t, 1, 10'000, "--iterations"); }},
      {flag(kStudy, "first-iteration",
            "the gradient buckets of a framework's first iteration, not of its steady state"),
       [](Text t, Config c) { c.first_iteration = yes(t, "--first-iteration"); }},
  };
}

std::vector<RunOption> simulation_options() {
  return {
      {option(kSimulation, "network-model", "alpha-beta|lv08", "alpha-beta",
              "how a transfer costs time; lv08 is SimGrid's TCP model"),
       [](Text t, Config c) {
         c.network.model = one_of(t, {"alpha-beta", "lv08"}, "--network-model") == "lv08"
                               ? NetworkModelOptions::Model::lv08
                               : NetworkModelOptions::Model::alpha_beta;
       }},
      {option(kSimulation, "bandwidth-factor", "FACTOR", "1", "on the rate of every link"),
       [](Text t, Config c) { c.network.bandwidth_factor = real(t, 1e-6, 1e6, "--bandwidth-factor"); }},
      {option(kSimulation, "latency-factor", "FACTOR", "1", "on the latency of every link"),
       [](Text t, Config c) { c.network.latency_factor = real(t, 0, 1e6, "--latency-factor"); }},
      {option(
           kSimulation, "fidelity", "auto|flow|phase|analytic", "auto",
           "flow: every transfer is a flow; phase: equal steps of a collective are one; analytic: no flows, for 10^4 "
           "ranks and more; auto: the finest that takes some seconds"),
       [](Text t, Config c) { c.fidelity = fidelity(t); }},
      {option(kSimulation, "jitter", "NAME", "none", "noise of the ranks' compute times: lognormal:sigma=0.05"),
       [](Text t, Config c) { c.noise.jitter = plugin(t, "jitter", "--jitter"); }},
      {repeatable(option(kSimulation, "straggler", "RANK:FACTOR", "none",
                         "a rank that takes this many times as long to compute; may be repeated")),
       [](Text t, Config c) { c.noise.stragglers = stragglers(t); }},
      {option(kSimulation, "seed", "N", "1", "of everything drawn at random"),
       [](Text t, Config c) { c.noise.seed = static_cast<std::uint64_t>(parse_integer(t, 0, kMostSeed, "--seed")); }},
      {repeatable(option(kSimulation, "cfg", "KEY:VALUE", "none", "handed to SimGrid as it is; may be repeated")),
       [](Text t, Config c) { c.network.configuration = simgrid_items(t); }},
      {option(kSimulation, "details", "none|summary|full", "summary",
              "tables of ranks, layers and links in the result file"),
       [](Text t, Config c) { c.details = details(t); }},
      {flag(kSimulation, "explain",
            "say what bounds the iteration, and its time with a better machine (three more runs)"),
       [](Text t, Config c) { c.explain = yes(t, "--explain"); }},
  };
}

std::vector<RunOption> all_options() {
  std::vector<RunOption> all;
  for (const auto part : {model_options, network_options, algorithm_options, study_options, simulation_options}) {
    for (auto& each : part()) all.push_back(std::move(each));
  }
  return all;
}

void check_names(const std::map<std::string, std::string>& given) {
  std::vector<std::string> names;
  for (const auto& each : run_options()) names.push_back(each.spec.name);
  for (const auto& [name, text] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const auto near = closest(name, names);
      throw usage_error(fmt::format(
          "unknown option '{}'{}", name,
          near.empty() ? "; 'tandem run --help' lists what there is" : fmt::format("; did you mean '{}'?", near)));
    }
  }
}

// Whether the user, and not the default text, says it.
bool says(const std::map<std::string, std::string>& given, const std::string& name, const std::string& unset) {
  const auto found = given.find(name);
  return found != given.end() && found->second != unset;
}

// What a named cluster sets, and over it what is given.
std::map<std::string, std::string> with_cluster(const std::map<std::string, std::string>& given) {
  if (!says(given, "cluster", "none")) return given;
  auto all = given;
  const bool sized = given.contains("ranks") || given.contains("nodes");
  const auto cluster =
      with_context("--cluster", [&] { return Registry<NamedCluster>::instance().make(given.at("cluster")); });
  for (const auto& [name, value, source] : cluster->settings()) {
    if (!sized || (name != "ranks" && name != "nodes")) all.emplace(name, value);
  }
  return all;
}

void resolve_ranks(const std::map<std::string, std::string>& given, RunConfig& config) {
  if (!says(given, "nodes", "unset")) return;
  if (given.contains("ranks")) {
    throw usage_error("--ranks and --nodes are two ways to say the same: give one of them");
  }
  const auto ranks = parse_integer(given.at("nodes"), 1, kMostRanks, "--nodes") * config.cluster.devices_per_node;
  if (ranks > kMostRanks) {
    throw usage_error(fmt::format("--nodes {} of {} devices make {} ranks: at most {} are accepted", given.at("nodes"),
                                  config.cluster.devices_per_node, ranks, kMostRanks));
  }
  config.cluster.ranks = static_cast<int>(ranks);
  for (auto& [name, text] : config.options) {
    if (name == "ranks") text = std::to_string(ranks);
  }
}

// Failed ranks are no links or switches: they leave the ranks that run.
void resolve_failures(RunConfig& config) {
  auto& cluster = config.cluster;
  std::set<int> lost;
  for (const auto& failure : cluster.failures) {
    if (failure.kind != Failure::Kind::rank) continue;
    const auto rank = static_cast<int>(parse_integer(failure.name, 0, cluster.ranks - 1, "the rank of --failure"));
    if (!lost.insert(rank).second) throw usage_error(fmt::format("--failure names rank {} twice", rank));
  }
  std::erase_if(cluster.failures, [](const Failure& failure) { return failure.kind == Failure::Kind::rank; });
  cluster.lost_ranks.assign(lost.begin(), lost.end());
  cluster.ranks -= static_cast<int>(lost.size());
  if (cluster.ranks == 0) throw usage_error("--failure takes all ranks: none is left to run");
}

}  // namespace

const std::vector<RunOption>& run_options() {
  static const auto options = all_options();
  return options;
}

std::vector<OptionSpec> run_option_specs(const std::vector<std::string>& names) {
  std::vector<OptionSpec> specs;
  for (const auto& each : run_options()) {
    const auto& name = each.spec.name;
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) specs.push_back(each.spec);
  }
  return specs;
}

RunConfig parse_run(const std::map<std::string, std::string>& chosen) {
  check_names(chosen);
  const auto given = with_cluster(chosen);
  RunConfig config;
  for (const auto& each : run_options()) {
    const auto found = given.find(each.spec.name);
    const auto& text = found == given.end() ? each.spec.default_text : found->second;
    each.parse(text, config);
    config.options.emplace_back(each.spec.name, text);
  }
  resolve_ranks(given, config);
  resolve_failures(config);
  if (config.scaling == Scaling::weak && says(given, "global-batch", "baseline")) {
    throw usage_error("--global-batch is for --scaling strong; with weak scaling --batch says what a replica computes");
  }
  if (config.fidelity == "analytic" && !config.network.configuration.empty()) {
    throw usage_error("--cfg is for SimGrid, which --fidelity analytic does without: leave one of them out");
  }
  return config;
}

std::map<std::string, std::string> given_run_options(const CommandLine& line) {
  std::map<std::string, std::string> given;
  for (const auto& each : run_options()) {
    if (line.has(each.spec.name)) given[each.spec.name] = fmt::format("{}", fmt::join(line.all(each.spec.name), ","));
  }
  return given;
}

}  // namespace tandem
