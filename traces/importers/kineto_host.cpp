#include "traces/importers/kineto_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <tuple>

#include "sim/core/error.hpp"

namespace tandem::kineto {
namespace {

constexpr int kMostNesting = 512;
// Times are rounded where the file is written: a caller that ends this much before what seems its callee did not
// call it.
constexpr Nanoseconds kRounding = 1000;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "ConvolutionBackward0", "CudnnConvolutionBackward".
bool is_node(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") && !has(name, "aten::") && !has(name, " ");
}

OpKind kind_of_node(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, OpKind>, 20> kinds{{
      {"Conv", OpKind::conv},
      {"Addmm", OpKind::fc},
      {"Linear", OpKind::fc},
      {"MmBackward", OpKind::fc},
      {"BatchNorm", OpKind::bn},
      {"Relu", OpKind::relu},
      {"Threshold", OpKind::relu},
      {"Hardtanh", OpKind::relu},
      {"ClampMin", OpKind::relu},
      {"MaxPool", OpKind::max_pool},
      {"AvgPool", OpKind::avg_pool},
      {"MeanBackward", OpKind::avg_pool},
      {"AddBackward", OpKind::add},
      {"CatBackward", OpKind::concat},
      {"Dropout", OpKind::dropout},
      {"LogSoftmax", OpKind::softmax_loss},
      {"NllLoss", OpKind::softmax_loss},
      {"CrossEntropy", OpKind::softmax_loss},
      {"Softmax", OpKind::softmax_loss},
      {"MulBackward", OpKind::other},
  }};
  for (const auto& [part, kind] : kinds) {
    if (has(name, part)) return kind;
  }
  return OpKind::other;
}

// "[2, 2]" or "2" as whole numbers; empty where it is something else.
std::vector<int> integers(std::string_view text) {
  std::vector<int> values;
  std::size_t at = 0;
  while (at < text.size() && values.size() < 4) {
    if ((text[at] < '0' || text[at] > '9') && text[at] != '-') {
      if (text[at] != '[' && text[at] != ']' && text[at] != ',' && text[at] != ' ') return {};
      ++at;
      continue;
    }
    int value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > 4096) return {};
    values.push_back(value);
    at = static_cast<std::size_t>(end - text.data());
  }
  return values;
}

std::string_view value_at(std::string_view joined, int position) {
  for (int i = 0; i < position; ++i) {
    const auto bar = joined.find('|');
    if (bar == std::string_view::npos) return {};
    joined.remove_prefix(bar + 1);
  }
  return joined.substr(0, joined.find('|'));
}

}  // namespace

// ---- names ----

Host::Meaning::Meaning(std::string_view name) {
  constexpr std::string_view evaluation = "autograd::engine::evaluate_function: ";
  if (name.starts_with(evaluation)) name.remove_prefix(evaluation.size());
  what = of(name);
  if (what == What::node) kind = kind_of_node(name);
  if (what == What::plain_operator) kind = kind_of_operator(name);
  if (has(name, "backward_input")) part = Part::data;
  if (has(name, "backward_weight") || has(name, "backward_bias") || what == What::accumulation) part = Part::weight;
  product = name == "aten::mm" || name == "aten::bmm";
}

