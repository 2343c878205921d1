#include "traces/importers/kineto_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "sim/core/error.hpp"

namespace tandem::kineto {
namespace {

constexpr std::size_t kMostDepth = 64;
constexpr std::size_t kMostEvents = std::size_t{1} << 25;
constexpr std::size_t kMostName = 512;  // of a kernel's template arguments the first ones tell enough
constexpr std::size_t kMostShapes = 64;
constexpr std::int64_t kMostMicroseconds = 4'000'000'000'000'000;  // the year 2096; a difference fits 64 bits
constexpr std::int64_t kLongestMicroseconds = 1'000'000'000'000;   // eleven days

// ---- numbers ----

// "1712195495744101.25" microseconds as nanoseconds, exactly: a double has no room for them. Nothing where the text is
// no such number.
std::optional<Nanoseconds> exact_nanoseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = std::min(text.find('.'), text.size());
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + point, whole);
  if (error != std::errc() || end != text.data() + point || whole < 0 || whole > kMostMicroseconds) return std::nullopt;
  std::int64_t fraction = 0, unit = 100;
  for (std::size_t i = point + 1; i < text.size(); ++i, unit /= 10) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    fraction += unit * (text[i] - '0');
  }
  const std::int64_t value = whole * 1000 + fraction;
  return negative ? -value : value;
}

std::optional<Nanoseconds> nanoseconds(std::string_view text) {
  if (const auto exact = exact_nanoseconds(text)) return exact;
  double value = 0;  // with an exponent
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      std::fabs(value) > static_cast<double>(kMostMicroseconds)) {
    return std::nullopt;
  }
  return std::llround(value * 1000);
}

// ---- categories ----

Category flow(std::string_view phase, bool link) {
  if (phase == "s") return link ? Category::link_start : Category::launch_start;
  if (phase == "f") return link ? Category::link_end : Category::launch_end;
  return Category::other;
}

Category category_of(std::string_view cat, std::string_view phase, std::string_view name) {
  static const std::unordered_map<std::string_view, Category> complete = {
      {"Operator", Category::host_operator},
      {"operator", Category::host_operator},
      {"cpu_op", Category::host_operator},
      {"user_annotation", Category::annotation},
      {"Runtime", Category::runtime},
      {"runtime", Category::runtime},
      {"cuda_runtime", Category::runtime},
      {"cuda_driver", Category::runtime},
      {"hip_runtime", Category::runtime},
      {"Kernel", Category::kernel},
      {"kernel", Category::kernel},
      {"Memcpy", Category::copy},
      {"memcpy", Category::copy},
      {"gpu_memcpy", Category::copy},
      {"Memset", Category::fill},
      {"memset", Category::fill},
      {"gpu_memset", Category::fill},
  };
  if (phase == "X") {
    const auto found = complete.find(cat);
    return found == complete.end() ? Category::other : found->second;
  }
  if (cat == "fwdbwd" || name == "fwdbwd" || name == "forward_backward") return flow(phase, true);
  if (cat == "async" || cat == "ac2g" || cat == "async_cpu_to_gpu") return flow(phase, false);
  return Category::other;
}

template <class Key, class Hash>
class Interner {
 public:
  std::uint32_t operator()(const Key& key, std::vector<Key>& values) {
    const auto [entry, added] = ids_.emplace(key, static_cast<std::uint32_t>(values.size()));
    if (added) values.push_back(key);
    return entry->second;
  }

 private:
  std::unordered_map<Key, std::uint32_t, Hash> ids_;
};

struct ShapesHash {
  std::size_t operator()(const std::vector<InputShape>& shapes) const {
    std::size_t hash = shapes.size();
    const auto mix = [&hash](std::uint64_t value) {
      hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    };
    for (const auto& [position, shape] : shapes) {
      mix(static_cast<std::uint64_t>(position) << 8 | shape.size());
      for (const auto extent : shape) mix(static_cast<std::uint64_t>(extent));
    }
    return hash;
  }
};
struct ProcessHash {
  std::size_t operator()(const Process& p) const {
    return std::hash<std::string>()(p.pid) * 31 + std::hash<std::string>()(p.tid);
  }
};

// ---- the stream ----

// What is known of the event that is being read; its keys come in any order.
struct Draft {
  Event event;
  std::string category, phase, name, pid, tid, concrete;
  std::vector<InputShape> shapes;
  bool timed = false;
  std::int64_t message_elements = -1;
  std::string type;
  double grid = 1, block = 1;

