// Synchronous parameter server: workers push their gradients in shards, each server adds them in order of arrival at
// the reduce rate, and sends the sum back once it has all of them. Time 2(alpha + p n/B) for one server on a device of
// its own, with p-1 for p where it shares a worker's device (whose own push stays local).
#include <fmt/format.h>

#include "sim/collectives/collective.hpp"
#include "sim/core/error.hpp"

namespace tandem {
namespace {

class PushPull final : public CollectiveSchedule {
 public:
  PushPull(int workers, int servers, bool colocated, Bytes bytes)
      : CollectiveSchedule(colocated ? workers : workers + servers, bytes),
        workers_(workers),
        servers_(servers),
        first_server_(colocated ? 0 : workers) {}

  [[nodiscard]] int steps() const override { return members() > 1 ? 2 : 0; }

  void sends(int step, int member, std::vector<Send>& out) const override {
    out.clear();
    const ByteRange whole{0, bytes().count()};
    if (step == 0 && contributes(member)) {
      for (int k = 0; k < servers_; ++k) {
        const int shard = (member + k) % servers_;  // workers start at different servers
        const int server = first_server_ + shard;
        if (server != member) out.push_back({server, part_of(whole, servers_, shard), true});
      }
    }
    if (step == 1 && is_server(member)) {
      for (int worker = 0; worker < workers_; ++worker) {
        if (worker != member) out.push_back({worker, part_of(whole, servers_, member - first_server_), false});
      }
    }
  }

  [[nodiscard]] int receives(int step, int member) const override {
    if (step == 0) return is_server(member) ? workers_ - (contributes(member) ? 1 : 0) : 0;
    if (!contributes(member)) return 0;
    return servers_ - (is_server(member) ? 1 : 0);
  }

  [[nodiscard]] int stage(int step) const override { return step; }
  [[nodiscard]] int stages() const override { return 2; }
  [[nodiscard]] bool contributes(int member) const override { return member < workers_; }
  [[nodiscard]] bool eager() const override { return true; }

 private:
  [[nodiscard]] bool is_server(int member) const {
    return member >= first_server_ && member < first_server_ + servers_;
  }

  int workers_;
  int servers_;
  int first_server_;
};

class ParameterServer final : public CollectiveAlgorithm {
 public:
  ParameterServer(int servers, bool colocated) : servers_(servers), colocated_(colocated) {}

  [[nodiscard]] int servers(int) const override { return colocated_ ? 0 : servers_; }
  [[nodiscard]] std::shared_ptr<const CollectiveSchedule> all_reduce(const GroupShape& shape,
                                                                     Bytes bytes) const override {
    if (colocated_ && servers_ > shape.workers) {
      throw usage_error(fmt::format("{} colocated parameter servers need as many workers, but there are {}", servers_,
                                    shape.workers));
    }
    return std::make_shared<PushPull>(shape.workers, servers_, colocated_, bytes);
  }

 private:
  int servers_;
  bool colocated_;
};

TANDEM_REGISTER(CollectiveAlgorithm, parameter_server, "parameter-server",
                "workers push shards to servers and pull the sum; the update cost of a server is --reduce-rate",
                [](const Arguments& arguments, const CollectiveAlgorithm::PluginContext&) {
                  return std::make_unique<ParameterServer>(static_cast<int>(arguments.integer("servers", 1, 1 << 20)),
                                                           arguments.boolean("colocated"));
                },
                {{"servers", ParameterType::integer, "1", "number of servers, each with an equal shard"},
                 {"colocated", ParameterType::boolean, "no", "servers on the first workers' devices, not their own"}})

}  // namespace
}  // namespace tandem
