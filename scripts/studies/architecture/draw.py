#!/usr/bin/python3
"""Draws the architecture study from results/architecture/*.csv: one figure a question."""

import csv
import math
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)

ROOT = pathlib.Path(__file__).resolve().parents[3]
OUT = ROOT / "results/architecture"
MIB = 1 << 20
STYLES = {"proposed": ("-", 2.2), "rival": ("-", 1.6), "ablation": ("--", 1.4), "baseline": (":", 1.4)}
MARKERS = "osD^v<>Pp*Xh8d1234"


def read(name):
    path = OUT / name
    if not path.exists():
        sys.exit(f"error: {path} is missing: scripts/studies/architecture/run measures it")
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def save(figure, name):
    figure.savefig(OUT / name, dpi=140, bbox_inches="tight")
    plt.close(figure)
    print(f"written: {(OUT / name).relative_to(ROOT)}", file=sys.stderr)


class Looks:
    """The same colour and marker for a network in every figure."""

    def __init__(self, names):
        colours = plt.get_cmap("tab20").colors
        self.of = {name: {"color": colours[i % 20], "marker": MARKERS[i % len(MARKERS)]}
                   for i, name in enumerate(names)}

    def line(self, row):
        style, width = STYLES[row["kind"]]
        return {**self.of[row["name"]], "linestyle": style, "linewidth": width, "markersize": 4, "label": row["name"]}


def with_time(rows):
    return [row for row in rows if row.get("time_s")]


def at_level(rows, fidelity):
    return [row for row in rows if row["fidelity"] == fidelity]


def finest(rows):
    """Each point at the finest level that it was measured at."""
    simulated = {row["scale"] for row in rows if row["fidelity"] == "flow"}
    return [row for row in rows if row["fidelity"] == "flow" or row["scale"] not in simulated]


def scales_of(rows):
    return sorted({row["scale"] for row in rows}, key=int)


def time_against_size(rows, looks):
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(1, len(scales), figsize=(5.2 * len(scales), 4.6), squeeze=False)
    for axes, scale in zip(all_axes[0], scales):
        here = [row for row in with_time(rows) if row["scale"] == scale]
        for name in dict.fromkeys(row["name"] for row in here):
            own = sorted((row for row in here if row["name"] == name), key=lambda row: int(row["size_bytes"]))
            axes.plot([int(row["size_bytes"]) / MIB for row in own], [1e3 * float(row["time_s"]) for row in own],
                      **looks.line(own[0]))
        axes.set(xscale="log", yscale="log", xlabel="message (MiB)", ylabel="all-reduce (ms)")
        how = "simulated" if here and here[0]["fidelity"] == "flow" else "analytic"
        axes.set_title(f"about {scale} devices ({how})", fontsize=10)
        axes.grid(alpha=0.3)
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center left", bbox_to_anchor=(0.92, 0.5), fontsize=8)
    figure.suptitle("All-reduce time against message size; the number is ports a device", fontsize=11)
    save(figure, "time_against_size.png")


def cost_against_time(rows, characteristics, looks, size):
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(1, len(scales), figsize=(5.2 * len(scales), 4.6), squeeze=False)
    cost = {(row["name"], row["scale"]): float(row["cost_per_device"]) for row in characteristics}
    for axes, scale in zip(all_axes[0], scales):
        for row in with_time(rows):
            if row["scale"] != scale or int(row["size_bytes"]) != size:
                continue
            dollars = cost.get((row["name"].replace(" unpipelined", ""), scale))
            if dollars is None:
                continue
            axes.scatter(dollars, 1e3 * float(row["time_s"]), s=60, **looks.of[row["name"]], label=row["name"])
        axes.set(xscale="log", yscale="log", xlabel="cost a device (USD, assumed prices)",
                 ylabel=f"all-reduce of {size // MIB} MiB (ms)")
        axes.set_title(f"about {scale} devices", fontsize=10)
        axes.grid(alpha=0.3, which="both")
    handles, labels = all_axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="center left", bbox_to_anchor=(0.92, 0.5), fontsize=8)
    figure.suptitle("Cost against time: down and to the left is better", fontsize=11)
    save(figure, "cost_against_time.png")


def latency_part(rows, looks):
    """What small messages cost: the time of the smallest one."""
    scales = scales_of(rows)
    least = {scale: min(int(row["size_bytes"]) for row in rows if row["scale"] == scale) for scale in scales}
    names = list(dict.fromkeys(row["name"] for row in rows))
    figure, axes = plt.subplots(figsize=(9, 4.8))
    width = 0.8 / len(scales)
    for i, scale in enumerate(scales):
        times = {row["name"]: 1e6 * float(row["time_s"]) for row in with_time(rows)
                 if row["scale"] == scale and int(row["size_bytes"]) == least[scale]}
        places = [names.index(name) + i * width for name in times]
        axes.bar(places, list(times.values()), width, label=f"{scale} devices, {least[scale] >> 10} KiB")
    axes.set_xticks([i + 0.4 for i in range(len(names))], names, rotation=40, ha="right", fontsize=8)
    axes.set(yscale="log", ylabel="all-reduce (us)", title="Small messages: the latency part")
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)
    del looks
    save(figure, "latency_part.png")


