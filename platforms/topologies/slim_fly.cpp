// Slim Fly (Besta and Hoefler, SC 2014): McKay-Miller-Siran graphs, 2q^2 routers of diameter 2, t devices a router.
//
//   q = 4w + d a prime, d = 1 or -1; xi a primitive root modulo q
//   routers (0,x,y) and (1,m,c), 0 <= x, y, m, c < q; device (2-part s, x, y, server): ((s*q + x)*q + y)*t + server
//   (0,x,y) - (0,x,y')  where y - y' is in X;  (1,m,c) - (1,m,c')  where c - c' is in X';  (0,x,y) - (1,m,c)  where
//   y = m*x + c
//   d = 1: X the even powers of xi, X' the odd ones. d = -1: X = {1, xi^2, .., xi^(2w-2), xi^(2w-1), xi^(2w+1), ..,
//   xi^(4w-3)}, X' = xi times X (Hafner, 2004)
//
// Every router has (3q-d)/2 others next to it. Routing: direct, or by way of one of the routers that both are joined
// to, hashed from (src, dst, flow). Shortest for all pairs.
#include <algorithm>
#include <numeric>

#include "platforms/split_search.hpp"
#include "platforms/topologies/build.hpp"

namespace tandem {
namespace {

bool is_prime(int n) {
  if (n < 2) return false;
  for (int i = 2; i * i <= n; ++i) {
    if (n % i == 0) return false;
  }
  return true;
}

bool is_size(int q) {
  return q > 2 && is_prime(q);
}

int primitive_root(int q) {
  for (int root = 2;; ++root) {
    std::int64_t power = root;
    int order = 1;
    while (power != 1) {
      power = power * root % q;
      ++order;
    }
    if (order == q - 1) return root;
  }
}

// Whether a difference is in the generator set, for both halves.
struct Generators {
  std::vector<char> first, second;

  explicit Generators(int q) : first(static_cast<std::size_t>(q), 0), second(static_cast<std::size_t>(q), 0) {
    const int root = primitive_root(q);
    std::vector<int> power(static_cast<std::size_t>(q) - 1, 1);
    for (std::size_t e = 1; e < power.size(); ++e) {
      power[e] = static_cast<int>(std::int64_t{power[e - 1]} * root % q);
    }
    const auto add = [&](int exponent) {
      const auto size = static_cast<int>(power.size());
      first[static_cast<std::size_t>(power[static_cast<std::size_t>(exponent % size)])] = 1;
      second[static_cast<std::size_t>(power[static_cast<std::size_t>((exponent + 1) % size)])] = 1;
    };
    if (q % 4 == 1) {
      for (int e = 0; e < q - 1; e += 2) add(e);
    } else {
      const int w = (q + 1) / 4;
      for (int e = 0; e <= 2 * w - 2; e += 2) add(e);
      for (int e = 2 * w - 1; e <= 4 * w - 3; e += 2) add(e);
    }
  }
};

class SlimFly final : public Topology {
 public:
  SlimFly(int q, int t, int planes, const PluginContext& context) : Topology(context, planes), q_(q), t_(t) {
    instance_ = fmt::format("slim-fly:q={},t={},planes={}", q, t, planes);
    const auto routers = 2 * std::int64_t{q} * q;
    check_size(instance_, routers * t, routers * t + routers * degree() / 2);
    devices_ = static_cast<int>(routers * t);
    vertices_ = devices_ + static_cast<int>(routers);
    near_.resize(static_cast<std::size_t>(routers));
    build();
  }

  void route(DeviceId src, DeviceId dst, FlowHash flow, std::vector<LinkId>& path) const override {
    path.clear();
    if (src == dst) return;
    const int from = src.value / t_;
    const int to = dst.value / t_;
    path.push_back(LinkId{2 * src.value});
    if (from != to) {
      const auto& near = near_[static_cast<std::size_t>(from)];
      if (const auto* direct = find(from, to)) {
        path.push_back(direct->link);
      } else {
        std::vector<std::pair<LinkId, LinkId>> ways;
        for (const auto& first : near) {
          if (const auto* second = find(first.router, to)) ways.emplace_back(first.link, second->link);
        }
        const auto& [first, second] = ways[flow_hash(src, dst, flow) % ways.size()];
        path.push_back(first);
        path.push_back(second);
      }
    }
    path.push_back(LinkId{2 * dst.value + 1});
  }

  [[nodiscard]] std::string vertex_name(int vertex) const override {
    const auto address = [this](int router) {
      return fmt::format("{},{},{}", router / q_ / q_, router / q_ % q_, router % q_);
    };
    if (vertex >= devices_) return fmt::format("router ({})", address(vertex - devices_));
    return fmt::format("device {} ({};{})", vertex, address(vertex / t_), vertex % t_);
  }

  [[nodiscard]] std::vector<int> radices() const override { return {t_, q_, q_, 2}; }

