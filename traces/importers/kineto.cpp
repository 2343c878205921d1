// Profiles of PyTorch (torch.profiler's export_chrome_trace(), Kineto): Chrome's trace event JSON, with the host's
// operators, the calls that launch kernels and the kernels themselves.
//
// A layer's time is that of the kernels launched for it, in whichever step they were launched. Everything else that
// the device does, and its idling, stands beside the layers (Trace::outside), so that they and the layers add up to
// the steps' wall time. An instant counts once, however many streams are busy: for compute before communication,
// before copies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "sim/core/error.hpp"
#include "traces/importer.hpp"
#include "traces/importers/device_timeline.hpp"
#include "traces/importers/kineto_device.hpp"
#include "traces/importers/kineto_events.hpp"
#include "traces/importers/kineto_host.hpp"
#include "traces/importers/operator_sequence.hpp"

namespace tandem {
namespace {

using namespace kineto;

double seconds(Nanoseconds time) {
  return static_cast<double>(time) * 1e-9;
}

using Interval = std::pair<Nanoseconds, Nanoseconds>;

Nanoseconds overlap(Interval a, Interval b) {
  return std::max<Nanoseconds>(0, std::min(a.second, b.second) - std::max(a.first, b.first));
}

// Sorted and without overlaps.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> all;
  for (const auto& interval : intervals) {
    if (!all.empty() && interval.first <= all.back().second) {
      all.back().second = std::max(all.back().second, interval.second);
    } else {
      all.push_back(interval);
    }
  }
  return all;
}

// ---- accounts: where each step's time goes ----

// Of a step: four for each of its layers (Share), then these.
enum class Extra : std::uint8_t { update, copy, communication, unmatched };
constexpr std::size_t kExtras = 4, kShares = 4;

class Accounts {
 public:
  explicit Accounts(const std::vector<Step>& steps) {
    for (const auto& step : steps) {
      first_.push_back(size_);
      layers_.push_back(step.layers.size());
      size_ += kShares * step.layers.size() + kExtras;
    }
  }
  // One more, the last, for what belongs to no step.
  [[nodiscard]] std::size_t size() const { return size_ + 1; }
  [[nodiscard]] std::size_t layer(std::size_t step, std::size_t layer, Share share) const {
    return first_[step] + kShares * layer + static_cast<std::size_t>(share);
  }
  [[nodiscard]] std::size_t extra(std::size_t step, Extra extra) const {
    return first_[step] + kShares * layers_[step] + static_cast<std::size_t>(extra);
  }
  [[nodiscard]] std::size_t of(const Work& work) const {
    const auto step = static_cast<std::size_t>(std::max(work.step, 0));
    switch (work.use) {
      case Use::layer:
        if (static_cast<std::size_t>(work.layer) >= layers_[step]) return extra(step, Extra::unmatched);
        return layer(step, static_cast<std::size_t>(work.layer), work.share);
      case Use::optimizer:
        return extra(step, Extra::update);
      case Use::copy:
        return extra(step, Extra::copy);
      case Use::communication:
        return extra(step, Extra::communication);
      case Use::unmatched:
        return extra(step, Extra::unmatched);
      case Use::not_of_steps:
        break;
    }
    return size_;
  }

 private:
  std::vector<std::size_t> first_, layers_;
  std::size_t size_ = 0;
};

// ---- the import ----

class Import {
 public:
  Import(const Events& events, std::int64_t batch, std::int64_t device)
      : events_(events),
        host_(events),
        batch_(batch),
        device_(device_work(events, host_, device)),
        accounts_(host_.steps()) {}

  Imported run() {
    if (host_.operators().empty()) throw input_error("no operators of the host: record with the CPU activity, too");
    choose_steps();
    measure();
    build_layers();
    add_outside();
    add_iteration();
    add_collectives();
    describe();
    report();
    return std::move(out_);
  }

 private:
  void note(std::string text) { out_.trace.notes.push_back(std::move(text)); }
  [[nodiscard]] const Step& step(std::size_t k) const { return host_.steps()[k]; }

