#include "traces/importers/caffe_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <set>

#include "sim/core/csv_text.hpp"
#include "sim/core/error.hpp"
#include "sim/core/text.hpp"
#include "traces/csv_fields.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostLayers = 1 << 14;
constexpr std::size_t kMostDepth = 64;  // of messages in messages; a network has four

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The text behind `prefix`, or nothing.
std::optional<std::string_view> behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return trimmed(text.substr(prefix.size()));
}

double milliseconds(std::string_view text, int line) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) {
    throw input_error(fmt::format("line {} has {}; milliseconds, 0 or more, are expected", line, shown(text)));
  }
  return value;
}

// "0.242765 ms."
double time_with_unit(std::string_view text, int line) {
  const auto unit = text.rfind(" ms");
  if (unit == std::string_view::npos) {
    throw input_error(fmt::format("line {} has {}; a time such as '1.5 ms.' is expected", line, shown(text)));
  }
  return milliseconds(trimmed(text.substr(0, unit)), line);
}

// A line of glog without its prefix; whole where it has none.
std::string_view message_of(std::string_view line, bool& prefixed) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  prefixed = line.size() > 6 && std::string_view("IWEF").find(line[0]) != std::string_view::npos &&
             std::all_of(line.begin() + 1, line.begin() + 5, is_digit) && line[5] == ' ' &&
             line.find("] ") != std::string_view::npos;
  return trimmed(prefixed ? line.substr(line.find("] ") + 2) : line);
}

// ---- the log ----

class LogParser {
 public:
  CaffeProfile read(std::string_view content) {
    for (std::size_t begin = 0; begin < content.size();) {
      const auto end = std::min(content.find('\n', begin), content.size());
      ++line_;
      add(content.substr(begin, end - begin));
      begin = end + 1;
    }
    return finish();
  }

 private:
  void add(std::string_view line) {
    bool prefixed = false;
    const auto message = message_of(line, prefixed);
    // Where the prefixes have been stripped the first thing that is no field ends the network's text.
    const bool ends_network = prefixed || (path_.empty() && message.starts_with("Creating "));
    if (in_network_ && !ends_network) {
      add_network(message);
      return;
    }
    in_network_ = false;
    if (message.empty() || add_structure(message) || add_time(message) || add_total(message)) return;
    if (const auto device = behind(message, "GPU device name:")) {
      profile_.device = *device;
    } else if (message.starts_with("Use CPU")) {
      profile_.device = "CPU";
    } else if (message.starts_with("Use GPU")) {
      profile_.device = "GPU";
    } else if (message.starts_with("Iteration:")) {
      ++profile_.iterations;
    } else {
      ++profile_.other_lines;
    }
  }

  bool add_structure(std::string_view message) {
    if (message.starts_with("Initializing net from parameters")) {
      if (!times_.empty()) throw input_error(fmt::format("line {} starts a second network; cut the log up", line_));
      structure_.clear();
      ids_.clear();
      current_ = nullptr;
      network_.clear();
      path_.clear();
      in_network_ = true;
      return true;
    }
    if (const auto name = behind(message, "Creating Layer ")) {
      current_ = &layer(*name);
      return true;
    }
    if (const auto shape = behind(message, "Top shape:")) {
      add_shape(*shape);
      return true;
    }
    if (current_ == nullptr || !message.starts_with(current_->name)) return false;
    const auto rest = message.substr(current_->name.size());
    if (const auto bottom = behind(rest, " <- ")) {
      current_->bottoms.emplace_back(*bottom);
      profile_.has_graph = true;
      return true;
    }
    if (auto top = behind(rest, " -> ")) {
      constexpr std::string_view in_place = "(in-place)";
      if (top->ends_with(in_place)) top = trimmed(top->substr(0, top->size() - in_place.size()));
      current_->tops.push_back({std::string(*top), std::nullopt});
      return true;
    }
    return false;
  }

  CaffeLayer& layer(std::string_view name) {
    const auto [found, added] = ids_.emplace(name, structure_.size());
    if (!added) throw input_error(fmt::format("line {} creates the layer {} again", line_, shown(name)));
    check_number(structure_.size());
    structure_.emplace_back();
    structure_.back().name = name;
    return structure_.back();
  }

  void check_number(std::size_t layers) const {
    if (layers >= kMostLayers) throw input_error(fmt::format("line {}: more than {} layers", line_, kMostLayers));
  }

  // "64 20 24 24 (737280)", or "(1)" for a scalar; the shapes stand in the order of the tops.
  void add_shape(std::string_view text) {
    if (current_ == nullptr) return;
    const auto open = text.find('(');
    std::string extents(trimmed(text.substr(0, open)));
    std::replace(extents.begin(), extents.end(), ' ', 'x');
    const auto shape = extents.empty() ? Shape{1} : parse_csv_shape(extents);
    if (!shape || open == std::string_view::npos) {
      throw input_error(fmt::format("line {} has the shape {}; extents such as '64 20 24 24 (737280)' are expected",
                                    line_, shown(text)));
    }
    for (auto& top : current_->tops) {
      if (top.shape) continue;
      top.shape = *shape;
      return;
    }
  }