  void clear() {
    event = Event{};
    for (auto* text : {&category, &phase, &name, &pid, &tid, &concrete, &type}) text->clear();
    shapes.clear();
    timed = false;
    message_elements = -1;
    grid = block = 1;
  }
};

// Fields of an event, or of its "args", that mean something here.
enum class Field : std::uint8_t {
  none,
  category,
  phase,
  name,
  pid,
  tid,
  start,
  duration,
  id,
  args,
  external,
  correlation,
  sequence,
  device,
  stream,
  bytes,
  grid,
  block,
  shapes,
  types,
  values,
  message_elements,
  message_type,
};

Field event_field(std::string_view key) {
  static const std::unordered_map<std::string_view, Field> fields = {
      {"cat", Field::category}, {"ph", Field::phase}, {"name", Field::name},
      {"pid", Field::pid},      {"tid", Field::tid},  {"ts", Field::start},
      {"dur", Field::duration}, {"id", Field::id},    {"args", Field::args},
  };
  const auto found = fields.find(key);
  return found == fields.end() ? Field::none : found->second;
}

Field args_field(std::string_view key) {
  static const std::unordered_map<std::string_view, Field> fields = {
      {"External id", Field::external},
      {"external id", Field::external},
      {"correlation", Field::correlation},
      {"Sequence number", Field::sequence},
      {"device", Field::device},
      {"stream", Field::stream},
      {"bytes", Field::bytes},
      {"grid", Field::grid},
      {"block", Field::block},
      {"Input Dims", Field::shapes},
      {"Input dims", Field::shapes},
      {"Input type", Field::types},
      {"Concrete Inputs", Field::values},
      {"In msg nelems", Field::message_elements},
      {"dtype", Field::message_type},
  };
  const auto found = fields.find(key);
  return found == fields.end() ? Field::none : found->second;
}

using Json = nlohmann::json;

// The handler of nlohmann's stream parser, which does not recurse. Where a value stands follows from the stack of
// open objects and arrays.
class Handler {
 public:
  explicit Handler(Events& out) : out_(out) {}

