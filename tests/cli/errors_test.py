"""Whatever goes wrong: one clear line, the right exit status, and nothing left behind."""

import os
import resource
import subprocess
import unittest

import h5py

import program
from program import FAST


class Usage(program.Case):
    def test_unknown_names(self):
        self.bad(2, "rum", says=["unknown command 'rum'", "did you mean 'run'?"])
        self.bad(2, "trace", "shw", says=["'show'"])
        self.bad(2, "--halp", says=["--help"])
        self.bad(2, "run", "--rank", "4", says=["unknown option '--rank'", "did you mean '--ranks'?"])
        self.bad(2, "run", "--xyzzyx=4", says=["unknown option '--xyzzyx'", "--help"])
        self.bad(2, "run", *FAST, "--topology", "fattree", says=["--topology", "did you mean 'fat-tree'?"])
        self.bad(2, "run", *FAST, "--topology", "fat-tree:kk=4", says=["'kk'", "'k'"])
        self.bad(2, "run", *FAST, "--algorithm", "rong", says=["did you mean 'ring'?"])
        self.bad(2, "run", *FAST, "--sync", "bps", says=["bsp"])
        self.bad(2, "run", *FAST, "--gradients", "dpp", says=["ddp"])
        self.bad(2, "run", *FAST, "--placement", "pack", says=["packed"])
        self.bad(2, "run", *FAST, "--scaling", "week", says=["weak"])
        self.bad(2, "run", "--trace", "no-such-trace", says=["no-such-trace"])
        self.bad(2, "run", "--trace", "lenet5", "--device", "v10", says=["v100"])
        self.bad(2, "run", "--trace", "lenet5", says=["--device"])
        self.bad(2, "run", *FAST, "--format", "jsn", says=["did you mean 'json'?"])
        self.bad(2, "list", "topolgy", says=["did you mean 'topology'?"])
        self.bad(2, "list", "topology", "tours", says=["did you mean 'torus'?"])
        self.bad(2, "list", "topology", "tours", "--format", "json", says=["did you mean 'torus'?"])
        self.bad(2, "topology", "strar", says=["did you mean 'star'?"])
        self.bad(2, "collective", "--operation", "allreduce", says=["did you mean 'all-reduce'?"])
        self.bad(2, "record", "--model", "resnet5", "--output", "t.h5", says=["resnet50"])

    def test_ranks_out_of_range_name_the_range(self):
        for ranks in ["0", "-1", "1000000000", "1048577", "99999999999999999999", "eight", "8.5", "", "8 "]:
            self.bad(2, "run", "--trace", "lenet5", "--device", "v100", "--ranks", ranks,
                     says=["--ranks", "1 to 1048576"])
            self.bad(2, "collective", f"--ranks={ranks}" if ranks else "--ranks=", says=["--ranks"])

    def test_other_numbers_out_of_range(self):
        for option, value in [("--batch", "0"), ("--batch", "-4"), ("--batch", "2000000"), ("--channels", "0"),
                              ("--channels", "65"), ("--device-scale", "0"), ("--device-scale", "-1"),
                              ("--device-scale", "nan"), ("--device-scale", "inf"), ("--overlap-slowdown", "0.5"),
                              ("--iterations", "0"), ("--baseline-ranks", "0"), ("--bandwidth-factor", "0"),
                              ("--latency-factor", "-1"), ("--nodes", "0"), ("--devices-per-node", "0")]:
            self.bad(2, "run", "--trace", "lenet5", "--device", "v100", option, value, says=[option])

    def test_limits_of_types_are_no_bounds_to_print(self):
        self.assertIn("a whole number, 0 or more", self.bad(2, "run", *FAST, "--seed", "-1", says=["--seed"]))
        self.assertIn("too large", self.bad(2, "run", *FAST, "--seed", "99999999999999999999", says=["--seed"]))
        self.assertTrue(self.bad(2, "run", *FAST, "--topology", "torus:dims=2x").endswith("must be a whole number"))
        self.bad(2, "run", *FAST, "--topology", "torus:dims=99999999999x2", says=["'dims'", "too large"])

    def test_a_failure_that_names_nothing(self):
        words = ["run", *FAST, "--topology", "leaf-spine", "--failure"]
        self.bad(2, *words, "switch:laef 0", says=["did you mean 'leaf 0'?"])
        self.bad(2, *words, "link:leaf 0 -> spin 0", says=["did you mean 'leaf 0 -> spine 0'?"])
        self.bad(2, *words, "switch:something else", says=["its first one is"])
        self.bad(2, "run", *FAST, "--topology", "torus", "--failure", "switch:leaf 0", says=["it has none at all"])

    def test_missing_and_wrong_units(self):
        for option, value in [("--link-bandwidth", "100"), ("--link-bandwidth", "100Gb"), ("--link-latency", "5"),
                              ("--chunk", "25"), ("--chunk", "25M"), ("--memory", "16"), ("--step-overhead", "2"),
                              ("--reduce-rate", "10"), ("--host-bandwidth", "16")]:
            self.bad(2, "run", *FAST, option, value, says=[option, value, "units:"])
        self.bad(2, "run", *FAST, "--chunk", "25", says=["the unit is missing", "nccl-tests"])
        self.bad(2, "run", *FAST, "--link-bandwidth", "0Gbps", says=["--link-bandwidth", "above 0"])
        self.bad(2, "run", *FAST, "--link-latency", "-5us", says=["negative"])
        self.bad(2, "collective", "-b", "8", says=["--begin", "the unit is missing"])
        self.bad(2, "run", *FAST, "--gradients", "ddp:bucket=25", says=["ddp", "the unit is missing"])

    def test_how_options_are_written(self):
        self.bad(2, "run", "--ranks", says=["'--ranks' needs a value"])
        self.bad(2, "run", "--ranks", "4", "--ranks", "8", says=["'--ranks' is given twice"])
        self.bad(2, "run", "--explain=yes", says=["'--explain' takes no value"])
        self.bad(2, "run", "ranks=4", says=["'ranks=4' is not expected"])
        self.bad(2, "topology", says=["topology is missing"])
        self.bad(2, "topology", "star", "--route", "1", says=["--route", "2 values"])
        self.bad(2, "run", *FAST, "--cfg", "network", says=["KEY:VALUE"])

    def test_impossible_combinations(self):
        self.bad(2, "run", *FAST, "--nodes", "2", says=["--ranks", "--nodes"])
        self.bad(2, "run", "--trace", "lenet5", "--device", "v100", "--nodes", "1048576", "--devices-per-node", "8",
                 says=["8388608", "1048576"])
        self.bad(2, "run", *FAST, "--devices-per-node", "4", "--nics-per-node", "3", says=["3"])
        self.bad(2, "run", *FAST, "--fidelity", "phas", says=["did you mean", "phase"])
        self.bad(2, "run", *FAST, "--global-batch", "64", says=["--scaling strong"])
        self.bad(2, "run", *FAST, "--fidelity", "analytic", "--cfg", "network/optim:Lazy", says=["--cfg", "analytic"])
        self.bad(2, "topology", "star:ports=2", says=["ports"])
        self.bad(2, "topology", "torus:dims=2x2", "--ranks", "8", says=["8"])
        self.bad(2, "topology", "star", "--route", "0", "8", says=["--route", "0 to 7"])
        self.bad(2, "collective", "-b", "1MiB", "-e", "1KiB", says=["1.049 MB"])
        self.bad(2, "collective", "-f", "1", says=["--factor"])
        self.bad(2, "record", "--model", "lenet5", says=["--output is missing"])

    def test_a_run_that_does_not_fit_memory(self):
        self.bad(1, "run", *FAST, "--memory", "1KiB", "--output", "r.h5", says=["--memory"])


