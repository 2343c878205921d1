#include "platforms/topologies/build.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

namespace tandem {
namespace {

// Depth-first over ascending sizes; the last size follows from the others.
class CubeSearch {
 public:
  CubeSearch(std::int64_t count, int dimensions, int most) : count_(count), dimensions_(dimensions), most_(most) {}

  std::vector<int> best() {
    for (std::int64_t least = 1; least <= most_; ++least) {
      largest_ = std::min<std::int64_t>(2 * least, most_);
      extend(least, 1);
      // A larger least size can only give larger products than an all-`least` box that already holds `count`.
      if (power(least) >= count_) break;
    }
    return best_;
  }

 private:
  std::int64_t power(std::int64_t base) const {
    std::int64_t result = 1;
    for (int i = 0; i < dimensions_ && result < count_; ++i) result *= base;
    return result;
  }

  void extend(std::int64_t least, std::int64_t product) {
    if (static_cast<int>(sizes_.size()) == dimensions_ - 1) {
      const auto last = std::max(least, (count_ + product - 1) / product);
      if (last <= largest_or_only(last)) consider(last, product * last);
      return;
    }
    for (auto size = least; size <= largest_; ++size) {
      if (best_product_ != 0 && product * size > best_product_) break;
      sizes_.push_back(static_cast<int>(size));
      extend(size, product * size);
      sizes_.pop_back();
    }
  }

  // A single dimension has nothing to be in proportion to.
  std::int64_t largest_or_only(std::int64_t last) const {
    return dimensions_ == 1 ? std::min<std::int64_t>(last, most_) : largest_;
  }

  void consider(std::int64_t last, std::int64_t product) {
    const auto sum = std::accumulate(sizes_.begin(), sizes_.end(), last);
    if (best_product_ != 0 && (product > best_product_ || (product == best_product_ && sum >= best_sum_))) return;
    best_product_ = product;
    best_sum_ = sum;
    best_ = sizes_;
    best_.push_back(static_cast<int>(last));
  }

  std::int64_t count_;
  int dimensions_;
  std::int64_t most_;
  std::int64_t largest_ = 0;
  std::int64_t best_product_ = 0;
  std::int64_t best_sum_ = 0;
  std::vector<int> sizes_;
  std::vector<int> best_;
};

}  // namespace

ParameterSpec planes_parameter() {
  return {"planes", ParameterType::integer, "1", "parallel NICs and fabrics of a device (1 to 64)"};
}

int planes_of(const Arguments& arguments) {
  return static_cast<int>(arguments.integer("planes", 1, 64));
}

std::int64_t capped_product(const std::vector<int>& sizes) {
  std::int64_t product = 1;
  for (const auto size : sizes) product = std::min(product * size, kMostLinks + 1);
  return product;
}

void check_size(const std::string& instance, std::int64_t devices, std::int64_t cables) {
  if (devices > kMostDevices) {
    throw usage_error(
        fmt::format("topology '{}' is too large: it may have at most {} devices", instance, kMostDevices));
  }
  if (2 * cables > kMostLinks) {
    throw usage_error(
        fmt::format("topology '{}' is too large: it may have at most {} cables", instance, kMostLinks / 2));
  }
}

std::vector<int> cube_like(std::int64_t count, int dimensions, int most) {
  return CubeSearch(count, dimensions, most).best();
}

std::string joined(const std::vector<int>& sizes) {
  return fmt::format("{}", fmt::join(sizes, "x"));
}

std::string file_contents(const std::string& path, std::uintmax_t most) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw input_error("no such file");
  if (!std::filesystem::is_regular_file(path, error)) throw input_error("it is not a regular file");
  if (const auto size = std::filesystem::file_size(path, error); error || size > most) {
    throw input_error(fmt::format("the file has more than the {} bytes that are accepted", most));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw input_error("the file cannot be opened");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void refuse_other_rates(std::string_view topology, const Topology::PluginContext& context) {
  const Topology::PluginContext defaults;
  const auto differs = [](double a, double b) { return std::abs(a - b) > 1e-9 * b; };  // 500 * 1e-9 is not 500e-9
  if (differs(context.link_bandwidth.count(), defaults.link_bandwidth.count()) ||
      differs(context.link_latency.count(), defaults.link_latency.count())) {
    throw usage_error(fmt::format(
        "topology '{}': the file states the bandwidth and latency of its links: leave others out", topology));
  }
}

}  // namespace tandem
