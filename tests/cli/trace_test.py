"""tandem trace and tandem record."""

import os

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
        self.bad(1, "record", "--model", "lenet5", "--output", "no/t.h5", says=["no/t.h5"])
        self.bad(2, "record", "--model", "lenet5", "--batch", "0", "--output", "x.h5", says=["--batch"])


program.main()
