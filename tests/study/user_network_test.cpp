// Networks that users bring: the same network gives the same times whichever way it is described, and closed forms
// where links are not alike.
#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/study/collective_run.hpp"
#include "sim/study/predict.hpp"
#include "tests/platforms/network_files.hpp"

namespace tandem {
namespace {

using testing::TemporaryFolder;

double all_reduce(const std::string& topology, const std::string& algorithm, int ranks, std::int64_t bytes,
                  const std::string& overrides = "") {
  CollectiveBenchOptions options;
  options.cluster.topology = topology;
  options.cluster.ranks = ranks;
  options.cluster.link_overrides = parse_link_overrides(overrides);
  options.algorithm = algorithm;
  return CollectiveBench(options).run(Bytes(bytes)).time.count();
}

double iteration(const std::string& topology, const std::string& algorithm, int ranks) {
  RunConfig config;
  config.trace = "resnet50";
  config.device = "v100";
  config.cluster.topology = topology;
  config.cluster.ranks = ranks;
  config.algorithm = algorithm;
  config.details = Details::none;
  return number(predict(config).row, "iteration_time_s");
}

TEST(UserNetwork, TheSameNetworkGivesTheSameTimes) {
  const std::pair<const char*, int> networks[] = {{"star:devices=8", 8}, {"torus:dims=4x4", 16}};
  for (const auto& [name, ranks] : networks) {
    const TemporaryFolder folder;
    const auto built = make_topology(name, {});
    const auto csv = testing::write_link_list(*built, folder, true);
    const auto xml = testing::write_simgrid_xml(*built, folder);
    for (const char* algorithm : {"ring", "halving-doubling", "blueconnect", "direct"}) {
      SCOPED_TRACE(std::string(name) + ' ' + algorithm);
      const double time = all_reduce(name, algorithm, ranks, 1'000'003);
      EXPECT_GT(time, 0);
      EXPECT_DOUBLE_EQ(all_reduce(csv, algorithm, ranks, 1'000'003), time);
      EXPECT_DOUBLE_EQ(all_reduce(xml, algorithm, ranks, 1'000'003), time);
    }
    const double time = iteration(name, "ring", ranks);
    EXPECT_DOUBLE_EQ(iteration(csv, "ring", ranks), time);
    EXPECT_DOUBLE_EQ(iteration(xml, "ring", ranks), time);
  }
}

// Two ranks send to each other at once. A SHARED link carries one after the other's share, a SPLITDUPLEX link both.
TEST(UserNetwork, HalfDuplexLinksShareTheirTwoDirections) {
  const TemporaryFolder folder;
  const auto pair = [&](const char* policy, const char* direction) {
    const auto file = folder.file(std::string(policy) + ".xml");
    testing::write_bytes(file, fmt::format(R"(<platform version="4.1"><zone id="w" routing="Full">
        <host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>
        <link id="l" bandwidth="1GBps" latency="2us" sharing_policy="{}"/>
        <route src="a" dst="b"><link_ctn id="l" {}/></route></zone></platform>)",
                                           policy, direction));
    return "simgrid-xml:file=" + file;
  };
  const double bytes = 4e6;
  const double full = all_reduce(pair("SPLITDUPLEX", "direction=\"UP\""), "ring", 2, 4'000'000);
  const double half = all_reduce(pair("SHARED", ""), "ring", 2, 4'000'000);
  EXPECT_NEAR(full, 2 * (2e-6 + bytes / 2 / 1e9), 1e-9 * full);
  EXPECT_NEAR(half, 2 * (2e-6 + 2 * bytes / 2 / 1e9), 1e-9 * half);
}

// A ring is as slow as its slowest link, and one way round waits for the latency of one link more.
TEST(UserNetwork, OneSlowLinkSlowsTheRing) {
  const double bytes = 4e6;
  const auto ring = [&](double alpha, double bandwidth) { return 6 * (alpha + bytes / 4 / bandwidth); };
  const auto near = [](double seen, double expected) { EXPECT_NEAR(seen, expected, 1e-9 * expected); };
  near(all_reduce("star", "ring", 4, 4'000'000), ring(1e-6, 12.5e9));
  near(all_reduce("star", "ring", 4, 4'000'000, "device 2 -> switch:bandwidth=5GBps"), ring(1e-6, 5e9));
  near(all_reduce("star", "ring", 4, 4'000'000, "device_port:latency=3us,device 1 *:bandwidth=2GBps"), ring(6e-6, 2e9));
  EXPECT_THROW((void)all_reduce("star", "ring", 4, 4'000'000, "spine*:bandwidth=2GBps"), Error);
}

// Two cables are one slow way: 10 Gbps there, 40 Gbps back.
TEST(UserNetwork, DirectionsOfACableMayDiffer) {
  const TemporaryFolder folder;
  testing::write_bytes(folder.file("l.csv"),
                       "from,to,bandwidth,latency,direction\na,b,1.25GBps,1us,one\nb,a,5GBps,1us,one\n");
  const double time = all_reduce("link-list:links=" + folder.file("l.csv"), "ring", 2, 4'000'000);
  EXPECT_NEAR(time, 2 * (1e-6 + 2e6 / 1.25e9), 1e-9 * time);
}

TEST(UserNetwork, OverridesAreAnAssumption) {
  RunConfig config;
  config.trace = "lenet5";
  config.device = "v100";
  config.cluster.ranks = 4;
  config.cluster.link_overrides = parse_link_overrides("device 3 -> switch:bandwidth=1Gbps");
  config.baseline_ranks = 2;  // of which the link is no part
  config.details = Details::none;
  const auto prediction = predict(config);
  const auto sentence = std::find_if(prediction.assumptions.begin(), prediction.assumptions.end(),
                                     [](const std::string& s) { return s.find("--link-override") != s.npos; });
  ASSERT_NE(sentence, prediction.assumptions.end());
  EXPECT_NE(sentence->find("1 links that match 'device 3 -> switch' have another bandwidth 125 MB/s"),
            std::string::npos)
      << *sentence;
}

}  // namespace
}  // namespace tandem
