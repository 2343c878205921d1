"""tandem sweep: runs in the order of the study, whatever the order in which they finish."""

import json
import os
import pathlib
import signal
import subprocess
import time

import h5py
import numpy

import program

STUDY = """\
# two topologies at two sizes
trace = lenet5
device = v100
ranks = 16 2
details = none
[case square]
topology = torus:dimensions=2
[case hub]
topology = star
"""


class Sweep(program.Case):
    def test_rows_are_in_the_order_of_the_study(self):
        self.write("s.ini", STUDY)
        rows = json.loads(self.good("sweep", "s.ini", "--jobs", "4", "--format", "json"))
        self.assertEqual([(row["case"], row["ranks"]) for row in rows],
                         [("square", 16), ("square", 2), ("hub", 16), ("hub", 2)])
        self.assertEqual(list(rows[0])[0], "case")
        single = self.good_json("run", "--trace", "lenet5", "--device", "v100", "--ranks", "2")
        self.assertEqual(rows[3]["iteration_time_s"], single["iteration_time_s"])

    def test_equal_sweeps_give_equal_files(self):
        self.write("s.ini", STUDY)
        self.good("sweep", "s.ini", "--jobs", "1", "--output", "a.h5")
        self.good("sweep", "s.ini", "--jobs", "3", "--output", "b.h5")
        self.assertEqual((self.path / "a.h5").read_bytes(), (self.path / "b.h5").read_bytes())
        with h5py.File(self.path / "a.h5") as file:
            self.assertEqual(list(file["runs/case"][:]), [b"square", b"square", b"hub", b"hub"])
            self.assertEqual(list(file["runs/ranks"][:]), [16, 2, 16, 2])
            self.assertEqual(list(file["runs/error"][:]), [b""] * 4)

    def test_short_options_leave_no_trace_in_the_file(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2\n")
        for name, words in [("a.h5", ["-j", "1"]), ("b.h5", ["-j2"]), ("c.h5", [])]:
            self.good("sweep", "s.ini", *words, "--output", name)
        self.assertEqual((self.path / "a.h5").read_bytes(), (self.path / "c.h5").read_bytes())
        self.assertEqual((self.path / "b.h5").read_bytes(), (self.path / "c.h5").read_bytes())

    def test_dry_run(self):
        self.write("s.ini", STUDY)
        rows = json.loads(self.good("sweep", "s.ini", "--dry-run", "--format", "json"))
        self.assertEqual(len(rows), 4)
        self.assertGreater(rows[0]["estimated_flows"], rows[1]["estimated_flows"])

    def test_an_all_reduce_a_layer_or_a_tensor(self):
        self.write("s.ini", "trace = resnet50\ndevice = v100\nranks = 4\nfidelity = flow\n"
                            "gradients = per-layer per-tensor\n")
        rows = json.loads(self.good("sweep", "s.ini", "--format", "json"))
        rows.append(self.good_json("run", "--trace", "resnet50", "--device", "v100", "--ranks", "4", "--fidelity",
                                   "flow", "--gradients", "per-tensor"))
        # A ring of 4 sends 2 x 3 x 4 messages.
        self.assertEqual([(row["gradients"], row["simulated_flows"]) for row in rows],
                         [("per-layer", 107 * 24), ("per-tensor", 161 * 24), ("per-tensor", 161 * 24)])

    def test_one_run_is_singular(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2\n")
        self.assertIn("1 run, very roughly", self.good("sweep", "s.ini", "--dry-run"))

    def levels(self, options, ranks):
        """Of `auto` along a curve, and of its runs alone."""
        self.write("s.ini", options + f"ranks = {' '.join(map(str, ranks))}\n")
        together = json.loads(self.good("sweep", "s.ini", "--dry-run", "--format", "json"))
        alone = []
        for each in ranks:
            self.write("one.ini", options + f"ranks = {each}\n")
            alone += json.loads(self.good("sweep", "one.ini", "--dry-run", "--format", "json"))
        return [row["fidelity"] for row in together], [row["fidelity"] for row in alone]

    def test_a_curve_has_the_coarsest_level_of_its_runs(self):
        together, alone = self.levels("trace = resnet50-cpu\ndevice = v100\n", [8, 256])
        self.assertEqual(alone, ["flow", "phase"])
        self.assertEqual(together, ["phase", "phase"])

    def test_a_smaller_run_may_need_the_coarser_level(self):
        # `auto` picks two-ring on 8 x 16, and torus-ring, which has fewer flows, on 12 x 16.
        options = "trace = resnet50-cpu\ndevice = v100\ntopology = torus:dimensions=2\nalgorithm = auto\n"
        together, alone = self.levels(options, [128, 192])
        self.assertEqual(alone, ["phase", "flow"])
        self.assertEqual(together, ["phase", "phase"])

    def test_a_curve_whose_largest_run_fails(self):
        # 300 ranks have no place on a torus of 256.
        self.write("s.ini", "trace = resnet50-cpu\ndevice = v100\ntopology = torus:dims=16x16\nranks = 8 256 300\n")
        self.bad(2, "sweep", "s.ini", "--dry-run", says=["ranks=300", "256"])
        result = self.tandem("sweep", "s.ini", "--format", "json")
        self.assertEqual(result.returncode, 1, result.stderr)
        rows = json.loads(result.stdout)
        self.assertEqual([row["fidelity"] for row in rows], ["phase", "phase", "phase"])
        self.assertEqual([row["error"] != "" for row in rows], [False, False, True])

    def start(self, *words):
        sweep = subprocess.Popen([program.TANDEM, *words], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)

        def end():
            sweep.kill()
            sweep.communicate()

        self.addCleanup(end)
        return sweep

    def test_a_process_that_is_killed_settles_no_level(self):
        self.write("s.ini", "trace = resnet50-cpu\ndevice = v100\nalgorithm = direct\nranks = 8 4096\n")
        sweep = self.start("sweep", "s.ini", "--jobs", "1")
        children = pathlib.Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.001)
        os.kill(int(found[0]), signal.SIGKILL)
        output, error = sweep.communicate(timeout=300)
        self.assertEqual((sweep.returncode, output), (1, ""), error)
        self.assertRegex(error, "^error: ranks=4096: the fidelity of its curve cannot be settled: .* was killed: .*\n$")

    def test_a_long_sweep_is_announced(self):
        self.write("s.ini", "trace = resnet50-cpu\ndevice = v100\nalgorithm = direct\nfidelity = flow\n"
                            "ranks = 8 2048\n")
        sweep = self.start("sweep", "s.ini", "--jobs", "2")
        self.assertRegex(sweep.stderr.readline(), r"^2 runs, very roughly \d+ h with 2 at a time; --dry-run lists them$")
        self.write("s.ini", "trace = resnet50-cpu\ndevice = v100\nalgorithm = direct\nfidelity = flow\nranks = 8\n")
        self.assertEqual(self.tandem("sweep", "s.ini").stderr, "")

    def test_options_that_vary_are_columns(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2\nlink-latency = 1us 1ms\n")
        rows = json.loads(self.good("sweep", "s.ini", "--format", "json"))
        self.assertEqual([row["link_latency"] for row in rows], ["1us", "1ms"])
        self.assertIn("link_latency", self.good("sweep", "s.ini"))

    def test_failed_runs_are_named_and_the_others_kept(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2\nmemory = 1KiB 16GiB\n")
        result = self.tandem("sweep", "s.ini", "--output", "r.h5", "--format", "json")
        self.assertEqual(result.returncode, 1)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("failed: run 1 (memory=1KiB)", lines[0])
        self.assertIn("error: 1 of 2 runs failed", lines[1])
        rows = json.loads(result.stdout)
        self.assertEqual([row["memory"] for row in rows], ["1KiB", "16GiB"])
        self.assertEqual([row["ranks"] for row in rows], [2, 2])
        self.assertIn("--memory is", rows[0]["error"])
        self.assertIsNone(rows[0]["iteration_time_s"])
        self.assertEqual(rows[1]["error"], "")
        with h5py.File(self.path / "r.h5") as file:
            self.assertTrue(numpy.isnan(file["runs/iteration_time_s"][0]))
            self.assertGreater(file["runs/iteration_time_s"][1], 0)
            self.assertIn(b"--memory is", file["runs/error"][0])
            self.assertEqual(file["runs/error"][1], b"")
            self.assertNotIn("run/0", file)
            self.assertIn("run/1", file)
        self.assertIn("error", self.tandem("sweep", "s.ini").stdout.splitlines()[0].split())

    def test_no_file_where_all_runs_fail(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2 4\nmemory = 1KiB\n")
        result = self.tandem("sweep", "s.ini", "--output", "r.h5")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 3)
        self.assertFalse((self.path / "r.h5").exists())

    def test_mistakes_in_the_study_are_found_before_it_starts(self):
        for text, says in [("ranks = 2 0\n", ["s.ini", "ranks=0", "1 to 1048576"]),
                           ("rank = 2\n", ["'rank'", "'ranks'"]),
                           ("ranks = 2\nranks = 4\n", ["s.ini:2"]),
                           ("topology = star tree\n", ["topology=tree"]),
                           ("topology = star torus:dims=4x,planes=2\n", ["topology=torus", "--topology", "'dims'"]),
                           ("topology = star torus:dim=4x4\n", ["topology=torus", "no parameter 'dim'", "'dims'"]),
                           ("fidelity = flow analytic\ncfg = network/optim:Lazy\n", ["fidelity=analytic", "--cfg"]),
                           ("trace = lenet5 no-such-trace\ndevice = v100\n", ["no-such-trace"]),
                           ("explain = maybe\n", ["--explain", "yes or no"]),
                           ("[cases]\n", ["s.ini:1", "[case NAME]"]),
                           ("", ["no options"])]:
            self.write("s.ini", text)
            self.bad(2, "sweep", "s.ini", "--output", "r.h5", says=says)
        self.bad(1, "sweep", "missing.ini", says=["missing.ini"])
        self.bad(2, "sweep", says=["study file is missing"])
        self.write("s.ini", STUDY)
        self.bad(2, "sweep", "s.ini", "--jobs", "0", says=["--jobs"])
        self.bad(1, "sweep", "s.ini", "--output", "no/r.h5", says=["no/r.h5"])


program.main()
