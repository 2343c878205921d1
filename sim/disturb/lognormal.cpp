// Factors exp(sigma z - sigma^2/2), z standard normal: mean 1, and for small sigma a standard deviation of about sigma.
// Never negative and skewed to the slow side, as measured times of equal work are.
#include <cmath>
#include <numbers>

#include "sim/core/error.hpp"
#include "sim/disturb/jitter.hpp"

namespace tandem {
namespace {

class Lognormal final : public Jitter {
 public:
  explicit Lognormal(double sigma) : sigma_(sigma) {
    if (!(sigma >= 0 && sigma <= 2)) throw usage_error("lognormal: sigma must be from 0 to 2");
  }
  [[nodiscard]] double factor(Random& random) const override {
    // Box and Muller (1958); 1 - u is above 0.
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    const double z = radius * std::cos(2 * std::numbers::pi * random.uniform());
    return std::exp(sigma_ * z - sigma_ * sigma_ / 2);
  }

 private:
  double sigma_;
};

TANDEM_REGISTER(Jitter, lognormal, "lognormal", "a lognormal factor of mean 1 for every rank",
                [](const Arguments& arguments, const Jitter::PluginContext&) {
                  return std::make_unique<Lognormal>(arguments.number("sigma"));
                },
                {{"sigma", ParameterType::number, "0.05", "standard deviation of the factor's logarithm"}})

}  // namespace
}  // namespace tandem