Host::Meaning::What Host::Meaning::of(std::string_view name) {
  if (name.starts_with("ProfilerStep#")) return What::step;
  if (name.starts_with("enumerate(DataLoader)")) return What::loader;
  if (name.starts_with("Optimizer.") || has(name, "::_foreach_") || has(name, "::_fused_")) {
    return has(name, "_fused_dropout") ? What::plain_operator : What::optimizer;
  }
  for (const auto* prefix : {"nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "record_param_comms"}) {
    if (name.starts_with(prefix)) return What::collective;
  }
  if (has(name, "reducer::") || has(name, "flatten_dense_tensors")) return What::bucketing;
  if (name == "torch::autograd::AccumulateGrad") return What::accumulation;
  if (is_node(name)) return What::node;
  if (!has(name, "::")) return What::wrapper;
  return is_view(name) ? What::view : What::plain_operator;
}

void Host::read_meanings() {
  meanings_.reserve(events_.names.size());
  for (const auto& name : events_.names) meanings_.emplace_back(name);
}

const Host::Meaning& Host::meaning(std::uint32_t op) const {
  return meanings_[event(op).name];
}

// ---- who calls whom ----

Host::Host(const Events& events) : events_(events) {
  read_meanings();
  for (std::uint32_t i = 0; i < events.events.size(); ++i) {
    const auto category = events.events[i].category;
    if (category == Category::host_operator || category == Category::annotation) {
      operators_.emplace_back().event = i;
    }
  }
  std::sort(operators_.begin(), operators_.end(), [&](const HostOperator& a, const HostOperator& b) {
    const auto& x = events.events[a.event];
    const auto& y = events.events[b.event];
    return std::tuple(x.thread, x.start, -x.duration, a.event) < std::tuple(y.thread, y.start, -y.duration, b.event);
  });
  find_steps();
  nest();
  find_leftovers();
  link();
  find_layers();
  attach_helpers();
  attach_backward();
}

void Host::find_steps() {
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    if (meaning(op).what == Meaning::What::step && event(op).duration > 0) {
      steps_.push_back({event(op).start, event(op).end(), {}});
    }
  }
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.start < b.start; });
  annotated_ = !steps_.empty();
  // Another process's steps at the same time are no further steps.
  std::vector<Step> apart;
  for (const auto& step : steps_) {
    if (apart.empty() || step.start >= apart.back().end) apart.push_back(step);
  }
  steps_ = std::move(apart);
  if (annotated_ || operators_.empty()) return;
  Step whole{event(0).start, event(0).end(), {}};
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    whole.start = std::min(whole.start, event(op).start);
    whole.end = std::max(whole.end, event(op).end());
  }
  steps_.push_back(whole);
}

std::int32_t Host::step_at(Nanoseconds at) const {
  const auto after =
      std::upper_bound(steps_.begin(), steps_.end(), at, [](Nanoseconds t, const Step& s) { return t < s.start; });
  if (after == steps_.begin()) return -1;
  const auto step = after - 1;
  // An unannotated file is one step from its first event to its last.
  return at < step->end || !annotated_ ? static_cast<std::int32_t>(step - steps_.begin()) : -1;
}

void Host::nest() {
  threads_.assign(events_.threads.size(), {0, 0});
  std::vector<std::uint32_t> open;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    const auto& e = event(op);
    auto& range = threads_[e.thread];
    if (op == 0 || event(op - 1).thread != e.thread) {
      open.clear();
      range.first = op;
    }
    range.second = op + 1;
    while (!open.empty()) {
      const auto end = event(open.back()).end();
      if (e.start < end && (e.end() <= end || e.start + kRounding < end)) break;
      open.pop_back();
    }
    operators_[op].step = step_at(e.start);
    operators_[op].parent = open.empty() ? kNone : open.back();
    give_role(op, open.empty() ? nullptr : &operators_[open.back()]);
    if (e.duration > 0) open.push_back(op);
    if (open.size() > kMostNesting) {
      throw input_error(fmt::format("operators nested deeper than {} around '{}'", kMostNesting, name(op)));
    }
  }
}

// Which gradient a call inside a node of a convolution or product computes, where the operators tell: biases' gradients
// are sums, additions add up the gradients of an input that several layers read, and of y = x W autograd computes the
// gradient of x first, then that of W.
Part Host::part_of_call(std::uint32_t op, std::uint32_t node) {
  const OpKind kind = meaning(node).kind;
  if (kind != OpKind::fc && kind != OpKind::conv) return Part::unknown;
  if (meaning(op).product && kind == OpKind::fc) return products_[node]++ == 0 ? Part::data : Part::weight;
  if (meaning(op).kind == OpKind::add) return Part::data;
  return name(op) == "aten::sum" ? Part::weight : Part::unknown;
}

void Host::give_role(std::uint32_t op, const HostOperator* parent) {
  using What = Meaning::What;
  static constexpr std::array<Role, 10> roles{Role::none,       Role::none,      Role::loader,   Role::optimizer,
                                              Role::collective, Role::bucketing, Role::backward, Role::backward,
                                              Role::forward,    Role::forward};
  auto& self = operators_[op];
  const auto& what = meaning(op);
  const bool communication = what.what == What::collective || what.what == What::bucketing;
  const bool inherits = parent != nullptr && parent->role != Role::none;
  if (inherits && !(communication && (parent->role == Role::backward || parent->role == Role::forward))) {
    self.role = parent->role;
    self.owner = parent->owner;
    self.part = parent->part != Part::unknown ? parent->part : what.part;
    if (self.role == Role::backward && self.part == Part::unknown) self.part = part_of_call(op, self.owner);
    return;
  }
  // What an annotation of the user is called is the user's affair, but for those that PyTorch itself writes.
  const bool named = what.what == What::plain_operator || what.what == What::view || what.what == What::node;
  if (event(op).category == Category::annotation && named) return;
  self.role = roles[static_cast<std::size_t>(what.what)];
  if (self.role == Role::none) return;
  self.owner = op;
  self.part = what.part;
}

