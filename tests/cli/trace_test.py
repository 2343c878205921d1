"""tandem trace and tandem record."""

import gzip
import os
import resource

import program


class Trace(program.Case):
    def test_import_show_check(self):
        trace = self.make_trace()
        shown = self.good_json("trace", "show", trace)
        self.assertEqual((shown["model"], shown["layers"]), ("small", 2))
        self.assertEqual([layer["kind"] for layer in shown["layer_list"]], ["conv", "relu"])
        self.assertAlmostEqual(shown["forward_time_s"], 0.011)
        self.assertAlmostEqual(shown["sum_of_layers_s"], 0.033)
        self.assertIsNone(shown["sum_over_whole"])
        self.assertTrue(any("whole iteration" in remark for remark in shown["remarks"]))
        self.assertIn("sound", self.good("trace", "check", trace))
        self.assertIn("conv", self.good("trace", "show", trace))
        top = self.good("trace", "show", trace, "--top", "1", "--format", "csv").splitlines()
        self.assertEqual(len(top), 2)
        self.bad(2, "trace", "show", trace, "--top", "0", says=["--top"])

    def test_equal_imports_give_equal_files(self):
        self.make_trace("a.h5")
        self.make_trace("b.h5")
        self.assertEqual((self.path / "a.h5").read_bytes(), (self.path / "b.h5").read_bytes())

    def test_export(self):
        trace = self.make_trace()
        out = self.good_json("trace", "export", trace, "--output", "small.csv")
        self.assertEqual((out["exporter"], out["model"], out["layers"], out["cannot_carry"]), ("csv", "small", 2, []))
        text = (self.path / "small.csv").read_text()
        self.assertEqual(out["file_bytes"], len(text.encode()))
        self.assertIn("# batch = 64\n", text)
        table = self.good("trace", "export", trace, "--output", "again.csv")
        self.assertIn("written to again.csv", table)
        self.assertIn("nothing of the trace is missing", table)
        self.assertEqual((self.path / "again.csv").read_text(), text)
        header = self.good("trace", "export", trace, "--output", "again.csv", "--format", "csv").splitlines()[0]
        self.assertEqual(header, "output,exporter,model,layers,file_bytes,cannot_carry")
        self.good("trace", "export", trace, "--output", "small.csv.gz")
        self.assertEqual(gzip.decompress((self.path / "small.csv.gz").read_bytes()).decode(), text)
        self.good("trace", "export", trace, "--output", "named", "--exporter", "csv")
        self.assertEqual((self.path / "named").read_text(), text)
        self.good("trace", "export", "lenet5", "--output", "lenet5.csv")
        self.assertIn("\nip1,fc,", (self.path / "lenet5.csv").read_text())

    def test_exports_that_fail(self):
        trace = self.make_trace()
        self.bad(2, "trace", "export", trace, says=["--output is missing"])
        self.bad(2, "trace", "export", trace, "--output", "t.xls", says=["t.xls", "'.xls'", ".csv (csv)"])
        self.bad(2, "trace", "export", trace, "--output", "t", says=["extension ''"])
        self.bad(2, "trace", "export", trace, "--output", "t.gz", says=["extension ''"])
        self.bad(2, "trace", "export", trace, "--output", "t.csv", "--exporter", "cvs", says=["did you mean 'csv'?"])
        self.bad(2, "trace", "export", trace, "--output", "t.csv", "--exporter", "csv:x=1", says=["csv"])
        self.bad(2, "trace", "export", trace, "--output", "t.csv", "--format", "tabel", says=["'table'"])
        self.bad(1, "trace", "export", trace, "--output", "no/t.csv", says=["no/t.csv", "folder 'no'"])
        self.bad(1, "trace", "export", trace, "--output", "/proc/t.csv", says=["/proc/t.csv"])
        self.bad(1, "trace", "export", "./none.h5", "--output", "t.csv", says=["none.h5"])
        self.bad(2, "trace", "export", "lenet", "--output", "t.csv", says=["lenet"])
        self.bad(2, "trace", "export", "--output", "t.csv")

    def test_a_failed_export_leaves_the_earlier_file(self):
        trace = self.make_trace()
        self.write("t.csv", "precious")
        self.bad(1, "trace", "export", trace, "--output", "t.csv", says=["t.csv"],
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.assertEqual((self.path / "t.csv").read_text(), "precious")

    def test_an_output_never_replaces_its_input(self):
        trace = self.make_trace()
        before = (self.path / trace).read_bytes()
        os.symlink(trace, self.path / "link.h5")
        for output in (trace, f"./{trace}", "link.h5"):
            self.bad(2, "trace", "export", trace, "--exporter", "csv", "--output", output, says=["is the input"])
        self.assertEqual((self.path / trace).read_bytes(), before)
        self.good("trace", "export", trace, "--output", "small.csv")
        table = (self.path / "small.csv").read_bytes()
        self.bad(2, "trace", "import", "small.csv", "--output", "small.csv", says=["is the input"])
        self.assertEqual((self.path / "small.csv").read_bytes(), table)

    def test_files_that_are_no_ranks_of_one_run(self):
        trace = self.make_trace()
        self.good("trace", "export", trace, "--output", "one.csv")
        text = (self.path / "one.csv").read_text()
        (self.path / "two.csv").write_text(text)
        self.good("trace", "import", "one.csv", "two.csv", "--output", "both.h5")
        self.bad(2, "trace", "import", "one.csv", "one.csv", "--output", "no.h5", says=["given twice"])
        (self.path / "two.csv").write_text(text.replace("# device = ", "# device = other "))
        self.bad(1, "trace", "import", "one.csv", "two.csv", "--output", "no.h5", says=["device", "first rank"])
        self.bad(1, "trace", "import", "/dev/zero", "--output", "no.h5", says=["not a regular file"])
        self.bad(1, "trace", "import", trace, "--output", "no.h5", says=["already"])

    def test_cycles_need_a_clock(self):
        (self.path / "w.txt").write_text("DATA\n1\nconv1 -1 900 NONE 0 8 NONE 0 700 ALLREDUCE 64 5\n")
        self.bad(1, "trace", "import", "w.txt", "--output", "w.h5", says=["w.txt", "cycles", "--clock"])
        facts = self.good_json("trace", "import", "w.txt", "--output", "w.h5", "--clock", "2GHz")
        self.assertAlmostEqual(facts["forward_time_s"], 450e-9, delta=1e-15)
        self.bad(2, "trace", "import", "w.txt", "--output", "w.h5", "--clock", "2", says=["its unit"])
        self.bad(2, "trace", "import", "w.txt", "--output", "w.h5", "--importer", "pipedream", "--clock", "2GHz",
                 says=["'pipedream' has no parameter 'clock'"])

    def test_list_names_the_models(self):
        names = {row["name"]: row for row in self.good_json("trace", "list")}
        self.assertEqual(names["resnet50"]["parameters"], 25_557_032)
        self.assertEqual(names["vgg16"]["parameters"], 138_357_544)

    def test_models_can_be_shown(self):
        shown = self.good_json("trace", "show", "resnet18")
        self.assertEqual(shown["parameters"], 11_689_512)

    def test_record(self):
        result = self.tandem("record", "--model", "lenet5", "--batch", "2", "--repetitions", "2", "--warmup", "1",
                             "--output", "t.h5", "--format", "json")
        if "without its recorder" in result.stderr:
            self.assertEqual((result.returncode, os.listdir(self.path)), (2, []))
            self.skipTest("built without the recorder")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("\033", result.stderr)
        shown = self.good_json("trace", "show", "t.h5")
        self.assertEqual((shown["parameters"], shown["batch"]), (431_080, 2))
        self.assertGreater(shown["sum_over_whole"], 0)
        self.good("record", "--model", "lenet5", "--batch", "2", "--repetitions", "0", "--splits", "batch,height",
                  "--split-fractions", "1/2,0.25", "--split-layers", "conv1,conv2", "--split-repetitions", "1",
                  "--output", "splits.h5")
        self.bad(1, "record", "--model", "lenet5", "--output", "no/t.h5", says=["no/t.h5"])
        self.bad(2, "record", "--model", "lenet5", "--batch", "0", "--output", "x.h5", says=["--batch"])
        for option, value, says in (("--splits", "hight", "'height'"), ("--splits", "width", "--splits"),
                                    ("--splits", "none", "nothing to record"), ("--split-fractions", "3/2", "below 1"),
                                    ("--split-fractions", "1/0", "--split-fractions"),
                                    ("--split-fractions", "", "--split-fractions"),
                                    ("--split-layers", "conv3", "'conv3'; did you mean"),
                                    ("--split-repetitions", "0", "--split-repetitions")):
            self.bad(2, "record", "--model", "lenet5", "--repetitions", "0", option, value, "--output", "x.h5",
                     says=[says])


program.main()
