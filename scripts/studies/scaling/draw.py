#!/usr/bin/python3
"""Draws results/scaling-weak.h5 and -strong.h5: efficiency and iteration time against the number of ranks."""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)
import pandas  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
import tandem_results  # noqa: E402

MARKERS = {"mesh-rail-cube": "o", "fat-tree": "s", "torus": "D", "dragonfly": "^", "rail-optimized": "v"}


def main():
    parts = []
    for kind in ("weak", "strong"):
        source = ROOT / f"results/scaling-{kind}.h5"
        if not source.exists():
            sys.exit(f"error: {source} is missing: scripts/studies/scaling/run makes it")
        parts.append(tandem_results.load(source).assign(scaling=kind))
    runs = pandas.concat(parts)
    models = list(dict.fromkeys(runs["model"]))
    scalings = list(dict.fromkeys(runs["scaling"]))
    figure, all_axes = plt.subplots(len(models), 2 * len(scalings), figsize=(5 * 2 * len(scalings), 4 * len(models)),
                                    squeeze=False)
    for row, model in enumerate(models):
        for column, scaling in enumerate(scalings):
            here = runs[(runs["model"] == model) & (runs["scaling"] == scaling)]
            efficiency, time = all_axes[row][2 * column], all_axes[row][2 * column + 1]
            for case in dict.fromkeys(here["case"]):
                own = here[here["case"] == case].sort_values("ranks")
                look = {"marker": MARKERS.get(case, "x"), "markersize": 4, "label": case}
                efficiency.plot(own["ranks"], 100 * own["scaling_efficiency"], **look)
                time.plot(own["ranks"], 1e3 * own["iteration_time_s"], **look)
            compute = here[here["case"] == here["case"].iloc[0]].sort_values("ranks")
            time.plot(compute["ranks"], 1e3 * compute["compute_time_s"], ":", color="grey", label="compute alone")
            efficiency.set(xscale="log", xlabel="ranks", ylabel="scaling efficiency (%)", ylim=(0, 105),
                           title=f"{model}, {scaling} scaling")
            time.set(xscale="log", yscale="log" if scaling == "strong" else "linear", xlabel="ranks",
                     ylabel="iteration (ms)", title=f"{model}, {scaling} scaling")
            for axes in (efficiency, time):
                axes.grid(alpha=0.3)
    all_axes[0][0].legend(fontsize=8)
    all_axes[0][1].legend(fontsize=8)
    levels = ", ".join(dict.fromkeys(runs["fidelity"].map(str)))
    figure.suptitle(f"Eight ports of 100 Gbps a device, V100 (modelled), {levels} fidelity", fontsize=12)
    figure.tight_layout()
    target = ROOT / "results/scaling.png"
    figure.savefig(target, dpi=120)
    print(f"written: {target.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
