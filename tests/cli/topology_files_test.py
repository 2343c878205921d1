"""tandem topology: what it analyses, and the files that it writes."""

import collections
import csv
import io
import math
import xml.etree.ElementTree as ET

import program

SVG = "{http://www.w3.org/2000/svg}"


class Analyse(program.Case):
    def test_disjoint_paths_and_bounds(self):
        cube, tree = self.good_json("topology", "mesh-rail-cube:m=4,n=4x4", "fat-tree:k=4", "--analyse")
        # topologies of 64 and 16 devices; the cube's bounds as measured elsewhere: 0.167 and 0.250 links a device.
        self.assertEqual((cube["disjoint_paths_min"], cube["disjoint_paths_mean"]), (4, 4))
        self.assertAlmostEqual(cube["bisection_at_least"] / 64, 0.167, delta=0.0006)
        self.assertEqual((cube["bisection_at_most"], cube["path_pairs_are"]), (16, "sampled"))
        self.assertEqual((tree["disjoint_paths_min"], tree["bisection_at_most"], tree["path_pairs_are"]), (1, 8, "all"))
        # One way below an edge switch, 2 in a pod, 4 between pods.
        self.assertAlmostEqual(tree["equal_paths_mean"], (1 * 1 + 2 * 2 + 12 * 4) / 15)
        self.assertIn("disjoint_paths_min", self.good("topology", "fat-tree:k=4", "--analyse"))

    def test_where_the_paths_come_from(self):
        self.assertEqual(self.good_json("topology", "fat-tree:k=4")[0]["paths"], "formula")

    def test_too_large_is_said_and_not_computed(self):
        result = self.tandem("topology", "torus:dims=64x64x32", "--analyse", "--format", "json")
        self.assertEqual(result.returncode, 0)
        self.assertIn("left out", result.stderr)
        row = program.json.loads(result.stdout)[0]
        self.assertIsNone(row["bisection_at_least"])
        self.assertIsNone(row["bisection_at_most"])
        self.assertEqual(row["disjoint_paths_min"], 6)

    def test_random_failures(self):
        words = ["topology", "torus:dims=8x8x8", "star:devices=12", "--random-failures", "links=5%,trials=5"]
        torus, star = self.good_json(*words)
        self.assertEqual(torus["connected_share"], 1)
        self.assertGreater(torus["path_stretch"], 1)
        self.assertLess(torus["path_stretch"], 1.02)
        self.assertEqual((torus["failure_trials"], torus["path_sources"]), (5, 512))
        self.assertEqual(star["failed_switches"], 0)
        self.assertEqual(self.good(*words), self.good(*words))
        self.assertNotEqual(self.good_json("topology", "torus:dims=8x8x8", "--random-failures", "links=5%,seed=2")[0],
                            self.good_json("topology", "torus:dims=8x8x8", "--random-failures", "links=5%,seed=3")[0])
        for text, says in [("links=5", "5%"), ("links=101%", "100%"), ("link=5%", "did you mean 'links'"), ("5%", "KEY"),
                           ("seed=1", "links=P%"), ("links=5%,links=4%", "twice"), ("links=5%,trials=0", "trials"),
                           ("links=nan%", "0% to 100%"), ("links=5%,seed=-1", "seed")]:
            self.bad(2, "topology", "star", "--random-failures", text, says=["--random-failures", says])


class Routes(program.Case):
    def test_the_different_paths_of_many_flows(self):
        words = ["topology", "fat-tree:k=4,routing=ecmp", "--route", "0", "15"]
        rows = self.good_json(*words, "--flows", "200")[0]["route"]
        paths = collections.defaultdict(list)
        for row in rows:
            paths[row["path"]].append(row["to"])
        # (k/2)^2 ways between pods, all six links long, each over a core switch of its own.
        self.assertEqual(sorted(paths), [0, 1, 2, 3])
        self.assertEqual({len(path) for path in paths.values()}, {6})
        self.assertEqual(len({path[2] for path in paths.values()}), 4)
        flows = {row["path"]: row["flows"] for row in rows}
        self.assertEqual(sum(flows.values()), 200)
        self.assertIn("4 different paths", self.good(*words, "--flows", "200"))
        self.assertNotIn("path", self.good_json(*words)[0]["route"][0])
        self.bad(2, "topology", "star", "--flows", "2", says=["--route"])
        self.bad(2, *words, "--flows", "0", says=["--flows"])


