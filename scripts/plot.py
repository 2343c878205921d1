#!/usr/bin/python3
"""Draws a Tandem result file: iteration time, its breakdown and scaling efficiency, one row of panels a trace.

A series keeps its colour and marker in every panel. In the breakdown the hue is the series and the pattern is the
part of the iteration, so that neither needs the other's legend; the patterns also tell parts apart without colour.
"""

import argparse
import contextlib
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

import tandem_results
from tandem_results import ResultError

# Okabe and Ito's palette, which people with any common colour blindness can tell apart, without its yellow and black.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#5d3a9b"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]

# Parts of the iteration time from the bottom up: column, name, tint (share of the series' colour), hatching.
PARTS = [
    ("compute_time_s", "compute", 0.3, ""),
    ("exposed_comm_time_s", "exposed communication", 1.0, ""),
    ("bubble_time_s", "bubble", 0.0, "/////"),
    ("idle_time_s", "idle", 0.0, "....."),
    ("input_time_s", "input", 0.0, "xxxxx"),
]

# Columns that a run computes; where several runs share a point, the others can tell them apart.
OUTCOMES = re.compile(
    r"_time_s$|_per_s$|^scaling_efficiency$|^bytes_injected$|^peak_memory|^load_imbalance$|^staleness_|^bottleneck_"
    r"|^fidelity|^simulated_flows$|^samples_per_iteration$|^instance$|_per_device$|^assumptions$|^options$|_max$")

KINDS = ["time", "breakdown", "efficiency"]
PANEL_HEIGHT = 3.6  # inches


def main(arguments=None):
    options = parse_options(arguments)
    runs = tandem_results.load(options.result)
    if runs.empty:
        raise ResultError(f"{options.result}: it has no runs")
    kinds = choose_kinds(options, runs)
    for column in [options.x] + [name for name in (options.series or "").split(",") if name]:
        require(options.result, runs, column)
    if "trace" not in runs:
        runs["trace"] = ""
    runs["_series"] = series_names(options, runs)
    figure = draw(options, runs, kinds)
    save(figure, options.output)
    plt.close(figure)


def parse_options(arguments):
    parser = argparse.ArgumentParser(
        description="Draws iteration time, its breakdown and scaling efficiency against ranks from a result file.")
    parser.add_argument("result", metavar="RESULT.h5")
    parser.add_argument("--output", required=True, metavar="FILE", help="a .png, .svg or .pdf file")
    parser.add_argument("--kind", choices=KINDS + ["all"], default="all", help="which panels (default: all)")
    parser.add_argument("--x", default="ranks", metavar="COLUMN", help="the horizontal axis (default: ranks)")
    parser.add_argument("--series", metavar="COLUMN[,COLUMN]",
                        help="one line for each value (default: case, else topology, and what else tells runs apart)")
    parser.add_argument("--title", help="instead of the devices and fidelity the runs name")
    return parser.parse_args(arguments)


def require(path, runs, column):
    if column not in runs:
        raise ResultError(f"{path}: no column '{column}'; it has: {', '.join(runs)}")


def choose_kinds(options, runs):
    needed = {"time": ["iteration_time_s"], "breakdown": [part[0] for part in PARTS[:2]],
              "efficiency": ["scaling_efficiency"]}
    if options.kind != "all":
        for column in needed[options.kind]:
            require(options.result, runs, column)
        return [options.kind]
    kinds = [kind for kind in KINDS if all(column in runs for column in needed[kind])]
    if "time" not in kinds:
        require(options.result, runs, "iteration_time_s")
    return kinds


# ---- series ----


def series_names(options, runs):
    """A name for every run, such that runs of one name, trace and x are one point."""
    if options.series:
        columns = options.series.split(",")
    else:
        columns = [next((name for name in ("case", "topology", "instance") if name in runs), "trace")]
        columns += telling_apart(runs, columns, options.x)
    names = runs[columns[0]].map(str)
    for column in columns[1:]:
        names = names + ", " + runs[column].map(lambda value, column=column: labelled(column, value))
    clashes = runs.assign(_series=names).duplicated(["trace", "_series", options.x])
    if clashes.any():
        first = clashes.idxmax()
        raise ResultError(
            f"{options.result}: several runs of '{names[first]}' have {options.x} {runs[options.x][first]}; "
            f"tell them apart with --series COLUMN,COLUMN")
    return names


