"""tandem topology and tandem collective."""

import csv
import io
import os
import select
import signal
import subprocess

import h5py

import program


class Topology(program.Case):
    def test_names_side_by_side(self):
        rows = self.good_json("topology", "star", "torus:dims=4x4", "fat-tree:k=4", "--ranks", "16")
        self.assertEqual([row["topology"] for row in rows], ["star", "torus", "fat-tree"])
        for row in rows:
            for name in ["devices", "switches", "links", "ports_per_device", "switch_ports_per_device", "diameter",
                         "mean_path", "bisection_links", "cost_per_device"]:
                self.assertIn(name, row)
        self.assertEqual((rows[1]["links"], rows[1]["diameter"], rows[2]["switches"]), (32, 4, 20))
        text = self.good("topology", "star", "torus:dims=4x4", "--ranks", "16")
        self.assertIn("mean_path", text)
        self.assertIn("assumed prices", text)
        self.assertEqual(self.good_json("topology", "star", "--devices", "16")[0]["devices"], 16)

    def test_prices_are_the_users(self):
        base = self.good_json("topology", "star", "--ranks", "16")[0]["cost_per_device"]
        more = self.good_json("topology", "star", "--ranks", "16", "--nic-port-price", "1150")[0]["cost_per_device"]
        self.assertAlmostEqual(more - base, 1000)
        self.bad(2, "topology", "star", "--nic-port-price", "-1", says=["--nic-port-price"])

    def test_routes_links_and_addresses(self):
        row = self.good_json("topology", "torus:dims=4x4", "--ranks", "16", "--route", "0", "5", "--links",
                             "--addresses")[0]
        self.assertEqual(len(row["route"]), 2)
        self.assertEqual(len(row["link_list"]), 2 * row["links"])
        self.assertEqual(row["addresses"][5]["address"], "1,1")
        self.assertIn("route of torus", self.good("topology", "torus:dims=4x4", "--ranks", "16", "--route", "0", "5"))
        lines = self.good("topology", "star", "--links", "--format", "csv").splitlines()
        self.assertEqual(len(lines), 1 + 16)

    def test_a_network_file_brings_its_own_rates(self):
        (self.path / "network.yml").write_text("topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\n"
                                               "bandwidth: [ 200.0, 50.0 ]\nlatency: [ 50.0, 500.0 ]\n")
        name = "astra-sim-network:file=network.yml"
        row = self.good_json("topology", name, "--links")[0]
        self.assertEqual((row["devices"], row["links"], row["switches"]), (8, 16, 4))
        self.assertEqual({(link["bandwidth_bytes_per_s"], round(link["latency_s"] * 1e9)) for link in row["link_list"]},
                         {(200 * 2.0**30, 50), (50 * 2.0**30, 500)})
        self.bad(2, "topology", name, "--link-bandwidth", "10Gbps", says=["the file states the bandwidth"])
        self.bad(1, "topology", "astra-sim-network:file=nowhere.yml", says=["nowhere.yml", "no such file"])
        self.bad(2, "topology", "astra-sim-network", says=["'file' must be given"])

    def test_nodes(self):
        row = self.good_json("topology", "star", "--nodes", "4", "--devices-per-node", "4", "--route", "0", "5")[0]
        self.assertEqual((row["devices"], row["nodes"]), (16, 4))
        # Four NICs for sixteen devices: the switch has a quarter of a port a device.
        self.assertEqual((row["ports_per_device"], row["switch_ports_per_device"]), (0.25, 0.25))
        self.assertGreater(len(row["route"]), 2)


