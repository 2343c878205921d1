#include "sim/study/sweep.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

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

constexpr char kGood = 'R';  // otherwise '0' + ErrorKind

std::string answer_of(const RunConfig& config) {
  const auto failed = [](ErrorKind kind, const char* what) {
    return static_cast<char>('0' + static_cast<int>(kind)) + std::string(what);
  };
  try {
    const auto cbor = json::to_cbor(to_wire(predict(config)));
    return kGood + std::string(cbor.begin(), cbor.end());
  } catch (const Error& error) {
    return failed(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ErrorKind::model, "the run needs too much memory");
  } catch (const std::exception& error) {
    return failed(ErrorKind::internal, error.what());
  }
}

[[noreturn]] void work(const RunConfig& config, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // do not outlive the sweep
  const auto answer = answer_of(config);
  const char* data = answer.data();
  std::size_t left = answer.size();
  while (left > 0) {
    const auto written = ::write(out, data, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    data += written;
    left -= static_cast<std::size_t>(written);
  }
  ::_exit(0);  // no destructors and no flushing of what the parent had buffered
}

class Pool {
 public:
  Pool() = default;
  ~Pool() {
    for (const auto& worker : workers_) {
      ::kill(worker.pid, SIGKILL);
      ::close(worker.in);
      ::waitpid(worker.pid, nullptr, 0);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] std::size_t size() const { return workers_.size(); }

  void start(std::size_t run, const RunConfig& config) {
    int ends[2];
    if (::pipe(ends) != 0) throw model_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const auto pid = ::fork();
    if (pid < 0) {
      const auto reason = errno;
      ::close(ends[0]);
      ::close(ends[1]);
      throw model_error(fmt::format("cannot start a process for a run: {}", std::strerror(reason)));
    }
    if (pid == 0) {
      ::close(ends[0]);
      for (const auto& worker : workers_) ::close(worker.in);
      work(config, ends[1]);
    }
    ::close(ends[1]);
    workers_.push_back({pid, ends[0], run, {}});
  }

  // Waits up to a second, and hands over the runs that have finished.
  template <class Finished>
  void wait(Finished&& finished) {
    std::vector<pollfd> watched;
    for (const auto& worker : workers_) watched.push_back({worker.in, POLLIN, 0});
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
    pid_t pid;
    int in;
    std::size_t run;
    std::string answer;
  };

  // False at the end of the answer.
  static bool read_some(Worker& worker) {
    char buffer[65536];
    const auto count = ::read(worker.in, buffer, sizeof buffer);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    worker.answer.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  static SweepOutcome outcome_of(const Worker& worker) {
    ::close(worker.in);
    int status = 0;
    while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    const auto& answer = worker.answer;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty()) {
      return {std::nullopt,
              internal_error(WIFSIGNALED(status)
                                 ? fmt::format("the run's process ended by signal {} ({})", WTERMSIG(status),
                                               ::strsignal(WTERMSIG(status)))
                                 : fmt::format("the run's process ended by exit status {}", WEXITSTATUS(status)))};
    }
    if (answer[0] != kGood) return {std::nullopt, Error(static_cast<ErrorKind>(answer[0] - '0'), answer.substr(1))};
    return {from_wire(json::from_cbor(answer.begin() + 1, answer.end())), std::nullopt};
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
      pool.start(next, configs[next]);
      ++next;
    }
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