  // ---- which steps count ----

  // Most steps ran the same layers; the others (the first or the last of a file, a validation) were cut or are
  // something else. So is a last step whose kernels are missing.
  void choose_steps() {
    const auto& steps = host_.steps();
    std::size_t model = steps.size(), most = 0;
    std::set<std::size_t> seen;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (steps[k].layers.empty() || seen.count(k) > 0) continue;
      std::size_t alike = 0;
      for (std::size_t other = k; other < steps.size(); ++other) {
        if (!host_.same_layers(steps[k], steps[other])) continue;
        ++alike;
        seen.insert(other);
      }
      if (alike > most) {
        most = alike;
        model = k;
      }
      if (seen.size() >= 1000 || k > 1000) break;  // a thousand kinds of steps are none
    }
    if (model == steps.size()) throw input_error("no operators of a network's layers in the file's steps");
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (host_.same_layers(steps[model], steps[k])) kept_.push_back(k);
    }
    const bool cut = device_.launches_without_kernel > 0 && kept_.back() + 1 == steps.size();
    if (cut && kept_.size() > 1) kept_.pop_back();
    if (cut) {
      note(fmt::format("the last step's last {} launches have no kernels in the file: {}",
                       device_.launches_without_kernel,
                       kept_.back() + 1 == steps.size() ? "its times are too low" : "it is left out"));
    }
    if (kept_.size() < steps.size()) {
      note(fmt::format("{} of {} steps used; the others are incomplete or ran other layers", kept_.size(),
                       steps.size()));
    }
  }

  // ---- the device's timeline ----

  void measure() {
    std::vector<Activity> activities;
    activities.reserve(device_.work.size());
    for (const auto& work : device_.work) {
      activities.push_back({work.start, work.end, work.priority, static_cast<std::uint32_t>(accounts_.of(work))});
    }
    timeline_ = timeline_of(activities, accounts_.size());
    set_windows();
    measure_idle();
  }

  // A step on the device: from when it is done with the step before (but not before the host begins this one) to the
  // next step's. Steps that do not follow each other closely end when their own work does.
  void set_windows() {
    const auto& steps = host_.steps();
    constexpr auto never = std::numeric_limits<Nanoseconds>::max();
    std::vector<Nanoseconds> first(steps.size(), never), last(steps.size(), 0);
    std::optional<Nanoseconds> before;  // end of what was launched before the first step
    for (const auto& work : device_.work) {
      const bool carried = device_.carried > 0 && work.start >= steps.front().start + device_.period;
      if (work.step < 0 || carried) {
        const Nanoseconds end = carried ? work.end - device_.period : work.end;
        if (end - steps.front().start < device_span()) before = std::max(before.value_or(end), end);
        continue;
      }
      const auto k = static_cast<std::size_t>(work.step);
      first[k] = std::min(first[k], work.start);
      last[k] = std::max(last[k], work.end);
    }
    Nanoseconds busy = before.value_or(steps.front().start);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const Nanoseconds begin = std::max(steps[k].start, std::min(first[k], busy));
      if (k > 0) {
        const bool close = steps[k].start - steps[k - 1].end <= (steps[k - 1].end - steps[k - 1].start) / 10;
        windows_.back().second = close ? begin : std::max(steps[k - 1].end, last[k - 1]);
      }
      windows_.emplace_back(begin, std::max(steps[k].end, last[k]));
      busy = std::max({busy, last[k], begin});
    }
    if (device_.carried > 0) windows_.back().second = windows_.front().first + device_.period;
    for (auto& window : windows_) window.second = std::max(window.first, window.second);
  }

  // What was launched in no step counts as being before the first one only where it stands at the head.
  [[nodiscard]] Nanoseconds device_span() const { return (step(0).end - step(0).start); }

  void measure_idle() {
    auto gaps = timeline_.gaps;
    if (!device_.work.empty()) {
      Nanoseconds begin = device_.work.front().start, end = begin;
      for (const auto& work : device_.work) end = std::max(end, work.end);
      gaps.insert(gaps.begin(), {std::min(windows_.front().first, begin), begin});
      gaps.emplace_back(end, std::max(windows_.back().second, end));
    }
    std::vector<Interval> loading;
    for (std::uint32_t op = 0; op < host_.operators().size(); ++op) {
      const auto& self = host_.operators()[op];
      if (self.role != Role::loader || self.owner != op) continue;
      const auto& e = host_.event(op);
      loading.emplace_back(e.start, e.end());
      if (device_.carried > 0) loading.emplace_back(e.start + device_.period, e.end() + device_.period);
    }
    loading = merged(std::move(loading));
    waits_.assign(windows_.size(), 0);
    idles_.assign(windows_.size(), 0);
    std::size_t l = 0;
    std::size_t k = 0;
    for (const auto& gap : gaps) {
      while (k < windows_.size() && windows_[k].second <= gap.first) ++k;
      for (std::size_t w = k; w < windows_.size() && windows_[w].first < gap.second; ++w) {
        const Interval part{std::max(gap.first, windows_[w].first), std::min(gap.second, windows_[w].second)};
        if (part.second <= part.first) continue;
        while (l < loading.size() && loading[l].second <= part.first) ++l;
        Nanoseconds wait = 0;
        for (std::size_t i = l; i < loading.size() && loading[i].first < part.second; ++i) {
          wait += overlap(part, loading[i]);
        }
        waits_[w] += wait;
        idles_[w] += part.second - part.first - wait;
      }
    }
  }

  // ---- layers ----

  [[nodiscard]] std::vector<double> sums(std::size_t layer, Share share) const {
    std::vector<double> all;
    for (const auto k : kept_) all.push_back(seconds(timeline_.charged[accounts_.layer(k, layer, share)]));
    return all;
  }
  [[nodiscard]] std::vector<double> sums(Extra extra) const {
    std::vector<double> all;
    for (const auto k : kept_) all.push_back(seconds(timeline_.charged[accounts_.extra(k, extra)]));
    return all;
  }

  // Both gradients are told apart only where all but a tenth of the time is known to be one or the other; the rest
  // (a bias's sum, a copy of the weights) then counts for the weights.
  static void put_backward(std::vector<double> data, std::vector<double> weight, std::vector<double> unknown,
                           ObservedOperator& op) {
    const auto sum = [](const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); };
    const double rest = sum(unknown), all = sum(data) + sum(weight) + rest;
    op.backward_is_joint = rest > 0.1 * all || sum(data) == 0 || sum(weight) == 0;
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] += unknown[i] + (op.backward_is_joint ? data[i] : 0);
    op.backward_weight = std::move(weight);
    if (!op.backward_is_joint) op.backward_data = std::move(data);
  }

  // How many elements the output can have, by the one kernel of a vectorized element-wise operator: each thread
  // computes four of them (PyTorch's thread_work_size), the last block's may be idle.
  void set_elements(std::vector<ObservedOperator>& operators) const {
    std::vector<int> kernels(operators.size(), 0);
    for (const auto& work : device_.work) {
      const auto& e = events_.events[work.event];
      if (work.use != Use::layer || work.share != Share::forward || e.category != Category::kernel) continue;
      if (static_cast<std::size_t>(work.step) != kept_.front()) continue;
      const auto i = static_cast<std::size_t>(work.layer);
      if (i >= operators.size() || ++kernels[i] > 1) continue;
      if (operators[i].kind != OpKind::relu && operators[i].kind != OpKind::add) continue;
      if (events_.name(e).find("vectorized_elementwise_kernel<4") == std::string::npos || e.grid < 1) continue;
      constexpr std::int64_t each = 4;
      operators[i].most_elements = each * e.grid * e.block;
      operators[i].least_elements = each * (e.grid - 1) * e.block + 1;
    }
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (kernels[i] != 1) operators[i].least_elements = operators[i].most_elements = 0;
    }
  }

  void build_layers() {
    const auto& layers = step(kept_.front()).layers;
    std::vector<ObservedOperator> operators;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      auto op = host_.observed(layers[i]);
      op.forward = sums(i, Share::forward);
      put_backward(sums(i, Share::backward_data), sums(i, Share::backward_weight), sums(i, Share::backward_unknown),
                   op);
      operators.push_back(std::move(op));
    }
    set_elements(operators);
    auto notes = std::move(out_.trace.notes);
    auto built = trace_of_operators(operators, batch_);
    out_.trace = std::move(built.trace);
    out_.trace.notes.insert(out_.trace.notes.begin(), notes.begin(), notes.end());
    matched_ = built.matched;
    without_layer_.assign(kept_.size(), 0);
    is_layer_.assign(layers.size(), true);
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (built.layer_of[i] >= 0) continue;
      is_layer_[i] = false;
      for (const auto* times : {&operators[i].forward, &operators[i].backward_data, &operators[i].backward_weight}) {
        for (std::size_t k = 0; k < times->size(); ++k) without_layer_[k] += (*times)[k];
      }
    }
    const auto update = sums(Extra::update);
    if (std::any_of(update.begin(), update.end(), [](double s) { return s > 0; })) {
      spread_update(out_.trace, update);
      note("the optimizer's time is spread over the layers by their parameters");
    }
  }

  // ---- beside the layers ----

  void add_outside() {
    const auto add = [&](OutsideTime::Kind kind, const std::vector<double>& times) {
      if (std::any_of(times.begin(), times.end(), [](double s) { return s > 0; })) {
        out_.trace.outside.push_back({kind, Samples{times}});
      }
    };
    const auto of_windows = [&](const std::vector<Nanoseconds>& times) {
      std::vector<double> all;
      for (const auto k : kept_) all.push_back(seconds(times[k]));
      return all;
    };
    auto unmatched = sums(Extra::unmatched);
    for (std::size_t k = 0; k < unmatched.size(); ++k) unmatched[k] += without_layer_[k];
    if (out_.trace.parameter_count() == 0) {
      const auto update = sums(Extra::update);
      for (std::size_t k = 0; k < unmatched.size(); ++k) unmatched[k] += update[k];
    }
    add(OutsideTime::Kind::input_wait, of_windows(waits_));
    add(OutsideTime::Kind::launch_gap, of_windows(idles_));
    add(OutsideTime::Kind::copy, sums(Extra::copy));
    add(OutsideTime::Kind::communication, sums(Extra::communication));
    add(OutsideTime::Kind::unmatched, unmatched);
  }

  // Whole passes as the device saw them: from the first kernel of any layer to the last, gaps included.
  void add_iteration() {
    constexpr auto never = std::numeric_limits<Nanoseconds>::max();
    constexpr std::size_t phases = 3;
    std::vector<std::array<Interval, phases>> spans(host_.steps().size());
    for (auto& span : spans) span.fill({never, std::numeric_limits<Nanoseconds>::min()});
    for (const auto& work : device_.work) {
      if (work.step < 0) continue;
      std::optional<std::size_t> phase;
      if (work.use == Use::layer) phase = work.share == Share::forward ? 0 : 1;
      if (work.use == Use::optimizer && !clears_gradients(work.op)) phase = 2;
      if (!phase) continue;
      auto& span = spans[static_cast<std::size_t>(work.step)][*phase];
      span = {std::min(span.first, work.start), std::max(span.second, work.end)};
    }
    std::array<Samples*, phases> samples{&out_.trace.iteration_forward, &out_.trace.iteration_backward,
                                         &out_.trace.iteration_update};
    for (std::size_t phase = 0; phase < phases; ++phase) {
      for (const auto k : kept_) {
        const auto& span = spans[k][phase];
        if (span.first < span.second) samples[phase]->seconds.push_back(seconds(span.second - span.first));
      }
      if (samples[phase]->seconds.size() < kept_.size()) samples[phase]->seconds.clear();
    }
  }

  [[nodiscard]] bool clears_gradients(std::uint32_t op) const {
    if (op == kNone || host_.operators()[op].owner == kNone) return false;
    return host_.name(host_.operators()[op].owner).find("zero_grad") != std::string::npos;
  }

  // ---- collectives ----

  static std::string operation_of(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> operations{{
        {"all_reduce", "all-reduce"},
        {"allreduce", "all-reduce"},
        {"broadcast", "broadcast"},
        {"reduce_scatter", "reduce-scatter"},
        {"all_gather", "all-gather"},
        {"allgather", "all-gather"},
        {"all_to_all", "all-to-all"},
        {"alltoall", "all-to-all"},
        {"reduce", "reduce"},
    }};
    for (const auto& [part, operation] : operations) {
      if (name.find(part) != std::string_view::npos) return std::string(operation);
    }
    return {};
  }

  // The collectives of a step, each once: the backend's own annotation ("nccl:all_reduce") where there is one, or
  // else the call ("c10d::allreduce_").
  [[nodiscard]] std::vector<std::uint32_t> collectives_of(std::size_t k) const {
    std::vector<std::uint32_t> annotations, calls;
    for (std::uint32_t op = 0; op < host_.operators().size(); ++op) {
      const auto& self = host_.operators()[op];
      if (self.role != Role::collective || self.step != static_cast<std::int32_t>(k)) continue;
      const auto& name = host_.name(op);
      if (operation_of(name).empty()) continue;
      (name.starts_with("c10d::") ? calls : annotations).push_back(op);
    }
    auto& all = annotations.empty() ? calls : annotations;
    std::stable_sort(all.begin(), all.end(),
                     [&](auto a, auto b) { return host_.event(a).start < host_.event(b).start; });
    return all;
  }

  // Its message as the file says it: the communication's own figure, or the shapes of the tensors. 0: unknown.
  [[nodiscard]] std::int64_t message_bytes(std::uint32_t op) const {
    for (std::uint32_t at = op; at != kNone && host_.operators()[at].role == Role::collective;
         at = host_.operators()[at].parent) {
      const auto& e = host_.event(at);
      if (e.bytes > 0) return e.bytes;
      if (e.shapes == kNone) continue;
      double count = 0;
      for (const auto& input : events_.shapes[e.shapes]) {
        if (input.position > 0) break;
        double product = 1;
        for (const auto extent : input.shape) product *= static_cast<double>(std::max<std::int64_t>(extent, 0));
        count += product;
      }
      const std::int64_t each = e.first_type == kNone ? 4 : bytes_of_type(events_.names[e.first_type]);
      if (count > 0 && count < 1e14) return static_cast<std::int64_t>(count) * each;
    }
    return 0;
  }

  void add_collectives() {
    const std::size_t k = kept_.front();
    const auto ops = collectives_of(k);
    if (ops.empty()) return;
    std::map<std::uint32_t, double> durations;  // nanoseconds
    for (const auto& work : device_.work) {
      if (work.use != Use::communication) continue;
      std::uint32_t at = work.op;
      while (at != kNone && !std::binary_search(ops.begin(), ops.end(), at)) at = host_.operators()[at].parent;
      if (at != kNone) durations[at] += static_cast<double>(work.end - work.start);
    }
    auto buckets = bucket_bytes(k, ops);
    int unknown = 0, derived = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto stated = message_bytes(ops[i]);
      const std::int64_t bytes = stated > 0 ? stated : buckets[i];
      unknown += bytes == 0 ? 1 : 0;
      derived += stated == 0 && bytes > 0 ? 1 : 0;
      out_.trace.collectives.push_back(
          {operation_of(host_.name(ops[i])), Bytes(bytes), Seconds(durations[ops[i]] * 1e-9)});
    }
    if (derived > 0) note("the sizes of all-reduces are those of the gradients accumulated since the one before");
    if (unknown > 0) note(fmt::format("{} collectives of unknown size are kept with 0 bytes", unknown));
  }

  // The bytes of DistributedDataParallel's buckets where no size is stated. A bucket is reduced when its last gradient
  // is accumulated; afterwards the reduced gradients are copied out, one after the other, bucket by bucket.
  [[nodiscard]] std::vector<std::int64_t> bucket_bytes(std::size_t k, const std::vector<std::uint32_t>& ops) {
    std::vector<std::int64_t> bytes(ops.size(), 0);
    std::vector<std::uint32_t> accumulations;
    for (std::uint32_t op = 0; op < host_.operators().size(); ++op) {
      const auto& self = host_.operators()[op];
      if (self.owner == op && self.step == static_cast<std::int32_t>(k) && host_.is_accumulation(op)) {
        accumulations.push_back(op);
      }
    }
    std::stable_sort(accumulations.begin(), accumulations.end(),
                     [&](auto a, auto b) { return host_.event(a).start < host_.event(b).start; });
    auto sizes = copied_gradients(k);
    if (sizes.size() != accumulations.size()) sizes = accumulated_gradients(accumulations);
    if (sizes.empty()) return bytes;
    std::size_t next = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (operation_of(host_.name(ops[i])) != "all-reduce") continue;
      while (next < sizes.size() && host_.event(accumulations[next]).start <= host_.event(ops[i]).start) {
        bytes[i] += sizes[next++];
      }
    }
    return bytes;
  }

  [[nodiscard]] std::vector<std::int64_t> copied_gradients(std::size_t k) const {
    std::vector<std::int64_t> sizes;
    for (const auto& work : device_.work) {
      const auto& e = events_.events[work.event];
      if (work.step != static_cast<std::int32_t>(k) || e.category != Category::copy || work.op == kNone) continue;
      const auto owner = host_.operators()[work.op].owner;
      if (owner != kNone && host_.name(owner).find("copy_bucket_to_grad") != std::string::npos && e.bytes > 0) {
        sizes.push_back(e.bytes);
      }
    }
    return sizes;
  }

  // By the shapes that autograd's nodes were given; nothing where one is unknown.
  [[nodiscard]] std::vector<std::int64_t> accumulated_gradients(const std::vector<std::uint32_t>& accumulations) const {
    std::vector<std::int64_t> sizes;
    for (const auto op : accumulations) {
      const auto& e = host_.event(op);
      if (e.shapes == kNone) return {};
      double count = 1;
      for (const auto extent : events_.shapes[e.shapes].front().shape) {
        count *= static_cast<double>(std::max<std::int64_t>(extent, 0));
      }
      if (count > 1e13) return {};
      sizes.push_back(4 * static_cast<std::int64_t>(count));
    }
    return sizes;
  }

  // ---- what the file says about itself ----

  void describe() {
    auto& trace = out_.trace;
    trace.recorder = "PyTorch profiler (Kineto)";
    trace.framework = "PyTorch";
    const auto name = events_.device_names.find(device_.device);
    trace.device = name == events_.device_names.end() || name->second.empty() ? "unknown" : name->second;
    trace.layout = "nchw";
    trace.cache_mode = "in situ";
    const auto type = host_.event(step(kept_.front()).layers.front()).first_type;
    if (type != kNone) {
      const auto& text = events_.names[type];
      if (text.find("BFloat16") != std::string::npos) {
        trace.dtype = "bfloat16";
      } else if (text.find("Half") != std::string::npos) {
        trace.dtype = "float16";
      }
    }
    if (device_.on_host) note("no device in the file: the times are those of the host's operators");
    if (!host_.annotated_steps()) note("no ProfilerStep in the file: all of it is one step");
    if (device_.carried > 0) {
      note(
          fmt::format("the device runs behind the host: {} kernels, copies and fills at the file's head were launched "
                      "before it begins and stand for the last ones of its last step, which it lacks",
                      device_.carried));
    }
    if (std::any_of(trace.layers.begin(), trace.layers.end(), [](const Layer& l) { return l.kind == OpKind::conv; })) {
      note("gradients of convolutions are told apart by cuDNN's kernel names and by order; joint where that fails");
    }
    if (events_.world_size > 0) note(fmt::format("a run of {} ranks", events_.world_size));
  }

  // ---- the report ----

  // Sums of nanoseconds are doubles: a forged file may hold more than 64 bits of them.
  struct Tally {
    std::int64_t count = 0;
    double time = 0;
    std::map<std::uint32_t, std::pair<double, std::int64_t>> names;
    void add(const Work& work, std::uint32_t name) {
      const auto own = static_cast<double>(work.end - work.start);
      ++count;
      time += own;
      auto& entry = names[name];
      entry.first += own;
      ++entry.second;
    }
  };

  void report() {
    std::map<std::string, Tally> tallies;
    const std::set<std::size_t> kept(kept_.begin(), kept_.end());
    for (const auto& work : device_.work) {
      const auto& e = events_.events[work.event];
      tallies[heading(work, e, kept)].add(work, e.name);
    }
    add_entries(tallies);
    add_idle_entries();
    add_host_entries();
  }

  [[nodiscard]] std::string heading(const Work& work, const Event& e, const std::set<std::size_t>& kept) const {
    if (work.use == Use::not_of_steps) return "outside";
    if (kept.count(static_cast<std::size_t>(work.step)) == 0) return "incomplete";
    switch (work.use) {
      case Use::layer:
        if (!is_layer_[static_cast<std::size_t>(work.layer)]) return "unmatched";
        return work.share == Share::forward ? "forward" : "backward";
      case Use::optimizer:
        return "optimizer";
      case Use::copy:
        return e.category == Category::fill ? "fill" : "copy";
      case Use::communication:
        return "communication";
      default:
        return "unmatched";
    }
  }

  [[nodiscard]] std::string most_expensive(const Tally& tally) const {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (const auto& [name, entry] : tally.names) order.emplace_back(-entry.first, name);
    std::sort(order.begin(), order.end());
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 3); ++i) {
      std::string name = events_.names[order[i].second].substr(0, 80);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
      text += fmt::format("{}{} x {}, {:.3g} ms", i == 0 ? "most: " : "; ", tally.names.at(order[i].second).second,
                          name, -order[i].first * 1e-6);
    }
    return text;
  }

  void add_entries(const std::map<std::string, Tally>& tallies) {
    using Fate = ImportReport::Fate;
    const std::string what = device_.on_host ? "operators" : "kernels";
    struct Row {
      const char* heading;
      std::string text;
      Fate fate;
      const char* why;
    };
    const Row rows[] = {
        {"forward", what + " of layers, forward", Fate::used, ""},
        {"backward", what + " of layers, backward", Fate::used, ""},
        {"optimizer", what + " of the optimizer", Fate::used, "spread over the layers by their parameters"},
        {"communication", what + " of collectives", Fate::apart, ""},
        {"copy", "memory copies", Fate::apart, ""},
        {"fill", "memory fills", Fate::apart, ""},
        {"unmatched", what + " of no layer", Fate::apart, nullptr},
        {"incomplete", what + ", copies and fills of steps left out", Fate::dropped, "incomplete, or of other layers"},
        {"outside", what + ", copies and fills launched outside the steps", Fate::dropped, "of no whole step"},
    };
    for (const auto& row : rows) {
      const auto tally = tallies.find(row.heading);
      if (tally == tallies.end()) continue;
      out_.report.entries.push_back({row.text, tally->second.count, Seconds(tally->second.time * 1e-9), row.fate,
                                     row.why == nullptr ? most_expensive(tally->second) : row.why});
    }
    if (device_.other_devices > 0) {
      out_.report.entries.push_back({"kernels, copies and fills of other devices", device_.other_devices,
                                     Seconds(device_.other_devices_time * 1e-9), Fate::dropped, "not asked for"});
    }
    double all = 0;
    for (const auto& work : device_.work) all += static_cast<double>(work.end - work.start);
    const Nanoseconds once = std::accumulate(timeline_.charged.begin(), timeline_.charged.end(), Nanoseconds{0});
    if (const double twice = all - static_cast<double>(once); twice > 0.5) {
      out_.report.entries.push_back(
          {"overlap of the above", 0, Seconds(twice * 1e-9), Fate::dropped, "several streams at once count once"});
    }
  }

  void add_idle_entries() {
    const auto add = [&](const char* what, const std::vector<Nanoseconds>& times) {
      Nanoseconds sum = 0;
      for (const auto k : kept_) sum += times[k];
      if (sum > 0) {
        out_.report.entries.push_back({what, 0, Seconds(seconds(sum)), ImportReport::Fate::apart, ""});
      }
    };
    add("idle, waiting for input", waits_);
    add("idle otherwise: launches and the host's own work", idles_);
  }

  void add_host_entries() {
    std::int64_t host = 0, calls = 0, flows = 0;
    for (const auto& e : events_.events) {
      if (on_device(e.category)) continue;
      (e.category == Category::runtime                                               ? calls
       : e.category == Category::host_operator || e.category == Category::annotation ? host
                                                                                     : flows)++;
    }
    const auto add = [&](const char* what, std::int64_t count, const char* why) {
      if (count > 0) out_.report.entries.push_back({what, count, {}, ImportReport::Fate::dropped, why});
    };
    if (!device_.on_host) add("operators and annotations of the host", host, "they tell what kernels are for");
    add("calls of the runtime", calls, "they tell who launched a kernel");
    add("flows", flows, "they tell who launched a kernel");
    add("other events", events_.counters, "instants, counters, metadata, Python functions");
    const auto left_out = static_cast<std::int64_t>(host_.steps().size() - kept_.size());
    add("steps left out", left_out, "incomplete, or of other layers");
  }

  const Events& events_;
  Host host_;
  std::int64_t batch_;
  DeviceWork device_;
  Accounts accounts_;
  Imported out_;
  std::vector<std::size_t> kept_;
  Timeline timeline_;
  std::vector<Interval> windows_;
  std::vector<Nanoseconds> waits_, idles_;
  std::vector<double> without_layer_;  // a kept step: of operators that the model has no layer for
  std::vector<bool> is_layer_;         // of an operator in a step's order
  bool matched_ = false;
};