def labelled(column, value):
    return str(value) if isinstance(value, str) else f"{column.replace('_', ' ')} {value:.4g}"


def telling_apart(runs, columns, x):
    """Option columns that vary among runs which otherwise are one point: one if it is enough, else all."""
    keys = ["trace", x] + columns
    if not runs.duplicated(keys).any():
        return []
    same_point = runs.groupby(keys, sort=False)
    varying = [name for name in runs
               if name not in keys and not OUTCOMES.search(name) and (same_point[name].nunique() > 1).any()]
    for name in varying:
        if not runs.duplicated(keys + [name]).any():
            return [name]
    return varying


def series_label(name, rows):
    """The name with what it costs: "torus (6 ports, $812/device)"; a range where it depends on the size."""
    notes = []
    if "ports_per_device" in rows:
        ports = span(rows["ports_per_device"], "{:.4g}")
        if ports:
            notes.append("1 port" if ports == "1" else f"{ports} ports")
    if "cost_per_device" in rows:
        cost = span(rows["cost_per_device"], "{:.0f}")
        if cost:
            notes.append(f"${cost}/device")
    return f"{name} ({', '.join(notes)})" if notes else name


def span(values, form):
    values = values[numpy.isfinite(values.astype(float))]
    if values.empty:
        return ""
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low}–{high}"


# ---- figure ----


class Axis:
    """Where the values of the x column stand: numbers on a logarithmic axis, anything else side by side."""

    def __init__(self, name, values, unit):
        self.name = name
        self.numeric = numpy.issubdtype(values.dtype, numpy.number)
        self.values = sorted(values.unique()) if self.numeric else list(dict.fromkeys(values))
        self.log = self.numeric and min(self.values) > 0 and max(self.values) >= 2 * min(self.values)
        pretty = name.replace("_", " ")
        self.label = pretty if unit == "1" or name.endswith("_" + unit) else f"{pretty} ({unit})"

    def place(self, values):
        return numpy.array(values, dtype=float) if self.numeric else numpy.array([self.values.index(v) for v in values])

    def text(self, value):
        return f"{value:g}" if self.numeric else str(value)

    def dress_line_panel(self, axes):
        axes.set_xlabel(self.label)
        places = self.place(self.values)
        if self.log:
            axes.set_xscale("log", base=2)
            axes.set_xlim(places[0] / 1.15, places[-1] * 1.15)
        # Labels need about a tenth of the axis each.
        stretch = numpy.log(places) if self.log else places
        gap = 0.09 * (stretch[-1] - stretch[0])
        shown = []
        for i in reversed(range(len(places))):
            if not shown or stretch[shown[-1]] - stretch[i] >= gap:
                shown.append(i)
        axes.xaxis.set_major_locator(FixedLocator([places[i] for i in shown]))
        axes.xaxis.set_minor_locator(NullLocator())
        texts = {places[i]: self.text(self.values[i]) for i in shown}
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: texts.get(place, "")))
        self.turn_long_labels(axes)

    def turn_long_labels(self, axes):
        if not self.numeric and sum(len(str(value)) for value in self.values) > 40:
            axes.tick_params(axis="x", labelrotation=30)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")


class Style:
    """Colour, marker and legend text of every series, the same in every panel."""

    def __init__(self, runs):
        self.names = list(dict.fromkeys(runs["_series"]))
        self.labels = {name: series_label(name, runs[runs["_series"] == name]) for name in self.names}

    def colour(self, name):
        return COLOURS[self.names.index(name) % len(COLOURS)]

    def marker(self, name):
        # Another marker for the same colour on the second round.
        i = self.names.index(name)
        return MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]


