#include "traces/importers/kineto_device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "sim/core/error.hpp"

namespace tandem::kineto {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_collective_kernel(std::string_view name) {
  return has(name, "nccl") || has(name, "rccl") || has(name, "oneccl");
}

// ---- a convolution's backward kernels ----

// cuDNN's kernels of the two gradients by their names (as of versions 7 to 8). Helpers tell nothing: they run before
// what they prepare, or after what they finish.
enum class Mark : std::uint8_t { none, data, weight, product, before, after };
Mark mark_of(std::string_view name) {
  for (const auto* part : {"computeOffsets", "computeBOffsets", "nchwToNhwc", "scalePackedTensor", "generateWinograd",
                           "kern_precompute", "fill"}) {
    if (has(name, part)) return Mark::before;
  }
  for (const auto* part : {"nhwcToNchw", "splitKreduce"}) {
    if (has(name, part)) return Mark::after;
  }
  for (const auto* part : {"wgrad", "Wgrad", "cudnn_train_", "splitK"}) {
    if (has(name, part)) return Mark::weight;
  }
  for (const auto* part : {"dgrad", "Dgrad", "cudnn_infer_", "winogradForward", "stridedB"}) {
    if (has(name, part)) return Mark::data;
  }
  return has(name, "gemm") ? Mark::product : Mark::none;
}

// Splits one convolution's backward kernels (in order) into those of the gradient of the input, which PyTorch computes
// first, and of the weights. False, and nothing changed, where names and order leave it open.
bool split_kernels(const Events& events, std::vector<Work*>& kernels) {
  if (kernels.size() > 64) return false;  // one convolution's are a handful
  std::vector<Mark> marks;
  for (const auto* work : kernels) marks.push_back(mark_of(events.name(events.events[work->event])));
  const auto count = [&](Mark mark) { return std::count(marks.begin(), marks.end(), mark); };
  const bool data = count(Mark::data) > 0, weight = count(Mark::weight) > 0;
  for (std::size_t i = 0, products = 0; i < marks.size(); ++i) {
    if (marks[i] != Mark::product) continue;
    const auto known = [](Mark m) { return m == Mark::data || m == Mark::weight; };
    const auto before = std::find_if(marks.rend() - static_cast<std::ptrdiff_t>(i), marks.rend(), known);
    const auto after = std::find_if(marks.begin() + static_cast<std::ptrdiff_t>(i), marks.end(), known);
    const bool begun = before != marks.rend(), follows = after != marks.end();
    if (!data && !weight) {
      if (count(Mark::product) != 2) return false;
      marks[i] = products++ == 0 ? Mark::data : Mark::weight;
      if (products == 2) break;
    } else if (begun && follows && *before == *after) {
      marks[i] = *before;  // the product inside a Winograd transformation
    } else {
      marks[i] = follows ? (begun ? *after : Mark::data) : Mark::weight;
    }
  }
  if (count(Mark::data) == 0 || count(Mark::weight) == 0 || count(Mark::none) > 0) return false;
  Mark last = Mark::data;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    Mark mark = marks[i];
    if (mark == Mark::before) {
      const auto next = std::find_if(marks.begin() + static_cast<std::ptrdiff_t>(i), marks.end(),
                                     [](Mark m) { return m == Mark::data || m == Mark::weight; });
      mark = next == marks.end() ? last : *next;
    } else if (mark == Mark::after) {
      mark = last;
    }
    last = mark;
    kernels[i]->share = mark == Mark::data ? Share::backward_data : Share::backward_weight;
  }
  return true;
}

// ---- launches ----

struct Launch {
  std::int64_t correlation = -1, external = -1;
  Nanoseconds start = 0;
  std::uint32_t op = kNone;
  std::int32_t step = -1;
  Category launches = Category::other;  // kernel, copy or other
};

Category launched_by(std::string_view name) {
  if (has(name, "LaunchKernel") || has(name, "LaunchCooperativeKernel")) return Category::kernel;
  if (has(name, "MemcpyAsync")) return Category::copy;
  return Category::other;
}

class Device {
 public:
  Device(const Events& events, const Host& host) : events_(events), host_(host) {}