class KinetoImporter : public Importer {
 public:
  KinetoImporter(std::int64_t batch, std::int64_t device) : batch_(batch), device_(device) {}

  // Both forms: an object with traceEvents, and the bare array of events. Other profiles in Chrome's format have
  // neither operators of PyTorch nor kernels, and Chakra's nodes have no phase.
  [[nodiscard]] bool recognizes(std::string_view head) const override {
    const auto first = head.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    const auto contains = [&](std::string_view part) { return head.find(part) != std::string_view::npos; };
    const bool events = contains("\"ph\"") && (contains("\"ts\"") || contains("\"pid\""));
    if (head[first] == '[') return events && contains("\"cat\"");
    return head[first] == '{' && (contains("\"traceEvents\"") || contains("\"deviceProperties\"")) &&
           (events || contains("\"schemaVersion\""));
  }

  [[nodiscard]] Imported read(const SourceFile& source) const override {
    const Events events = read_events(source.content);
    return Import(events, batch_, device_).run();
  }

 private:
  std::int64_t batch_, device_;
};

std::unique_ptr<Importer> make_kineto(const Arguments& arguments, const Importer::PluginContext&) {
  return std::make_unique<KinetoImporter>(arguments.has("batch") ? arguments.integer("batch", 1, 1 << 16) : 0,
                                          arguments.has("device") ? arguments.integer("device", 0, 1 << 20) : -1);
}

TANDEM_REGISTER(Importer, kineto, "kineto", "PyTorch profiler's JSON (Kineto), old and new; layers by their kernels",
                make_kineto,
                {{"batch", ParameterType::integer, "", "samples a step; by default from shapes or kernel sizes"},
                 {"device", ParameterType::integer, "",
                  "the device to import where a file has several; each rank of a run has a file of its own"}})

}  // namespace
}  // namespace tandem
