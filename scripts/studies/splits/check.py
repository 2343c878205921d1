#!/usr/bin/python3
"""Split curves against fresh measurements: is a part of a layer as fast as a recorded trace says?

Twenty (layer, axis, fraction) triples are drawn at random from a trace that `tandem record` made on this machine: axes
batch, height, output channels, input channels; fractions 1/2 and 1/4, whose recorded point is left out first, or, with
--fractions new, 3/8 and 3/4, which were never recorded. The part's time over the whole layer's comes from Tandem's compute model without that point;
times the recorded time of the whole layer it is the interpolated time. Each part is then timed afresh, in several
sessions of `tandem record`. A time is the sum of the three passes.

Printed for each triple: both times, the error, that of the worst single pass, the error of plain (time x fraction), and
the spread of the repeated measurements: (max - min) / median over the sessions, and the same over all samples between
their 10 % and 90 % quantiles. Last how much the whole layers' own times have moved since the trace was recorded: no
interpolation can be better than that.

Usage: taskset -c 1 scripts/studies/splits/check.py [--trace traces/data/resnet50-cpu.h5] [--seed 1] [--check]
With --check the exit status is 1 unless every error is within 15 % or the spread, and their median within 7 %.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import h5py
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
AXES = ("batch", "height", "output-channel", "input-channel")
FRACTIONS = {"1/2": 0.5, "1/4": 0.25, "3/8": 0.375, "3/4": 0.75}
SETS = {"recorded": ("1/2", "1/4"), "new": ("3/8", "3/4"), "all": ("1/4", "3/8", "3/4")}
PASSES = ("forward", "backward_data", "backward_weight")
MOST_ERROR, MOST_MEDIAN = 0.15, 0.07
QUANTILE = 0.2  # the typical time, as in trace.hpp


def texts(dataset):
    return [str(text) for text in dataset.asstr()[:]]


class Trace:
    def __init__(self, path):
        with h5py.File(path) as file:
            self.model, self.batch = file.attrs["model"].decode(), int(file.attrs["batch"])
            self.threads = int(file.attrs["threads"])
            self.names = texts(file["layers/name"])
            self.whole = [self._row(file["samples"], i) for i in range(len(self.names))]
            splits = file["splits"]
            self.curves = {}  # (layer name, axis) -> [(fraction, samples of each pass)], falling
            for i, (layer, axis) in enumerate(zip(splits["layer"][:], texts(splits["axis"]))):
                row = (float(splits["fraction"][i]), self._row(splits["samples"], i))
                self.curves.setdefault((self.names[layer], axis), []).append(row)

    @staticmethod
    def _row(group, i):
        rows = []
        for name in PASSES:
            begin, end = group[name + "_offset"][i:i + 2]
            rows.append(group[name][begin:end])
        return rows

    def whole_times(self, name, axis):
        """Of the whole layer, timed as its parts are."""
        rows = self.curves.get((name, axis), [])
        return typical(rows[0][1] if rows and rows[0][0] == 1 else self.whole[self.names.index(name)])


def typical(samples):
    return numpy.array([numpy.quantile(s, QUANTILE) if len(s) else 0.0 for s in samples])


def draw(trace, count, seed, fractions):
    """Axis, then layer, then fraction, each evenly; no triple twice."""
    generator = random.Random(seed)
    triples = []
    while len(triples) < count:
        axis = generator.choice(AXES)
        # Two parts at least: with one left out there is something to interpolate between.
        layers = sorted(name for (name, at), rows in trace.curves.items()
                        if at == axis and sum(fraction < 1 for fraction, _ in rows) > 1)
        if not layers:
            sys.exit(f"error: the trace has no curves along {axis}; record one with --splits all")
        triple = (generator.choice(layers), axis, generator.choice(sorted(fractions)))
        if triple not in triples:
            triples.append(triple)
    return triples


def record(arguments, trace, axis, triples, folder):
    """One session: the parts along an axis, and by the way the whole layers."""
    layers = sorted({name for name, at, _ in triples if at == axis})
    fractions = sorted({fraction for _, at, fraction in triples if at == axis})
    output = str(folder / "fresh.h5")
    command = [arguments.tandem, "record", "--model", trace.model, "--batch", str(trace.batch), "--threads",
               str(trace.threads), "--repetitions", "0", "--warmup", "1", "--splits", axis, "--split-fractions",
               ",".join(fractions), "--split-layers", ",".join(layers), "--split-repetitions",
               str(arguments.repetitions), "--output", output]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
    return Trace(output)


def measure(arguments, trace, triples):
    """(layer, axis, fraction) -> (fraction really run, [samples of each pass, one list a session]), and the whole
    layers' times the same way."""
    parts, wholes = {}, {}
    axes = [axis for axis in AXES if any(at == axis for _, at, _ in triples)]
    with tempfile.TemporaryDirectory() as folder:
        for session in range(arguments.sessions):
            for axis in axes:
                print(f"session {session + 1} of {arguments.sessions}: {axis}", file=sys.stderr)
                fresh = record(arguments, trace, axis, triples, pathlib.Path(folder))
                for triple in (t for t in triples if t[1] == axis):
                    wanted = FRACTIONS[triple[2]]
                    rows = [row for row in fresh.curves[triple[:2]] if row[0] < 1]
                    fraction, samples = min(rows, key=lambda row: abs(row[0] - wanted))
                    parts.setdefault(triple, (fraction, []))[1].append(samples)
                    if axis != "batch":
                        wholes.setdefault(triple[:2], []).append(fresh.whole_times(*triple[:2]))
    return parts, wholes