std::uint32_t Host::running(std::uint32_t thread, Nanoseconds at) const {
  if (thread >= threads_.size()) return kNone;
  const auto [first, last] = threads_[thread];
  const auto begin = operators_.begin() + first;
  const auto after = std::upper_bound(begin, operators_.begin() + last, at, [&](Nanoseconds t, const HostOperator& o) {
    return t < events_.events[o.event].start;
  });
  if (after == begin) return kNone;
  auto op = static_cast<std::uint32_t>(after - operators_.begin() - 1);
  while (op != kNone && event(op).end() < at) op = operators_[op].parent;
  return op;
}

// ---- autograd ----

// Operators between the nodes of an autograd thread are autograd's too: it sums gradients and reduces those of biases
// outside any node.
void Host::find_leftovers() {
  std::map<std::pair<std::uint32_t, std::int32_t>, std::pair<Nanoseconds, Nanoseconds>> ranges;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    const auto& self = operators_[op];
    if (self.role != Role::backward || self.owner != op || self.step < 0) continue;
    const auto [entry, added] = ranges.try_emplace({event(op).thread, self.step}, event(op).start, event(op).end());
    if (!added) entry->second.second = std::max(entry->second.second, event(op).end());
  }
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    auto& self = operators_[op];
    if (self.role != Role::forward) continue;
    if (self.owner != op) {  // its owner stands before it
      self.role = operators_[self.owner].role;
      if (self.part == Part::unknown) self.part = operators_[self.owner].part;
      continue;
    }
    const auto range = ranges.find({event(op).thread, self.step});
    if (range == ranges.end() || event(op).start < range->second.first || event(op).start >= range->second.second) {
      continue;
    }
    self.role = Role::backward;
    if (name(op) == "aten::sum") self.part = Part::weight;
    if (meaning(op).kind == OpKind::add) self.part = Part::data;
  }
}

// Of the operators that carry a node's number (the last one first) the last one made the node: those before it only saw
// the number that would be next. Where the node's name tells a kind, of that kind.
std::uint32_t Host::best(const std::vector<std::uint32_t>& candidates, std::uint32_t node) const {
  const OpKind kind = meaning(node).kind;
  for (const auto candidate : candidates) {
    if (kind != OpKind::other && meaning(candidate).kind == kind) return candidate;
  }
  return candidates.empty() ? kNone : candidates.front();
}

void Host::link_by_sequence(const std::vector<std::uint32_t>& nodes) {
  std::vector<std::tuple<std::int32_t, std::int64_t, std::uint32_t>> numbered;  // step, number, owner
  for (const auto& op : operators_) {
    const auto sequence = events_.events[op.event].sequence;
    if (op.role == Role::forward && sequence >= 0 && op.step >= 0) numbered.emplace_back(op.step, sequence, op.owner);
  }
  std::sort(numbered.begin(), numbered.end());
  numbered.erase(std::unique(numbered.begin(), numbered.end()), numbered.end());
  std::vector<std::uint32_t> candidates;
  for (const auto node : nodes) {
    candidates.clear();
    if (event(node).sequence < 0) continue;
    const std::tuple high(operators_[node].step, event(node).sequence, kNone);
    constexpr std::size_t most = 64;
    for (auto at = std::upper_bound(numbered.begin(), numbered.end(), high); at != numbered.begin();) {
      --at;
      const bool same = std::get<0>(*at) == std::get<0>(high) && std::get<1>(*at) == std::get<1>(high);
      if (!same || candidates.size() == most) break;
      candidates.push_back(std::get<2>(*at));
    }
    link_[node] = best(candidates, node);
  }
}

