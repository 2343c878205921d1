// Files of prices: what they may say, and that the shipped ones are what they claim to be.
#include "sim/study/price_file.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"

namespace tandem {
namespace {

TEST(PriceFile, NamesAreReadAndOthersKeepTheirAssumedPrice) {
  const auto prices = parse_prices("# mine\nswitch-port = 100.5\r\n\n  nic-port=0   # given away\n", "p.txt");
  EXPECT_EQ(prices.switch_port, 100.5);
  EXPECT_EQ(prices.device_port, 0);
  EXPECT_EQ(prices.board_link, Prices{}.board_link);
  EXPECT_EQ(prices.copper_cable, Prices{}.copper_cable);
  EXPECT_EQ(prices.optical_cable, Prices{}.optical_cable);
}

TEST(PriceFile, MistakesAreNamedWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"switch-port 223", "p.txt:1: a line must read NAME = PRICE"},
      {"nic-port = 1\nswitch-prot = 223", "p.txt:2: unknown price 'switch-prot'; did you mean 'switch-port'?"},
      {"nic-port = 1\nnic-port = 2", "p.txt:2: the price 'nic-port' is given twice"},
      {"nic-port = -1", "p.txt:1: the price 'nic-port' is -1: it must be 0 or more"},
      {"nic-port = cheap", "p.txt:1: the price 'nic-port' is 'cheap': it must be a number"},
      {"nic-port = inf", "p.txt:1: the price 'nic-port' is 'inf': it must be a number"},
      {"nic-port =", "p.txt:1: the price 'nic-port' is '': it must be a number"},
      {"# nothing\n", "p.txt: there are no prices in it: a line must read NAME = PRICE"}};
  for (const auto& [text, message] : cases) {
    try {
      (void)parse_prices(text, "p.txt");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << text;
      EXPECT_EQ(std::string(error.what()), message);
    }
  }
  EXPECT_THROW((void)read_prices("/nonexistent/prices.txt"), Error);
  EXPECT_THROW((void)read_prices("/"), Error);
}

TEST(PriceFile, TheShippedFiles) {
  const std::string folder = TANDEM_SOURCE_DIR "/sim/study/prices/";
  const auto assumed = read_prices(folder + "assumed.txt");
  EXPECT_EQ(assumed.switch_port, Prices{}.switch_port);
  EXPECT_EQ(assumed.node_switch_port, Prices{}.node_switch_port);
  EXPECT_EQ(assumed.device_port, Prices{}.device_port);
  EXPECT_EQ(assumed.board_link, Prices{}.board_link);
  EXPECT_EQ(assumed.copper_cable, Prices{}.copper_cable);
  EXPECT_EQ(assumed.optical_cable, Prices{}.optical_cable);
  // A module of 8 has 7/2 links a device that become copper cables: 847 more for each.
  const auto boxes = read_prices(folder + "separate-boxes.txt");
  const auto cube = make_topology("mesh-rail-cube:m=8,n=8", {});
  EXPECT_DOUBLE_EQ(cost_per_device(*cube, boxes) - cost_per_device(*cube, assumed), 847);
}

// Dollars a device by independent arithmetic, at the assumed prices. Rails of one, two and three tiers: 9 ports of
// NVSwitch at 110, as many board links at 30, 10 ports of a device at 150; a cable at 603 and 1, 3 or 5 ports at 223,
// and a cable more for every tier.
TEST(Cost, IsThatOfTheTableOfNetworksAtScale) {
  const std::vector<std::pair<std::string, double>> table{{"rail-only:m=8,nodes=8", 3586},
                                                          {"rail-only:m=8,nodes=64", 3586},
                                                          {"rail-only:m=8,nodes=512", 4635},
                                                          {"rail-only:m=8,nodes=4096", 5684},
                                                          {"mesh-rail-cube:m=8,n=8", 2131},
                                                          {"mesh-rail-cube:m=4,n=32x32", 1471},
                                                          {"mesh-clos-rails:m=8,n=512", 3180},
                                                          {"mesh-clos-rails:m=8,n=4096", 4229},
                                                          {"torus:dims=16x16x16", 1964.25},
                                                          {"fat-tree:k=32", 2743},
                                                          {"fat-tree:k=32,planes=8", 21944},
                                                          {"dcell:n=8,k=2", 1548},
                                                          {"bcube:n=8,k=1", 1621},
                                                          {"bcube:n=8,k=2", 2597},
                                                          {"star:devices=64", 645}};
  for (const auto& [name, cost] : table) {
    EXPECT_NEAR(cost_per_device(*make_topology(name, {}), Prices{}), cost, 1e-6) << name;
  }
}

}  // namespace
}  // namespace tandem