  DeviceWork read(std::int64_t device) {
    choose(device);
    if (out_.on_host) {
      take_host();
    } else {
      take_device();
      read_launches();
      link();
      carry();
      for (auto& work : out_.work) classify(work);
      split_convolutions();
    }
    std::stable_sort(out_.work.begin(), out_.work.end(), [](const Work& a, const Work& b) {
      return std::tuple(a.start, a.event) < std::tuple(b.start, b.event);
    });
    return std::move(out_);
  }

 private:
  // Old files say a kernel's device in its arguments, all say it as the process.
  [[nodiscard]] std::int64_t device_of(const Event& e) const {
    if (e.device >= 0) return e.device;
    const auto& pid = events_.threads[e.thread].pid;
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), value);
    return error == std::errc() && end == pid.data() + pid.size() ? value : -1;
  }

  void choose(std::int64_t device) {
    std::set<std::int64_t> devices;
    for (const auto& e : events_.events) {
      if (on_device(e.category)) devices.insert(device_of(e));
    }
    out_.on_host = devices.empty();
    if (device >= 0 && devices.count(device) == 0) {
      throw input_error(devices.empty()
                            ? fmt::format("no kernels of device {}: the file has none", device)
                            : fmt::format("no kernels of device {}; there are: {}", device, fmt::join(devices, ", ")));
    }
    if (device < 0 && devices.size() > 1) {
      throw input_error(
          fmt::format("kernels of several devices ({}): choose one (device=N)", fmt::join(devices, ", ")));
    }
    out_.device = device >= 0 ? device : devices.empty() ? -1 : *devices.begin();
  }

  void take_device() {
    for (std::uint32_t i = 0; i < events_.events.size(); ++i) {
      const auto& e = events_.events[i];
      if (!on_device(e.category)) continue;
      if (device_of(e) != out_.device) {
        ++out_.other_devices;
        out_.other_devices_time += static_cast<double>(e.duration);
        continue;
      }
      auto& work = out_.work.emplace_back();
      work.event = i;
      work.start = e.start;
      work.end = e.end();
    }
    std::stable_sort(out_.work.begin(), out_.work.end(),
                     [](const Work& a, const Work& b) { return a.start < b.start; });
  }

  void read_launches() {
    for (const auto& e : events_.events) {
      const bool flow = e.category == Category::launch_start;
      if ((e.category != Category::runtime && !flow) || e.correlation < 0) continue;
      Launch launch{e.correlation, e.external, e.start, kNone, host_.step_at(e.start), Category::other};
      if (!flow) launch.launches = launched_by(events_.name(e));
      launch.op = host_.running(e.thread, e.start);
      launches_.push_back(launch);
    }
    // A call and its flow have the same number; the call comes first, as it knows more.
    std::stable_sort(launches_.begin(), launches_.end(), [](const Launch& a, const Launch& b) {
      return std::tuple(a.correlation, a.external < 0) < std::tuple(b.correlation, b.external < 0);
    });
    launches_.erase(std::unique(launches_.begin(), launches_.end(),
                                [](const Launch& a, const Launch& b) { return a.correlation == b.correlation; }),
                    launches_.end());
    for (std::uint32_t op = 0; op < host_.operators().size(); ++op) {
      if (host_.event(op).external >= 0) by_external_.emplace(host_.event(op).external, op);
    }
    const auto unnumbered = [&](const Work& work) { return events_.events[work.event].correlation < 0; };
    if (std::none_of(out_.work.begin(), out_.work.end(), unnumbered)) return;
    for (const auto& e : events_.events) {
      if (e.category == Category::launch_end) flow_ends_.emplace(std::pair{e.thread, e.start}, e.correlation);
    }
  }

  [[nodiscard]] std::int64_t correlation_of(const Event& e) const {
    if (e.correlation >= 0) return e.correlation;
    const auto found = flow_ends_.find({e.thread, e.start});
    return found == flow_ends_.end() ? -1 : found->second;
  }

  // Through the call that launched it; where the file has none, through the operator's number.
  void link() {
    used_.assign(launches_.size(), false);
    for (std::size_t i = 0; i < out_.work.size(); ++i) {
      auto& work = out_.work[i];
      const auto& e = events_.events[work.event];
      const auto correlation = correlation_of(e);
      const auto launch = std::lower_bound(launches_.begin(), launches_.end(), correlation,
                                           [](const Launch& l, std::int64_t c) { return l.correlation < c; });
      if (correlation >= 0 && launch != launches_.end() && launch->correlation == correlation) {
        work.op = launch->op;
        work.step = launch->step;
        used_[static_cast<std::size_t>(launch - launches_.begin())] = true;
        continue;
      }
      const auto op = by_external_.find(e.external);
      if (e.external >= 0 && op != by_external_.end()) {
        work.op = op->second;
        work.step = host_.operators()[op->second].step;
      } else {
        orphans_.push_back(i);
      }
    }
  }

  // ---- a device that is behind its host ----

  // The device runs behind the host. A file cut at the steps' bounds begins with kernels that the step before has
  // launched, and lacks those that its last step launches at the end. Steps are alike, so the former stand for the
  // latter: they are as many, in the same order, and change operators at the same places.
  void carry() {
    std::vector<const Launch*> waiting;  // launches of kernels without any
    Nanoseconds last_used = std::numeric_limits<Nanoseconds>::min();
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const auto& launch = launches_[i];
      if (launch.launches == Category::kernel && used_[i]) last_used = std::max(last_used, launch.start);
      if (launch.launches != Category::other && !used_[i] && launch.step >= 0) waiting.push_back(&launch);
    }
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Launch* a, const Launch* b) { return a->start < b->start; });
    const auto late =
        std::remove_if(waiting.begin(), waiting.end(), [&](const Launch* launch) { return launch->start < last_used; });
    waiting.erase(late, waiting.end());
    out_.launches_without_kernel = std::count_if(
        waiting.begin(), waiting.end(), [](const Launch* launch) { return launch->launches == Category::kernel; });
    if (orphans_.empty() || waiting.empty() || !host_.annotated_steps()) return;
    for (const auto& work : out_.work) {
      if (work.step >= 0) first_linked_ = std::min(first_linked_, work.start);
    }
    const auto pairs = pair_up(waiting, Category::kernel);
    if (!pairs) return;
    out_.period = period();
    for (const auto& [work, launch] : *pairs) work->op = launch->op;
    if (const auto copies = pair_up(waiting, Category::copy)) {
      for (const auto& [work, launch] : *copies) work->op = launch->op;
    }
    for (const auto i : orphans_) {
      auto& work = out_.work[i];
      if (!at_head(work)) continue;
      work.step = static_cast<std::int32_t>(host_.steps().size()) - 1;
      work.start += out_.period;
      work.end += out_.period;
      ++out_.carried;
    }
    out_.launches_without_kernel = 0;
  }

  [[nodiscard]] bool at_head(const Work& work) const { return work.start < first_linked_; }

  // The steps' time on the host; longer where the file's last kernel, which may end after the last step, would run into
  // the first.
  [[nodiscard]] Nanoseconds period() const {
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max(), last = std::numeric_limits<Nanoseconds>::min();
    for (const auto& work : out_.work) {
      if (work.step >= 0) last = std::max(last, work.end);
      if (work.step < 0 && at_head(work)) first = std::min(first, work.start);
    }
    const Nanoseconds length = host_.steps().back().end - host_.steps().front().start;
    const bool both = first < std::numeric_limits<Nanoseconds>::max() && last > std::numeric_limits<Nanoseconds>::min();
    return both ? std::max(length, last - first) : length;
  }

  using Pairs = std::vector<std::pair<Work*, const Launch*>>;

  // From the last ones backwards. Nothing where the numbers differ by more than a twentieth, or where they change
  // operators at other places.
  [[nodiscard]] std::optional<Pairs> pair_up(const std::vector<const Launch*>& waiting, Category category) {
    std::vector<Work*> head;
    for (const auto i : orphans_) {
      auto& work = out_.work[i];
      if (events_.events[work.event].category == category && at_head(work)) head.push_back(&work);
    }
    std::vector<const Launch*> tail;
    for (const auto* launch : waiting) {
      if (launch->launches == category) tail.push_back(launch);
    }
    const auto n = std::min(head.size(), tail.size()), most = std::max(head.size(), tail.size());
    if (n == 0 || (most - n) * 20 > most) return std::nullopt;
    Pairs pairs;
    for (std::size_t k = 0; k < n; ++k) pairs.emplace_back(head[head.size() - n + k], tail[tail.size() - n + k]);
    std::size_t differ = 0;
    for (std::size_t k = 1; k < n; ++k) {
      const bool same_work =
          events_.events[pairs[k].first->event].external == events_.events[pairs[k - 1].first->event].external;
      differ += same_work != (pairs[k].second->external == pairs[k - 1].second->external) ? 1 : 0;
    }
    if (differ * 100 > n) return std::nullopt;
    return pairs;
  }

  // ---- what it is for ----

  void classify(Work& work) const {
    const auto& e = events_.events[work.event];
    const auto purpose = host_.purpose(work.op);
    if (work.step < 0) {
      work.use = Use::not_of_steps;
    } else if (e.category != Category::kernel) {
      work.use = Use::copy;
      work.priority = 2;
    } else if (is_collective_kernel(events_.name(e)) || purpose.role == Role::collective) {
      work.use = Use::communication;
      work.priority = 1;
    } else {
      classify_by(purpose, work);
    }
  }

  static void classify_by(const Purpose& purpose, Work& work) {
    work.use = Use::unmatched;
    if (purpose.role == Role::optimizer) work.use = Use::optimizer;
    if (purpose.role == Role::collective) work.use = Use::communication;
    if (purpose.layer < 0) return;
    work.use = Use::layer;
    work.layer = purpose.layer;
    work.share = purpose.role == Role::forward  ? Share::forward
                 : purpose.part == Part::data   ? Share::backward_data
                 : purpose.part == Part::weight ? Share::backward_weight
                                                : Share::backward_unknown;
  }

  void split_convolutions() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Work*>> open;
    for (auto& work : out_.work) {
      if (work.use != Use::layer || work.share != Share::backward_unknown) continue;
      const auto& layers = host_.steps()[static_cast<std::size_t>(work.step)].layers;
      const auto layer = static_cast<std::size_t>(work.layer);
      if (layer >= layers.size() || host_.kind(layers[layer]) != OpKind::conv) continue;
      open[{work.step, work.layer}].push_back(&work);
    }
    for (auto& [key, kernels] : open) split_kernels(events_, kernels);
  }

  // ---- without a device ----

  // Every operator that works for somebody, where it begins to: the innermost is charged.
  void take_host() {
    const auto& operators = host_.operators();
    std::vector<std::int32_t> depth(operators.size(), 0);
    for (std::uint32_t op = 0; op < operators.size(); ++op) {
      const auto& self = operators[op];
      const auto* parent = self.parent == kNone ? nullptr : &operators[self.parent];
      if (parent != nullptr) depth[op] = depth[self.parent] + 1;
      if (self.owner == kNone || self.role == Role::loader) continue;
      if (parent != nullptr && parent->owner == self.owner && parent->part == self.part) continue;
      const auto purpose = host_.purpose(op);
      Work work;
      work.event = self.event;
      work.op = op;
      work.start = host_.event(op).start;
      work.end = host_.event(op).end();
      work.step = purpose.step;
      work.priority = -depth[op];
      if (purpose.step < 0) {
        work.use = Use::not_of_steps;
      } else {
        classify_by(purpose, work);
        if (work.use == Use::unmatched && has(host_.name(op), "copy_")) work.use = Use::copy;
      }
      out_.work.push_back(work);
    }
  }

  const Events& events_;
  const Host& host_;
  DeviceWork out_;
  std::vector<Launch> launches_;
  std::vector<bool> used_;
  std::vector<std::size_t> orphans_;
  Nanoseconds first_linked_ = std::numeric_limits<Nanoseconds>::max();
  std::unordered_map<std::int64_t, std::uint32_t> by_external_;
  std::map<std::pair<std::uint32_t, Nanoseconds>, std::int64_t> flow_ends_;
};

}  // namespace

DeviceWork device_work(const Events& events, const Host& host, std::int64_t device) {
  return Device(events, host).read(device);
}

}  // namespace tandem::kineto
