#!/usr/bin/python3
"""Includes point one way, and heavy libraries stay where they belong (the map is in README.md).

Usage: architecture_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

# A folder may include itself and those above it.
ORDER = [
    ["sim/core"],
    ["traces", "platforms"],
    ["sim/compute"],
    ["sim/ir"],
    ["sim/estimate"],
    ["sim/collectives", "partitioners", "sim/disturb"],
    ["sim/gradients", "sim/sync", "sim/pipeline"],
    ["sim/lowering"],
    ["sim/engine"],
    ["sim/results"],
    ["sim/study"],
    ["sim/cli"],
]
LEVEL = {folder: level for level, row in enumerate(ORDER) for folder in row}

# Library header pattern -> where it may be included.
ALLOWED = {
    r"simgrid/|xbt/": ["sim/engine/"],
    r"boost/program_options": ["sim/cli/"],
    r"hdf5|H5": ["traces/hdf5_file.cpp"],
    r"oneapi/dnnl|dnnl": ["traces/recorder/"],
    r"google/protobuf/|chakra\.pb\.h": ["traces/chakra_file."],
    r"importers/onnx\.pb\.h": ["traces/importers/onnx"],
    r"yaml-cpp/": ["platforms/topologies/"],
    r"expat\.h": ["platforms/topologies/"],
    r"nlohmann/": ["sim/engine/", "sim/results/", "sim/study/", "sim/cli/", "traces/importers/"],
}
MOST_SIMGRID_FILES = 3

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def folder_of(path: str) -> str | None:
    return max((f for f in LEVEL if path.startswith(f + "/")), key=len, default=None)


def problems_in(root: pathlib.Path) -> list[str]:
    problems, simgrid_files = [], set()
    files = [p for top in ("sim", "traces", "platforms", "partitioners") for p in sorted((root / top).rglob("*.[ch]pp"))]
    if len(files) < 20:
        return [f"only {len(files)} source files found below {root}: this test looks in the wrong place"]
    for path in files:
        name = path.relative_to(root).as_posix()
        own = folder_of(name)
        if own is None:
            problems.append(f"{name}: its folder has no place in the order of dependencies")
            continue
        for quote, included in INCLUDE.findall(path.read_text(encoding="utf-8")):
            for pattern, places in ALLOWED.items():
                if quote == "<" and re.match(pattern, included) and not any(name.startswith(p) for p in places):
                    problems.append(f"{name}: includes <{included}>, which is for {', '.join(places)} only")
            if quote == "<":
                if included.startswith(("simgrid/", "xbt/")):
                    simgrid_files.add(name)
                continue
            other = folder_of(included)
            if other is None:
                problems.append(f'{name}: includes "{included}", which is not named from the top of the tree')
            elif other != own and LEVEL[other] >= LEVEL[own]:
                problems.append(f"{name}: {own} may not use {other}")
    if not 1 <= len(simgrid_files) <= MOST_SIMGRID_FILES:
        problems.append(f"{len(simgrid_files)} files include SimGrid (1 to {MOST_SIMGRID_FILES}): {sorted(simgrid_files)}")
    return problems


if __name__ == "__main__":
    found = problems_in(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "includes point one way")
    sys.exit(1 if found else 0)
