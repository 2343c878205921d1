"""What the tests of the program share: running it in an empty folder, and looking at what it leaves."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TANDEM = os.path.abspath(sys.argv.pop(1))

# A built-in model re-timed for a named device: needs no trace file, and simulates in well under a second.
FAST = ["--trace", "lenet5", "--device", "v100", "--ranks", "4"]


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        self.addCleanup(self._folder.cleanup)
        self.path = pathlib.Path(self._folder.name)

    def tandem(self, *words, **more):
        return subprocess.run([TANDEM, *map(str, words)], cwd=self.path, text=True, encoding="utf-8",
                              stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                              timeout=more.pop("timeout", 300), **more)

    def good(self, *words, **more):
        result = self.tandem(*words, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def good_json(self, *words):
        return json.loads(self.good(*words, "--format", "json"))

    def bad(self, status, *words, says=(), **more):
        """It fails with this status, one `error:` line that says these things, and nothing on standard output."""
        before = sorted(self.path.rglob("*"))
        result = self.tandem(*words, **more)
        lines = result.stderr.splitlines()
        self.assertEqual(result.returncode, status, (words, result.stderr))
        self.assertEqual(len(lines), 1, (words, result.stderr))
        self.assertTrue(lines[0].startswith("error: "), lines)
        self.assertNotIn("internal error", lines[0], words)
        for text in says:
            self.assertIn(text, lines[0])
        self.assertFalse(result.stdout, words)
        self.assertEqual(sorted(self.path.rglob("*")), before, "files were left behind")
        return lines[0]

    def write(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")
        return name

    def make_trace(self, name="small.h5"):
        """A trace file, by way of an importer."""
        self.write("graph.txt", GRAPH)
        self.good("trace", "import", "graph.txt", "--importer", "pipedream:batch=64", "--model", "small", "--output", name)
        return name


GRAPH = """\
node1 -- Input -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node2 -- Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1)) -- forward_compute_time=10.000, \
backward_compute_time=20.000, activation_size=822083584.0, parameter_size=7168.000
node3 -- ReLU(inplace) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=822083584.0, \
parameter_size=0.000
\tnode1 -- node2
\tnode2 -- node3
"""


def main():
    unittest.main(verbosity=1)
