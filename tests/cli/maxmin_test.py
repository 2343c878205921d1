"""tandem collective where links are shared, against the independent solver of tests/engine/maxmin.py, which gets the
links and routes that tandem topology --export-xml writes, and the schedules of this file.
"""

import os
import pathlib
import random
import sys
import xml.etree.ElementTree as xml

import program

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "engine"))
import maxmin  # noqa: E402

PART = 1_000_000  # bytes


class Network:
    """Of a platform file: links by number, routes of pairs of devices."""

    def __init__(self, path):
        root = xml.parse(path).getroot()
        links = list(root.iter("link"))
        numbers = {link.get("id"): number for number, link in enumerate(links)}
        self.capacities = [float(link.get("bandwidth").removesuffix("Bps")) for link in links]
        latencies = [float(link.get("latency").removesuffix("s")) for link in links]
        self.routes = {}
        for route in root.iter("route"):
            path = [numbers[link.get("id")] for link in route.iter("link_ctn")]
            pair = (int(route.get("src").removeprefix("device-")), int(route.get("dst").removeprefix("device-")))
            self.routes[pair] = (path, sum(latencies[link] for link in path))

    def flow(self, source, destination, after=()):
        links, latency = self.routes[source, destination]
        return {"start": latency, "bytes": float(PART), "links": links, "after": list(after)}

    def last_end(self, flows):
        return max(maxmin.completion_dates(self.capacities, flows))


def all_to_all(network, devices):
    return [network.flow(source, destination) for source in devices for destination in devices if source != destination]


def ring_all_reduce(network, devices):
    """A member sends the next part when its last one is sent, and the one before it has sent its own."""
    count = len(devices)
    flows = []
    for step in range(2 * (count - 1)):
        for member in range(count):
            after = [(step - 1) * count + member, (step - 1) * count + (member - 1) % count] if step > 0 else []
            flows.append(network.flow(devices[member], devices[(member + 1) % count], after))
    return flows


class MaxMin(program.Case):
    def network(self, topology, ranks):
        self.good("topology", topology, "--ranks", ranks, "--export-xml", "network.xml")
        return Network(self.path / "network.xml")

    def expect(self, network, flows, topology, ranks, *words):
        """The same end within 1e-6; sharing matters, and half the bandwidth would be seen."""
        size = f"{ranks * PART}B"
        words = ["collective", "--topology", topology, "--ranks", ranks, "-b", size, "-e", size, *words]
        row, = self.good_json(*words)
        found, expected = row["time_s"], network.last_end(flows)
        port = sum(flow["bytes"] for flow in flows) / ranks / network.capacities[0]
        print(f"{' '.join(map(str, words))}: {found:.9g} s, solver {expected:.9g} s, {found / port:.2f} times a port's "
              f"own, relative difference {abs(found / expected - 1):.1e}")
        self.assertLess(abs(found - expected), 1e-6 * expected)
        self.assertGreater(found, 1.5 * port, "links are hardly shared")
        wrong, = self.good_json(*words, "--bandwidth-factor", "0.5")
        self.assertGreater(abs(wrong["time_s"] - expected), 1e-6 * expected)

    def test_all_to_all(self):
        topology, ranks = "fat-tree:k=8,oversubscription=4", 32
        network = self.network(topology, ranks)
        self.expect(network, all_to_all(network, range(ranks)), topology, ranks, "--operation", "all-to-all",
                    "--algorithm", "direct")

    def test_badly_placed_ring(self):
        for topology, ranks in [("fat-tree:k=8,oversubscription=4", 32),
                                ("leaf-spine:leaves=4,down=8,spines=2,up=2", 32), ("torus:dims=6x4", 24)]:
            with self.subTest(topology=topology):
                network = self.network(topology, ranks)
                devices = list(range(ranks))
                random.Random(20240611).shuffle(devices)
                self.write("order", "".join(f"{device}\n" for device in devices))
                self.expect(network, ring_all_reduce(network, devices), topology, ranks, "--algorithm", "ring",
                            "--placement", "file:path=order")


if __name__ == "__main__":
    program.main()
