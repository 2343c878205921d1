"""Named clusters, single links with other rates, and networks that users bring, from outside."""

import program
from program import FAST

LINKS = """from,to,bandwidth,latency
a,sw,100Gbps,500ns
b,sw,100Gbps,500ns
c,sw,100Gbps,500ns
d,sw,100Gbps,500ns
"""
NODES = "name,kind\na,device\nb,device\nc,device\nd,device\nsw,switch\n"


def platform(extra=""):
    """A star of four hosts: a link with a direction of its own each way, and a router in the middle."""
    hosts = "".join(f'<host id="{h}" speed="1Gf"/><link id="l{h}" bandwidth="12.5GBps" latency="500ns" '
                    f'sharing_policy="SPLITDUPLEX"/>' for h in "abcd")
    routes = "".join(f'<route src="{h}" dst="sw"><link_ctn id="l{h}" direction="UP"/></route>' for h in "abcd")
    return (f'<platform version="4.1"><zone id="w" routing="Floyd">{hosts}<router id="sw"/>{routes}{extra}</zone>'
            '</platform>')


class Clusters(program.Case):
    def options(self, *words):
        return self.good_json("run", *words)["options"]

    def test_every_cluster_says_what_it_sets_and_why(self):
        names = [plugin["name"] for plugin in self.good_json("list", "cluster")]
        self.assertEqual(names, ["dgx-h100", "horovod-2017", "p3dn", "tpu-v4"])
        for name in names:
            plugin = self.good_json("list", "cluster", name)[0]
            text = self.good("list", "cluster", name)
            self.assertIn("link-bandwidth", [setting["option"] for setting in plugin["settings"]])
            for setting in plugin["settings"]:
                self.assertGreaterEqual(len(setting["source"]), 7)
                self.assertIn(f"--{setting['option']} {setting['value']}", text)
                self.assertIn(setting["source"], text)
            self.good("topology", "--cluster", name)

    def test_the_numbers_of_the_sources(self):
        def links(name):
            row = self.good_json("topology", "--cluster", name, "--links")[0]
            return row, {(link["kind"], link["bandwidth_bytes_per_s"]) for link in row["link_list"]}
        row, kinds = links("dgx-h100:nodes=2")
        self.assertEqual(row["devices"], 16)
        self.assertIn(("intra_node", 450e9), kinds)  # 18 NVLinks of 25 GB/s
        self.assertIn(("device_port", 50e9), kinds)  # ConnectX-7
        row, kinds = links("p3dn")
        self.assertEqual((row["devices"], row["nodes"]), (32, 4))
        self.assertEqual(kinds, {("intra_node", 150e9), ("device_port", 12.5e9)})
        row, kinds = links("horovod-2017")
        self.assertEqual((row["devices"], row["nodes"]), (16, 4))
        self.assertEqual(kinds, {("intra_node", 12e9), ("device_port", 3.125e9)})
        row, kinds = links("tpu-v4")
        self.assertEqual((row["devices"], row["ports_per_device"], row["diameter"]), (64, 6, 6))
        self.assertEqual(kinds, {("direct", 50e9)})

    def test_explicit_options_override_it(self):
        plain = self.options(*FAST[:4], "--cluster", "horovod-2017")
        self.assertEqual((plain["ranks"], plain["link-bandwidth"], plain["cluster"]), ("16", "25Gbps", "horovod-2017"))
        other = self.options(*FAST[:4], "--cluster", "horovod-2017:nodes=2", "--link-bandwidth", "10Gbps")
        self.assertEqual((other["ranks"], other["link-bandwidth"], other["intra-bandwidth"]), ("8", "10Gbps", "12GBps"))
        self.assertEqual(self.options(*FAST[:4], "--cluster", "horovod-2017", "--ranks", "8")["ranks"], "8")
        same = ["--topology", "star", "--nodes", "4", "--devices-per-node", "4", "--link-bandwidth", "25Gbps",
                "--link-latency", "2us", "--intra-bandwidth", "12GBps", "--intra-latency", "2us"]
        size = ["-b", "1MiB", "-e", "1MiB"]
        self.assertEqual(self.good_json("collective", "--cluster", "horovod-2017", *size)[0]["time_s"],
                         self.good_json("collective", *same, *size)[0]["time_s"])

    def test_mistakes(self):
        self.bad(2, "run", *FAST, "--cluster", "dgx", says=["--cluster", "dgx-h100"])
        self.bad(2, "run", *FAST, "--cluster", "dgx-h100:nodes=0", says=["nodes"])
        self.bad(2, "run", *FAST, "--cluster", "dgx-h100:node=2", says=["did you mean 'nodes'?"])
        self.bad(2, "topology", says=["topology is missing"])

    def test_in_study_files(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\ncluster = horovod-2017:nodes=1 horovod-2017:nodes=2\n")
        rows = self.good_json("sweep", "s.ini")
        self.assertEqual([row["ranks"] for row in rows], [4, 8])


class Overrides(program.Case):
    def test_one_slow_link(self):
        size = ["-b", "4MB", "-e", "4MB", "--ranks", "4"]
        def time(*words):
            return self.good_json("collective", *size, *words)[0]["time_s"]
        slow = time("--link-override", "device 2 -> switch:bandwidth=1GBps")
        self.assertAlmostEqual(slow, 6 * (1e-6 + 1e6 / 1e9), delta=1e-9 * slow)
        both = time("--link-override", "device_port:latency=2us", "--link-override", "* -> switch:bandwidth=1GBps")
        self.assertAlmostEqual(both, 6 * (4e-6 + 1e6 / 1e9), delta=1e-9 * both)

    def test_results_record_them(self):
        result = self.good_json("run", *FAST, "--link-override", "device 1 *:bandwidth=1Gbps,latency=3us",
                                "--link-override", "*device 0:latency=1us")
        self.assertEqual(result["options"]["link-override"],
                         "device 1 *:bandwidth=1Gbps,latency=3us,*device 0:latency=1us")
        self.assertEqual(sum("--link-override" in sentence for sentence in result["assumptions"]), 2)

    def test_in_study_files(self):
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 4\nlink-override = none "
                            "device1->switch:bandwidth=100Mbps\n")
        rows = self.good_json("sweep", "s.ini")
        self.assertGreater(rows[1]["iteration_time_s"], rows[0]["iteration_time_s"])

    def test_mistakes(self):
        self.bad(2, "run", *FAST, "--link-override", "spine*:bandwidth=1Gbps",
                 says=["no link's name or kind matches 'spine*'"])
        self.bad(2, "run", *FAST, "--link-override", "device*", says=["--link-override", "PATTERN:bandwidth="])
        self.bad(2, "run", *FAST, "--link-override", "device*:bandwidth=0Gbps", says=["above 0"])


