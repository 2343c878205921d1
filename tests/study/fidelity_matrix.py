#!/usr/bin/python3
"""The coarser levels of fidelity against flow: 5 topologies x 5 collectives x 3 models x 5 numbers of ranks, without and
with noise of the ranks; and without noise, with an oversubscribed network besides, numbers of ranks that are no powers
of two, and collectives in chunks.

Runs all of them at all three levels, compares iteration times, and fails where a level is farther from `flow` than it
may be (phase 1 %, analytic 3 %, with noise of the ranks 3 % both), unless fidelity_exceptions.csv names the case with a
reason. Prints the table of differences, which is committed as fidelity_matrix.csv: with --write it is written anew;
otherwise it must agree with what is committed.

Usage: fidelity_matrix.py TANDEM [--write]"""

import csv
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "fidelity_matrix.csv"
EXCEPTIONS = HERE / "fidelity_exceptions.csv"

TOPOLOGIES = ["star", "fat-tree", "torus", "mesh-rail-cube", "dragonfly"]
ALGORITHMS = ["ring", "halving-doubling", "double-binary-tree", "blueconnect", "hierarchical"]
MODELS = ["resnet50-cpu", "vgg16-cpu", "lenet5-cpu"]
LIMITS = {("phase", "none"): 0.01, ("analytic", "none"): 0.03, ("phase", "noise"): 0.03, ("analytic", "noise"): 0.03}
NOISE = {"none": "none", "noise": "lognormal:sigma=0.05"}
# Noise, ranks, chunk, topologies.
BLOCKS = [(noise, ranks, "whole", TOPOLOGIES) for noise in NOISE for ranks in (8, 16, 32, 64, 128)]
BLOCKS += [("none", ranks, "whole", TOPOLOGIES + ["leaf-spine:oversubscription=4"]) for ranks in (12, 20, 24)]
BLOCKS += [("none", 32, "4MiB", TOPOLOGIES + ["leaf-spine:oversubscription=4"])]
# Ranks that do not fill the digits of the topology's addresses, along which blueconnect goes: refused at every level.
PARTLY_FILLED = {"fat-tree": [20, 24, 32], "torus": [20], "mesh-rail-cube": [12, 20], "dragonfly": [12, 20, 128],
                 "leaf-spine:oversubscription=4": [20]}
# 100 Gbps a port is what V100 nodes of this size have; with 10 Gbps communication is not hidden, which is harder.
COMMON = """device = v100
link-bandwidth = 10Gbps
link-latency = 1us
step-overhead = 2us
"""


def sweep(tandem, folder, noise, ranks, chunk, topologies):
    """Rows of one sweep over one block."""
    text = COMMON + f"trace = {' '.join(MODELS)}\nranks = {ranks}\njitter = {NOISE[noise]}\nchunk = {chunk}\n"
    text += "fidelity = flow phase analytic\n"
    for topology in topologies:
        for algorithm in ALGORITHMS:
            text += f"\n[case {topology}/{algorithm}]\ntopology = {topology}\nalgorithm = {algorithm}\n"
    study = pathlib.Path(folder) / f"{noise}-{ranks}-{chunk}.ini"
    study.write_text(text, encoding="utf-8")
    done = subprocess.run([tandem, "sweep", study, "--format", "csv"], capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"the sweep gave nothing: {done.stderr.strip()}")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    for row in rows:
        topology, algorithm = row["case"].split("/")
        if row.get("error") and (algorithm != "blueconnect" or ranks not in PARTLY_FILLED.get(topology, [])):
            sys.exit(f"{row['case']}, {row['trace']}, {ranks} ranks: {row['error']}")
    return [row for row in rows if not row.get("error")]


def differences(tandem):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for noise, ranks, chunk, topologies in BLOCKS:
            times = {}
            for row in sweep(tandem, folder, noise, ranks, chunk, topologies):
                times.setdefault((row["case"], row["trace"]), {})[row["fidelity"]] = float(row["iteration_time_s"])
            for (case, trace), found in times.items():
                topology, algorithm = case.split("/")
                if "flow" not in found or len(found) != 3:
                    sys.exit(f"{case}, {trace}, {ranks} ranks: only {', '.join(found)} came to a result")
                rows.append({"noise": noise, "topology": topology, "algorithm": algorithm, "trace": trace,
                             "ranks": ranks, "chunk": chunk, "flow_s": f"{found['flow']:.6g}",
                             "phase_error": f"{found['phase'] / found['flow'] - 1:+.5f}",
                             "analytic_error": f"{found['analytic'] / found['flow'] - 1:+.5f}"})
            print(f"noise {noise}, {ranks} ranks, chunk {chunk}: {len(times)} cases", file=sys.stderr, flush=True)
    return rows


def excepted(row, level, exceptions, used):
    for number, exception in enumerate(exceptions):
        if exception["level"] != level or abs(float(row[level + "_error"])) > float(exception["at_most"]):
            continue
        if all(exception[key] in ("*", str(row[key]))
               for key in ("noise", "topology", "algorithm", "trace", "ranks", "chunk")):
            used.add(number)
            return True
    return False


def judge(rows):
    with open(EXCEPTIONS, encoding="utf-8") as file:
        exceptions = list(csv.DictReader(line for line in file if not line.startswith("#")))
    bad = 0
    used = set()
    for (level, noise), limit in LIMITS.items():
        errors = [abs(float(row[level + "_error"])) for row in rows if row["noise"] == noise]
        outside = [row for row in rows if row["noise"] == noise and abs(float(row[level + "_error"])) > limit]
        unknown = [row for row in outside if not excepted(row, level, exceptions, used)]
        errors.sort()
        print(f"{level}, noise {noise}: {len(errors)} cases, median {errors[len(errors) // 2]:.2%}, "
              f"largest {errors[-1]:.2%}; beyond {limit:.0%}: {len(outside)}, of them without a reason: {len(unknown)}")
        for row in unknown:
            print(f"  {row['topology']} {row['algorithm']} {row['trace']} {row['ranks']} ranks, chunk {row['chunk']}: "
                  f"{row[level + '_error']}")
        bad += len(unknown)
    for number, exception in enumerate(exceptions):
        if number not in used:
            print(f"an exception that nothing needs: {', '.join(exception.values())}")
            bad += 1
    return bad


def main():
    tandem = sys.argv[1]
    rows = differences(tandem)
    bad = judge(rows)
    if "--write" in sys.argv[2:]:
        with open(TABLE, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    else:
        with open(TABLE, encoding="utf-8") as file:
            committed = list(csv.DictReader(file))
        if [{key: str(value) for key, value in row.items()} for row in rows] != committed:
            print("the committed table differs: look, and write it anew with --write")
            bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
