#include "sim/study/sweep.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/core/random.hpp"
#include "sim/core/registry.hpp"
#include "sim/core/text.hpp"
#include "sim/engine/process.hpp"
#include "sim/study/comparison.hpp"
#include "sim/study/provenance.hpp"
#include "sim/study/setup.hpp"
#include "traces/models/models.hpp"

namespace tandem {
namespace {

using nlohmann::json;

// The wire form of a prediction: a variant is its index and its value. CBOR keeps doubles exactly.
template <class Variant>
json packed(const Variant& variant) {
  return std::visit([&](const auto& value) { return json::array({variant.index(), value}); }, variant);
}

template <class Integer, class Real, class Text>
std::variant<Integer, Real, Text> unpacked(const json& j) {
  switch (j.at(0).get<int>()) {
    case 0:
      return j.at(1).get<Integer>();
    case 1:
      return j.at(1).get<Real>();
    default:
      return j.at(1).get<Text>();
  }
}

json to_wire(const Prediction& prediction) {
  json j;
  j["row"] = json::array();
  for (const auto& field : prediction.row) j["row"].push_back({field.name, field.unit, packed(field.value)});
  j["details"] = json::array();
  for (const auto& table : prediction.details) {
    auto columns = json::array();
    for (const auto& column : table.columns) columns.push_back({column.name, column.unit, packed(column.values)});
    j["details"].push_back({table.name, std::move(columns)});
  }
  j["assumptions"] = prediction.assumptions;
  j["explanation"] = json::array();
  for (const auto& e : prediction.explanation) {
    j["explanation"].push_back({e.sentences, e.with_double_bandwidth.count(), e.with_half_latency.count(),
                                e.with_double_device_speed.count()});
  }
  j["wall_time_s"] = prediction.wall_time_s;
  return j;
}

Prediction from_wire(const json& j) {
  Prediction prediction;
  for (const auto& field : j.at("row")) {
    prediction.row.push_back({field.at(0), field.at(1), unpacked<std::int64_t, double, std::string>(field.at(2))});
  }
  for (const auto& table : j.at("details")) {
    prediction.details.push_back({table.at(0), {}});
    for (const auto& column : table.at(1)) {
      prediction.details.back().columns.push_back(
          {column.at(0), column.at(1),
           unpacked<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>(column.at(2))});
    }
  }
  prediction.assumptions = j.at("assumptions").get<std::vector<std::string>>();
  for (const auto& e : j.at("explanation")) {
    prediction.explanation.push_back({e.at(0), Seconds(e.at(1)), Seconds(e.at(2)), Seconds(e.at(3))});
  }
  prediction.wall_time_s = j.at("wall_time_s");
  return prediction;
}

class TextHash {
 public:
  void add(const std::string& text) {
    state_ = mix(state_ ^ text.size());
    for (const char c : text) state_ = mix(state_ ^ static_cast<unsigned char>(c));
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

// What a plug-in's parameters name and is a file, behind an equals sign or as the first parameter, which needs no name:
// "link-list:links=F.csv,nodes=G.csv", "file:hosts.txt".
std::vector<std::string> named_files(const std::string& text) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& part : split(split_plugin_text(text).arguments, ',')) {
    auto path = part.substr(part.find('=') + 1);  // npos + 1 is 0
    if (std::filesystem::is_regular_file(path, ignored)) paths.push_back(std::move(path));
  }
  return paths;
}

// Input error where it cannot be read: it would be equal to any other such file.
std::string file_hash(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::vector<char> part(1 << 16);
  while (file) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    bytes.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    throw input_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  TextHash hash;
  hash.add(bytes);
  return hash_text(hash.value());
}

bool is_model(const std::string& trace) {
  const auto models = model_names();
  return std::find(models.begin(), models.end(), trace) != models.end();
}

// Processes that each do something for one run, and hand back bytes.
class Pool {
 public:
  Pool() = default;
  ~Pool() {
    for (const auto& worker : workers_) {
      ::kill(worker.child.pid, SIGKILL);
      ::close(worker.child.in);
      ::waitpid(worker.child.pid, nullptr, 0);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] std::size_t size() const { return workers_.size(); }

  void start(std::size_t run, const std::function<std::string()>& body) {
    const auto close_the_others = [&] {
      for (const auto& worker : workers_) ::close(worker.child.in);
    };
    workers_.push_back({start_child(body, close_the_others), run, {}});
  }

  // Waits up to a second, and hands over the runs that have finished, each with what gives its answer or throws its
  // error.
  template <class Finished>
  void wait(Finished&& finished) {
    std::vector<pollfd> watched;
    for (const auto& worker : workers_) watched.push_back({worker.child.in, POLLIN, 0});
    if (::poll(watched.data(), watched.size(), 1000) < 0 && errno != EINTR) {
      throw machine_error(fmt::format("cannot wait for the runs: {}", std::strerror(errno)));
    }
    for (std::size_t i = workers_.size(); i-- > 0;) {
      if (watched[i].revents == 0 || read_some(workers_[i])) continue;
      const auto worker = std::move(workers_[i]);
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
      finished(worker.run, [&] { return take_answer(worker.child, worker.answer, nullptr); });
    }
  }

 private:
  struct Worker {
    Child child;
    std::size_t run;
    std::string answer;
  };

  // False at the end of the answer.
  static bool read_some(Worker& worker) {
    char buffer[65536];
    const auto count = ::read(worker.child.in, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    worker.answer.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  std::vector<Worker> workers_;
};

std::string bytes_of(const json& j) {
  const auto cbor = json::to_cbor(j);
  return {cbor.begin(), cbor.end()};
}

RunSize size_of(const RunConfig& config) {
  const auto setup = make_setup(config);
  const auto level = level_for(config, *setup);  // its baseline's, too
  return {level, effort_at(level, setup->efforts), setup->cluster->topology().instance()};
}

json to_wire(const RunSize& size) {
  return {static_cast<int>(size.fidelity), size.effort.flows, size.effort.work, size.effort.messages, size.instance};
}

RunSize size_from_wire(const json& j) {
  return {static_cast<Fidelity>(j.at(0).get<int>()), {j.at(1), j.at(2), j.at(3)}, j.at(4)};
}

// `body` for every run of `which` in a process of its own, and its answer, or what went wrong, to `done`.
template <class Answer>
void in_processes(const std::vector<std::size_t>& which, int jobs, const std::function<json(std::size_t)>& body,
                  const std::function<Answer(const json&)>& from_json,
                  const std::function<void(std::size_t, Outcome<Answer>)>& done, const std::function<void()>& on_wait) {
  Pool pool;
  const auto finished = [&](std::size_t run, const auto& take) {
    Outcome<Answer> outcome;
    try {
      outcome.answer = from_json(json::from_cbor(take()));
    } catch (const Error& error) {
      outcome.error = error;
    }
    done(run, std::move(outcome));
  };
  auto next = which.begin();
  while (next != which.end() || pool.size() > 0) {
    while (next != which.end() && pool.size() < static_cast<std::size_t>(jobs)) {
      // A machine that is out of processes or file descriptors may have some again when a run has ended.
      try {
        pool.start(*next, [&] { return bytes_of(body(*next)); });
      } catch (const Error& error) {
        if (pool.size() > 0) break;
        done(*next, {std::nullopt, error});
      }
      ++next;
    }
    if (pool.size() > 0) pool.wait(finished);
    if (on_wait) on_wait();
  }
}

}  // namespace

void predict_all(const std::vector<RunConfig>& configs, const std::vector<std::size_t>& which, int jobs,
                 const SweepWatcher& watcher) {
  in_processes<Prediction>(
      which, jobs, [&](std::size_t i) { return to_wire(predict(configs[i])); }, from_wire, watcher.on_done,
      watcher.on_wait);
}

std::vector<Outcome<RunSize>> size_all(const std::vector<RunConfig>& configs, const std::vector<std::size_t>& which,
                                       int jobs, const std::function<void(std::size_t)>& on_wait) {
  std::map<std::size_t, Outcome<RunSize>> known;
  in_processes<RunSize>(
      which, jobs, [&](std::size_t i) { return to_wire(size_of(configs[i])); }, size_from_wire,
      [&](std::size_t i, Outcome<RunSize> outcome) { known[i] = std::move(outcome); },
      [&] {
        if (on_wait) on_wait(known.size());
      });
  std::vector<Outcome<RunSize>> sizes;
  for (const auto i : which) sizes.push_back(std::move(known.at(i)));
  return sizes;
}

std::string program_hash() {
  return file_hash("/proc/self/exe");
}

std::string study_hash(const std::vector<StudyRun>& runs, const std::vector<RunConfig>& configs) {
  TextHash hash;
  std::map<std::string, std::string> inputs;  // by path: a hash of the content
  for (std::size_t i = 0; i < configs.size(); ++i) {
    hash.add(runs[i].case_name);
    hash.add(configs[i].fidelity);
    for (const auto& [name, text] : configs[i].options) {
      hash.add(name);
      hash.add(text);
      for (const auto& path : named_files(text)) {
        if (!inputs.contains(path)) inputs[path] = file_hash(path);
      }
    }
    const auto [trace, is_new] = inputs.try_emplace("trace " + configs[i].trace);
    if (is_new && !is_model(configs[i].trace)) trace->second = hash_text(trace_hash(load_trace(configs[i].trace)));
  }
  for (const auto& [path, content] : inputs) {
    hash.add(path);
    hash.add(content);
  }
  return hash_text(hash.value());
}

}  // namespace tandem