  [[nodiscard]] Characteristics characteristics() const override {
    Characteristics result;
    const auto routers = 2 * std::int64_t{q_} * q_;
    const auto between = routers * degree() / 2;
    const double devices = devices_;
    result.devices = devices_;
    result.switches = routers * planes_;
    result.max_switch_radix = t_ + degree();
    result.links = (devices_ + between) * planes_;
    result.ports_per_device = planes_;
    result.switch_ports_per_device = static_cast<double>((devices_ + 2 * between) * planes_) / devices;
    result.diameter = 4;
    const auto far = routers - 1 - degree();
    result.mean_path = 2 + static_cast<double>(t_ * (degree() + 2 * far)) / (devices - 1);
    result.bisection_links = static_cast<double>(exchanged_split(*this, t_));
    result.bisection_searched = true;
    return result;
  }

  [[nodiscard]] CostItems cost_items() const override {
    const auto device_cables = std::int64_t{devices_} * planes_;
    const auto between = std::int64_t{q_} * q_ * degree() * planes_;
    return {.switch_ports = device_cables + 2 * between,
            .device_ports = device_cables,
            .copper_cables = device_cables,
            .optical_cables = between};
  }

 private:
  struct Near {
    int router;
    LinkId link;
  };

  [[nodiscard]] int degree() const { return (3 * q_ - (q_ % 4 == 1 ? 1 : -1)) / 2; }

  [[nodiscard]] const Near* find(int from, int to) const {
    const auto& near = near_[static_cast<std::size_t>(from)];
    const auto at = std::lower_bound(near.begin(), near.end(), to, [](const Near& n, int r) { return n.router < r; });
    return at != near.end() && at->router == to ? &*at : nullptr;
  }

  void join(int a, int b) {
    const auto link = connect(devices_ + a, devices_ + b, LinkKind::switch_link);
    near_[static_cast<std::size_t>(a)].push_back({b, link});
    near_[static_cast<std::size_t>(b)].push_back({a, LinkId{link.value + 1}});
  }

  void build() {
    for (int device = 0; device < devices_; ++device) connect(device, devices_ + device / t_, LinkKind::device_port);
    const Generators generators(q_);
    for (int half = 0; half < 2; ++half) {
      const auto& joined_by = half == 0 ? generators.first : generators.second;
      for (int x = 0; x < q_; ++x) {
        const int first = (half * q_ + x) * q_;
        for (int y = 0; y < q_; ++y) {
          for (int other = y + 1; other < q_; ++other) {
            if (joined_by[static_cast<std::size_t>(other - y)] != 0) join(first + y, first + other);
          }
        }
      }
    }
    for (int x = 0; x < q_; ++x) {
      for (int m = 0; m < q_; ++m) {
        for (int c = 0; c < q_; ++c) {
          const auto y = static_cast<int>((std::int64_t{m} * x + c) % q_);
          join(x * q_ + y, (q_ + m) * q_ + c);
        }
      }
    }
    for (auto& near : near_) {
      std::sort(near.begin(), near.end(), [](const Near& a, const Near& b) { return a.router < b.router; });
    }
  }

  int q_;
  int t_;
  std::vector<std::vector<Near>> near_;  // by router, ascending
};

std::unique_ptr<Topology> make_slim_fly(const Arguments& arguments, const Topology::PluginContext& context) {
  constexpr int kMostQ = 1000;
  const auto balanced = [](int q) { return (3 * q + 3) / 4; };  // half of a router's ports to others (Besta, 2014)
  const bool has_t = arguments.has("t");
  const int given_t = has_t ? static_cast<int>(arguments.integer("t", 1, 65536)) : 0;
  int q = 0;
  if (arguments.has("q")) {
    q = static_cast<int>(arguments.integer("q", 3, kMostQ));
    if (!is_size(q)) throw usage_error(fmt::format("topology 'slim-fly': q={} is no odd prime", q));
  } else {
    for (q = 3; q < kMostQ; q += 2) {
      if (is_size(q) && 2 * std::int64_t{q} * q * (has_t ? given_t : balanced(q)) >= context.devices) break;
    }
    if (!is_size(q)) throw usage_error(fmt::format("topology 'slim-fly': no q holds {} devices", context.devices));
  }
  return std::make_unique<SlimFly>(q, has_t ? given_t : balanced(q), planes_of(arguments), context);
}

TANDEM_REGISTER(Topology, slim_fly, "slim-fly", "McKay-Miller-Siran graph of routers, at most two hops apart",
                make_slim_fly,
                {{"q", ParameterType::integer, "",
                  "an odd prime; 2q^2 routers (when left out: the smallest that fits)"},
                 {"t", ParameterType::integer, "", "devices of a router (when left out: half of its other ports)"},
                 planes_parameter()})

}  // namespace
}  // namespace tandem