def characteristics_figure(rows):
    columns = [("mean_path", "mean path (links)"), ("diameter", "diameter (links)"),
               ("bisection_per_device", "bisection (cables a device)"), ("cost_per_device", "cost a device (USD)")]
    for row in rows:
        row["bisection_per_device"] = float(row["bisection_links"]) / float(row["devices"])
    names = list(dict.fromkeys(row["name"] for row in rows))
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(1, len(columns), figsize=(14, 0.34 * len(names) + 1.6), sharey=True)
    for axes, (column, title) in zip(all_axes, columns):
        for i, scale in enumerate(scales):
            own = {row["name"]: float(row[column]) for row in rows if row["scale"] == scale}
            axes.barh([names.index(name) - 0.27 + 0.27 * i for name in own], list(own.values()), 0.25,
                      label=f"{scale} devices")
        axes.set_title(title, fontsize=9)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.grid(alpha=0.3, axis="x")
        if column == "cost_per_device":
            axes.set_xscale("log")
    all_axes[0].invert_yaxis()
    all_axes[0].legend(fontsize=7)
    save(figure, "characteristics.png")


def overlap_figure(rows):
    topologies = list(dict.fromkeys(row["topology"] for row in rows))
    figure, all_axes = plt.subplots(1, len(topologies), figsize=(5 * len(topologies), 4), squeeze=False)
    for axes, topology in zip(all_axes[0], topologies):
        own = [row for row in rows if row["topology"] == topology]
        chunks = [int(row["chunks"]) for row in own]
        axes.plot(chunks, [1e3 * float(row["time_s"]) for row in own], "o-", label="simulated")
        for column, label, style in (("summed_s", "phases one after the other", "--"),
                                     ("overlapped_s", "perfect overlap", "-."), ("lower_bound_s", "bound of ports", ":")):
            axes.axhline(1e3 * float(own[0][column]), color="grey", linestyle=style, label=label)
        axes.set(xscale="log", xlabel="chunks", ylabel="all-reduce of 64 MiB (ms)", title=topology, ylim=(0, None))
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
    figure.suptitle("Do mesh and rail phases overlap? (latency left out)", fontsize=11)
    save(figure, "overlap.png")


def failures_figure(rows):
    healthy = {row["name"]: float(row["time_s"]) for row in rows if row["failure"] == "healthy"}
    labels, values = [], []
    for row in rows:
        if row["failure"] == "healthy" or not row.get("time_s"):
            continue
        labels.append(f"{row['name']}: {row['failure']}")
        values.append(float(row["time_s"]) / healthy[row["name"]])
    figure, axes = plt.subplots(figsize=(7, 0.4 * len(labels) + 1.2))
    axes.barh(range(len(labels)), values)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xlabel="all-reduce of 64 MiB, times the healthy network's", title="One failure among 64 devices")
    axes.grid(alpha=0.3, axis="x")
    save(figure, "failures.png")


def estimate_figure(rows):
    """How far the analytic level, at which larger networks are measured, is from flow where both are known."""
    flow = {(row["name"], row["size_bytes"]): float(row["time_s"]) for row in with_time(at_level(rows, "flow"))}
    names = list(dict.fromkeys(name for name, size in flow))
    figure, axes = plt.subplots(figsize=(7, 0.3 * len(names) + 1.2))
    for row in with_time(at_level(rows, "analytic")):
        key = (row["name"], row["size_bytes"])
        if row["scale"] == "64" and key in flow:
            axes.plot(100 * (float(row["time_s"]) / flow[key] - 1), names.index(row["name"]), "o", markersize=4,
                      color=plt.get_cmap("viridis")(min(1, math.log10(int(row["size_bytes"]) / 65536) / 4.3)))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="analytic against flow (%), 64 devices; darker: smaller messages")
    axes.grid(alpha=0.3)
    save(figure, "estimate_error.png")


