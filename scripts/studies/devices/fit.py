#!/usr/bin/python3
"""Fits the rates of a named device to per-layer measurements, and says how far off they are where they were not fitted.

  fit.py --deepbench FILE.csv       cuDNN on a V100: DeepBench's convolutions (forward, both gradients)
  fit.py --traces A.h5 B.h5 ...     a recorded processor: conv and fc layers of Tandem traces, batch splits included

The model is the one of sim/compute/device.hpp. Each pass and sort of filter has five numbers, found by least squares
of the logarithm of modelled / measured with a soft loss (outliers count linearly) and a weak prior that keeps numbers
that the data say nothing about where processors have them. Errors are printed twice: on the data fitted, and leaving
one geometry out (all batches of it) and predicting it from the rest. The table is printed as C++ for rates.cpp.
"""

import argparse
import csv
import sys

import numpy as np
from scipy.optimize import minimize

PASSES = ("forward", "backward_data", "backward_weight")
FILTERS = ("1x1", "1x1 strided", "3x3", "other")
# overhead s, efficiency, memory efficiency, k_half, m_half: logarithms and how far they may stray from them.
PRIOR = {
    "gpu": (np.log([2e-5, 0.7, 0.6, 30, 5e4]), np.array([0.7, 0.5, 0.5, 1.0, 1.0])),
    "cpu": (np.log([5e-6, 0.7, 0.6, 10, 100]), np.array([1.0, 0.5, 0.5, 1.0, 1.0])),
}
PRIOR_WEIGHT = 0.25
SOFT = 0.2  # errors above 20 % count linearly


class Observation:
    """One pass of one convolution: what the model needs of it, and the time measured (seconds)."""

    def __init__(self, pass_index, geometry, seconds):
        batch, inputs, outputs, kernel, stride, in_size, out_size, groups = geometry
        filter_area, out_area, step = np.prod(kernel), np.prod(out_size), np.prod(stride)
        self.pass_index, self.seconds = pass_index, seconds
        self.geometry = geometry[1:]  # without the batch
        self.flops = 2.0 * batch * outputs * inputs / groups * filter_area * out_area
        source, result = batch * inputs * np.prod(in_size), batch * outputs * out_area
        weights = outputs * inputs / groups * filter_area
        self.bytes = 4.0 * (source + result + weights)
        self.length, self.sums = (
            (inputs / groups * filter_area, result),
            (outputs / groups * filter_area / step, source),
            (batch * out_area, weights),
        )[pass_index]
        if filter_area == 1:
            self.filter = 0 if step == 1 else 1
        else:
            self.filter = 2 if tuple(kernel) == (3, 3) and step == 1 and groups == 1 else 3