class Collective(program.Case):
    def test_ring_on_a_star_is_its_closed_form(self):
        rows = self.good_json("collective", "--topology", "star", "--ranks", "4", "-b", "8B", "-e", "1GiB", "-f", "8",
                              "--link-bandwidth", "12.5GBps", "--link-latency", "1us", "--step-overhead", "3us")
        self.assertEqual([row["size_bytes"] for row in rows], [8 ** i for i in range(1, 11)])
        for row in rows:
            n = row["size_bytes"]
            expected = 6 * (2e-6 + 3e-6 + n / 4 / 12.5e9)
            self.assertAlmostEqual(row["time_s"], expected, delta=1e-9 * expected)
            self.assertAlmostEqual(row["alpha_beta_time_s"], expected, delta=1e-9 * expected)
            self.assertAlmostEqual(row["algbw_bytes_per_s"], n / row["time_s"], delta=1e-3)
            self.assertAlmostEqual(row["busbw_bytes_per_s"], 1.5 * row["algbw_bytes_per_s"], delta=1e-3)

    def test_table_has_the_columns_of_nccl_tests(self):
        text = self.good("collective", "--ranks", "2", "-b", "1MiB", "-e", "4MiB")
        heading = text.splitlines()[1]
        places = [heading.index(word) for word in ["size", "count", "type", "time", "algbw", "busbw", "alpha-beta"]]
        self.assertEqual(places, sorted(places))
        self.assertEqual(len(text.splitlines()), 2 + 3)

    def test_dedicated_servers_get_devices(self):
        rows = self.good_json("collective", "--algorithm", "parameter-server", "--ranks", "3", "-b", "1MiB", "-e",
                              "1MiB")
        self.assertGreater(rows[0]["time_s"], 0)

    def test_one_rank_moves_nothing(self):
        rows = self.good_json("collective", "--ranks", "1", "-b", "1MiB", "-e", "1MiB")
        self.assertEqual((rows[0]["time_s"], rows[0]["busbw_bytes_per_s"]), (0, 0))

    def test_operations_and_their_bandwidths(self):
        # On a star of 4: (algorithm, time of n bytes in units of n/B without latency, busbw / algbw, elements of n).
        for operation, algorithm, share, bus, count in [
                ("reduce-scatter", "ring", 3 / 4, 3 / 4, 4), ("all-gather", "halving-doubling", 3 / 4, 3 / 4, 4),
                ("all-to-all", "pairwise", 3 / 4, 3 / 4, 4), ("broadcast", "tree", 2, 1, 1),
                ("gather", "direct", 3 / 4, 3 / 4, 4), ("scatter", "tree", 3 / 4, 3 / 4, 4)]:
            row = self.good_json("collective", "--operation", operation, "--algorithm", algorithm, "--ranks", "4",
                                 "-b", "4MB", "-e", "4MB", "--link-latency", "0us", "--link-bandwidth", "4GBps")[0]
            self.assertAlmostEqual(row["time_s"], share * 1e-3, delta=1e-9)
            self.assertAlmostEqual(row["algbw_bytes_per_s"], 4e9 / share, delta=10)
            self.assertAlmostEqual(row["busbw_bytes_per_s"], bus * row["algbw_bytes_per_s"], delta=10)
            self.assertEqual((row["count"], row["operation"], row["algorithm"]),
                             (1_000_000 // count, operation, algorithm))

    def test_bad_operations(self):
        self.bad(2, "collective", "--operation", "all-to-al", says=["did you mean 'all-to-all'?"])
        self.bad(2, "collective", "--operation", "all-gather", "--root", "1", says=["--root", "all-gather has none"])
        self.bad(2, "collective", "--operation", "gather", "--algorithm", "tree", "--ranks", "4", "--root", "4",
                 says=["--root is '4'", "0 to 3"])
        self.bad(2, "collective", "--operation", "all-to-all", "--algorithm", "ring", says=["these do:", "pairwise"])

    def test_the_healthy_time_stands_beside_the_degraded_one(self):
        options = ["collective", "--topology", "mesh-rail-cube:m=4,n=4", "--ranks", "16", "--algorithm", "hrr", "-b",
                   "1MiB", "-e", "4MiB"]
        failure = ["--failure", "switch:rail switch (*;2)"]
        healthy = self.good_json(*options)
        degraded = self.good_json(*options, *failure)
        self.assertEqual([row["healthy_time_s"] for row in healthy], [row["time_s"] for row in healthy])
        self.assertEqual([row["healthy_time_s"] for row in degraded], [row["time_s"] for row in healthy])
        for row in degraded:
            self.assertGreater(row["time_s"], row["healthy_time_s"])
        self.assertNotIn("healthy", self.good(*options))
        lines = self.good(*options, *failure).splitlines()
        self.assertIn("healthy (us)", lines[1])
        self.assertEqual(lines[2].split()[-1], f"{healthy[0]['time_s'] * 1e6:.2f}")
        rows = list(csv.DictReader(io.StringIO(self.good(*options, *failure, "--format", "csv", "--output", "c.h5"))))
        self.assertEqual([float(row["healthy_time_s"]) for row in rows], [row["healthy_time_s"] for row in degraded])
        with h5py.File(self.path / "c.h5") as file:
            self.assertEqual(list(file["runs/healthy_time_s"]), [row["healthy_time_s"] for row in degraded])
            self.assertEqual(list(file["runs/size_bytes"]), [1 << 20, 1 << 21, 1 << 22])
            self.assertEqual(file["runs/healthy_time_s"].attrs["unit"].decode(), "s")
            self.assertIn("rail switch (*;2)", file.attrs["option_failure"].decode())
        lost = self.good_json(*options, "--failure", "rank:5")[0]
        self.assertEqual(lost["healthy_time_s"], healthy[0]["time_s"])

    def test_coarser_levels_say_how_far_off_they_are(self):
        options = ["collective", "--topology", "mesh-rail-cube", "--ranks", "24", "--algorithm", "halving-doubling",
                   "-b", "1MiB", "-e", "2MiB"]
        flow = self.good_json(*options)
        self.assertEqual([row["fidelity_error"] for row in flow], [0, 0])
        self.assertNotIn("off flow", self.good(*options))
        options += ["--fidelity", "analytic"]
        rows = self.good_json(*options)
        for row, exact in zip(rows, flow):
            self.assertGreater(row["fidelity_error"], 0.01)
            self.assertAlmostEqual(row["fidelity_error"], abs(row["time_s"] / exact["time_s"] - 1))
        lines = self.good(*options).splitlines()
        self.assertIn("off flow (%, at)", lines[1])
        self.assertTrue(lines[2].endswith(f"{100 * rows[0]['fidelity_error']:.2g} (24 ranks)"), lines[2])
        table = list(csv.DictReader(io.StringIO(self.good(*options, "--format", "csv", "--output", "c.h5"))))
        self.assertEqual([float(row["fidelity_error"]) for row in table], [row["fidelity_error"] for row in rows])
        with h5py.File(self.path / "c.h5") as file:
            self.assertEqual(list(file["runs/fidelity_error"]), [row["fidelity_error"] for row in rows])

    def test_an_algorithm_of_levels_says_where_it_has_one(self):
        note = "hrr has one level here, and is direct exchange"
        size = ["-b", "1MiB", "-e", "1MiB"]
        self.assertEqual(self.good("collective", "--ranks", "8", "--algorithm", "hrr", *size).splitlines()[1], note)
        run = ["run", *program.FAST, "--algorithm", "hrr"]
        self.assertIn(note, self.good_json(*run)["assumptions"])
        cube = ["--topology", "mesh-rail-cube:m=2,n=2"]
        self.assertNotIn(note, self.good_json(*run, *cube)["assumptions"])
        self.assertNotIn("one level", self.good("collective", "--ranks", "4", "--algorithm", "hrr", *size, *cube))

    def test_a_long_run_is_said_before_it_begins(self):
        long = ["collective", "--ranks", "4096", "-b", "1MiB", "-e", "1MiB", "--fidelity", "flow"]
        run = ["run", "--trace", "resnet50", "--device", "v100", "--ranks", "1024", "--gradients", "per-layer",
               "--fidelity", "flow"]
        for command in (long, run):
            process = subprocess.Popen([program.TANDEM, *command], cwd=self.path, stderr=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, text=True, start_new_session=True)
            with process:
                try:
                    self.assertTrue(select.select([process.stderr], [], [], 60)[0], "nothing is said in a minute")
                    line = process.stderr.readline()
                finally:
                    os.killpg(process.pid, signal.SIGTERM)  # the simulation is a process of its own
            self.assertIn("very roughly", line)
            self.assertIn("--fidelity phase or auto is quicker", line)
        self.assertEqual(self.tandem("collective", "--ranks", "8", "-b", "1MiB", "-e", "1MiB", "--fidelity",
                                     "flow").stderr, "")

    def test_switches_that_reduce(self):
        options = ["collective", "--topology", "star", "--ranks", "8", "-b", "64MiB", "-e", "64MiB",
                   "--link-bandwidth", "12.5GBps", "--link-latency", "1us", "--chunk", "1MiB"]
        row = self.good_json(*options, "--algorithm", "in-network")[0]
        expected = (64 + 1) * (1e-6 + 2 ** 20 / 12.5e9)
        self.assertAlmostEqual(row["time_s"], expected, delta=1e-9 * expected)
        auto = self.good_json(*options, "--algorithm", "auto")[0]
        self.assertGreater(auto["time_s"], row["time_s"])
        refusals = {one["algorithm"]: one.get("refusal") for one in auto["candidates"]}
        self.assertIn("asked for by name", refusals["in-network"])
        self.bad(2, "collective", "--topology", "torus:dims=4x2", "--ranks", "8", "--algorithm", "in-network",
                 says=["no way over switches alone", "star, leaf-spine, fat-tree"])

    def test_auto_says_what_it_picked_and_why(self):
        options = ["collective", "--algorithm", "auto", "--topology", "torus:dims=8x4", "--ranks", "32", "-b", "4KiB",
                   "-e", "64MiB", "-f", "16384"]
        small, large = self.good_json(*options)
        self.assertEqual((small["algorithm"], large["algorithm"]), ("direct", "two-ring"))
        for row in (small, large):
            able = [one for one in row["candidates"] if "estimate_s" in one]
            self.assertEqual(able[0]["algorithm"], row["algorithm"])
            self.assertEqual(able, sorted(able, key=lambda one: one["estimate_s"]))
            self.assertLessEqual({"ring", "direct", "blueconnect"}, {one["algorithm"] for one in able})
            self.assertIn("parameter-server", [one["algorithm"] for one in row["candidates"] if "refusal" in one])
        text = self.good(*options)
        self.assertIn("picked by estimate", text)
        self.assertIn("not parameter-server", text)
        self.assertIn("candidates", self.good(*options, "--format", "csv").splitlines()[0])
        # The pick runs as it would alone.
        alone = self.good_json(*[{"auto": "two-ring"}.get(word, word) for word in options])[1]
        self.assertEqual(alone["time_s"], large["time_s"])
        self.assertNotIn("candidates", alone)


program.main()
