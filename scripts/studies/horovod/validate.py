#!/usr/bin/python3
"""Horovod's 16 Pascal GPUs (4 nodes x 4, one 25 Gbit/s NIC a node) against Tandem.

Measured: Horovod's README of September 2017 (images per second, TCP and RDMA, NCCL ring). Compute: PipeDream's
per-layer profiles, scaled so that one GPU is as fast as measured. Fitted: one number a transport, the NIC's efficiency
that makes VGG-16 exact. Predicted with it: Inception-v3. The null prediction has no network at all.

Usage: validate.py --tandem build/release/tandem --reference FOLDER [--check]
FOLDER holds ground_truth/horovod_2017_16gpu_25g_roce.csv and layer_profiles/pipedream/*.graph.txt.
Then the model is changed behind the fit's back, which the checks must notice. With --check the exit status is 1 where
anything is not as it should be.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

GPUS, NODES, BATCH = 16, 4, 64
LINE_RATE_GBPS = 25.0
METHOD = "horovod_nccl_ring_allreduce_gpu"
RANGE = {"RDMA": (0.7, 1.0), "TCP": (0.4, 0.8)}  # what a NIC's efficiency may plausibly be
SKIPPED = 77
MOST_ERROR = 0.08
MOST_FIT_ERROR = 0.001  # of VGG-16, which the efficiency is fitted to
# Changes of the model behind the fit's back, each of which the checks must notice.
MUTATIONS = {"bandwidth x 0.5": ["--bandwidth-factor", "0.5"], "latency x 10": ["--latency-factor", "10"],
             "no overlap": ["--gradients", "after-backward:bucket=64MiB"]}


class Tandem:
    def __init__(self, program: str, reference: pathlib.Path, folder: pathlib.Path):
        self.program, self.reference, self.folder = program, reference, folder

    def call(self, *arguments: str) -> str:
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def imported(self, model: str, keep_first_conv: bool) -> str:
        """Path of the imported profile, with or without the suspect first convolution's forward time."""
        source = self.reference / "layer_profiles" / "pipedream" / f"{model}.graph.txt"
        text = source.read_text(encoding="utf-8")
        if not keep_first_conv:
            text = without_first_convolution(text)
        graph = self.folder / f"{model}-{keep_first_conv}.graph.txt"
        graph.write_text(text, encoding="utf-8")
        trace = graph.with_suffix(".h5")
        self.call("trace", "import", str(graph), "--importer", "pipedream", "--output", str(trace))
        return str(trace)

    def run(self, trace: str, scale: float, ranks: int, gbps: float, changed: list[str] = ()) -> dict:
        # Devices of a node talk through PCIe 3.0 x16; every device reaches the one NIC through it.
        text = self.call(
            "run", "--trace", trace, "--batch", str(BATCH), "--device-scale", repr(scale),
            "--topology", "star", "--ranks", str(ranks), "--devices-per-node", str(min(ranks, GPUS // NODES)),
            "--link-bandwidth", f"{gbps!r}Gbps", "--link-latency", "2us",
            "--intra-bandwidth", "12GBps", "--intra-latency", "2us",
            "--algorithm", "ring", "--details", "none", "--format", "json",
            *(() if "--gradients" in changed else ("--gradients", "ddp:first=64MiB,bucket=64MiB")), *changed)
        result = json.loads(text)
        return result[0] if isinstance(result, list) else result


def without_first_convolution(text: str) -> str:
    """The profile with the first convolution's forward time set to 0: it holds the input's copy to the device."""
    lines = text.splitlines()
    convolutions = [i for i, line in enumerate(lines) if "Conv2d(3," in line]
    if len(convolutions) != 1:
        sys.exit(f"error: {len(convolutions)} convolutions read 3 channels; cannot tell the first")
    before, _, after = lines[convolutions[0]].partition("forward_compute_time=")
    lines[convolutions[0]] = before + "forward_compute_time=0.000," + after.partition(",")[2]
    return "\n".join(lines) + "\n"


def measured(reference: pathlib.Path) -> dict:
    """(model, transport) -> images per second on 16 GPUs, and (model, None) on one."""
    rates = {}
    with open(reference / "ground_truth" / "horovod_2017_16gpu_25g_roce.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["method"] == METHOD:
                rates[row["model"], row["transport"]] = float(row["images_per_sec_total"])
            elif row["method"] == "single_gpu_baseline":
                rates[row["model"], None] = float(row["images_per_sec_total"])
    return rates


def fit(iteration_time, target: float) -> float | None:
    """The NIC efficiency at which the predicted iteration takes `target` seconds: more bandwidth, less time."""
    low, high = 0.05, 3.0
    if not iteration_time(high) <= target <= iteration_time(low):
        return None
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (middle, high) if iteration_time(middle) > target else (low, middle)
    return (low + high) / 2


def scaled_to_one_gpu(tandem: Tandem, trace: str, images_per_second: float) -> float:
    return tandem.run(trace, 1.0, 1, LINE_RATE_GBPS)["iteration_time_s"] * images_per_second / BATCH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True)
    parser.add_argument("--reference", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not (options.reference / "ground_truth").is_dir():
        print(f"SKIPPED: {options.reference} holds no reference data")
        return SKIPPED
    rates = measured(options.reference)
    failures = []
    header = ("transport", "first conv", "model", "efficiency", "measured ms", "predicted ms", "error", "null ms",
              "null error", "exposed ms")
    print("  ".join(f"{h:>12}" for h in header))
    with tempfile.TemporaryDirectory() as folder:
        tandem = Tandem(options.tandem, options.reference, pathlib.Path(folder))
        for keep in (True, False):
            traces = {m: tandem.imported(m, keep) for m in ("vgg16", "inception_v3")}
            scales = {m: scaled_to_one_gpu(tandem, t, rates[m, None]) for m, t in traces.items()}
            for transport in ("RDMA", "TCP"):
                failures += one_transport(tandem, traces, scales, rates, transport, keep)
    print("\nNoise floor: the source gives one figure a configuration. Its CPU-ring rows over TCP and over RDMA differ by\n"
          "0.01 % for Inception-v3, 0.2 % for VGG-16 and 8 % for ResNet-101.")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures and options.check else 0


def problems(model: str, transport: str, error: float, null_error: float) -> list[str]:
    found = []
    most = MOST_FIT_ERROR if model == "vgg16" else MOST_ERROR
    if abs(error) > most:
        found.append(f"{transport}: {model} is off by {100 * error:.1f} %")
    if abs(error) >= abs(null_error):
        found.append(f"{transport}: {model} is predicted no better than without a network")
    return found


def one_transport(tandem, traces, scales, rates, transport, keep) -> list[str]:
    failures = []
    target = BATCH * GPUS / rates["vgg16", transport]
    efficiency = fit(lambda e: tandem.run(traces["vgg16"], scales["vgg16"], GPUS, LINE_RATE_GBPS * e)
                     ["iteration_time_s"], target)
    if efficiency is None:
        return [f"{transport}: no NIC efficiency makes VGG-16 take {1e3 * target:.1f} ms"]
    low, high = RANGE[transport]
    if not low <= efficiency <= high:
        failures.append(f"{transport}: efficiency {efficiency:.3f} is outside {low}..{high}")

    def predicted(model: str, changed: list[str]) -> tuple[dict, float, float, float, float]:
        run = tandem.run(traces[model], scales[model], GPUS, LINE_RATE_GBPS * efficiency, changed)
        truth, null = BATCH * GPUS / rates[model, transport], BATCH / rates[model, None]
        return run, truth, null, run["iteration_time_s"] / truth - 1, null / truth - 1

    for model in ("vgg16", "inception_v3"):
        run, truth, null, error, null_error = predicted(model, [])
        row = (transport, "as profiled" if keep else "left out", model, f"{efficiency:.3f}", f"{1e3 * truth:.1f}",
               f"{1e3 * run['iteration_time_s']:.1f}", f"{100 * error:+.1f} %", f"{1e3 * null:.1f}",
               f"{100 * null_error:+.1f} %", f"{1e3 * run['exposed_comm_time_s']:.1f}")
        print("  ".join(f"{cell:>12}" for cell in row))
        failures += problems(model, transport, error, null_error)
    for name, changed in MUTATIONS.items():
        noticed = [p for m in ("vgg16", "inception_v3") for p in problems(m, transport, *predicted(m, changed)[3:])]
        if not noticed:
            failures.append(f"{transport}: nothing notices a model with {name}")
    return failures


if __name__ == "__main__":
    sys.exit(main())