def draw(options, runs, kinds):
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "axes.spines.top": False, "axes.spines.right": False,
                         "hatch.linewidth": 0.6, "svg.hashsalt": "tandem"})
    style = Style(runs)
    traces = list(dict.fromkeys(runs["trace"]))
    bars = len(style.names) * runs[options.x].nunique()
    panel_widths = {"time": 4.6, "breakdown": min(max(4.6, 0.21 * bars + 1.2), 11), "efficiency": 4.6}
    widths = [panel_widths[kind] for kind in kinds]
    width = max(sum(widths), 6.5)
    legends = legend_rows(runs, kinds, style, width)
    legend_height = 0.24 * sum(rows for _, _, rows in legends) + 0.1 * len(legends)
    heights = [PANEL_HEIGHT] * len(traces) + [legend_height]
    figure = plt.figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.06)
    grid = figure.add_gridspec(len(heights), len(kinds), width_ratios=widths, height_ratios=heights)
    painters = {"time": draw_time, "breakdown": draw_breakdown, "efficiency": draw_efficiency}
    for row, trace in enumerate(traces):
        rows = runs[runs["trace"] == trace]
        axis = Axis(options.x, rows[options.x], runs.attrs["units"].get(options.x, "1"))
        for column, kind in enumerate(kinds):
            axes = figure.add_subplot(grid[row, column])
            title = painters[kind](axes, rows, axis, style)
            axes.set_title(f"{trace}: {title}" if trace else title)
    title = options.title if options.title is not None else default_title(runs)
    if title:
        figure.suptitle(title, fontsize=13)
    add_legends(figure.add_subplot(grid[-1, :]), legends)
    return figure


def default_title(runs):
    parts = []
    if "device" in runs:
        for device in dict.fromkeys(runs["device"].map(str)):
            if device == "recorded":
                parts.append("compute as recorded")
            elif device:
                parts.append(device if "modelled" in device else f"modelled {device}")
    if "fidelity" in runs:
        parts += [f"{fidelity} fidelity" for fidelity in dict.fromkeys(runs["fidelity"].map(str)) if fidelity]
    return "Predicted training iterations" + (f" ({', '.join(parts)})" if parts else "")


def present_parts(runs):
    return [part for part in PARTS if part[0] in runs and (part[0] == PARTS[0][0] or (runs[part[0]] > 0).any())]


def legend_rows(runs, kinds, style, width):
    """Handles, columns and rows of each legend: the series, and the parts of the breakdown."""
    groups = [[Line2D([], [], color=style.colour(name), marker=style.marker(name), markerfacecolor="white",
                      markeredgewidth=1.5, label=style.labels[name]) for name in style.names]]
    if "breakdown" in kinds:
        groups.append([Patch(facecolor=tinted("#444444", tint), edgecolor="#444444", hatch=hatch, label=name)
                       for _, name, tint, hatch in present_parts(runs)])
    legends = []
    for handles in groups:
        longest = max(len(handle.get_label()) for handle in handles)  # a character is about 0.085 inches wide
        columns = max(1, min(len(handles), int(width / (0.085 * longest + 0.6))))
        legends.append((handles, columns, -(-len(handles) // columns)))
    return legends


def add_legends(axes, legends):
    axes.axis("off")
    for (handles, columns, _), place in zip(legends, ["upper center", "lower center"]):
        if axes.get_legend():
            axes.add_artist(axes.get_legend())  # or the next one would replace it
        axes.legend(handles=handles, ncols=columns, loc=place, frameon=False, borderpad=0, borderaxespad=0)


def tinted(colour, share):
    return tuple(1 - share * (1 - c) for c in to_rgb(colour))


def scale_of(values):
    """Seconds or the SI prefix that suits the largest value."""
    most = numpy.nanmax(numpy.append(values, 0))
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if most * factor >= 1:
            return factor, unit
    return 1e9, "ns"


def lines(axes, rows, axis, style, column, factor=1.0):
    for i, name in enumerate(style.names):
        points = rows[rows["_series"] == name]
        # Earlier series are drawn a little larger, so that they show around later ones of equal values.
        size = 8.5 - 3.5 * i / max(len(style.names) - 1, 1)
        points = points.assign(_x=axis.place(points[axis.name])).sort_values("_x")
        axes.plot(points["_x"], points[column] * factor, color=style.colour(name), marker=style.marker(name),
                  markersize=size, linewidth=size / 3.4, markerfacecolor="white", markeredgewidth=1.5,
                  clip_on=False)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axis.dress_line_panel(axes)


def draw_time(axes, rows, axis, style):
    factor, unit = scale_of(rows["iteration_time_s"])
    lines(axes, rows, axis, style, "iteration_time_s", factor)
    axes.set_ylabel(f"iteration time ({unit})")
    dress_log_y(axes, rows["iteration_time_s"] * factor)
    return "iteration time"


def dress_log_y(axes, values):
    """A logarithmic axis with plain numbers, enough of them also where the values are close together."""
    values = values[numpy.isfinite(values) & (values > 0)]
    if values.empty:
        return
    axes.set_yscale("log")
    low, high = values.min() / 1.12, values.max() * 1.12
    axes.set_ylim(low, high)
    # The coarsest steps that give four ticks.
    locators = [LogLocator(subs=subs) for subs in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))]
    for locator in locators + [MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])]:
        ticks = locator.tick_values(low, high)
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) >= 4:
            break
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_efficiency(axes, rows, axis, style):
    axes.axhline(1, color="#999999", linewidth=1, linestyle="--")
    lines(axes, rows, axis, style, "scaling_efficiency")
    values = rows["scaling_efficiency"][numpy.isfinite(rows["scaling_efficiency"])]
    if not values.empty:
        # Tenths, the ideal always in sight.
        low = numpy.floor(10 * min(values.min(), 1) - 0.2) / 10
        axes.set_ylim(max(low, 0), max(values.max(), 1) + 0.02 + 0.03 * (1 - low))
    axes.set_ylabel("scaling efficiency (1 = ideal)")
    return "scaling efficiency"