class Prices(program.Case):
    def test_a_file_and_options_before_it(self):
        self.write("prices.txt", "# mine\nswitch-port = 1000\nnic-port = 10\n")
        star = ["topology", "star", "--ranks", "16"]
        cost = self.good_json(*star, "--prices", "prices.txt")[0]["cost_per_device"]
        self.assertAlmostEqual(cost, 1000 + 10 + 272)
        cost = self.good_json(*star, "--prices", "prices.txt", "--nic-port-price", "20")[0]["cost_per_device"]
        self.assertAlmostEqual(cost, 1000 + 20 + 272)
        self.assertIn("prices of prices.txt: switch port 1000", self.good(*star, "--prices", "prices.txt"))
        rails = ["topology", "rail-only:m=8,nodes=8"]
        base = self.good_json(*rails)[0]
        self.assertEqual((base["switch_ports"], base["node_switch_ports"]), (640, 9 * 64))
        more = self.good_json(*rails, "--node-switch-port-price", "111")[0]["cost_per_device"]
        self.assertAlmostEqual(more - base["cost_per_device"], 9)
        self.write("wrong.txt", "switch-prot = 1\n")
        self.bad(1, *star, "--prices", "wrong.txt", says=["wrong.txt:1", "did you mean 'switch-port'"])
        self.bad(1, *star, "--prices", "nowhere.txt", says=["nowhere.txt"])