def random_failures_figure(rows):
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(2, len(scales), figsize=(5.4 * len(scales), 7), squeeze=False)
    for column, scale in enumerate(scales):
        here = [row for row in rows if row["scale"] == scale]
        for i, name in enumerate(dict.fromkeys(row["name"] for row in here)):
            own = [row for row in here if row["name"] == name]
            look = {"marker": MARKERS[i % len(MARKERS)], "markersize": 4, "label": name,
                    "linestyle": STYLES[own[0]["kind"]][0], "color": plt.get_cmap("tab20").colors[i % 20]}
            shares = [float(row["share"]) for row in own]
            all_axes[0][column].plot(shares, [100 * float(row["connected_share"]) for row in own], **look)
            all_axes[1][column].plot(shares, [float(row["path_stretch"]) for row in own], **look)
        all_axes[0][column].set(ylabel="pairs still connected (%)", title=f"about {scale} devices, one plane")
        all_axes[1][column].set(xlabel="links failed (%)", ylabel="mean path, times the healthy one")
        for axes in all_axes[:, column]:
            axes.grid(alpha=0.3)
    all_axes[0][-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
    save(figure, "random_failures.png")


def equal_cost_figure(rows, characteristics, size, slack=1.1):
    """The fastest of each family for no more than the proposed network's cost; the cheapest one where all cost more."""
    cost = {(row["name"], row["scale"]): float(row["cost_per_device"]) for row in characteristics}
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(1, len(scales), figsize=(5.6 * len(scales), 4.6), squeeze=False)
    for axes, scale in zip(all_axes[0], scales):
        budget = slack * cost[("mesh-rail-cube 8", scale)]
        families = {}
        for row in with_time(rows):
            if row["scale"] != scale or int(row["size_bytes"]) != size:
                continue
            dollars = cost.get((row["name"].replace(" unpipelined", ""), scale))
            if dollars is not None:
                families.setdefault(row["name"].rsplit(" ", 1)[0] if row["name"][-1].isdigit() else row["name"],
                                    []).append((dollars, float(row["time_s"]), row["name"]))
        picked = []
        for entries in families.values():
            within = [entry for entry in entries if entry[0] <= budget]
            picked.append(min(within, key=lambda entry: entry[1]) if within else min(entries))
        picked.sort(key=lambda entry: entry[1])
        colours = ["tab:blue" if dollars <= budget else "lightgrey" for dollars, _, _ in picked]
        bars = axes.barh(range(len(picked)), [1e3 * time for _, time, _ in picked], color=colours)
        axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=2)
        axes.margins(x=0.12)
        axes.set_yticks(range(len(picked)), [f"{name} (${dollars:,.0f})" for dollars, _, name in picked], fontsize=8)
        axes.invert_yaxis()
        axes.set(xscale="log", xlabel=f"all-reduce of {size // MIB} MiB (ms)")
        axes.set_title(f"about {scale} devices; grey: dearer than ${budget:,.0f} a device", fontsize=9)
        axes.grid(alpha=0.3, axis="x")
    figure.suptitle("Equal cost: the fastest of each family for the proposed network's money (assumed prices)",
                    fontsize=11)
    figure.tight_layout()
    save(figure, "equal_cost.png")


def claim_figure(rows, characteristics):
    """What is claimed for the proposed network against its rival and its ablation."""
    names = {"mesh-rail-cube 8": "tab:blue", "mesh-clos-rails 8": "tab:orange", "mesh-torus 8": "tab:green"}
    scales = scales_of(rows)
    figure, all_axes = plt.subplots(1, 3, figsize=(12, 3.6))
    panels = [("all-reduce of 1 MiB (us)", 1e6, MIB), ("all-reduce of 64 MiB (ms)", 1e3, 64 * MIB), ("cost a device (USD)", 1, 0)]
    for axes, (title, factor, size) in zip(all_axes, panels):
        for i, (name, colour) in enumerate(names.items()):
            if size:
                own = {row["scale"]: factor * float(row["time_s"]) for row in with_time(rows)
                       if row["name"] == name and int(row["size_bytes"]) == size}
            else:
                own = {row["scale"]: float(row["cost_per_device"]) for row in characteristics if row["name"] == name}
            places = [k + 0.27 * (i - 1) for k, scale in enumerate(scales) if scale in own]
            bars = axes.bar(places, [own[scale] for scale in scales if scale in own], 0.25, color=colour, label=name)
            axes.bar_label(bars, fmt="%.0f" if factor != 1e3 else "%.2f", fontsize=7)
        axes.set_xticks(range(len(scales)), [f"{scale} devices" for scale in scales])
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3, axis="y")
    all_axes[0].legend(fontsize=8)
    figure.suptitle("Latency against mesh-torus, cost against mesh-clos-rails (64 devices simulated, more by estimate)",
                    fontsize=11)
    figure.tight_layout()
    save(figure, "claim.png")


def main():
    global OUT
    if sys.argv[1:] == ["quick"]:
        OUT = ROOT / "results/architecture-quick"
    times = read("allreduce.csv")
    looks = Looks(list(dict.fromkeys(row["name"] for row in times)))
    characteristics = read("characteristics.csv")
    estimate_figure(times)
    times = finest(times)
    time_against_size(times, looks)
    cost_against_time(times, characteristics, looks, 64 * MIB)
    claim_figure(times, characteristics)
    equal_cost_figure(times, characteristics, 64 * MIB)
    latency_part(times, looks)
    random_failures_figure(read("random_failures.csv"))
    characteristics_figure(characteristics)
    overlap_figure(read("overlap.csv"))
    failures_figure(read("failures.csv"))


if __name__ == "__main__":
    main()
