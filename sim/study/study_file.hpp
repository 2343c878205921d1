// Study files: options with lists of values, and cases that tie options together.
//
//     # values split on blanks; '#' starts a comment at a line's start or after a blank
//     trace = resnet50-cpu vgg16-cpu
//     ranks = 8 16 32
//     [case proposed]
//     topology = mesh-rail-cube:m=8
//     [case fat-tree-equal-ports]
//     topology = fat-tree:planes=8
//
// The runs are the product of the cases and the lists. A case's own value of an option replaces the common one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

struct StudyOption {
  std::string name;
  std::vector<std::string> values;  // at least one
};

struct StudyCase {
  std::string name;
  std::vector<StudyOption> options;  // in file order
};

struct Study {
  std::vector<StudyOption> options;  // common to all cases, in file order
  std::vector<StudyCase> cases;      // none: one case without a name
};

// One run of a study: its case ("" without cases) and its options by name.
struct StudyRun {
  std::string case_name;
  std::map<std::string, std::string> options;
};

// Usage errors with the line ("scaling.ini:3: ...").
[[nodiscard]] Study parse_study(std::string_view text, const std::string& name);
[[nodiscard]] Study read_study(const std::string& path);  // input error where it cannot be read

// Case by case; within a case the last list varies fastest. Usage error for more than 1,000,000 runs.
[[nodiscard]] std::vector<StudyRun> expand(const Study& study);

// The options that differ between runs, by name, in file order.
[[nodiscard]] std::vector<std::string> varied_options(const Study& study, const std::vector<StudyRun>& runs);

}  // namespace tandem