  // "conv1<tab>forward: 0.242765 ms."
  bool add_time(std::string_view message) {
    for (const bool forward : {true, false}) {
      const std::string_view key = forward ? "forward: " : "backward: ";
      const auto at = message.rfind(key);
      if (at == std::string_view::npos || at == 0 || (message[at - 1] != '\t' && message[at - 1] != ' ')) continue;
      const auto name = trimmed(message.substr(0, at));
      if (name.empty()) return false;
      const double time = time_with_unit(trimmed(message.substr(at + key.size())), line_);
      const auto [found, added] = times_.emplace(name, order_.size());
      if (added) {
        check_number(order_.size());
        order_.emplace_back();
        order_.back().name = name;
        order_.back().line = line_;
      }
      auto& slot = forward ? order_[found->second].forward_ms : order_[found->second].backward_ms;
      if (slot) {
        throw input_error(fmt::format("line {} gives a second {} time of {}; cut the log up", line_,
                                      forward ? "forward" : "backward", shown(name)));
      }
      slot = time;
      return true;
    }
    return false;
  }

  bool add_total(std::string_view message) {
    const std::pair<std::string_view, std::optional<double>*> totals[] = {
        {"Average Forward pass:", &profile_.forward_ms},
        {"Average Backward pass:", &profile_.backward_ms},
        {"Average Forward-Backward:", &profile_.both_ms}};
    for (const auto& [key, total] : totals) {
      const auto text = behind(message, key);
      if (!text) continue;
      *total = time_with_unit(*text, line_);
      return true;
    }
    return false;
  }

  // ---- the network's text: "key: value", "key {" and "}", one a line ----

  void add_network(std::string_view line) {
    if (line == "}") {
      if (!path_.empty()) path_.pop_back();
      return;
    }
    if (line.ends_with('{')) {
      if (path_.size() == kMostDepth) throw input_error(fmt::format("line {} is nested too deeply", line_));
      path_.emplace_back(trimmed(line.substr(0, line.size() - 1)));
      if (path_.size() == 1 && is_layer(path_[0])) {
        check_number(network_.size());
        network_.emplace_back();
      }
      return;
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto key = trimmed(line.substr(0, colon));
    auto value = trimmed(line.substr(colon + 1));
    if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    add_field(key, value);
  }

  static bool is_layer(std::string_view message) { return message == "layer" || message == "layers"; }

  void add_field(std::string_view key, std::string_view value) {
    if (path_.empty()) {
      if (key == "name") profile_.model = value;
      if (key == "force_backward") profile_.force_backward = value == "true";
    } else if (is_layer(path_[0]) && path_.size() == 1) {
      if (key == "name") network_.back().name = value;
      if (key == "type") network_.back().type = value;
    } else if (is_layer(path_[0]) && path_.size() == 2 && path_[1].ends_with("_param")) {
      network_.back().parameters[std::string(key)].emplace_back(value);
    }
  }

  // ---- all together ----

  CaffeProfile finish() {
    if (order_.empty()) {
      throw input_error("no times of layers: the log of 'caffe time' has lines such as 'conv1 forward: 1.5 ms.'");
    }
    std::map<std::string_view, const CaffeLayer*> network;
    for (const auto& layer : network_) network.emplace(layer.name, &layer);
    for (auto& timed : order_) {
      if (!timed.forward_ms) {
        throw input_error(
            fmt::format("line {}: {} has a backward time but no forward time", timed.line, shown(timed.name)));
      }
      if (const auto found = ids_.find(timed.name); found != ids_.end()) {
        timed.bottoms = structure_[found->second].bottoms;
        timed.tops = structure_[found->second].tops;
      } else if (profile_.has_graph) {
        throw input_error(
            fmt::format("line {}: {} is timed, but the log never creates it", timed.line, shown(timed.name)));
      }
      if (const auto found = network.find(timed.name); found != network.end()) {
        timed.type = found->second->type;
        timed.parameters = found->second->parameters;
        timed.has_parameters = true;
      }
    }
    profile_.layers = std::move(order_);
    return std::move(profile_);
  }

  CaffeProfile profile_;
  int line_ = 0;
  bool in_network_ = false;
  std::vector<std::string> path_;     // of messages that are open in the network's text
  std::vector<CaffeLayer> network_;   // name, type and parameters
  std::deque<CaffeLayer> structure_;  // name, bottoms and tops
  std::map<std::string, std::size_t, std::less<>> ids_;
  CaffeLayer* current_ = nullptr;  // the layer being created; structure_ never moves
  std::vector<CaffeLayer> order_;  // name and times
  std::map<std::string, std::size_t, std::less<>> times_;
};

// ---- the table ----

class TableParser {
 public:
  CaffeProfile read(std::string_view content) {
    CsvReader reader(content);
    while (const auto record = reader.next()) {
      if (record->kind == CsvRecord::Kind::row) {
        columns_.empty() ? set_columns(*record) : add_row(*record);
      } else {
        add_remark(*record);
      }
    }
    if (profile_.layers.empty()) throw input_error("there are no layers in the table");
    return std::move(profile_);
  }

