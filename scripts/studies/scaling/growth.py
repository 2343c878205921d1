#!/usr/bin/python3
"""What a run costs at each level of fidelity against the number of ranks: CPU seconds and peak memory of the whole
process and its children, median of three. Into results/growth.csv and results/growth.png; --largest N goes beyond
65,536 (to 1,048,576) at the analytic level."""

import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
TANDEM = ROOT / "build/release/tandem"
# No level is tried beyond the size at which one run takes about a minute.
MOST = {"flow": 512, "phase": 1024, "analytic": 1 << 20}
CASES = {"star, ring": ["--topology", "star", "--algorithm", "ring"],
         "mesh-rail-cube, blueconnect": ["--topology", "mesh-rail-cube:m=8", "--algorithm", "blueconnect"],
         "fat-tree, ring": ["--topology", "fat-tree", "--algorithm", "ring"]}


def measure(arguments):
    """CPU seconds and peak bytes of one command with its children."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    words = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"error: {' '.join(map(str, arguments))}: {words.decode().strip()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def rows(largest, repetitions):
    for case, options in CASES.items():
        for level, most in MOST.items():
            ranks = 8
            while ranks <= min(most, largest):
                results = [measure([TANDEM, "run", "--trace", "resnet50-cpu", "--device", "v100", "--details", "none",
                                    "--ranks", str(ranks), "--fidelity", level, *options]) for _ in range(repetitions)]
                row = {"case": case, "fidelity": level, "ranks": ranks,
                       "cpu_s": f"{statistics.median(result[0] for result in results):.3f}",
                       "peak_bytes": int(statistics.median(result[1] for result in results))}
                print(f"{case}, {level}, {ranks} ranks: {row['cpu_s']} s, {row['peak_bytes'] / 2**20:.0f} MiB",
                      file=sys.stderr, flush=True)
                yield row
                ranks *= 4 if ranks < 32768 else 2


def draw(table, target):
    # Not before measuring: a child's peak memory is at least what this process had when it was started.
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(11, 4.2))
    styles = dict(zip(MOST, ("-", "--", ":")))
    colours = dict(zip(CASES, ("tab:blue", "tab:orange", "tab:green")))
    for case in CASES:
        for level in MOST:
            own = [row for row in table if row["case"] == case and row["fidelity"] == level]
            ranks = [int(row["ranks"]) for row in own]
            look = {"marker": "o", "markersize": 3, "linestyle": styles[level], "color": colours[case],
                    "label": f"{case}, {level}"}
            time.plot(ranks, [float(row["cpu_s"]) for row in own], **look)
            memory.plot(ranks, [int(row["peak_bytes"]) / 2**20 for row in own], **look)
    time.set(xscale="log", yscale="log", xlabel="ranks", ylabel="CPU seconds of one run")
    memory.set(xscale="log", yscale="log", xlabel="ranks", ylabel="peak memory (MiB)")
    for axes in (time, memory):
        axes.grid(alpha=0.3, which="both")
    memory.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle("One ResNet-50 iteration: what it costs to simulate")
    figure.tight_layout()
    figure.savefig(target, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=65536, help="number of ranks")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    table = list(rows(options.largest, options.repetitions))
    with open(results / "growth.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    draw(table, results / "growth.png")
    print("written: results/growth.csv, results/growth.png", file=sys.stderr)


if __name__ == "__main__":
    main()
