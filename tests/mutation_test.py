#!/usr/bin/python3
"""A test that cannot fail proves nothing: mutated models must turn the closed-form tests red.

Each mutation (link bandwidth x 0.5, latency x 10, no overlap) is applied behind the tests' back through the variable
TANDEM_MUTATION, and every test that depends on what was mutated must fail.

Usage: mutation_test.py TEST_ENGINE TEST_STUDY
"""
import json
import os
import subprocess
import sys
import tempfile

# Program index, mutation -> gtest filter of tests that must all be red.
MUST_FAIL = [
    (0, "bandwidth", "*ClosedForm*-*Edges*"),
    (0, "latency", "*ClosedForm*-*Edges*:*Chunks*"),
    (1, "bandwidth", "*Iteration.*:Baseline.ParameterServers*:Baseline.AlphaBeta*"),
    (1, "latency", "*Iteration.*:Baseline.ParameterServers*:Baseline.AlphaBeta*"),
    (1, "overlap", "Overlap/Iteration.*"),
]


def outcomes(program: str, mutation: str, tests: str) -> dict[str, bool]:
    """Test name -> whether it failed; skipped tests are left out."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        environment = dict(os.environ, TANDEM_MUTATION=mutation)
        subprocess.run([program, f"--gtest_filter={tests}", f"--gtest_output=json:{report}"], env=environment,
                       capture_output=True, check=False)
        with open(report, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    return {f"{suite['name']}.{test['name']}": "failures" in test
            for suite in suites for test in suite["testsuite"] if test.get("result") == "COMPLETED"}


def main() -> int:
    programs = sys.argv[1:3]
    bad = 0
    for index, mutation, tests in MUST_FAIL:
        healthy = outcomes(programs[index], "", tests)
        mutated = outcomes(programs[index], mutation, tests)
        red_when_healthy = sorted(name for name, failed in healthy.items() if failed)
        green = sorted(name for name, failed in mutated.items() if not failed)
        print(f"{mutation}: {len(mutated) - len(green)} of {len(mutated)} tests turn red")
        if not mutated or red_when_healthy or green:
            bad = 1
            print(f"  red without a mutation: {red_when_healthy}\n  green in spite of it: {green}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
