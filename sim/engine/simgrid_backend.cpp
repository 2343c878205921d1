#include "sim/engine/simgrid_backend.hpp"

#include <fmt/format.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <bit>
#include <unordered_map>

// Not self-contained: after s4u.hpp.
#include <simgrid/version.h>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

namespace sg4 = simgrid::s4u;
namespace routing = simgrid::kernel::routing;

constexpr const char* kPrecision[]{"surf/precision:1e-13", "maxmin/precision:1e-9"};

// One flat zone whose routes come from the caller: the flow being started has already computed its path, and SimGrid
// asks for it exactly once, while the flow starts.
class ComputedZone final : public routing::NetZoneImpl {
 public:
  explicit ComputedZone(const std::string& name) : NetZoneImpl(name) {}
  void set_links(std::vector<sg4::Link*> links) { links_ = std::move(links); }
  void set_path(const std::vector<LinkId>* path) { path_ = path; }

  void get_local_route(const routing::NetPoint*, const routing::NetPoint*, routing::Route* into,
                       double* latency) override {
    for (const auto id : *path_) {
      const auto* link = links_[id.index()];
      into->link_list_.push_back(link->get_impl());
      if (latency != nullptr) *latency += link->get_latency();
    }
  }

 private:
  std::vector<sg4::Link*> links_;
  const std::vector<LinkId>* path_ = nullptr;
};

}  // namespace

struct SimgridBackend::Impl {
  struct Waiting {
    Listener* listener;
    Token token;
  };
  struct Flow {
    sg4::CommPtr comm;
    Listener* listener = nullptr;
    Token token = 0;
    std::vector<LinkId> path;
  };
  struct LinkState {
    std::int64_t bytes = 0;
    std::int64_t flows = 0;
    std::int32_t active = 0;
    std::int32_t position = -1;  // in used_now
    double busy_since = 0;
    double busy = 0;
    double saturated = 0;
    bool is_saturated = false;
    double saturated_since = 0;
  };

  const Network& network;
  NetworkModelOptions options;
  std::unique_ptr<sg4::Engine> engine;
  ComputedZone* zone = nullptr;  // owned by the engine
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Link*> links;
  std::vector<LinkState> states;
  std::vector<std::int32_t> used_now;
  std::vector<Flow> flows;
  std::vector<std::int32_t> free_flows;
  std::vector<sg4::CommPtr> finished;  // kept until SimGrid has let go of them, which it has at any later date
  double finished_at = 0;
  // SimGrid tells of a cancelled transfer at once, and again when it next looks at ended actions (after timers, maybe
  // at a later date). Until then the object must live: a new one could be made at its address.
  std::unordered_map<const sg4::Activity*, sg4::CommPtr> cancelled;
  bool cancelling = false;
  std::unordered_map<std::uint64_t, std::vector<Waiting>> timers;  // by the bits of the date
  double sampled_at = -1;
  std::exception_ptr failure;

  Impl(const Network& the_network, const NetworkModelOptions& the_options)
      : network(the_network), options(the_options) {}

