"""Networks of 32,768 devices and more are built in less than 1 GiB. SimGrid's links are made when a flow first takes
them, so a few ranks say what the network itself needs.

With LARGE_PLATFORM_SECONDS set, that is the most that such a command may take; and a ring of 32,768 ranks runs on the
network then, too, which takes every device's links, in less than 1 GiB.
"""

import os
import subprocess
import time

import program

MEBIBYTE = 1 << 20
BOUND = 1024 * MEBIBYTE
NETWORKS = [("mesh-rail-cube:m=8,n=64x64", 32768), ("fat-tree:k=52", 52 ** 3 // 4)]


def measured(path, topology, ranks="8"):
    """Peak memory in bytes of the program and of the process that simulates (both, were they alike), and seconds."""
    begin = time.monotonic()
    process = subprocess.Popen([program.TANDEM, "collective", "--topology", topology, "--ranks", ranks, "--algorithm",
                                "ring", "--fidelity", "phase", "-b", "1MiB", "-e", "1MiB"], cwd=path, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)  # of the process and of those that it waited for, the largest
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, 2 * usage.ru_maxrss * 1024, time.monotonic() - begin


class LargePlatforms(program.Case):
    def test_memory(self):
        status, small, _ = measured(self.path, "star")
        self.assertEqual(status, 0)
        for topology, devices in NETWORKS:
            with self.subTest(topology=topology):
                self.assertEqual(self.good_json("topology", topology)[0]["devices"], devices)
                status, peak, seconds = measured(self.path, topology)
                print(f"{topology}, {devices} devices: at most {peak / MEBIBYTE:.0f} MiB in all, {seconds:.2f} s "
                      f"(a star of 8: {small / MEBIBYTE:.0f} MiB)")
                self.assertEqual(status, 0)
                self.assertLess(peak, BOUND)
                self.assertGreater(peak, 1.2 * small, "the network is not in it, or memory is not measured")
                if bound := os.environ.get("LARGE_PLATFORM_SECONDS"):
                    self.assertLess(seconds, float(bound))
                    status, peak, seconds = measured(self.path, topology, "32768")
                    print(f"{topology}, all links in use: at most {peak / MEBIBYTE:.0f} MiB, {seconds:.1f} s")
                    self.assertEqual(status, 0)
                    self.assertLess(peak, BOUND)


if __name__ == "__main__":
    program.main()