def read_deepbench(path):
    observations = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            n = {k: int(v) for k, v in row.items() if k != "application" and not k.endswith("_ms")}
            out = [(n["in_" + d] + 2 * n["pad_" + d] - n["filt_" + d]) // n["stride_" + d] + 1 for d in "hw"]
            geometry = (n["batch"], n["in_c"], n["out_c"], (n["filt_h"], n["filt_w"]), (n["stride_h"], n["stride_w"]),
                        (n["in_h"], n["in_w"]), tuple(out), 1)
            for index, column in enumerate(("fwd_ms", "bwd_input_ms", "bwd_param_ms")):
                if row[column]:
                    observations.append(Observation(index, geometry, float(row[column]) * 1e-3))
    return observations


def rows_of(file, name):
    values, offsets = file[name][:], file[name + "_offset"][:]
    return [values[a:b] for a, b in zip(offsets, offsets[1:])]


def read_trace(path):
    """Conv and fc layers at the recorded batch, and at the batches of their splits."""
    import h5py

    observations = []
    with h5py.File(path) as file:
        kinds = file["layers/kind"].asstr()[:]
        kernels, strides = rows_of(file, "layers/kernel"), rows_of(file, "layers/stride")
        groups, needs = file["layers/groups"][:], file["layers/needs_input_gradient"][:]
        outputs = rows_of(file, "layers/output_shape")
        inputs = dict(zip(file["input_shapes/layer"][:], rows_of(file, "input_shapes/shape")))
        times = [rows_of(file, "samples/" + p) for p in PASSES]
        split_layers, axes = file["splits/layer"][:], file["splits/axis"].asstr()[:]
        fractions = file["splits/fraction"][:]
        split_times = [rows_of(file, "splits/samples/" + p) for p in PASSES]

        def add(layer, samples, fraction):
            if kinds[layer] == "conv":
                kernel, stride = tuple(kernels[layer]), tuple(strides[layer])
                sizes = tuple(inputs[layer][2:]), tuple(outputs[layer][2:])
            else:
                kernel, stride, sizes = (1, 1), (1, 1), ((1, 1), (1, 1))
            batch = outputs[layer][0] * fraction
            features = np.prod(inputs[layer][1:]) if kinds[layer] == "fc" else inputs[layer][1]
            geometry = (batch, int(features), int(outputs[layer][1]), kernel, stride, *sizes, int(groups[layer]))
            for index, own in enumerate(samples):
                if len(own) and not (index == 1 and not needs[layer]):
                    observations.append(Observation(index, geometry, float(np.quantile(own, 0.2))))

        for layer in np.flatnonzero((kinds == "conv") | (kinds == "fc")):
            add(layer, [times[p][layer] for p in range(3)], 1.0)
        for row in np.flatnonzero(axes == "batch"):
            if kinds[split_layers[row]] in ("conv", "fc"):
                add(split_layers[row], [split_times[p][row] for p in range(3)], fractions[row])
    return observations


class Model:
    def __init__(self, peak, bandwidth, prior):
        self.peak, self.bandwidth = peak, bandwidth
        self.center, self.width = PRIOR[prior]

    def columns(self, observations):
        return np.array([(o.flops / self.peak, o.bytes / self.bandwidth, 1 / o.length, 1 / o.sums)
                         for o in observations]).T

    @staticmethod
    def seconds(theta, columns):
        overhead, efficiency, memory, length_half, sums_half = np.exp(theta)
        work, traffic, per_length, per_sums = columns
        arithmetic = work / efficiency * (1 + length_half * per_length) * (1 + sums_half * per_sums)
        return overhead + np.maximum(arithmetic, traffic / min(memory, 1.0))

    def fit(self, observations, start=None):
        columns, measured = self.columns(observations), np.array([o.seconds for o in observations])

        def loss(theta):
            error = np.log(self.seconds(theta, columns) / measured)
            stray = ((theta - self.center) / self.width) ** 2
            return np.sum(np.sqrt(1 + (error / SOFT) ** 2) - 1) + PRIOR_WEIGHT * np.sum(stray)

        best = None
        random = np.random.default_rng(1)
        for attempt in range(3 if start is None else 1):
            first = (self.center if start is None else start) + (random.normal(0, 0.4, 5) if attempt else 0)
            found = minimize(loss, first, method="Nelder-Mead",
                             options={"maxiter": 3000, "xatol": 1e-3, "fatol": 1e-4})
            best = found if best is None or found.fun < best.fun else best
        return best.x

    def errors(self, theta, observations):
        return np.log(self.seconds(theta, self.columns(observations)) / [o.seconds for o in observations])


def fit_table(model, observations, leave_out):
    """Prints a line a pass and filter; returns the table and all errors (fitted, left out)."""
    table, fitted, left_out = {}, [], []
    for index, name in enumerate(PASSES):
        for number, filter_name in enumerate(FILTERS):
            own = [o for o in observations if o.pass_index == index and o.filter == number]
            if not own:
                table[index, number] = model.center
                print(f"{name:16}{filter_name:12}no measurement: the prior")
                continue
            theta = table[index, number] = model.fit(own)
            error = model.errors(theta, own)
            out = []
            for geometry in sorted({o.geometry for o in own}) if leave_out else ():
                rest = [o for o in own if o.geometry != geometry]
                if rest:
                    out.extend(model.errors(model.fit(rest, theta), [o for o in own if o.geometry == geometry]))
            fitted.extend(error)
            left_out.extend(out)
            loo = f"left out: median {np.median(np.abs(out)):5.1%}, bias {np.mean(out):+5.1%}" if out else ""
            print(f"{name:16}{filter_name:12}{len(own):4} times, error fitted: median {np.median(np.abs(error)):5.1%}, {loo}")
    return table, np.array(fitted), np.array(left_out)


def print_table(table):
    print("\n  static const RateTable table{{")
    for index in range(3):
        cells = []
        for number in range(4):
            overhead, efficiency, memory, length, sums = np.exp(table[index, number])
            cells.append(f"{{Seconds({overhead:.3g}), {efficiency:.3g}, {min(memory, 1):.3g}, {length:.3g}, {sums:.3g}}}")
        print(f"      {{{{{cells[0]}, {cells[1]},\n        {cells[2]}, {cells[3]}}}}},")
    print("  }};")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--deepbench", metavar="FILE.csv")
    source.add_argument("--traces", nargs="+", metavar="TRACE.h5")
    parser.add_argument("--peak", type=float, metavar="FLOPS", help="nominal, FLOP/s (default: a V100's 15.7e12)")
    parser.add_argument("--bandwidth", type=float, metavar="BYTES", help="nominal, B/s (default: a V100's 900e9)")
    parser.add_argument("--no-leave-out", action="store_true", help="skip the left-out errors (quicker)")
    parser.add_argument("--check", action="store_true", help="fail where the left-out errors are worse than promised")
    arguments = parser.parse_args()
    if arguments.deepbench:
        observations = read_deepbench(arguments.deepbench)
    else:
        if not (arguments.peak and arguments.bandwidth):
            parser.error("--traces needs --peak and --bandwidth")
        observations = [o for path in arguments.traces for o in read_trace(path)]
    model = Model(arguments.peak or 15.7e12, arguments.bandwidth or 900e9, "gpu" if arguments.deepbench else "cpu")
    table, fitted, left_out = fit_table(model, observations, not arguments.no_leave_out)
    summary = lambda e: f"median {np.median(np.abs(e)):.1%}, 90 % below {np.quantile(np.abs(e), 0.9):.1%}, bias {np.mean(e):+.1%}"
    print(f"\nall, fitted:   {summary(fitted)}")
    if len(left_out):
        # One rate for everything: what the errors would be without the model.
        plain = np.log([o.flops / o.seconds for o in observations])
        null = plain - np.median(plain)
        print(f"all, left out: {summary(left_out)}")
        print(f"one rate for all (null): {summary(null)}")
        if arguments.check and not (np.median(np.abs(left_out)) < 0.2 and np.median(np.abs(left_out)) < 0.5 * np.median(np.abs(null))):
            sys.exit("error: left-out errors are worse than 20 % in the median, or than half of one rate for all")
    print_table(table)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"error: {error}")
