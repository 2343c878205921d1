// Study files: how they are read, and which runs they mean.
#include "sim/study/study_file.hpp"

#include <gtest/gtest.h>

#include "sim/core/error.hpp"
#include "sim/study/collective_run.hpp"
#include "sim/study/sweep.hpp"

namespace tandem {
namespace {

std::vector<std::string> texts(const std::vector<StudyRun>& runs) {
  std::vector<std::string> result;
  for (const auto& run : runs) {
    std::string text = run.case_name + ":";
    for (const auto& [name, value] : run.options) text += " " + name + "=" + value;
    result.push_back(text);
  }
  return result;
}

std::string mistake(const std::string& text) {
  try {
    (void)expand(parse_study(text, "s.ini"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

TEST(StudyFile, OneOptionWithOneValueIsOneRun) {
  EXPECT_EQ(texts(expand(parse_study("ranks = 8\n", "s"))), (std::vector<std::string>{": ranks=8"}));
}

TEST(StudyFile, ListsMultiplyTheLastOneFastest) {
  EXPECT_EQ(
      texts(expand(parse_study("trace = a b\nranks=1 2", "s"))),
      (std::vector<std::string>{": ranks=1 trace=a", ": ranks=2 trace=a", ": ranks=1 trace=b", ": ranks=2 trace=b"}));
}

TEST(StudyFile, CasesTieOptionsTogetherAndComeInOrder) {
  const auto study = parse_study("ranks = 8 16\n[case z]\ntopology = star\n[case a]\ntopology = torus\n", "s");
  EXPECT_EQ(texts(expand(study)),
            (std::vector<std::string>{"z: ranks=8 topology=star", "z: ranks=16 topology=star",
                                      "a: ranks=8 topology=torus", "a: ranks=16 topology=torus"}));
}

TEST(StudyFile, ACaseReplacesACommonValueAndMayListSeveral) {
  const auto study = parse_study("ranks = 8\nchannels = 1\n[case a]\n[case b]\nranks = 2 4\n", "s");
  EXPECT_EQ(texts(expand(study)),
            (std::vector<std::string>{"a: channels=1 ranks=8", "b: channels=1 ranks=2", "b: channels=1 ranks=4"}));
}

TEST(StudyFile, CommentsBlankLinesAndCarriageReturns) {
  const auto study = parse_study("# a study\r\n\r\n  ranks = 8   # of them\r\n\ttrace = a#b\r\n", "s");
  EXPECT_EQ(texts(expand(study)), (std::vector<std::string>{": ranks=8 trace=a#b"}));
}

TEST(StudyFile, AByteOrderMarkIsNoOption) {
  EXPECT_EQ(texts(expand(parse_study("\xEF\xBB\xBFranks = 8\n", "s"))), (std::vector<std::string>{": ranks=8"}));
}

TEST(StudyFile, ValuesMayHoldEqualSigns) {
  EXPECT_EQ(texts(expand(parse_study("topology = fat-tree:k=4,planes=2", "s"))),
            (std::vector<std::string>{": topology=fat-tree:k=4,planes=2"}));
}

TEST(StudyFile, MistakesNameTheLine) {
  EXPECT_EQ(mistake("ranks = 8\nranks = 16\n"), "s.ini:2: option 'ranks' stands twice: list its values in one line");
  EXPECT_EQ(mistake("\nranks =\n"), "s.ini:2: option 'ranks' has no value");
  EXPECT_EQ(mistake("ranks 8\n"), "s.ini:1: 'ranks 8' is not of the form OPTION = VALUES");
  EXPECT_EQ(mistake("= 8\n"), "s.ini:1: '= 8' is not of the form OPTION = VALUES");
  EXPECT_EQ(mistake("[case a]\n[case a]\n"), "s.ini:2: case 'a' stands twice");
  EXPECT_EQ(mistake("[a]\n"), "s.ini:1: '[a]': a section is written [case NAME], with a name without blanks");
  EXPECT_EQ(mistake("[case a\n"), "s.ini:1: '[case a' has no closing ']'");
  EXPECT_EQ(mistake("# nothing\n"), "s.ini: the study has no options");
}

TEST(StudyFile, TooManyRunsAreRefused) {
  std::string text;
  for (char name = 'a'; name < 'h'; ++name) {
    text += name;
    text += " = 0 1 2 3 4 5 6 7 8 9\n";
  }
  EXPECT_EQ(mistake(text), "the study has more than 1000000 runs");
}

TEST(StudyFile, VariedOptionsAreThoseThatDiffer) {
  const auto study = parse_study("trace = a\nranks = 1 2\n[case x]\nsync = s\n[case y]\n", "s");
  EXPECT_EQ(varied_options(study, expand(study)), (std::vector<std::string>{"ranks", "sync"}));
}

TEST(StudyHash, TellsSettledLevelsApart) {
  const std::vector<StudyRun> runs(1);
  RunConfig config;
  config.options = {{"fidelity", "auto"}};
  const auto hash = [&](const std::string& level) {
    config.fidelity = level;
    return study_hash(runs, {config});
  };
  EXPECT_EQ(hash("flow"), hash("flow"));
  EXPECT_NE(hash("flow"), hash("phase"));
}

TEST(SizeRange, GrowsByAFactorUpToItsEnd) {
  EXPECT_EQ(size_range(Bytes(8), Bytes(64), 2), (std::vector<Bytes>{Bytes(8), Bytes(16), Bytes(32), Bytes(64)}));
  EXPECT_EQ(size_range(Bytes(8), Bytes(63), 2), (std::vector<Bytes>{Bytes(8), Bytes(16), Bytes(32)}));
  EXPECT_EQ(size_range(Bytes(8), Bytes(8), 2), (std::vector<Bytes>{Bytes(8)}));
  EXPECT_EQ(size_range(Bytes(1), Bytes(3), 1.3), (std::vector<Bytes>{Bytes(1), Bytes(2), Bytes(3)}));
  EXPECT_EQ(size_range(Bytes(0), Bytes(8), 2), (std::vector<Bytes>{Bytes(0)}));
  EXPECT_THROW((void)size_range(Bytes(8), Bytes(4), 2), Error);
  EXPECT_THROW((void)size_range(Bytes(8), Bytes(16), 1), Error);
}

}  // namespace
}  // namespace tandem
