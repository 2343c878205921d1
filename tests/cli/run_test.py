"""tandem run: names and shape of its results, in all their forms."""

import csv
import io

import h5py

import program
from program import FAST

# cli.md's names.
NAMES = """iteration_time_s healthy_iteration_time_s compute_time_s exposed_comm_time_s bubble_time_s idle_time_s input_time_s launch_gap_time_s comm_time_s
    alpha_beta_time_s throughput_samples_per_s scaling_efficiency bytes_injected peak_memory_bytes load_imbalance
    staleness_mean staleness_max bottleneck_link bottleneck_utilization fidelity fidelity_error fidelity_error_ranks simulated_flows
    ranks samples_per_iteration instance""".split()


class Run(program.Case):
    def test_json_has_the_documented_names(self):
        result = self.good_json("run", *FAST)
        for name in NAMES + ["wall_time_s", "assumptions", "options"]:
            self.assertIn(name, result)
        self.assertNotIn("explanation", result)
        self.assertEqual(result["ranks"], 4)
        self.assertIsInstance(result["assumptions"], list)
        options = result["options"]
        self.assertEqual((options["ranks"], options["algorithm"], options["explain"]), ("4", "ring", "no"))
        parts = ["compute", "exposed_comm", "bubble", "idle", "input"]
        total = sum(result[f"{part}_time_s"] for part in parts)
        self.assertAlmostEqual(total, result["iteration_time_s"], delta=1e-9 * total)
        throughput = result["samples_per_iteration"] / result["iteration_time_s"]
        self.assertAlmostEqual(throughput, result["throughput_samples_per_s"], delta=1e-9 * throughput)

    def test_csv_and_file_have_the_same_row(self):
        json_row = self.good_json("run", *FAST, "--output", "r.h5")
        rows = list(csv.DictReader(io.StringIO(self.good("run", *FAST, "--format", "csv"))))
        self.assertEqual(len(rows), 1)
        self.assertNotIn("wall_time_s", rows[0])
        with h5py.File(self.path / "r.h5") as file:
            columns = file["runs"].attrs["columns"].decode().split()
            self.assertEqual(columns, list(rows[0]))
            self.assertNotIn("wall_time_s", columns)
            for name in columns:
                value = file["runs"][name][0]
                value = value.decode() if isinstance(value, bytes) else value
                self.assertEqual(value, json_row[name], name)
                self.assertEqual(type(json_row[name])(rows[0][name]), json_row[name], name)
            for name in ["ranks", "layers", "links"]:
                self.assertIn(name, file["run/0"])

    def test_auto_says_what_it_picked_for_every_bucket(self):
        # Two buckets, small and large; on the torus the estimate tells them apart.
        result = self.good_json("run", "--trace", "alexnet", "--device", "v100", "--ranks", "8", "--topology",
                                "torus:dims=4x2", "--algorithm", "auto")
        self.assertEqual(result["algorithm"], "auto")
        self.assertGreater(len(result["choices"]), 1)
        for choice in result["choices"]:
            self.assertEqual(choice["candidates"][0]["algorithm"], choice["algorithm"])
            self.assertIn(choice["algorithm"], result["picked_algorithms"])
            said = [one for one in result["assumptions"] if "'auto' picked " + choice["algorithm"] in one]
            self.assertTrue(said)
        self.assertNotIn("choices", self.good_json("run", *FAST))
        self.assertEqual(self.good_json("run", *FAST)["picked_algorithms"], "ring")

    def test_details(self):
        self.good("run", *FAST, "--details", "none", "--output", "none.h5")
        self.good("run", *FAST, "--details", "full", "--output", "full.h5")
        with h5py.File(self.path / "none.h5") as file:
            self.assertNotIn("ranks", file.get("run/0", {}))
        with h5py.File(self.path / "full.h5") as file:
            self.assertEqual(len(file["run/0/ranks/rank"]), 4)
            self.assertIn("timeline", file["run/0"])

    def test_equal_runs_give_equal_files(self):
        for name in ["a.h5", "b.h5"]:
            self.good("run", *FAST, "--topology", "torus", "--details", "full", "--output", name)
        self.assertEqual((self.path / "a.h5").read_bytes(), (self.path / "b.h5").read_bytes())
        self.good("run", *FAST, "--topology", "torus", "--details", "full", "--output=c.h5", "--format", "json")
        self.assertEqual((self.path / "a.h5").read_bytes(), (self.path / "c.h5").read_bytes())

    def test_an_earlier_file_is_replaced(self):
        self.write("r.h5", "old")
        self.good("run", *FAST, "--output", "r.h5")
        self.assertTrue(h5py.is_hdf5(self.path / "r.h5"))

    def test_table(self):
        text = self.good("run", *FAST)
        for words in ["iteration time", "scaling efficiency", "where the time goes", "bottleneck link", "alpha-beta",
                      "assumptions", "star:"]:
            self.assertIn(words, text)
        self.assertNotIn("cycle", text)

    def test_table_says_the_batch_that_was_run(self):
        text = self.good("run", *FAST, "--scaling", "strong", "--batch", "32")
        self.assertIn("batch 8 a rank", text)

    def test_explain(self):
        explanation = self.good_json("run", *FAST, "--explain")["explanation"]
        self.assertTrue(explanation["sentences"])
        for name in ["double_bandwidth", "half_latency", "double_device_speed"]:
            self.assertGreater(explanation[f"iteration_time_{name}_s"], 0)
        self.assertIn("links were twice as fast", self.good("run", *FAST, "--explain"))

    def test_nodes_are_another_way_to_say_ranks(self):
        by_nodes = self.good_json("run", "--trace", "lenet5", "--device", "v100", "--nodes", "2", "--devices-per-node",
                                  "2")
        by_ranks = self.good_json("run", *FAST, "--devices-per-node", "2")
        self.assertEqual(by_nodes["options"]["ranks"], "4")
        self.assertEqual(by_nodes["iteration_time_s"], by_ranks["iteration_time_s"])

    def test_options_reach_the_simulation(self):
        base = self.good_json("run", *FAST)["iteration_time_s"]
        for option, value in [("--link-bandwidth", "1Gbps"), ("--link-latency", "1ms"), ("--step-overhead", "1ms"),
                              ("--algorithm", "parameter-server"), ("--gradient-dtype", "float64"),
                              ("--device-scale", "0.5"), ("--batch", "512"), ("--gradients", "after-backward"),
                              ("--reduce-rate", "1MBps"), ("--bandwidth-factor", "0.01"),
                              ("--latency-factor", "1000"), ("--network-model", "lv08")]:
            with self.subTest(option):
                self.assertNotEqual(self.good_json("run", *FAST, option, value)["iteration_time_s"], base)

    def test_a_trace_file(self):
        trace = self.make_trace()
        result = self.good_json("run", "--trace", trace, "--ranks", "1")
        # Measured 33 ms; an optimizer has no time in that format.
        self.assertAlmostEqual(result["iteration_time_s"], 0.033, delta=1e-9)
        self.assertAlmostEqual(result["scaling_efficiency"], 1, delta=1e-9)


program.main()
