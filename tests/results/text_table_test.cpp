#include "sim/results/text_table.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

const Record kFirst{{"name", "1", std::string("ring")},
                    {"time_s", "s", 0.001234},
                    {"size_bytes", "bytes", std::int64_t{102'228'128}},
                    {"busbw_bytes_per_s", "bytes/s", 12.5e9},
                    {"efficiency", "1", 0.91234}};
const Record kSecond{{"name", "1", std::string("halving-doubling")},
                     {"time_s", "s", 12.0},
                     {"size_bytes", "bytes", std::int64_t{8}},
                     {"busbw_bytes_per_s", "bytes/s", 1.0},
                     {"efficiency", "1", 1.0}};

TEST(TextTable, AlignsColumnsAndFormatsByUnit) {
  EXPECT_EQ(to_table({kFirst, kSecond}),
            "name                  time      size      busbw  efficiency\n"
            "ring              1.234 ms  102.2 MB  12.5 GB/s      0.9123\n"
            "halving-doubling      12 s       8 B      1 B/s           1\n");
}

TEST(TextTable, CountsCharactersAndNotBytes) {
  EXPECT_EQ(to_table({{{"instance", "1", std::string("4×4")}, {"n", "1", std::int64_t{1}}},
                      {{"instance", "1", std::string("torus\n3D")}, {"n", "1", std::int64_t{10}}}}),
            "instance   n\n"
            "4×4        1\n"
            "torus 3D  10\n");
}

TEST(TextTable, RecordsMayHaveDifferentFields) {
  EXPECT_EQ(to_table({{{"a", "1", std::int64_t{1}}}, {{"b", "1", std::string("x")}}}),
            "a  b\n"
            "1  -\n"
            "-  x\n");
  EXPECT_EQ(to_csv({{{"a", "1", std::int64_t{1}}}, {{"b", "1", std::string("x")}}}), "a,b\n1,\n,x\n");
}

TEST(TextTable, OneRecordIsAList) {
  EXPECT_EQ(to_list({{"iteration_time_s", "s", 0.25}, {"ranks", "1", std::int64_t{64}}}),
            "iteration_time  250 ms\n"
            "ranks           64\n");
}

TEST(TextTable, NothingIsNothing) {
  EXPECT_EQ(to_table({}), "");
  EXPECT_EQ(to_csv({}), "");
  EXPECT_EQ(to_list({}), "");
  EXPECT_EQ(to_json(std::vector<Record>{}), "[]\n");
}

TEST(TextTable, ValuesForPeople) {
  const auto text = [](Value value, const char* unit) { return to_text(Field{"x", unit, std::move(value)}); };
  EXPECT_EQ(text(0.0, "s"), "0 s");
  EXPECT_EQ(text(std::int64_t{3}, "s"), "3 s");
  EXPECT_EQ(text(1.5e6, "bytes"), "1.5 MB");
  EXPECT_EQ(text(15.7e12, "flops/s"), "15.7 TFLOPS");
  EXPECT_EQ(text(12345.6, "samples/s"), "12346 samples/s");
  EXPECT_EQ(text(2131.5, "USD"), "2132 USD");
  EXPECT_EQ(text(1.0 / 3, ""), "0.3333");
  EXPECT_EQ(text(1e12, "1"), "1e+12");
  EXPECT_EQ(text(std::int64_t{138'357'544}, "1"), "138357544");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN(), "s"), "-");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity(), "s"), "inf s");
}

TEST(TextTable, NamesKeepUnitsThatTheirValuesDoNotShow) {
  EXPECT_EQ(to_list({{"throughput_samples_per_s", "samples/s", 2.0}}), "throughput_samples_per_s  2 samples/s\n");
  EXPECT_EQ(to_list({{"bytes", "bytes", std::int64_t{1}}}), "bytes  1 B\n");
}

TEST(TextTable, CsvQuotesAsRfc4180) {
  EXPECT_EQ(to_csv({{{"a,b", "1", std::string("say \"hi\"")}, {"c", "1", std::string("two\nlines")}},
                    {{"a,b", "1", std::string("plain text")}, {"c", "s", 0.1}}}),
            "\"a,b\",c\n\"say \"\"hi\"\"\",\"two\nlines\"\nplain text,0.1\n");
}

TEST(TextTable, JsonReadsBackExactly) {
  const double third = 1.0 / 3;
  const Record record{{"z", "s", third},
                      {"a", "1", std::int64_t{9'007'199'254'740'993}},
                      {"t", "1", std::string("→ \"x\"")},
                      {"nan", "1", std::numeric_limits<double>::quiet_NaN()},
                      {"inf", "1", -std::numeric_limits<double>::infinity()}};
  const auto json = nlohmann::ordered_json::parse(to_json(std::vector<Record>{record, record}));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1]["z"].get<double>(), third);
  EXPECT_EQ(json[1]["a"].get<std::int64_t>(), 9'007'199'254'740'993);
  EXPECT_EQ(json[1]["t"], "→ \"x\"");
  EXPECT_TRUE(json[1]["nan"].is_null());
  EXPECT_TRUE(json[1]["inf"].is_null());
  EXPECT_EQ(json[1].begin().key(), "z");  // the record's order
  EXPECT_EQ(nlohmann::json::parse(to_json(record)).size(), 5U);
  EXPECT_NE(to_json(Record{{"x", "s", 0.1}}).find("\"x\": 0.1\n"), std::string::npos);
}

TEST(TextTable, JsonOfTextThatIsNotUtf8IsStillJson) {
  EXPECT_TRUE(nlohmann::json::accept(to_json(Record{{"path", "1", std::string("\xff")}})));
}

TEST(TextTable, SelectKeepsTheOrderAsked) {
  const auto record = select(kFirst, {"efficiency", "none", "name"});
  ASSERT_EQ(record.size(), 2U);
  EXPECT_EQ(record[0].name, "efficiency");
  EXPECT_EQ(record[1].name, "name");
}

}  // namespace
}  // namespace tandem