class Files(program.Case):
    def test_traces_that_are_none(self):
        trace = self.make_trace()
        whole = (self.path / trace).read_bytes()
        for keep in [0, 7, 100, len(whole) // 2, len(whole) - 1]:
            (self.path / "cut.h5").write_bytes(whole[:keep])
            for words in [["run", "--trace", "cut.h5", "--output", "r.h5"], ["trace", "show", "cut.h5"],
                          ["trace", "check", "cut.h5"]]:
                self.bad(1, *words, says=["cut.h5"])
        with h5py.File(self.path / "other.h5", "w") as other:
            other["x"] = [1, 2, 3]
        self.bad(1, "run", "--trace", "other.h5", "--output", "r.h5", says=["other.h5"])
        self.bad(1, "trace", "check", "other.h5", says=["other.h5"])
        self.write("text.h5", "not HDF5\n")
        self.bad(1, "trace", "check", "text.h5", says=["text.h5"])
        os.mkdir(self.path / "folder.h5")
        self.bad(1, "trace", "check", "./folder.h5", says=["folder.h5"])
        result = self.tandem("trace", "check", "./missing.h5")
        self.assertIn(result.returncode, (1, 2))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_imports_that_fail(self):
        self.write("bad.txt", "node1 -- Conv2d(3, -- forward_compute_time=x\n")
        self.bad(1, "trace", "import", "bad.txt", "--importer", "pipedream", "--output", "t.h5", says=["bad.txt"])
        self.bad(2, "trace", "import", "bad.txt", "--importer", "pipedraem", "--output", "t.h5", says=["pipedream"])
        self.bad(2, "trace", "import", "bad.txt", says=["--output is missing"])
        self.bad(1, "trace", "import", "missing.txt", "--importer", "pipedream", "--output", "t.h5",
                 says=["missing.txt"])

    def test_output_that_cannot_be_written(self):
        self.bad(1, "run", *FAST, "--output", "no/such/folder/r.h5", says=["no/such/folder"])
        self.bad(1, "run", *FAST, "--output", ".", says=["folder"])
        self.bad(1, "run", *FAST, "--output", "/proc/r.h5", says=["/proc/r.h5"])
        self.bad(1, "run", *FAST, "--output", "/dev/null/r.h5", says=["/dev/null"])

    @unittest.skipUnless(os.geteuid() != 0, "permissions do not stop root")
    def test_read_only_folder(self):
        os.mkdir(self.path / "closed")
        os.chmod(self.path / "closed", 0o500)
        self.bad(1, "run", *FAST, "--output", "closed/r.h5", says=["closed/r.h5"])

    def test_full_disk(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        self.bad(1, "run", *FAST, "--output", "r.h5", says=["r.h5"], preexec_fn=small_files)
        self.write("graph.txt", program.GRAPH)
        self.bad(1, "trace", "import", "graph.txt", "--importer", "pipedream:batch=64", "--output", "t.h5", says=["t.h5"],
                 preexec_fn=small_files)

    def test_a_failed_run_leaves_the_earlier_file(self):
        self.write("r.h5", "precious")
        self.bad(1, "run", *FAST, "--memory", "1KiB", "--output", "r.h5")
        self.assertEqual((self.path / "r.h5").read_text(), "precious")

    def test_standard_output_full_closed_or_gone(self):
        for words in [["--help"], ["run", "--help"], ["list"], ["run", *FAST], ["topology", "star", "--links"]]:
            with open("/dev/full", "w") as full:
                self.bad(1, *words, says=["standard output"], stdout=full)
        command = f'"{program.TANDEM}" list >&-'
        closed = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=self.path)
        self.assertEqual((closed.returncode, len(closed.stderr.splitlines())), (1, 1), closed.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as gone:
            self.bad(1, "list", says=["standard output"], stdout=gone)

    def test_standard_error_full_or_closed(self):
        for to in ["2>/dev/full", "2>&-"]:
            result = subprocess.run(f'"{program.TANDEM}" rum {to}', shell=True, capture_output=True, cwd=self.path)
            self.assertEqual((result.returncode, result.stdout), (2, b""), to)

    def test_a_study_without_end(self):
        self.bad(1, "sweep", "/dev/zero", says=["/dev/zero", "bytes"])

    def test_closed_standard_output_does_not_end_up_in_the_result(self):
        command = f'"{program.TANDEM}" run {" ".join(FAST)} --output r.h5 >&-'
        result = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=self.path)
        self.assertEqual(result.returncode, 1)
        with h5py.File(self.path / "r.h5") as file:
            self.assertEqual(file.attrs["format"], b"tandem-results")


class Simulations(program.Case):
    def test_simgrid_refuses_a_setting(self):
        result = self.tandem("run", *FAST, "--cfg", "no/such/key:1", "--output", "r.h5")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(os.listdir(self.path), [])


program.main()