  void create() {
    static char name[] = "tandem";
    static char log[] = "--log=xbt_cfg.thresh:warning";  // or the child's first words are about settings
    static char* arguments[] = {name, log, nullptr};
    int count = 2;
    engine = std::make_unique<sg4::Engine>(&count, arguments);
    configure();
    zone = new ComputedZone("network");
    for (int d = 0; d < network.vertices(); ++d) {  // switches may be members of collectives
      hosts.push_back(zone->get_iface()->create_host(fmt::format("d{}", d), 1e9)->seal());
    }
    const bool lv08 = options.model == NetworkModelOptions::Model::lv08;
    for (std::size_t i = 0; i < network.links().size(); ++i) {
      const auto& link = network.links()[i];
      auto* created =
          zone->get_iface()->create_link(fmt::format("l{}", i), link.bandwidth.count() * options.bandwidth_factor);
      if (lv08) created->set_latency(link.latency.count() * options.latency_factor);
      links.push_back(created->seal());
    }
    zone->set_links(links);
    zone->get_iface()->seal();
    states.resize(links.size());
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) { guarded([&] { completed(activity); }); });
  }

  void configure() {
    if (options.model == NetworkModelOptions::Model::alpha_beta) {
      sg4::Engine::set_config("network/model:CM02");
      sg4::Engine::set_config("network/crosstraffic:0");
      sg4::Engine::set_config("network/TCP-gamma:0");
    } else {
      sg4::Engine::set_config("network/model:LV08");
    }
    // A byte takes 8e-11 s at 100 Gbit/s: SimGrid's 1e-9 s would end it early.
    for (const char* setting : kPrecision) sg4::Engine::set_config(setting);
    for (const auto& item : options.configuration) {
      try {
        sg4::Engine::set_config(item);
      } catch (const std::exception& error) {
        throw usage_error(fmt::format("SimGrid refuses the setting '{}': {}", item, error.what()));
      }
    }
  }

  // Exceptions must not pass through SimGrid: the first is kept, and everything after it is ignored.
  template <class Body>
  void guarded(Body&& body) {
    if (failure) return;
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }

  void fire(std::uint64_t key) {
    let_go();
    auto found = timers.find(key);
    const auto waiting = std::move(found->second);
    timers.erase(found);
    for (const auto& [listener, token] : waiting) {
      guarded([&, l = listener, t = token] { l->on_timer(t); });
    }
  }

  // Both where timers fire and where transfers end: a run may have long stretches with only one of them.
  void let_go() {
    const double date = sg4::Engine::get_clock();
    if (date > finished_at) finished.clear();
    finished_at = date;
  }

  void completed(const sg4::Activity& activity) {
    if (cancelling) return;
    let_go();
    if (const auto found = cancelled.find(&activity); found != cancelled.end()) {
      finished.push_back(std::move(found->second));
      cancelled.erase(found);
      return;
    }
    const auto* data = activity.get_data<void>();
    if (data == nullptr) return;
    const auto slot = static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(data) - 1);
    auto& flow = flows[static_cast<std::size_t>(slot)];
    const auto listener = flow.listener;
    const auto token = flow.token;
    finished.push_back(release(slot));
    if (activity.get_state() == sg4::Activity::State::FAILED) throw internal_error("SimGrid reports a failed transfer");
    listener->on_flow_done(token);
  }

  sg4::CommPtr release(std::int32_t slot) {
    auto& flow = flows[static_cast<std::size_t>(slot)];
    leave_links(flow);
    auto comm = std::move(flow.comm);
    flow = Flow{};
    free_flows.push_back(slot);
    return comm;
  }

  void cancel(std::int32_t slot) {
    const auto comm = release(slot);
    cancelled.emplace(comm.get(), comm);
    cancelling = true;
    comm->cancel();
    cancelling = false;
  }

  void enter_links(const Flow& flow, std::int64_t bytes) {
    const double date = sg4::Engine::get_clock();
    for (const auto id : flow.path) {
      auto& state = states[id.index()];
      state.bytes += bytes;
      ++state.flows;
      if (state.active++ == 0) {
        state.busy_since = date;
        state.position = static_cast<std::int32_t>(used_now.size());
        used_now.push_back(id.value);
      }
    }
    if (options.measure_saturation) sample_soon();
  }

  void leave_links(const Flow& flow) {
    const double date = sg4::Engine::get_clock();
    for (const auto id : flow.path) {
      auto& state = states[id.index()];
      if (--state.active > 0) continue;
      state.busy += date - state.busy_since;
      if (state.is_saturated) {
        state.saturated += date - state.saturated_since;
        state.is_saturated = false;
      }
      states[static_cast<std::size_t>(used_now.back())].position = state.position;
      std::swap(used_now[static_cast<std::size_t>(state.position)], used_now.back());
      used_now.pop_back();
      state.position = -1;
    }
    if (options.measure_saturation) sample_soon();
  }

  // Rates are known only after SimGrid has solved the sharing, just before it moves the clock; a timer a hair later is
  // the first moment at which they can be read.
  void sample_soon() {
    const double date = sg4::Engine::get_clock();
    if (sampled_at == date) return;
    sampled_at = date;
    const double later = date + std::max(1e-15, date * 4e-16);
    simgrid::kernel::timer::Timer::set(later, [this, date] { sample(date); });
  }

  void sample(double since) {
    for (const auto index : used_now) {
      auto& state = states[static_cast<std::size_t>(index)];
      const auto* link = links[static_cast<std::size_t>(index)];
      const bool full = link->get_usage() >= 0.999 * link->get_bandwidth();
      if (full == state.is_saturated) continue;
      if (full) {
        state.saturated_since = since;
      } else {
        state.saturated += since - state.saturated_since;
      }
      state.is_saturated = full;
    }
  }
};