class Files(program.Case):
    def cables(self, name):
        self.good("topology", name, "--ranks", "1", "--cables", "cables.csv")
        return list(csv.DictReader(io.StringIO((self.path / "cables.csv").read_text())))

    def test_cables(self):
        for name in ["mesh-rail-cube:m=4,n=3x2", "torus:dims=9x4,planes=2", "fat-tree:k=4,planes=3", "star:devices=1"]:
            row = self.good_json("topology", name, "--ranks", "1")[0]
            cables = self.cables(name)
            counts = collections.Counter(cable["length"] for cable in cables)
            self.assertEqual((counts["board"], counts["copper"], counts["optical"]),
                             (row["board_links"], row["copper_cables"], row["optical_cables"]), name)
            plugs = [(cable[end], cable["plane"] if not cable[end].startswith("device") else "", cable[end + "_port"])
                     for cable in cables for end in ("from", "to")]
            self.assertEqual(len(plugs), len(set(plugs)), "two cables in one port")
            self.assertEqual(len(plugs), row["switch_ports"] + row["device_ports"])

    def test_cables_of_nodes_end_at_their_nics(self):
        self.good("topology", "star", "--nodes", "2", "--devices-per-node", "4", "--nics-per-node", "2", "--cables",
                  "c.csv")
        cables = list(csv.DictReader(io.StringIO((self.path / "c.csv").read_text())))
        self.assertEqual([cable["from"] for cable in cables],
                         ["node 0 NIC 0", "node 0 NIC 1", "node 1 NIC 0", "node 1 NIC 1"])

    def test_drawings_show_every_vertex_and_link_inside_of_the_picture(self):
        for name in ["fat-tree:k=4", "mesh-rail-cube:m=4,n=4x2", "torus:dims=4x4x4", "torus:dims=16", "torus:dims=1",
                     "torus:dims=2x2x2x2x2", "star:devices=12,planes=4", "mesh-rail-cube:m=8,n=8"]:
            row = self.good_json("topology", name, "--ranks", "1", "--links", "--draw", "picture.svg")[0]
            root = ET.parse(self.path / "picture.svg").getroot()
            self.assertEqual(root.tag, SVG + "svg")
            titles = {title.text for title in root.iter(SVG + "title")}
            names = {link[end] for link in row["link_list"] for end in ("from", "to")}
            self.assertLessEqual(names, titles, name)
            drawn = [path for path in root.iter(SVG + "path") if path.find(SVG + "title") is not None]
            self.assertEqual(len(drawn), len(row["link_list"]) / 2)
            left, top, width, height = map(float, root.get("viewBox").split())
            for circle in root.iter(SVG + "circle"):
                x, y, r = (float(circle.get(key)) for key in ("cx", "cy", "r"))
                self.assertTrue(left <= x - r and x + r <= left + width and top <= y - r and y + r <= top + height, name)
            places = [(circle.get("cx"), circle.get("cy")) for circle in root.iter(SVG + "circle")]
            places += [(rect.get("x"), rect.get("y")) for rect in root.iter(SVG + "rect")]
            self.assertEqual(len(places), len(set(places)), "two vertices in one place")
            self.assertNotIn("href", (self.path / "picture.svg").read_text())

    def test_large_pictures_are_refused(self):
        self.bad(2, "topology", "fat-tree:k=16", "--draw", "f.svg", says=["--draw", "1344", "800", "smaller"])

    def test_export_xml_is_the_same_network(self):
        name = "fat-tree:k=4,oversubscription=2"
        self.good("topology", name, "--link-bandwidth", "25Gbps", "--link-latency", "1us", "--export-xml", "f.xml")
        root = ET.parse(self.path / "f.xml").getroot()
        self.assertEqual((root.tag, root.get("version")), ("platform", "4.1"))
        zone = root.find("zone")
        links = {link.get("id"): link for link in zone.iter("link")}
        listed = self.good_json("topology", name, "--links")[0]["link_list"]
        self.assertEqual(list(links), [f"{link['from']} -> {link['to']}" for link in listed])
        for link in links.values():
            self.assertEqual((link.get("bandwidth"), link.get("sharing_policy")), ("3125000000Bps", "SHARED"))
            self.assertTrue(math.isclose(float(link.get("latency").removesuffix("s")), 1e-6))
        hosts = [host.get("id") for host in zone.iter("host")]
        self.assertEqual(hosts, [f"device-{i}" for i in range(16)])
        routes = {(route.get("src"), route.get("dst")): [link.get("id") for link in route] for route in zone.iter("route")}
        self.assertEqual(len(routes), 16 * 15)
        for src, dst in [(0, 1), (0, 2), (3, 13), (15, 0)]:
            rows = self.good_json("topology", name, "--route", src, dst)[0]["route"]
            self.assertEqual(routes[f"device-{src}", f"device-{dst}"], [f"{row['from']} -> {row['to']}" for row in rows])
        self.bad(2, "topology", "fat-tree:k=12", "--export-xml", "f2.xml", says=["--export-xml", "432", "256"])

    def test_files_are_for_one_topology_and_never_over_an_input(self):
        self.bad(2, "topology", "star", "torus", "--draw", "f.svg", says=["--draw", "one topology"])
        self.write("prices.txt", "nic-port = 1\n")
        for option in ["--draw", "--cables", "--export-xml"]:
            self.bad(2, "topology", "star", "--prices", "prices.txt", option, "./prices.txt", says=[option, "input"])
            self.bad(1, "topology", "star", option, "no/where.txt", says=["no/where.txt"])
        self.assertEqual((self.path / "prices.txt").read_text(), "nic-port = 1\n")
        self.write("network.yml", "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 200.0 ]\nlatency: [ 50.0 ]\n")
        self.bad(2, "topology", "astra-sim-network:file=network.yml", "--cables", "network.yml", says=["--cables"])
        self.bad(2, "topology", "star", "--cables", "a", "--draw", "./a", says=["same file"])
        # A file that cannot be made leaves the others unwritten.
        self.bad(2, "topology", "fat-tree:k=16", "--cables", "c.csv", "--draw", "f.svg", says=["--draw"])


program.main()