void Host::link_by_flows(const std::vector<std::uint32_t>& nodes) {
  std::map<std::int64_t, std::uint32_t> from;
  std::map<std::uint32_t, std::uint32_t> to;  // node -> forward operator
  for (const auto& e : events_.events) {
    if (e.category != Category::link_start) continue;
    const auto op = running(e.thread, e.start);
    if (op != kNone && operators_[op].role == Role::forward) from[e.correlation] = operators_[op].owner;
  }
  for (const auto& e : events_.events) {
    if (e.category != Category::link_end || from.count(e.correlation) == 0) continue;
    const auto op = running(e.thread, e.start);
    if (op != kNone && operators_[op].role == Role::backward) to[operators_[op].owner] = from[e.correlation];
  }
  for (const auto node : nodes) {
    const auto found = to.find(node);
    if (link_[node] == kNone && found != to.end()) link_[node] = found->second;
  }
}

// Where neither numbers nor flows tell: autograd runs in reverse, so that of each kind the last operator's node comes
// first.
void Host::link_by_order(const std::vector<std::uint32_t>& nodes) {
  if (std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) { return link_[node] != kNone; })) return;
  std::map<std::pair<std::int32_t, OpKind>, std::vector<std::uint32_t>> waiting;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    const auto& self = operators_[op];
    if (self.role == Role::forward && self.owner == op && is_layer(op)) {
      waiting[{self.step, meaning(op).kind}].push_back(op);
    }
  }
  for (const auto node : nodes) {
    if (meaning(node).kind == OpKind::other) continue;
    auto& stack = waiting[{operators_[node].step, meaning(node).kind}];
    if (stack.empty()) continue;
    link_[node] = stack.back();
    stack.pop_back();
  }
}

void Host::link() {
  link_.assign(operators_.size(), kNone);
  linked_.assign(operators_.size(), false);
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    if (operators_[op].owner == op && operators_[op].step >= 0 && meaning(op).what == Meaning::What::node) {
      nodes.push_back(op);
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return event(a).start < event(b).start; });
  link_by_sequence(nodes);
  link_by_flows(nodes);
  link_by_order(nodes);
  for (const auto node : nodes) {
    if (link_[node] != kNone) linked_[link_[node]] = true;
  }
}

// ---- layers ----

const Shape* Host::shape(std::uint32_t op, int position) const {
  const auto index = event(op).shapes;
  if (index == kNone) return nullptr;
  for (const auto& input : events_.shapes[index]) {
    if (input.position == position) return &input.shape;
  }
  return nullptr;
}

// An operator of a layer's kind can be something else: a counter that is incremented (add), a loss's average (mean),
// images put together into a batch (cat). Where shapes do not tell, only what has a gradient is a layer.
bool Host::is_layer(std::uint32_t op) const {
  const auto& what = meaning(op);
  if (what.what != Meaning::What::plain_operator || what.kind == OpKind::flatten) return false;
  const bool shapes = event(op).shapes != kNone;
  const Shape* first = shape(op, 0);
  const Shape* second = shape(op, 1);
  switch (what.kind) {
    case OpKind::other:
      return !linked_.empty() && linked_[op];
    case OpKind::add:
      if (shapes) return first != nullptr && second != nullptr && first->size() > 1 && *first == *second;
      return linked_.empty() || linked_[op];
    case OpKind::concat:
      return linked_.empty() || linked_[op];
    case OpKind::avg_pool:
      return !shapes || (first != nullptr && first->size() > 2);
    case OpKind::fc:
      return !shapes || (second != nullptr && second->size() == 2);
    default:
      return true;
  }
}

void Host::find_layers() {
  layer_.assign(operators_.size(), -1);
  // A step's layers are those of the thread that runs most of them.
  std::map<std::pair<std::int32_t, std::uint32_t>, std::vector<std::uint32_t>> found;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    const auto& self = operators_[op];
    if (self.role == Role::forward && self.owner == op && self.step >= 0 && is_layer(op)) {
      found[{self.step, event(op).thread}].push_back(op);
    }
  }
  for (auto& [key, layers] : found) {
    auto& step = steps_[static_cast<std::size_t>(key.first)];
    if (layers.size() > step.layers.size()) step.layers = std::move(layers);
  }
  for (const auto& step : steps_) {
    for (std::size_t i = 0; i < step.layers.size(); ++i) layer_[step.layers[i]] = static_cast<std::int32_t>(i);
  }
}

