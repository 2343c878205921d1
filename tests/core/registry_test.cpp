#include "sim/core/registry.hpp"

#include <gtest/gtest.h>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

namespace tandem {
namespace {

struct Toy {
  static constexpr const char* plugin_kind = "toy";
  static constexpr const char* plugin_help = "for tests";
  struct PluginContext {
    int base = 0;
  };
  int size = 0;
  std::vector<int> dims;
};

std::unique_ptr<Toy> make_toy(const Arguments& arguments, const Toy::PluginContext& context) {
  auto toy = std::make_unique<Toy>();
  toy->size = context.base + static_cast<int>(arguments.integer("size", 1, 100));
  if (arguments.has("dims")) toy->dims = arguments.integers("dims", 1, 64);
  return toy;
}

TANDEM_REGISTER(Toy, toy, "toy-box", "a box", make_toy,
                {{"size", ParameterType::integer, "3", "how large"},
                 {"dims", ParameterType::integer_list, "", "shape"}})

std::string message(auto&& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const auto& toys() {
  return Registry<Toy>::instance();
}

TEST(Registry, MakesWithDefaultsAndGivenValues) {
  EXPECT_EQ(toys().make("toy-box")->size, 3);
  EXPECT_EQ(toys().make("toy-box:size=7,dims=4x2", {10})->size, 17);
  EXPECT_EQ(toys().make("toy-box:7")->size, 7);
  EXPECT_EQ(toys().make("toy-box:dims=4x2")->dims, (std::vector<int>{4, 2}));
}

TEST(Registry, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(message([] { return toys().make("toy-bax"); }), "unknown toy 'toy-bax'; did you mean 'toy-box'?");
  EXPECT_EQ(message([] { return toys().make("toy-box:sise=3"); }),
            "toy 'toy-box' has no parameter 'sise'; did you mean 'size'?");
  EXPECT_NE(message([] { return toys().make("toy-box:size=0"); }).find("from 1 to 100"), std::string::npos);
  EXPECT_NE(message([] { return toys().make("toy-box:size=3,size=4"); }).find("twice"), std::string::npos);
  EXPECT_NE(message([] { return toys().make("toy-box:size="); }).find("no value"), std::string::npos);
  EXPECT_NE(message([] { return toys().make("toy-box:dims=4xx2"); }), "no error");
}

TEST(Registry, ADuplicateNameIsAnError) {
  EXPECT_THROW(Registry<Toy>::instance().add({"toy-box", "again", {}}, make_toy), Error);
}

TEST(Text, ClosestIsNearOrNothing) {
  EXPECT_EQ(closest("fat-tre", {"fat-tree", "torus"}), "fat-tree");
  EXPECT_EQ(closest("quantum", {"fat-tree", "torus"}), "");
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
}

TEST(Random, IsFixedForAllTime) {
  // Known first outputs of SplitMix64 for seed 1234567 (Vigna's reference implementation).
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
}

}  // namespace
}  // namespace tandem