 private:
  void set_columns(const CsvRecord& record) {
    const std::vector<std::string> known = {"layer", "type", "output_shape_NCHW", "fwd_ms", "bwd_ms", "param_count"};
    for (std::size_t i = 0; i < record.cells.size(); ++i) {
      const auto& name = record.cells[i].text;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw input_error(fmt::format("line {}: a table of caffe's has no column {}{}", record.line, shown(name),
                                      name.size() < 40 ? suggestion(name, known) : ""));
      }
      if (!columns_.emplace(name, i).second) {
        throw input_error(fmt::format("line {} has the column '{}' twice", record.line, name));
      }
    }
    for (const char* name : {"layer", "fwd_ms", "bwd_ms"}) {
      if (!columns_.contains(name)) throw input_error(fmt::format("line {} has no column '{}'", record.line, name));
    }
  }

  [[nodiscard]] std::string cell(const CsvRecord& record, const char* column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? "" : record.cells[found->second].text;
  }

  void add_row(const CsvRecord& record) {
    if (record.cells.size() != columns_.size()) {
      throw input_error(fmt::format("line {} has {} cells where the header has {}", record.line, record.cells.size(),
                                    columns_.size()));
    }
    CaffeLayer layer;
    layer.line = record.line;
    layer.name = cell(record, "layer");
    if (layer.name.empty()) throw input_error(fmt::format("line {} has no layer name", record.line));
    if (!names_.insert(layer.name).second) {
      throw input_error(fmt::format("line {} gives the layer {} again", record.line, shown(layer.name)));
    }
    layer.type = cell(record, "type");
    if (const auto text = cell(record, "output_shape_NCHW"); !text.empty()) {
      const auto shape = parse_csv_shape(text);
      if (!shape || shape->empty()) {
        throw input_error(fmt::format("line {} has output_shape_NCHW {}; extents such as 64x20x24x24 are expected",
                                      record.line, shown(text)));
      }
      layer.tops = {{layer.name, *shape}};
    }
    layer.forward_ms = milliseconds(cell(record, "fwd_ms"), record.line);
    layer.backward_ms = milliseconds(cell(record, "bwd_ms"), record.line);
    if (const auto text = cell(record, "param_count"); !text.empty()) layer.parameter_count = count_of(text, record);
    if (profile_.layers.size() == kMostLayers) {
      throw input_error(fmt::format("line {}: more than {} layers", record.line, kMostLayers));
    }
    profile_.layers.push_back(std::move(layer));
  }

  static std::int64_t count_of(const std::string& text, const CsvRecord& record) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 0 || count > std::int64_t{1} << 46) {
      throw input_error(
          fmt::format("line {} has param_count {}; a whole number is expected", record.line, shown(text)));
    }
    return count;
  }

  // "#AVERAGE Forward pass,,42.405,"; other remarks are for people.
  void add_remark(const CsvRecord& record) {
    const std::pair<std::string_view, std::optional<double>*> totals[] = {
        {"AVERAGE Forward pass", &profile_.forward_ms},
        {"AVERAGE Backward pass", &profile_.backward_ms},
        {"AVERAGE Forward-Backward", &profile_.both_ms}};
    const auto text = trimmed(record.cells[0].text);
    for (const auto& [key, total] : totals) {
      auto rest = text;
      if (record.kind != CsvRecord::Kind::comment || !rest.starts_with(key)) continue;
      rest.remove_prefix(key.size());
      const auto begin = rest.find_first_not_of(", ");
      const auto end = rest.find_last_not_of(", ");
      if (begin == std::string_view::npos) break;
      *total = milliseconds(rest.substr(begin, end - begin + 1), record.line);
      return;
    }
    ++profile_.other_lines;
  }

  CaffeProfile profile_;
  std::map<std::string, std::size_t> columns_;
  std::set<std::string> names_;
};

}  // namespace

bool is_caffe_log(std::string_view head) {
  const bool times =
      (head.find("\tforward: ") != std::string_view::npos || head.find(" forward: ") != std::string_view::npos) &&
      head.find(" ms") != std::string_view::npos;
  return times || head.find("caffe.cpp:") != std::string_view::npos ||
         head.find("net.cpp:") != std::string_view::npos ||
         head.find("Average time per layer:") != std::string_view::npos;
}

bool is_caffe_table(std::string_view head) {
  try {
    CsvReader reader(head);
    while (const auto record = reader.next()) {
      if (record->kind != CsvRecord::Kind::row) continue;
      std::set<std::string_view> names;
      for (const auto& cell : record->cells) names.insert(cell.text);
      return names.contains("layer") && names.contains("fwd_ms") && names.contains("bwd_ms");
    }
  } catch (const Error&) {  // not CSV
  }
  return false;
}

CaffeProfile read_caffe_log(std::string_view content) {
  return LogParser().read(content);
}

CaffeProfile read_caffe_table(std::string_view content) {
  return TableParser().read(content);
}

}  // namespace tandem
