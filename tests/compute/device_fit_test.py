"""The fit of the V100's rates: its left-out errors on DeepBench are printed and held to what is promised; shuffled
measurements must fail the same check. Skipped (77) without the reference data or scipy."""

import csv
import pathlib
import random
import subprocess
import sys
import tempfile

fit, reference = sys.argv[1], pathlib.Path(sys.argv[2])
table = reference / "layer_profiles/deepbench_conv_v100_fp32.csv"
if not table.exists():
    print(f"skipped: no {table}")
    sys.exit(77)
try:
    import scipy  # noqa: F401
except ImportError:
    print("skipped: no scipy (python3-scipy)")
    sys.exit(77)


def check(path):
    return subprocess.run([sys.executable, fit, "--deepbench", str(path), "--check"], capture_output=True, text=True)


good = check(table)
print(good.stdout, good.stderr)
assert good.returncode == 0, "the fit is worse than promised"

with open(table, newline="") as file:
    rows = list(csv.reader(file))
times = [row[-3:] for row in rows[1:]]
random.Random(1).shuffle(times)
with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
    csv.writer(file).writerows([rows[0]] + [row[:-3] + own for row, own in zip(rows[1:], times)])
    file.flush()
    shuffled = check(file.name)
assert shuffled.returncode != 0, "times of other layers fit as well: the check cannot fail"