// A normalization counts its calls in an operator of its own, before it; conversions of an input run before what
// reads it.
void Host::attach_helpers() {
  for (const auto& step : steps_) {
    for (const auto layer : step.layers) {
      for (std::uint32_t op = layer; op-- > 0 && event(op).thread == event(layer).thread;) {
        const auto& self = operators_[op];
        if (self.owner != op) {
          if (self.role != Role::forward) break;
          continue;
        }
        if (self.role != Role::forward || layer_[op] >= 0 || self.step != operators_[layer].step) break;
        const auto& called = name(op);
        const bool counter = meaning(op).kind == OpKind::add && meaning(layer).kind == OpKind::bn;
        const bool conversion = called == "aten::to" || called == "aten::_to_copy" || called == "aten::contiguous";
        if (!counter && !conversion) break;
        layer_[op] = layer_[layer];
      }
    }
  }
}

// A node works for its operator's layer; what runs between nodes, for that of the node before.
void Host::attach_backward() {
  std::int32_t current = -1;
  for (std::uint32_t op = 0; op < operators_.size(); ++op) {
    const auto& self = operators_[op];
    if (op > 0 && (event(op - 1).thread != event(op).thread || operators_[op - 1].step != self.step)) current = -1;
    if (self.role != Role::backward || self.owner != op) continue;
    if (link_[op] != kNone && layer_[link_[op]] >= 0) current = layer_[link_[op]];
    layer_[op] = current;
  }
}

Purpose Host::purpose(std::uint32_t op) const {
  if (op == kNone) return {};
  const auto& self = operators_[op];
  Purpose purpose{self.role, self.part, self.step, -1};
  if (self.owner != kNone) {
    purpose.step = operators_[self.owner].step;
    if (self.role == Role::forward || self.role == Role::backward) purpose.layer = layer_[self.owner];
  }
  return purpose;
}

OpKind Host::kind(std::uint32_t op) const {
  return meaning(op).kind;
}

bool Host::is_accumulation(std::uint32_t op) const {
  return meaning(op).what == Meaning::What::accumulation;
}

bool Host::same_layers(const Step& a, const Step& b) const {
  return std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                    [&](std::uint32_t x, std::uint32_t y) {
                      return meaning(x).kind == meaning(y).kind && event(x).shapes == event(y).shapes;
                    });
}

// ---- operands ----

ObservedOperator Host::observed(std::uint32_t op) const {
  ObservedOperator seen;
  seen.name = name(op);
  seen.kind = meaning(op).kind;
  const auto take = [&](int position) {
    if (const Shape* s = shape(op, position)) seen.input_shapes.push_back(*s);
  };
  const bool addmm = seen.name == "aten::addmm";
  if (seen.kind == OpKind::concat && event(op).shapes != kNone) {
    for (const auto& input : events_.shapes[event(op).shapes]) {
      if (input.position == 0) seen.input_shapes.push_back(input.shape);
    }
  } else {
    take(addmm ? 1 : 0);
  }
  if (seen.kind == OpKind::add) take(1);
  if (seen.kind == OpKind::conv || seen.kind == OpKind::fc) {
    if (const Shape* weight = shape(op, addmm ? 2 : 1)) seen.weight = *weight;
    // These two are given the weight as the product needs it: [in, out].
    if (seen.kind == OpKind::fc && seen.name != "aten::linear") std::reverse(seen.weight.begin(), seen.weight.end());
    const Shape* bias = shape(op, addmm ? 0 : 2);
    seen.bias = bias != nullptr && bias->size() == 1;
  }
  const auto values = event(op).values;
  if (values == kNone) return seen;
  const std::string_view text = events_.names[values];
  if (seen.name == "aten::conv2d" || seen.name == "aten::convolution") {
    seen.stride = integers(value_at(text, 3));
    seen.pad = integers(value_at(text, 4));
  } else if (has(seen.name, "pool2d") && !has(seen.name, "adaptive")) {
    seen.kernel = integers(value_at(text, 1));
    seen.stride = integers(value_at(text, 2));
    seen.pad = integers(value_at(text, 3));
    if (seen.stride.empty()) seen.stride = seen.kernel;
  }
  // A zero where a stride stands is no stride.
  for (auto* window : {&seen.kernel, &seen.stride}) {
    if (std::find(window->begin(), window->end(), 0) != window->end()) window->clear();
  }
  return seen;
}

}  // namespace tandem::kineto
