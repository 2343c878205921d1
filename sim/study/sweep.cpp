#include "sim/study/sweep.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sim/engine/process.hpp"

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

  void start(std::size_t run, const RunConfig& config) {
    const auto body = [&] {
      const auto cbor = json::to_cbor(to_wire(predict(config)));
      return std::string(cbor.begin(), cbor.end());
    };
    const auto close_the_others = [&] {
      for (const auto& worker : workers_) ::close(worker.child.in);
    };
    workers_.push_back({start_child(body, close_the_others), run, {}});
  }

  // Waits up to a second, and hands over the runs that have finished.
  template <class Finished>
  void wait(Finished&& finished) {
    std::vector<pollfd> watched;
    for (const auto& worker : workers_) watched.push_back({worker.child.in, POLLIN, 0});
    if (::poll(watched.data(), watched.size(), 1000) < 0 && errno != EINTR) {
      throw model_error(fmt::format("cannot wait for the runs: {}", std::strerror(errno)));
    }
    for (std::size_t i = workers_.size(); i-- > 0;) {
      if (watched[i].revents == 0 || read_some(workers_[i])) continue;
      const auto worker = std::move(workers_[i]);
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
      finished(worker.run, outcome_of(worker));
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

  static SweepOutcome outcome_of(const Worker& worker) {
    try {
      return {from_wire(json::from_cbor(take_answer(worker.child, worker.answer, nullptr))), std::nullopt};
    } catch (const Error& error) {
      return {std::nullopt, error};
    }
  }

  std::vector<Worker> workers_;
};

}  // namespace

std::vector<SweepOutcome> predict_all(const std::vector<RunConfig>& configs, int jobs, const SweepWatcher& watcher) {
  std::vector<SweepOutcome> outcomes(configs.size());
  Pool pool;
  std::size_t next = 0;
  std::size_t done = 0;
  while (done < configs.size()) {
    while (next < configs.size() && pool.size() < static_cast<std::size_t>(jobs)) {
      // A machine that is out of processes or file descriptors may have some again when a run has ended.
      try {
        pool.start(next, configs[next]);
      } catch (const Error& error) {
        if (pool.size() > 0) break;
        outcomes[next] = {std::nullopt, error};
        ++done;
        if (watcher.on_done) watcher.on_done(done, next, outcomes[next]);
      }
      ++next;
    }
    if (pool.size() == 0) continue;
    pool.wait([&](std::size_t run, SweepOutcome outcome) {
      outcomes[run] = std::move(outcome);
      ++done;
      if (watcher.on_done) watcher.on_done(done, run, outcomes[run]);
    });
    if (watcher.on_wait) watcher.on_wait(done);
  }
  return outcomes;
}

}  // namespace tandem