def draw_breakdown(axes, rows, axis, style):
    """Groups of stacked bars, one group an x and one bar a series, the series' marker under each bar."""
    parts = present_parts(rows)
    factor, unit = scale_of(rows["iteration_time_s"] if "iteration_time_s" in rows else rows[parts[0][0]])
    names = [name for name in style.names if (rows["_series"] == name).any()]
    width = 0.84 / len(names)
    for i, name in enumerate(names):
        points = rows[rows["_series"] == name]
        colour = style.colour(name)
        places = [axis.values.index(x) + (i - (len(names) - 1) / 2) * width for x in points[axis.name]]
        bottom = numpy.zeros(len(points))
        for column, _, tint, hatch in parts:
            height = numpy.nan_to_num(points[column].to_numpy() * factor)
            axes.bar(places, height, 0.86 * width, bottom=bottom, color=tinted(colour, tint), edgecolor=colour,
                     linewidth=0.6, hatch=hatch)
            bottom += height
        axes.plot(places, [-0.035] * len(places), linestyle="none", marker=style.marker(name), color=colour,
                  markerfacecolor="white", markersize=4.5, markeredgewidth=1.1, clip_on=False,
                  transform=axes.get_xaxis_transform())
    axes.set_xticks(range(len(axis.values)), [axis.text(value) for value in axis.values])
    axes.tick_params(axis="x", length=0, pad=15)
    axis.turn_long_labels(axes)
    axes.set_xlim(-0.55, len(axis.values) - 0.45)
    axes.set_xlabel(axis.label)
    axes.set_ylabel(f"mean over ranks ({unit})")
    axes.grid(True, axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return "where the iteration goes"


def save(figure, path):
    """Whole or not at all, and equal for equal results: no date in the file."""
    form = os.path.splitext(path)[1].lower().lstrip(".")
    if form not in ("png", "svg", "pdf"):
        raise ResultError(f"{path}: cannot draw '{form}' files; the name must end in .png, .svg or .pdf")
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    temporary = f"{path}.tmp.{os.getpid()}"
    try:
        figure.savefig(temporary, format=form, dpi=150, metadata=metadata)
        os.replace(temporary, path)
    except OSError as error:
        raise ResultError(f"{path}: cannot write: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


if __name__ == "__main__":
    sys.exit(tandem_results.program(main))