  bool null() {
    const bool time = field_ == Field::start || field_ == Field::duration;
    if (where() == Where::event && time) set_time(std::nullopt, "null");
    return true;
  }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t value) { return number(static_cast<double>(value), value, {}); }
  bool number_unsigned(Json::number_unsigned_t value) {
    const auto most = static_cast<Json::number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return number(static_cast<double>(value), static_cast<std::int64_t>(std::min(value, most)), {});
  }
  bool number_float(Json::number_float_t value, const std::string& text) {
    const double bounded = std::isfinite(value) ? std::clamp(value, -9e18, 9e18) : 0;
    return number(value, static_cast<std::int64_t>(bounded), text);
  }
  bool binary(Json::binary_t&) { return true; }

  bool string(std::string& text) {
    switch (where()) {
      case Where::event:
      case Where::args:
        set_text(text);
        break;
      case Where::types:
        if (draft_.type.empty() && element_ == 0) draft_.type = text.substr(0, kMostName);
        ++element_;
        break;
      case Where::values:
        if (draft_.concrete.size() < 2 * kMostName) draft_.concrete.append(text, 0, kMostName).push_back('|');
        break;
      case Where::device:
        if (key_ == "name") device_name_ = text.substr(0, kMostName);
        break;
      default:
        break;
    }
    return true;
  }

  bool key(std::string& text) {
    switch (where()) {
      case Where::event:
        field_ = event_field(text);
        break;
      case Where::args:
        field_ = args_field(text);
        break;
      case Where::root:
      case Where::device:
      case Where::distributed:
        key_ = text.substr(0, kMostName);
        break;
      default:
        break;
    }
    return true;
  }

  bool start_object(std::size_t) {
    switch (where()) {
      case Where::nowhere:
        return push(Where::root);
      case Where::events:
        draft_.clear();
        field_ = Field::none;
        ++number_;
        return push(Where::event);
      case Where::event:
        return push(field_ == Field::args ? Where::args : Where::skipped);
      case Where::devices:
        device_id_ = -1;
        device_name_.clear();
        return push(Where::device);
      case Where::root:
        return push(key_ == "distributedInfo" ? Where::distributed : Where::skipped);
      default:
        return push(Where::skipped);
    }
  }

  bool end_object() {
    const Where closed = stack_.back();
    stack_.pop_back();
    if (closed == Where::event) finish_event();
    if (closed == Where::device && device_id_ >= 0 && out_.device_names.size() < 1024) {
      out_.device_names.emplace(device_id_, device_name_);
    }
    field_ = Field::none;
    return true;
  }

  bool start_array(std::size_t) {
    element_ = 0;
    switch (where()) {
      case Where::nowhere:
        return push(Where::events);
      case Where::root:
        return push(key_ == "traceEvents"        ? Where::events
                    : key_ == "deviceProperties" ? Where::devices
                                                 : Where::skipped);
      case Where::args:
        return push(array_of(field_));
      case Where::shapes:
        open_shape();
        return push(Where::shape);
      case Where::shape:  // a list of tensors: its shapes lie one deeper
        draft_shape_.clear();
        nested_ = true;
        return push(Where::inner_shape);
      default:
        return push(Where::skipped);
    }
  }

  bool end_array() {
    const Where closed = stack_.back();
    stack_.pop_back();
    if (closed == Where::shape) {
      if (!nested_) close_shape();
      ++position_;
    }
    if (closed == Where::inner_shape) close_shape();
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while ...": the last part, with
    // the text it quotes cut short.
    std::string why = error.what();
    if (const auto colon = why.find(": "); colon != std::string::npos) why = why.substr(colon + 2);
    std::replace_if(
        why.begin(), why.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    if (why.size() > 160) why = why.substr(0, 160) + "...";
    throw input_error(fmt::format("byte {}: not JSON ({})", byte, why));
  }

  [[nodiscard]] bool found_events() const { return found_events_; }

 private:
  enum class Where : std::uint8_t {
    nowhere,
    root,
    events,
    event,
    args,
    shapes,
    shape,
    inner_shape,
    types,
    values,
    grid,
    block,
    devices,
    device,
    distributed,
    skipped,
  };

  [[nodiscard]] Where where() const { return stack_.empty() ? Where::nowhere : stack_.back(); }

  bool push(Where next) {
    if (stack_.size() >= kMostDepth) {
      throw input_error(fmt::format("event {}: JSON nested deeper than {}", number_, kMostDepth));
    }
    if (next == Where::events) found_events_ = true;
    stack_.push_back(next);
    return true;
  }

  Where array_of(Field field) {
    switch (field) {
      case Field::shapes:
        position_ = 0;
        return Where::shapes;
      case Field::types:
        return Where::types;
      case Field::values:
        return Where::values;
      case Field::grid:
        return Where::grid;
      case Field::block:
        return Where::block;
      default:
        return Where::skipped;
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw input_error(fmt::format("event {}{}: {}", number_,
                                  draft_.name.empty() ? "" : fmt::format(" ('{}')", printable(draft_.name)), why));
  }
  static std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
  }

  void open_shape() {
    draft_shape_.clear();
    nested_ = false;
  }
  void close_shape() {
    if (draft_.shapes.size() < kMostShapes && !draft_shape_.empty()) draft_.shapes.push_back({position_, draft_shape_});
    draft_shape_.clear();
  }

  void set_text(std::string& text) {
    const auto keep = [&](std::string& to) { to.assign(text, 0, kMostName); };
    switch (field_) {
      case Field::category:
        return keep(draft_.category);
      case Field::phase:
        return keep(draft_.phase);
      case Field::name:
        return keep(draft_.name);
      case Field::pid:
        return keep(draft_.pid);
      case Field::tid:
        return keep(draft_.tid);
      case Field::message_type:
        return keep(draft_.type);
      case Field::start:
      case Field::duration:
        set_time(nanoseconds(text), text);
        return;
      case Field::none:
      case Field::args:
        return;
      default:
        set_text_number(text);
    }
  }

  // Some versions write numbers as strings; what is no number ("stream": "default") is no value.
  void set_text_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) set_number(value);
  }

  void set_time(std::optional<Nanoseconds> time, std::string_view text) {
    const bool start = field_ == Field::start;
    if (!time || *time > 1000 * (start ? kMostMicroseconds : kLongestMicroseconds) ||
        *time < (start ? -1000 * kLongestMicroseconds : 0)) {
      fail(fmt::format("{} '{}': {} are expected", start ? "ts" : "dur", printable(std::string(text)),
                       start ? "microseconds" : "microseconds, 0 to 1e12,"));
    }
    (start ? draft_.event.start : draft_.event.duration) = *time;
    draft_.timed = draft_.timed || start;
  }

  bool number(double value, std::int64_t whole, const std::string& text) {
    switch (where()) {
      case Where::event:
      case Where::args:
        if (field_ == Field::start || field_ == Field::duration) {
          const std::string shown = text.empty() ? std::to_string(whole) : text;
          set_time(nanoseconds(shown), shown);
        } else {
          set_number(whole);
        }
        break;
      case Where::shape:
      case Where::inner_shape:
        if (draft_shape_.size() < 16) draft_shape_.push_back(whole);
        break;
      case Where::grid:
        draft_.grid *= value;
        break;
      case Where::block:
        draft_.block *= value;
        break;
      case Where::device:
        if (key_ == "id") device_id_ = whole;
        break;
      case Where::distributed:
        if (key_ == "world_size") out_.world_size = whole;
        break;
      default:
        break;
    }
    return true;
  }

  static std::int32_t small(std::int64_t value) { return value >= 0 && value < 1 << 30 ? static_cast<int>(value) : -1; }

  void set_number(std::int64_t value) {
    auto& event = draft_.event;
    switch (field_) {
      case Field::pid:
        draft_.pid = std::to_string(value);
        break;
      case Field::tid:
        draft_.tid = std::to_string(value);
        break;
      case Field::id:
      case Field::correlation:
        event.correlation = value;
        break;
      case Field::external:
        event.external = value;
        break;
      case Field::sequence:
        event.sequence = value;
        break;
      case Field::device:
        event.device = small(value);
        break;
      case Field::stream:
        event.stream = small(value);
        break;
      case Field::bytes:
        event.bytes = value;
        break;
      case Field::message_elements:
        draft_.message_elements = value;
        break;
      default:
        break;
    }
  }

  static std::int32_t threads(double product) {
    return product >= 1 && product < 1e9 ? static_cast<std::int32_t>(product) : 0;
  }

  void finish_event() {
    auto& event = draft_.event;
    event.category = category_of(draft_.category, draft_.phase, draft_.name);
    if (event.category == Category::other) {
      ++out_.counters;
      return;
    }
    if (!draft_.timed) fail("no ts");
    if (out_.events.size() >= kMostEvents) throw input_error(fmt::format("more than {} events", kMostEvents));
    event.name = names_(draft_.name, out_.names);
    if (event.category == Category::kernel) {
      event.grid = threads(draft_.grid);
      event.block = threads(draft_.block);
    }
    if (event.category == Category::host_operator || event.category == Category::annotation) set_operands(event);
    // The device's threads are streams; the host's are threads. A flow stands on either.
    event.thread = threads_({draft_.pid, draft_.tid}, out_.threads);
    out_.events.push_back(event);
  }

  void set_operands(Event& event) {
    if (!draft_.shapes.empty()) event.shapes = shapes_(draft_.shapes, out_.shapes);
    if (!draft_.concrete.empty()) event.values = names_(draft_.concrete, out_.names);
    if (!draft_.type.empty()) event.first_type = names_(draft_.type, out_.names);
    if (draft_.message_elements > 0 && draft_.message_elements < std::int64_t{1} << 50) {
      event.bytes = draft_.message_elements * bytes_of_type(draft_.type);
    }
  }

  Events& out_;
  std::vector<Where> stack_;
  Draft draft_;
  Field field_ = Field::none;
  std::string key_;
  Shape draft_shape_;
  int position_ = 0, element_ = 0;
  bool nested_ = false;
  bool found_events_ = false;
  std::int64_t device_id_ = -1;
  std::string device_name_;
  std::int64_t number_ = 0;
  Interner<std::string, std::hash<std::string>> names_;
  Interner<std::vector<InputShape>, ShapesHash> shapes_;
  Interner<Process, ProcessHash> threads_;
};

}  // namespace

std::int64_t bytes_of_type(std::string_view type) {
  for (const auto* two : {"Half", "BFloat16", "Short"}) {
    if (type.find(two) != std::string_view::npos) return 2;
  }
  for (const auto* eight : {"Long", "Double", "long", "double"}) {
    if (type.find(eight) != std::string_view::npos) return 8;
  }
  for (const auto* one : {"Byte", "Char", "Bool", "unsigned char", "signed char", "bool"}) {
    if (type.find(one) != std::string_view::npos) return 1;
  }
  return 4;
}

Events read_events(std::string_view content) {
  Events events;
  Handler handler(events);
  Json::sax_parse(content.data(), content.data() + content.size(), &handler);
  if (!handler.found_events()) throw input_error("no traceEvents: not a profile of PyTorch");
  return events;
}

}  // namespace tandem::kineto
