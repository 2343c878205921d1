#!/usr/bin/python3
"""Reads Tandem's result files (sim/results/FORMAT.md) into pandas.

    import tandem_results
    runs = tandem_results.load("scaling.h5")              # one row a run
    runs.attrs["units"]["iteration_time_s"]               # "s"
    runs.attrs["provenance"]["command"]                   # where the file comes from
    links = tandem_results.details("scaling.h5", 3, "links")

As a program it prints the runs, or one table of one run's details.
"""

import argparse
import os
import sys

import h5py
import pandas

FORMAT = "tandem-results"
SCHEMA_VERSION = 1


class ResultError(Exception):
    """A file that is not what it should be, or lacks what was asked for; the text is one line."""


def load(path):
    """One row a run, columns in the file's order. df.attrs has "units", "provenance" and "schema_version"."""
    with _open(path) as file:
        runs = _table(file, "runs")
        runs.attrs["provenance"] = _provenance(file)
        runs.attrs["schema_version"] = SCHEMA_VERSION
        return runs


def details(path, run, table):
    """A table of details of one run ("ranks", "layers", "links", "timeline"). df.attrs has "units"."""
    with _open(path) as file:
        tables = _details_of(file, path, run)
        if table not in tables:
            known = ", ".join(tables) or "none (see --details)"
            raise ResultError(f"{path}: run {run} has no details '{table}'; it has: {known}")
        return _table(file, f"run/{run}/{table}")


def tables(path, run):
    """The names of the tables of details that `run` has."""
    with _open(path) as file:
        return _details_of(file, path, run)


class _open:
    """The HDF5 file of a result; whatever h5py and damaged files throw inside becomes a ResultError."""

    def __init__(self, path):
        self.path = os.fspath(path)

    def __enter__(self):
        try:
            with open(self.path, "rb") as file:
                if not file.read(1):
                    raise ResultError(f"{self.path}: not an HDF5 file: it is empty")
        except OSError as error:
            raise ResultError(f"{self.path}: cannot read: {error.strerror}") from None
        if not h5py.is_hdf5(self.path):
            raise ResultError(f"{self.path}: not an HDF5 file")
        try:
            self.file = h5py.File(self.path, "r", locking=False)
        except (OSError, RuntimeError) as error:
            raise ResultError(f"{self.path}: damaged HDF5 file: {_one_line(error)}") from None
        try:
            self._check()
        except BaseException:
            self.file.close()
            raise
        return self.file

    def __exit__(self, kind, error, trace):
        self.file.close()
        if isinstance(error, (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError)):
            raise ResultError(f"{self.path}: damaged result file: {_one_line(error)}") from None

    def _check(self):
        attributes = self.file.attrs
        if "format" not in attributes or _text(attributes["format"]) != FORMAT or "runs" not in self.file:
            raise ResultError(f"{self.path}: not a Tandem result file")
        version = int(attributes.get("schema_version", 0))
        if version != SCHEMA_VERSION:
            raise ResultError(
                f"{self.path}: schema version {version}; this loader reads version {SCHEMA_VERSION}")


def _one_line(error):
    return " ".join(str(error).split())


def _text(value):
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _details_of(file, path, run):
    count = int(file["runs"].attrs["count"])
    if not 0 <= run < count:
        raise ResultError(f"{path}: there is no run {run}: it has {count} runs, from 0")
    group = file.get(f"run/{run}")
    return [] if group is None else list(group)


def _provenance(file):
    entries = {}
    for name in _text(file.attrs.get("provenance", "")).split():
        # Text too long for an HDF5 attribute is a dataset of one element.
        entries[name] = _text(file.attrs[name]) if name in file.attrs else _text(file[f"provenance/{name}"][0])
    return entries


def _table(file, name):
    group = file[name]
    units = {}
    columns = {}
    for column in _text(group.attrs["columns"]).split():
        dataset = group[column]
        is_text = h5py.check_string_dtype(dataset.dtype) is not None
        columns[column] = dataset.asstr()[:] if is_text else dataset[:]
        units[column] = _text(dataset.attrs.get("unit", "1"))
    frame = pandas.DataFrame(columns)
    frame.attrs["units"] = units
    return frame


def _print(frame, as_csv):
    if as_csv:
        frame.to_csv(sys.stdout, index=False)
        return
    units = frame.attrs["units"]
    headings = {name: f"{name} [{units[name]}]" if _unit_is_news(name, units[name]) else name for name in frame}
    print(frame.rename(columns=headings).to_string(max_colwidth=60, float_format=lambda value: f"{value:.6g}"))


def _unit_is_news(name, unit):
    return unit != "1" and not name.endswith("_" + unit.replace("/", "_per_")) and unit not in name.split("_")


def program(main, arguments=None):
    """Runs `main` on the arguments (by default the command line's) and returns the exit status: one line of error."""
    try:
        main(arguments)
    except ResultError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Prints a Tandem result file: one row a run, SI units.")
    parser.add_argument("file", metavar="RESULT.h5")
    parser.add_argument("--csv", action="store_true", help="comma-separated values instead of an aligned table")
    parser.add_argument("--columns", metavar="A,B,...", help="only these columns")
    parser.add_argument("--run", type=int, metavar="I", help="details of run I instead of the runs")
    parser.add_argument("--table", metavar="NAME", help="which details of --run; without it, their names")
    parser.add_argument("--provenance", action="store_true", help="where the file comes from instead of the runs")
    options = parser.parse_args(arguments)
    if options.table and options.run is None:
        parser.error("--table needs --run")

    if options.provenance:
        for name, text in load(options.file).attrs["provenance"].items():
            print(f"{name}: {text}")
        return
    if options.run is not None and not options.table:
        print("\n".join(tables(options.file, options.run)))
        return
    frame = load(options.file) if options.run is None else details(options.file, options.run, options.table)
    if options.columns:
        wanted = options.columns.split(",")
        missing = [name for name in wanted if name not in frame]
        if missing:
            raise ResultError(f"{options.file}: no column '{missing[0]}'; it has: {', '.join(frame)}")
        units = frame.attrs["units"]
        frame = frame[wanted]
        frame.attrs["units"] = units
    _print(frame, options.csv)


if __name__ == "__main__":
    sys.exit(program(main))