class Networks(program.Case):
    def times(self, *words):
        rows = self.good_json("collective", *words, "--ranks", "4", "-b", "1KiB", "-e", "1MiB", "-f", "32")
        return [row["time_s"] for row in rows]

    def test_three_descriptions_of_one_star(self):
        self.write("links.csv", LINKS)
        self.write("nodes.csv", NODES)
        self.write("star.xml", platform())
        built = self.times("--topology", "star")
        self.assertEqual(self.times("--topology", "link-list:links=links.csv,nodes=nodes.csv"), built)
        self.assertEqual(self.times("--topology", "simgrid-xml:file=star.xml"), built)
        runs = [self.good_json("run", *FAST, "--topology", name)["iteration_time_s"] for name in
                ["star", "link-list:links=links.csv,nodes=nodes.csv", "simgrid-xml:file=star.xml"]]
        self.assertEqual(runs, [runs[0]] * 3)

    def test_bad_platforms_are_one_line(self):
        self.write("nodes.csv", NODES)
        cases = {"disconnected": (LINKS.replace("d,sw,100Gbps,500ns\n", ""), "disconnected"),
                 "zero": (LINKS.replace("b,sw,100Gbps", "b,sw,0Gbps"), "line 3: bandwidth"),
                 "negative": (LINKS.replace("b,sw,100Gbps", "b,sw,-5Gbps"), "line 3: bandwidth"),
                 "duplicate": (LINKS + "sw,a,1Gbps,1us\n", "line 6: 'sw' -> 'a' is a link of line 2 already"),
                 "loop": (LINKS + "sw,sw,1Gbps,1us\n", "line 6: 'sw' is linked to itself")}
        for name, (text, expected) in cases.items():
            self.write(f"{name}.csv", text)
            self.bad(1, "run", *FAST, "--topology", f"link-list:links={name}.csv,nodes=nodes.csv",
                     says=[f"{name}.csv", expected])
        self.write("links.csv", LINKS)
        self.bad(2, "run", *FAST[:4], "--ranks", "5", "--topology", "link-list:links=links.csv,nodes=nodes.csv",
                 says=["has 4 devices, but 5 are wanted"])
        self.write("unknown.xml", platform('<route src="a" dst="z"><link_ctn id="la" direction="UP"/></route>'))
        self.bad(1, "run", *FAST, "--topology", "simgrid-xml:file=unknown.xml", says=["unknown.xml", "line 1", "'z'"])
        self.write("star.xml", platform())
        self.write("hosts", "a\nz\n")
        self.bad(1, "run", *FAST, "--topology", "simgrid-xml:file=star.xml,hostfile=hosts", says=["hosts", "line 2", "'z'"])
        self.bad(2, "run", *FAST[:4], "--ranks", "5", "--topology", "simgrid-xml:file=star.xml",
                 says=["has 4 devices, but 5 are wanted"])
        self.write("zero.xml", platform('<link id="z" bandwidth="0GBps"/>'))
        self.bad(1, "run", *FAST, "--topology", "simgrid-xml:file=zero.xml", says=["bandwidth must be above 0"])


program.main()
