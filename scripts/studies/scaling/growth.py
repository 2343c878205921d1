#!/usr/bin/python3
"""What a run costs at each level of fidelity against the number of ranks: CPU seconds and peak memory of the whole
process and its children. Runs below 5 s count by the median of three, longer ones are made once. Where a level takes
too long, its time is extrapolated to 65,536 ranks and drawn apart. Into results/growth.csv (measured values only) and
results/growth.png."""

import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
TANDEM = ROOT / "build/release/tandem"
LEVELS = ("flow", "phase", "analytic")
SIZES = (8, 32, 128, 512, 1024, 2048, 8192, 32768, 65536, 262144, 1048576)
TARGET = 65536
LONG_RUN_S = 5


def ring_steps(ranks):
    return 2 * (ranks - 1)


def cube_steps(ranks):
    """Directly within a module of 8, by halving and doubling along a rail."""
    return 2 * (8 - 1 + math.log2(ranks / 8))


# Options; steps of an all-reduce, in each of which a rank sends one message (phase folds a ring's into 2, and none of
# the other's); and the largest size of each level: beyond it one run takes more than about a minute, or the study as a
# whole too long.
CASES = {"star, ring": (["--topology", "star", "--algorithm", "ring"], ring_steps,
                        {"flow": 1024, "phase": 8192, "analytic": 1048576}),
         "mesh-rail-cube, blueconnect": (["--topology", "mesh-rail-cube:m=8", "--algorithm", "blueconnect"], cube_steps,
                                         {"flow": 2048, "phase": 2048, "analytic": 65536}),
         "fat-tree, ring": (["--topology", "fat-tree", "--algorithm", "ring"], ring_steps,
                            {"flow": 512, "phase": 8192, "analytic": 65536})}


