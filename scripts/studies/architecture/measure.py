#!/usr/bin/python3
"""Runs the architecture study: tables of characteristics, all-reduce times and whole iterations, into
results/architecture/*.csv. A table that is there already is kept; delete it to measure again."""

import concurrent.futures
import csv
import io
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OUT = ROOT / "results/architecture"
TANDEM = ROOT / "build/release/tandem"

# What a network of every kind is made of: 100 Gbps a port, 500 ns a link, 2 us of software a message.
MACHINE = ["--link-bandwidth", "100Gbps", "--link-latency", "500ns"]
STEP = ["--step-overhead", "2us"]
KIB, MIB = 1 << 10, 1 << 20
SIZES = [64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB]
LEAST_CHUNK = 64 * KIB
SCALES = {"64": 64, "512": 512, "4096": 4096}


class StudyError(Exception):
    """One line for the user."""


def tandem(*arguments):
    """Rows of a subcommand's CSV."""
    done = subprocess.run([TANDEM, *map(str, arguments), "--format", "csv"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StudyError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "tandem failed")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def networks():
    with open(HERE / "networks.csv", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    for row in rows:
        for scale in SCALES:
            row["topology_" + scale] = row["topology_" + scale].replace(";", ",")
    return rows


def write(name, rows):
    """The table, whole or not at all."""
    OUT.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    part = OUT / (name + ".part")
    with open(part, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    part.rename(OUT / name)


def table(name):
    """Decorator: measures the table unless it is there."""

    def wrap(measure):
        def run(*arguments):
            if (OUT / name).exists():
                print(f"kept: {(OUT / name).relative_to(ROOT)}", file=sys.stderr)
                return
            begin = time.monotonic()
            rows = measure(*arguments)
            write(name, rows)
            print(f"written: {(OUT / name).relative_to(ROOT)} ({len(rows)} rows, {time.monotonic() - begin:.0f} s)",
                  file=sys.stderr)

        return run

    return wrap


def each(cases, what):
    """The cases with progress on stderr."""
    for i, case in enumerate(cases):
        if sys.stderr.isatty():
            print(f"\r{what}: {i + 1} of {len(cases)} ", end="", file=sys.stderr, flush=True)
        yield case
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


@table("characteristics.csv")
def characteristics(scales):
    rows = []
    seen = set()
    for scale in scales:
        for network in each(networks(), "characteristics"):
            topology = network["topology_" + scale]
            if topology in seen:  # the unpipelined case is the same network
                continue
            seen.add(topology)
            row, = tandem("topology", topology, *MACHINE)
            rows.append({"name": network["name"], "kind": network["kind"], "scale": scale, **row})
    return rows


def devices_of(network, scale):
    row, = tandem("topology", network["topology_" + scale], *MACHINE)
    return int(row["devices"])


def ranks_of(network, scale):
    """All devices, or as many as the scale says where the network has more (a fat-tree of 686 holds 512)."""
    return min(devices_of(network, scale), SCALES[scale])


def one_time(network, scale, size, chunks, fidelity):
    chunk = max(-(-size // chunks), LEAST_CHUNK) if chunks > 1 else 0
    row, = tandem("collective", "--topology", network["topology_" + scale], "--ranks", ranks_of(network, scale),
                  *MACHINE, *STEP, "--algorithm", network["algorithm"], "--channels", network["channels"],
                  "--chunk", f"{chunk}B" if 0 < chunk < size else "whole", "-b", f"{size}B", "-e", f"{size}B",
                  "--fidelity", fidelity)
    return row


def measured(network, scale, size, fidelity):
    chunks = int(network["chunks"])
    best = None
    for count in sorted({1, chunks // 4, chunks} - {0} if chunks > 1 else {1}):
        row = one_time(network, scale, size, count, fidelity)
        row["chunks"] = count
        if best is None or float(row["time_s"]) < float(best["time_s"]):
            best = row
    return {"name": network["name"], "kind": network["kind"], "scale": scale, "ranks": ranks_of(network, scale),
            "algorithm": network["algorithm"], "fidelity": fidelity, **best}


@table("allreduce.csv")
def all_reduce(plan):
    work = [(network, scale, size, fidelity) for scale, fidelity, sizes in plan for network in networks()
            for size in sizes]

    def row(case):
        network, scale, size, fidelity = case
        try:
            return measured(network, scale, size, fidelity)
        except StudyError as error:
            return {"name": network["name"], "kind": network["kind"], "scale": scale, "size_bytes": size,
                    "fidelity": fidelity, "error": str(error)}

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # threads that wait for processes
        return [row for _, row in zip(each(work, "all-reduce"), pool.map(row, work))]


@table("random_failures.csv")
def random_failures(scales):
    """Connectivity and path stretch, with a share of the links failed at random."""
    rows = []
    seen = set()
    for scale in scales:
        for network in each(networks(), "random failures"):
            topology = network["topology_" + scale]
            if topology in seen or "planes=" in topology:  # planes fail alike: one says it
                continue
            seen.add(topology)
            for share in (1, 2, 5, 10):
                row, = tandem("topology", topology, *MACHINE, "--random-failures",
                              f"links={share}%,seed=1,trials={10 if scale == '64' else 3}")
                rows.append({"name": network["name"], "kind": network["kind"], "scale": scale, "share": share,
                             **{key: row[key] for key in ("connected_share", "path_stretch", "path_stretch_spread")}})
    return rows


@table("overlap.csv")
def overlap():
    """The claim that mesh and rail phases overlap: hrr's time against the number of chunks, latency left out."""
    rows = []
    size = 64 * MIB
    for topology, radices in (("mesh-rail-cube:m=8,n=8", (8,)), ("mesh-rail-cube:m=4,n=4x4", (4, 4))):
        m = int(topology.split("m=")[1].split(",")[0])
        ranks = m
        for radix in radices:
            ranks *= radix
        mu = 1 + sum(1 / product for product in _products(radices[:-1]))
        rho = 1 - m / ranks
        unit = 2 * size / (m * 12.5e9)
        for chunks in (1, 2, 4, 8, 16, 32, 64):
            chunk = "whole" if chunks == 1 else f"{-(-size // chunks)}B"
            row, = tandem("collective", "--topology", topology, "--ranks", ranks, "--link-bandwidth", "100Gbps",
                          "--link-latency", "0us", "--algorithm", "hrr", "--chunk", chunk, "-b", f"{size}B", "-e",
                          f"{size}B", "--fidelity", "flow")
            rows.append({"topology": topology, "chunks": chunks, "time_s": row["time_s"],
                         "overlapped_s": unit * max(mu, rho), "summed_s": unit * (mu + rho),
                         "lower_bound_s": unit * (1 - 1 / ranks)})
    return rows


def _products(radices):
    product = 1
    for radix in radices:
        product *= radix
        yield product


@table("failures.csv")
def failures():
    rows = []
    for name, topology, algorithm, what in (
            ("mesh-rail-cube 8", "mesh-rail-cube:m=8,n=8", "hrr", ["healthy", "link:0", "switch:rail switch (*;0)"]),
            ("fat-tree 8", "fat-tree:k=8,planes=8", "ring",
             ["healthy", "link:edge 0.0 -> aggregation 0.0", "switch:core 0.0"]),
            ("torus 2-D 8", "torus:dims=8x8,planes=2", "torus-ring", ["healthy", "link:0"]),
            ("BCube 8", "bcube:n=8,k=1,planes=4", "bml", ["healthy", "link:0"])):
        for failure in each(what, "failures"):
            extra = [] if failure == "healthy" else ["--failure", failure]
            row = {"name": name, "failure": failure}
            try:
                got, = tandem("collective", "--topology", topology, "--ranks", 64, *MACHINE, *STEP, "--algorithm",
                              algorithm, "-b", "64MiB", "-e", "64MiB", *extra)
                row["time_s"] = got["time_s"]
            except StudyError as error:
                row["error"] = str(error)
            rows.append(row)
    return rows


def iterations():
    result = OUT / "iterations.h5"
    if result.exists():
        print(f"kept: {result.relative_to(ROOT)}", file=sys.stderr)
        return
    subprocess.run([TANDEM, "sweep", HERE / "iterations.ini", "--output", result, "--resume"], check=True,
                   stdout=subprocess.DEVNULL)


def main():
    if sys.argv[1:] not in ([], ["quick"]):
        raise StudyError(f"'{' '.join(sys.argv[1:])}' is not known: 'quick' or nothing")
    quick = sys.argv[1:] == ["quick"]
    global OUT
    if quick:
        OUT = ROOT / "results/architecture-quick"
    OUT.mkdir(parents=True, exist_ok=True)
    characteristics(["64"] if quick else list(SCALES))
    few = [MIB, 64 * MIB]
    sizes = few if quick else SIZES
    all_reduce([("64", "flow", sizes), ("64", "analytic", sizes)] +
               ([] if quick else [("512", "analytic", SIZES), ("4096", "analytic", SIZES)]))
    random_failures(["64"] if quick else ["64", "512"])
    overlap()
    failures()
    iterations()


if __name__ == "__main__":
    try:
        main()
    except (StudyError, OSError, subprocess.CalledProcessError) as error:
        text = str(error)
        sys.exit(text if text.startswith("error: ") else f"error: {text}")
