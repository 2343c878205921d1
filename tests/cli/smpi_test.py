"""tandem collective against an MPI program of its own (smpi_all_reduce.cpp), run by SMPI on the platform that
tandem topology --export-xml writes.

SMPI is told to charge nothing for software and to send every message by rendezvous, so that only algorithm, dependencies
and network are left. It solves the network with SimGrid too, so it cannot vouch for link sharing: that is what
tests/engine/sharing_test.cpp is for.

SimGrid's CM02 weights flows that share a link by 1/latency, which Tandem does not. So every case here shares links
between flows of equal latency only, or shares none: ring steps and the steps of halving-doubling, at one distance, are
between pairs as far apart as each other wherever they meet on a link.

Usage: smpi_test.py TANDEM FOLDER; the MPI program is compiled into FOLDER. Exit status 77: no SMPI here.
"""

import os
import shutil
import subprocess
import sys

import program

FOLDER = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "smpi_all_reduce.cpp")
MPI_PROGRAM = os.path.join(FOLDER, "smpi_all_reduce")

SMPI = [f"--cfg={setting}" for setting in [
    "network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
    "smpi/os:0:0:0", "smpi/or:0:0:0", "smpi/ois:0:0:0", "smpi/wtime:0",
    "smpi/async-small-thresh:0", "smpi/send-is-detached-thresh:0",
    "smpi/simulate-computation:no", "smpi/host-speed:1Gf"]] + ["--log=root.thresh:warning"]

# Multiples of 4 bytes times 8, 12 and 16 ranks: latency, both, and bandwidth matter.
SIZES = [48 << 10, 768 << 10, 6 << 20]
SMALL, LARGE = SIZES[0], SIZES[-1]
TOLERANCE = 0.01

CASES = [
    ("star", 8, "ring"), ("star", 12, "ring"), ("star", 16, "ring"),
    ("star", 8, "halving-doubling"), ("star", 16, "halving-doubling"),
    ("fat-tree:k=4", 8, "ring"), ("fat-tree:k=4", 12, "ring"), ("fat-tree:k=4", 16, "ring"),
    ("fat-tree:k=4", 8, "halving-doubling"), ("fat-tree:k=4", 16, "halving-doubling"),
    # One up port for four devices: four flows of equal latency share it whenever partners are on different leaves.
    ("leaf-spine:leaves=4,down=4,spines=1,up=1", 16, "halving-doubling"),
]


def off(one, other):
    return abs(one - other) / other


class Smpi(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.known = {}
        subprocess.run(["smpicxx", "-std=c++17", "-O1", SOURCE, "-o", MPI_PROGRAM], check=True)

    def by_smpi(self, *case):
        if case not in self.known:
            self.known[case] = self.run_smpi(*case)
        return self.known[case]

    def run_smpi(self, topology, ranks, algorithm, size):
        platform = self.path / f"{topology.replace(':', '-')}-{ranks}.xml"
        if not platform.exists():
            self.good("topology", topology, "--ranks", ranks, "--export-xml", platform.name)
        self.write("hosts", "".join(f"device-{rank}\n" for rank in range(ranks)))
        result = subprocess.run(["smpirun", "-platform", platform.name, "-hostfile", "hosts", "-np", str(ranks), *SMPI,
                                 MPI_PROGRAM, algorithm, str(size)],
                                cwd=self.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        return float(result.stdout)

    def by_tandem(self, topology, ranks, algorithm, size, *more):
        row, = self.good_json("collective", "--topology", topology, "--ranks", ranks, "--algorithm", algorithm,
                              "-b", f"{size}B", "-e", f"{size}B", *more)
        return row["time_s"]

    def test_the_same_times(self):
        for topology, ranks, algorithm in CASES:
            for size in SIZES:
                with self.subTest(topology=topology, ranks=ranks, algorithm=algorithm, size=size):
                    smpi = self.by_smpi(topology, ranks, algorithm, size)
                    tandem = self.by_tandem(topology, ranks, algorithm, size)
                    print(f"{algorithm} of {ranks} on {topology}, {size} bytes: SMPI {smpi * 1e6:.3f} us, "
                          f"Tandem {tandem * 1e6:.3f} us, {100 * (tandem / smpi - 1):+.4f} %")
                    self.assertLess(off(tandem, smpi), TOLERANCE)

    def test_a_wrong_model_is_seen(self):
        for topology, ranks, algorithm in CASES:
            with self.subTest(topology=topology, ranks=ranks, algorithm=algorithm):
                small = self.by_smpi(topology, ranks, algorithm, SMALL)
                large = self.by_smpi(topology, ranks, algorithm, LARGE)
                for wrong, right in [
                        (self.by_tandem(topology, ranks, algorithm, LARGE, "--bandwidth-factor", "0.5"), large),
                        (self.by_tandem(topology, ranks, algorithm, SMALL, "--latency-factor", "10"), small),
                        (self.by_tandem(topology, ranks, "direct", SMALL), small)]:
                    self.assertGreater(off(wrong, right), TOLERANCE)


if __name__ == "__main__":
    missing = [tool for tool in ["smpicxx", "smpirun"] if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: no {' and no '.join(missing)} here (Debian's libsimgrid-dev)")
        sys.exit(77)
    program.main()