def measure(arguments):
    """CPU seconds and peak bytes of one command with its children, and the flows that it simulated."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"error: {' '.join(map(str, arguments))} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, json.loads(output)["simulated_flows"]


def measured_row(case, level, ranks, repetitions):
    command = [TANDEM, "run", "--trace", "resnet50-cpu", "--device", "v100", "--details", "none", "--format", "json",
               "--ranks", str(ranks), "--fidelity", level, *CASES[case][0]]
    results = [measure(command)]
    while len(results) < repetitions and results[0][0] < LONG_RUN_S:
        results.append(measure(command))
    return {"case": case, "fidelity": level, "ranks": ranks,
            "cpu_s": f"{statistics.median(result[0] for result in results):.3f}",
            "peak_bytes": int(statistics.median(result[1] for result in results)), "flows": results[0][2]}


def rows(largest, repetitions):
    for case, (_, _, most) in CASES.items():
        for level in LEVELS:
            for ranks in (size for size in SIZES if size <= min(most[level], largest)):
                row = measured_row(case, level, ranks, repetitions)
                print(f"{case}, {level}, {ranks} ranks: {row['cpu_s']} s, {row['peak_bytes'] / 2**20:.0f} MiB, "
                      f"{row['flows']} flows", file=sys.stderr, flush=True)
                yield row


def own_rows(table, case, level):
    return [row for row in table if row["case"] == case and row["fidelity"] == level]


def flows(case, level, ranks):
    """Of one all-reduce."""
    steps = CASES[case][1]
    return ranks * (2 if level == "phase" and steps is ring_steps else steps(ranks))


def extrapolated(table, case, level):
    """Sizes and CPU seconds from the largest measured one to TARGET; none at the analytic level. Time grows as flows
    times ranks: when a flow ends, SimGrid walks through the list of those under way, one a rank. This is rather too
    little, since a longer list fits fewer caches."""
    last = own_rows(table, case, level)[-1]
    first, seconds = int(last["ranks"]), float(last["cpu_s"])
    if level == "analytic":
        return [], []
    sizes = [first * 2**i for i in range((TARGET // first).bit_length())]
    work = [size * flows(case, level, size) for size in sizes]
    return sizes, [seconds * one / work[0] for one in work]


def print_extrapolation(table):
    for case in CASES:
        for level in LEVELS:
            sizes, seconds = extrapolated(table, case, level)
            if not sizes:
                continue
            last = own_rows(table, case, level)[-1]
            count = int(last["flows"])
            more = count * flows(case, level, TARGET) / flows(case, level, sizes[0])
            each = float(last["cpu_s"]) / count
            print(f"{case}, {level}, {TARGET} ranks, extrapolated: {seconds[-1] / 3600:.3g} hours; {more:.3g} flows, "
                  f"which take {more * each / 3600:.3g} hours if each takes what it took at {sizes[0]} ranks, "
                  f"{1e6 * each:.3g} us", file=sys.stderr)


def draw(table, target):
    # Not before measuring: a child's peak memory is at least what this process had when it was started.
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import matplotlib.ticker
    from matplotlib.lines import Line2D

    figure, (time, memory) = plt.subplots(1, 2, figsize=(12, 4.8))
    markers = dict(zip(LEVELS, ("o", "s", "^")))
    colours = dict(zip(CASES, ("tab:blue", "tab:orange", "tab:green")))
    for case in CASES:
        for level in LEVELS:
            own = own_rows(table, case, level)
            ranks = [int(row["ranks"]) for row in own]
            look = {"marker": markers[level], "markersize": 4, "linewidth": 1.2, "color": colours[case]}
            time.plot(ranks, [float(row["cpu_s"]) for row in own], **look)
            memory.plot(ranks, [int(row["peak_bytes"]) / 2**20 for row in own], **look)
            sizes, seconds = extrapolated(table, case, level)
            if sizes:
                time.plot(sizes, seconds, linestyle="--", linewidth=1, color=colours[case])
                time.plot(sizes[-1:], seconds[-1:], marker=markers[level], markersize=5, markerfacecolor="none",
                          color=colours[case])
    time.set(xscale="log", yscale="log", xlabel="ranks", ylabel="CPU seconds of one run")
    memory.set(xscale="log", yscale="log", xlabel="ranks", ylabel="peak memory (MiB)")
    mebibytes = (50, 100, 200, 500, 1000)
    memory.set_yticks(mebibytes, [str(size) for size in mebibytes])
    memory.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    for seconds, words in ((60, "a minute"), (3600, "an hour"), (86400, "a day")):
        time.axhline(seconds, color="0.6", linewidth=0.7)
        time.annotate(words, (8, seconds), textcoords="offset points", xytext=(0, 2), fontsize=7, color="0.4")
    for axes in (time, memory):
        axes.grid(alpha=0.3)
    grey = {"color": "0.3", "markersize": 5}
    handles = [Line2D([], [], color=colours[case], label=case) for case in CASES]
    handles += [Line2D([], [], marker=markers[level], linewidth=1.2, label=f"{level}, measured", **grey)
                for level in LEVELS]
    handles.append(Line2D([], [], linestyle="--", linewidth=1, marker="o", markerfacecolor="none",
                          label=f"flow, extrapolated\nto {TARGET:,}", **grey))
    handles.append(Line2D([], [], linestyle="--", linewidth=1, marker="s", markerfacecolor="none",
                          label=f"phase, extrapolated\nto {TARGET:,}", **grey))
    memory.legend(handles=handles, fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle("One ResNet-50 iteration: what it costs to simulate")
    figure.tight_layout()
    figure.savefig(target, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="number of ranks")
    parser.add_argument("--repetitions", type=int, default=3, help="of runs below 5 s")
    options = parser.parse_args()
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    table = list(rows(options.largest, options.repetitions))
    with open(results / "growth.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    print_extrapolation(table)
    draw(table, results / "growth.png")
    print("written: results/growth.csv, results/growth.png", file=sys.stderr)


if __name__ == "__main__":
    main()
