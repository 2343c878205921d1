#!/usr/bin/python3
"""scripts_test.py WRITE_SAMPLE: what the C++ writer wrote, through scripts/tandem_results.py and scripts/plot.py."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

import h5py  # noqa: E402
import plot  # noqa: E402
import tandem_results  # noqa: E402

WRITE_SAMPLE = sys.argv.pop()


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, encoding="utf-8")


def script(module, *arguments):
    """A script's main program within this process: starting Python with pandas takes more than a second."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = tandem_results.program(module.main, [str(argument) for argument in arguments])
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.result = cls.path / "sample.h5"
        subprocess.run([WRITE_SAMPLE, str(cls.result)], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def bad_files(self):
        """Files that are no results, each with what the message must say."""
        text = self.path / "text.h5"
        text.write_text("iteration_time_s,0.1\n")
        empty = self.path / "empty.h5"
        empty.touch()
        cut = self.path / "cut.h5"
        cut.write_bytes(self.result.read_bytes()[:9000])
        other = self.path / "other.h5"
        with h5py.File(other, "w") as file:
            file["runs/ranks"] = [8]
        newer = self.path / "newer.h5"
        newer.write_bytes(self.result.read_bytes())
        with h5py.File(newer, "r+") as file:
            file.attrs["schema_version"] = 2
        lacking = self.path / "lacking.h5"
        lacking.write_bytes(self.result.read_bytes())
        with h5py.File(lacking, "r+") as file:
            del file["runs/ranks"]
        return [(text, "not an HDF5 file"), (empty, "it is empty"), (cut, "damaged HDF5 file"),
                (other, "not a Tandem result file"), (newer, "schema version 2"), (lacking, "damaged result file"),
                (self.path / "none.h5", "No such file"), (self.path, "Is a directory")]

    def assert_refused(self, process, part, status=1):
        self.assertEqual(process.returncode, status, process.stderr)
        self.assertEqual(process.stderr.count("\n"), 1, process.stderr)
        self.assertTrue(process.stderr.startswith("error: "), process.stderr)
        self.assertIn(part, process.stderr)


class Load(Case):
    def test_values_units_and_order(self):
        runs = tandem_results.load(self.result)
        self.assertEqual(len(runs), 6)
        self.assertEqual(list(runs)[:4], ["case", "trace", "ranks", "iteration_time_s"])
        self.assertEqual(list(runs)[-1], "device")
        self.assertEqual(list(runs["case"]), ["mesh-rail-cube"] * 3 + ["torus"] * 3)
        self.assertEqual(list(runs["ranks"]), [8, 16, 64] * 2)
        self.assertEqual(runs["iteration_time_s"][1], 0.1 + 0.001 * 16)
        self.assertEqual(runs["bytes_injected"][2], 64 * 553430176)
        self.assertEqual(str(runs["ranks"].dtype), "int64")
        self.assertEqual(str(runs["iteration_time_s"].dtype), "float64")
        units = runs.attrs["units"]
        self.assertEqual([units[name] for name in ("ranks", "iteration_time_s", "bytes_injected", "cost_per_device")],
                         ["1", "s", "bytes", "USD"])

    def test_text_is_decoded(self):
        runs = tandem_results.load(self.result)
        self.assertIsInstance(runs["bottleneck_link"][0], str)
        self.assertEqual(runs["bottleneck_link"][0], 'switch 0 → NIC 3, "up"')

    def test_provenance_short_and_long(self):
        provenance = tandem_results.load(self.result).attrs["provenance"]
        self.assertEqual(list(provenance), ["command", "options", "code_version"])
        self.assertEqual(provenance["command"], "tandem sweep größe.ini")
        self.assertEqual(provenance["options"], "x" * 100000)

    def test_details(self):
        links = tandem_results.details(self.result, 5, "links")
        self.assertEqual(list(links["link"]), ["a→b", "b→a"])
        self.assertEqual(list(links["bytes"]), [10, 20])
        self.assertEqual(links.attrs["units"], {"link": "1", "bytes": "bytes"})
        with self.assertRaisesRegex(tandem_results.ResultError, "no details 'layers'; it has: links, ranks"):
            tandem_results.details(self.result, 0, "layers")
        for absent in (6, -1):
            with self.assertRaisesRegex(tandem_results.ResultError, f"there is no run {absent}"):
                tandem_results.details(self.result, absent, "links")

    def test_every_column_is_extendible_and_has_a_unit(self):
        with h5py.File(self.result, "r") as file:
            for name, dataset in file["runs"].items():
                self.assertEqual(dataset.maxshape, (None,), name)
                self.assertIn("unit", dataset.attrs, name)

    def test_equal_runs_give_equal_bytes(self):
        again = self.path / "again.h5"
        subprocess.run([WRITE_SAMPLE, str(again)], check=True)
        self.assertEqual(again.read_bytes(), self.result.read_bytes())

    def test_full_disk(self):
        """A tmpfs of 64 KB in a namespace of its own, where the kernel lets anyone mount one."""
        place = self.path / "small"
        place.mkdir()
        commands = (f"mount -t tmpfs -o size=64k tandem '{place}' || exit 77; '{WRITE_SAMPLE}' '{place}/r.h5'; "
                    f"status=$?; ls -A '{place}'; exit $status")
        try:
            process = run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", commands)
        except FileNotFoundError:
            self.skipTest("no unshare")
        if process.returncode == 77 or "unshare" in process.stderr:
            self.skipTest("no mounts in a namespace")
        self.assert_refused(process, "No space left on device")
        self.assertEqual(process.stdout, "")  # no file left


class Program(Case):
    def test_scripts_are_programs(self):
        picture = self.path / "program.png"
        for command in ([SCRIPTS / "tandem_results.py"], [SCRIPTS / "plot.py", "--output", picture]):
            process = run(*command, self.result)
            self.assertEqual((process.returncode, process.stderr), (0, ""))
            self.assert_refused(run(*command, self.path), "Is a directory")
        self.assertGreater(picture.stat().st_size, 10000)

    def test_table(self):
        process = script(tandem_results, self.result)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(len(process.stdout.splitlines()), 7)
        self.assertIn("cost_per_device [USD]", process.stdout)

    def test_csv(self):
        process = script(tandem_results, self.result, "--csv", "--columns", "case,ranks,bottleneck_link")
        self.assertEqual(process.stdout.splitlines()[:2],
                         ["case,ranks,bottleneck_link", 'mesh-rail-cube,8,"switch 0 → NIC 3, ""up"""'])

    def test_details(self):
        process = script(tandem_results, self.result, "--run", 2, "--table", "links", "--csv")
        self.assertEqual(process.stdout, "link,bytes\na→b,10\nb→a,20\n")

    def test_refuses_in_one_line(self):
        for path, part in self.bad_files():
            self.assert_refused(script(tandem_results, path), part)
        self.assert_refused(script(tandem_results, self.result, "--columns", "rank"), "no column 'rank'")


class Plot(Case):
    def plot(self, name, *arguments, result=None):
        output = self.path / name
        process = script(plot, result or self.result, "--output", output, *arguments)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(process.stderr, "")
        return output.read_bytes()

    def size(self, png):
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")

    def test_all_panels_are_wider_than_one(self):
        widths = {kind: self.size(self.plot(f"{kind}.png", "--kind", kind))[0]
                  for kind in ("time", "breakdown", "efficiency", "all")}
        self.assertGreater(widths["all"], 1500)
        self.assertGreater(widths["all"], max(widths[kind] for kind in ("time", "breakdown", "efficiency")))

    def test_legend_names_ports_and_cost(self):
        svg = self.plot("legend.svg").decode()
        for text in ("mesh-rail-cube (8 ports, $2131/device)", "torus (6 ports, $812/device)", "modelled v100",
                     "iteration time (ms)"):
            self.assertIn(f"<!-- {text}", svg.replace("Predicted training iterations (modelled", "modelled"))

    def test_equal_results_give_equal_pictures(self):
        self.assertEqual(self.plot("a.png"), self.plot("b.png"))
        self.assertEqual(self.plot("a.svg"), self.plot("b.svg"))

    def test_other_axes_and_series(self):
        self.size(self.plot("x.png", "--x", "case", "--series", "ranks"))
        self.size(self.plot("y.png", "--x", "cost_per_device", "--series", "ranks,device"))

    def test_refuses_in_one_line(self):
        output = self.path / "refused.png"
        for path, part in self.bad_files():
            self.assert_refused(script(plot, path, "--output", output), part)
        for arguments, part in ((["--x", "rank"], "no column 'rank'"), (["--series", "none"], "no column 'none'"),
                                (["--series", "trace"], "several runs of 'vgg16-cpu' have ranks 8")):
            self.assert_refused(script(plot, self.result, "--output", output, *arguments), part)
        self.assertFalse(output.exists())
        self.assert_refused(script(plot, self.result, "--output", self.path / "x.bmp"), "must end in .png")
        self.assert_refused(script(plot, self.result, "--output", self.path / "none" / "x.png"), "cannot write")
        self.assertEqual([name for name in os.listdir(self.path) if ".tmp." in name], [])

    def test_file_without_runs(self):
        path = self.path / "no_runs.h5"
        with h5py.File(path, "w") as file:
            file.attrs["format"] = "tandem-results"
            file.attrs["schema_version"] = 1
            file.create_group("runs").attrs["columns"] = ""
        self.assert_refused(script(plot, path, "--output", self.path / "n.png"), "it has no runs")


if __name__ == "__main__":
    unittest.main()