SimgridBackend::SimgridBackend(const Network& network, const NetworkModelOptions& options)
    : impl_(std::make_unique<Impl>(network, options)) {
  impl_->create();
}

// The engine lives as long as the process; tearing it down buys nothing and SimGrid cannot start another.
SimgridBackend::~SimgridBackend() {
  (void)impl_->engine.release();
}

Seconds SimgridBackend::now() const {
  return Seconds(sg4::Engine::get_clock());
}

void SimgridBackend::at(Seconds date, Listener& listener, Token token) {
  const double when = std::max(date.count(), sg4::Engine::get_clock());
  const auto key = std::bit_cast<std::uint64_t>(when);
  auto [entry, inserted] = impl_->timers.try_emplace(key);
  entry->second.push_back({&listener, token});
  if (inserted) simgrid::kernel::timer::Timer::set(when, [impl = impl_.get(), key] { impl->fire(key); });
}

std::int32_t SimgridBackend::start_flow(DeviceId from, DeviceId to, const std::vector<LinkId>& path, Bytes bytes,
                                        Listener& listener, Token token) {
  auto& impl = *impl_;
  std::int32_t slot = 0;
  if (impl.free_flows.empty()) {
    slot = static_cast<std::int32_t>(impl.flows.size());
    impl.flows.emplace_back();
  } else {
    slot = impl.free_flows.back();
    impl.free_flows.pop_back();
  }
  auto& flow = impl.flows[static_cast<std::size_t>(slot)];
  flow.listener = &listener;
  flow.token = token;
  flow.path = path;
  impl.enter_links(flow, bytes.count());
  auto comm = sg4::Comm::sendto_init(impl.hosts[from.index()], impl.hosts[to.index()]);
  comm->set_payload_size(static_cast<std::uint64_t>(bytes.count()));
  comm->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(slot) + 1));
  flow.comm = comm;
  impl.zone->set_path(&path);
  comm->start();
  return slot;
}

void SimgridBackend::cancel_flow(std::int32_t slot) {
  impl_->cancel(slot);
}

void SimgridBackend::set_bandwidth(LinkId link, BytesPerSecond bandwidth) {
  impl_->links[link.index()]->set_bandwidth(bandwidth.count() * impl_->options.bandwidth_factor);
}

void SimgridBackend::run() {
  impl_->engine->run();
  if (impl_->failure) std::rethrow_exception(impl_->failure);
}

std::vector<LinkUse> SimgridBackend::link_uses() const {
  std::vector<LinkUse> uses;
  for (std::size_t i = 0; i < impl_->states.size(); ++i) {
    const auto& state = impl_->states[i];
    if (state.flows == 0) continue;
    uses.push_back({LinkId{static_cast<std::int32_t>(i)}, state.bytes, state.flows, Seconds(state.busy),
                    Seconds(state.saturated)});
  }
  return uses;
}

std::string simgrid_version() {
  return fmt::format("{}.{}.{}", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, SIMGRID_VERSION_PATCH);
}

std::string simgrid_precision() {
  return fmt::format("{} {}", kPrecision[0], kPrecision[1]);
}

}  // namespace tandem