def ratios(arguments, parts, triples):
    """Of the compute model, each point's own recording left out."""
    lines = "".join(f"{name} {axis} {parts[name, axis, fraction][0]!r}\n" for name, axis, fraction in triples)
    done = subprocess.run([arguments.split_times, arguments.trace], input=lines, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    answers = []
    for line in done.stdout.splitlines():
        words = line.split()
        origins = {origin for value, origin in zip(words[::2], words[1::2]) if float(value) > 0}
        answers.append((numpy.array([float(word) for word in words[::2]]), "/".join(sorted(origins))))
    return answers


def spread_of(sessions):
    """(max - min) / median over sessions; the same between the 10 % and 90 % quantiles of all samples."""
    totals = [typical(samples).sum() for samples in sessions]
    pooled = numpy.concatenate([sum(numpy.asarray(s) for s in samples if len(s)) for samples in sessions])
    low, middle, high = numpy.quantile(pooled, [0.1, 0.5, 0.9])
    return (max(totals) - min(totals)) / numpy.median(totals), (high - low) / middle


def compare(trace, triples, parts, answers):
    rows = []
    for triple, (ratio, origin) in zip(triples, answers):
        fraction, sessions = parts[triple]
        fresh = numpy.median([typical(samples) for samples in sessions], axis=0)
        whole = trace.whole_times(*triple[:2])
        predicted = whole * ratio
        timed = fresh > 0
        rows.append({"triple": triple, "fraction": fraction, "origin": origin, "predicted": predicted.sum(),
                     "fresh": fresh.sum(), "error": predicted.sum() / fresh.sum() - 1,
                     "worst_pass": max((predicted[timed] / fresh[timed] - 1), key=abs),
                     "plain": whole.sum() * fraction / fresh.sum() - 1, "spread": spread_of(sessions)})
    return rows


def show(rows):
    print(f"{'layer':28} {'axis':15} {'fraction':>8} {'interpolated':>12} {'fresh':>10} {'error':>7} {'worst':>7} "
          f"{'plain':>7} {'spread':>7} {'p10-p90':>7}")
    print(f"{'':28} {'':15} {'':8} {'ms':>12} {'ms':>10} {'%':>7} {'pass %':>7} {'%':>7} {'%':>7} {'%':>7}")
    for row in rows:
        name, axis, _ = row["triple"]
        print(f"{name:28} {axis:15} {row['fraction']:8.3f} {row['predicted'] * 1e3:12.3f} {row['fresh'] * 1e3:10.3f} "
              f"{row['error'] * 100:7.1f} {row['worst_pass'] * 100:7.1f} {row['plain'] * 100:7.1f} "
              f"{row['spread'][0] * 100:7.1f} {row['spread'][1] * 100:7.1f}  {row['origin']}")


def summary(values):
    size = numpy.abs(values)
    return f"median {numpy.median(size) * 100:.1f} %, max {size.max() * 100:.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--trace", default=str(ROOT / "traces/data/resnet50-cpu.h5"))
    parser.add_argument("--tandem", default=str(ROOT / "build/release/tandem"))
    parser.add_argument("--split-times", default=str(ROOT / "build/release/tests/compute/split_times"))
    parser.add_argument("--count", type=int, default=20, help="triples drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=3, help="of tandem record")
    parser.add_argument("--repetitions", type=int, default=5, help="samples a session")
    parser.add_argument("--fractions", choices=sorted(SETS), default="recorded")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()

    trace = Trace(arguments.trace)
    triples = draw(trace, arguments.count, arguments.seed, SETS[arguments.fractions])
    parts, wholes = measure(arguments, trace, triples)
    rows = compare(trace, triples, parts, ratios(arguments, parts, triples))
    print(f"{trace.model}, batch {trace.batch}, seed {arguments.seed}: {arguments.sessions} sessions of "
          f"{arguments.repetitions} samples\n")
    show(rows)
    errors = numpy.array([row["error"] for row in rows])
    print(f"\ninterpolated:          {summary(errors)}")
    print(f"  worst single passes: {summary(numpy.array([row['worst_pass'] for row in rows]))}")
    print(f"time x fraction:       {summary(numpy.array([row['plain'] for row in rows]))}")
    spreads = numpy.array([row["spread"][0] for row in rows])
    print(f"spread of sessions:    {summary(spreads)}")
    print(f"spread of samples:     {summary(numpy.array([row['spread'][1] for row in rows]))} (10 % to 90 % quantile)")
    moved = [trace.whole_times(*key).sum() / numpy.median(times, axis=0).sum() - 1 for key, times in wholes.items()]
    if moved:
        print(f"whole layers moved by: {summary(numpy.array(moved))} since the trace was recorded")
        steady = [(1 + row["error"]) * numpy.median(wholes[row["triple"][:2]], axis=0).sum()
                  / trace.whole_times(*row["triple"][:2]).sum() - 1 for row in rows if row["triple"][:2] in wholes]
        print(f"that taken out:        {summary(numpy.array(steady))} ({len(steady)} triples)")
    limits = numpy.maximum(MOST_ERROR, spreads)
    good = bool(numpy.all(numpy.abs(errors) <= limits)) and numpy.median(numpy.abs(errors)) <= MOST_MEDIAN
    print("good" if good else "NOT good", f"(each within {MOST_ERROR:.0%} or the spread, median within {MOST_MEDIAN:.0%})")
    return 0 if good or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
