"""The journal of tandem sweep: killed sweeps go on, shards are joined, and nobody's runs are overwritten.

With --runs, Killed.test_goes_on_to_the_same_file kills a sweep of that many runs of ResNet-50 at 64 ranks. 2,000 of them,
about ten minutes of two processors:

    /usr/bin/python3 tests/cli/sweep_journal_test.py build/release/tandem --runs 2000 --kills 20 \
        Killed.test_goes_on_to_the_same_file
"""

import argparse
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy

import program

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--runs", type=int, help="runs at 64 ranks, a multiple of 4; without: the small study")
parser.add_argument("--kills", type=int, default=20)
GIVEN, REST = parser.parse_known_args(sys.argv[1:])
sys.argv[1:] = REST

# 24 small runs in two cases.
STUDY = """\
trace = lenet5
device = v100
link-latency = 1us 2us 5us
link-bandwidth = 10Gbps 100Gbps
[case hub]
topology = star
ranks = 2 4
[case square]
topology = torus:dimensions=2
ranks = 4 9
"""
RUNS = 24
FAILING = "trace = lenet5\ndevice = v100\nranks = 2 3\nmemory = 1KiB 16GiB\n"
SLOW = "trace = resnet50-cpu\nranks = 64\ntopology = torus\nlink-latency = " + " ".join(f"{i}us" for i in range(1, 100)) + "\n"


def study_at_64_ranks(runs):
    if runs <= 0 or runs % 4 != 0:
        raise SystemExit(f"--runs is {runs}: it must be a multiple of 4, the networks of the study")
    cases = [("torus", "ring"), ("mesh-rail-cube:m=8", "blueconnect"), ("fat-tree", "ring"), ("leaf-spine", "blueconnect")]
    return ("trace = resnet50-cpu\ndevice = v100\nranks = 64\nlink-latency = "
            + " ".join(f"{500 + 10 * i}ns" for i in range(runs // 4)) + "\n"
            + "".join(f"[case {topology.partition(':')[0]}]\ntopology = {topology}\nalgorithm = {algorithm}\n"
                      for topology, algorithm in cases))


class Case(program.Case):
    def setUp(self):
        super().setUp()
        self.write("s.ini", STUDY)
        self.journal = self.path / "r.h5.journal"

    def bytes_of(self, name):
        return (self.path / name).read_bytes()

    def whole(self):
        """What the sweep gives where nothing interrupts it."""
        self.good("sweep", "s.ini", "--output", "whole.h5", timeout=None)
        return self.bytes_of("whole.h5")

    def interrupted(self, runs=5):
        """A journal of the first runs, as a sweep that was killed leaves it."""
        self.good("sweep", "s.ini", "--output", "r.h5", "--shard", "1/1", "--jobs", "1")
        shard = self.path / "r.h5.shard-1-of-1.journal"
        lines = shard.read_bytes().splitlines(keepends=True)
        shard.unlink()
        self.journal.write_bytes(b"".join(lines[:1 + runs]))

    def start(self, *words):
        return subprocess.Popen([program.TANDEM, *words], cwd=self.path, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)


class Killed(Case):
    def test_goes_on_to_the_same_file(self):
        if GIVEN.runs:
            self.write("s.ini", study_at_64_ranks(GIVEN.runs))
        begin = time.monotonic()
        whole = self.whole()
        # Long enough for a sweep to get through in about as many parts as there are kills.
        longest = max(0.9, 2 * (time.monotonic() - begin) / GIVEN.kills)
        chance = random.Random(11)
        kills = rounds = 0
        while kills < GIVEN.kills:
            rounds += 1
            kills += self.round(chance, whole, longest, GIVEN.kills - kills)
        print(f"{kills} kills in {rounds} sweep{'s' if rounds > 1 else ''}")

    def round(self, chance, whole, longest, most):
        """One sweep, killed again and again, at most so often, until it gets through; how often it was."""
        kills = kept = 0
        while True:
            sweep = self.start("sweep", "s.ini", "--output", "r.h5", "--resume", "--jobs", "2")
            try:
                sweep.wait(timeout=chance.uniform(0.02, longest) if kills < most else None)
            except subprocess.TimeoutExpired:
                sweep.send_signal(signal.SIGKILL)
                sweep.wait()
                kills += sweep.returncode == -signal.SIGKILL
            error = sweep.stderr.read()
            sweep.stderr.close()
            if sweep.returncode == 0:
                self.assertEqual(self.bytes_of("r.h5"), whole)
                self.assertFalse(self.journal.exists())
                (self.path / "r.h5").unlink()
                return kills
            self.assertEqual(sweep.returncode, -signal.SIGKILL, error)
            # What an earlier part finished is still there: in the journal, or at the very end in the file.
            if (self.path / "r.h5").exists():
                self.assertEqual(self.bytes_of("r.h5"), whole)
            elif self.journal.exists():
                lines = self.journal.read_bytes().count(b"\n")
                self.assertGreaterEqual(lines, kept)
                kept = lines
            else:
                self.assertEqual(kept, 0)

    def test_its_runs_end_with_it(self):
        self.write("slow.ini", SLOW)
        sweep = self.start("sweep", "slow.ini", "--output", "r.h5", "--jobs", "2")
        self.wait_for_journal()
        sweep.kill()
        sweep.wait()
        # They hold the other end of standard error.
        begin = time.monotonic()
        sweep.stderr.read()
        sweep.stderr.close()
        self.assertLess(time.monotonic() - begin, 5)

    def wait_for_journal(self):
        for _ in range(300):
            if self.journal.exists() and b"\n" in self.journal.read_bytes():
                return
            time.sleep(0.02)
        self.fail("there is no journal")


class Resumed(Case):
    def test_runs_only_what_is_missing(self):
        whole = self.whole()
        self.interrupted(5)
        result = self.tandem("sweep", "s.ini", "--output", "r.h5", "--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"5 of {RUNS} runs are in r.h5.journal", result.stderr)
        self.assertEqual(self.bytes_of("r.h5"), whole)
        self.assertEqual(result.stdout, self.good("sweep", "s.ini"))

    def test_a_torn_or_damaged_last_line_is_run_again(self):
        whole = self.whole()
        for damage in (lambda b: b[:-1], lambda b: b[:-40], lambda b: b[:-40] + b"X" + b[-39:], lambda b: b + b"\0" * 512):
            self.interrupted(5)
            self.journal.write_bytes(damage(self.journal.read_bytes()))
            self.good("sweep", "s.ini", "--output", "r.h5", "--resume")
            self.assertEqual(self.bytes_of("r.h5"), whole)
            (self.path / "r.h5").unlink()

    def test_a_damaged_line_before_the_last_is_reported(self):
        self.interrupted(5)
        good = self.journal.read_bytes().splitlines(keepends=True)
        damaged = list(good)
        damaged[3] = damaged[3].replace(b"lenet5", b"lenet6", 1)
        self.journal.write_bytes(b"".join(damaged))
        for words in ([], ["--resume"]):
            self.bad(1, "sweep", "s.ini", "--output", "r.h5", *words, says=["r.h5.journal: line 4 is damaged"])
        self.assertEqual(self.journal.read_bytes(), b"".join(damaged))
        # The advice of the message works.
        self.journal.write_bytes(b"".join(good[:3] + good[4:]))
        self.good("sweep", "s.ini", "--output", "r.h5", "--resume")
        self.assertEqual(self.bytes_of("r.h5"), self.whole())

    def test_another_study_is_refused(self):
        self.interrupted(5)
        before = self.journal.read_bytes()
        for text, says in [(STUDY.replace("10Gbps", "20Gbps"), "options of its runs"),
                           (STUDY.replace(" 5us", ""), "it has 24 runs, and this study 16 runs"),
                           (STUDY.replace("case hub", "case star"), "options of its runs")]:
            self.write("other.ini", text)
            self.bad(1, "sweep", "other.ini", "--output", "r.h5", "--resume",
                     says=["r.h5.journal belongs to another sweep", says])
        self.assertEqual(self.journal.read_bytes(), before)
        # What is written differently but means the same is the same.
        self.write("same.ini", "# a comment\n" + STUDY)
        self.good("sweep", "same.ini", "--output", "r.h5", "--resume")

    def test_files_that_the_runs_read_count_too(self):
        self.make_trace("t.h5")
        self.write("order.txt", "0\n1\n2\n3\n")
        study = "trace = t.h5\nranks = 4\nplacement = file:path=order.txt\nlink-latency = 1us 2us 3us\n"
        self.write("s.ini", study)
        self.interrupted(2)
        kept = self.journal.read_bytes()
        self.write("order.txt", "3\n2\n1\n0\n")
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", "--resume", says=["files they read"])
        # A first parameter needs no name.
        self.write("s.ini", study.replace("path=", ""))
        self.good("sweep", "s.ini", "--output", "short.h5", "--shard", "1/1")
        self.write("order.txt", "0\n1\n2\n3\n")
        self.bad(1, "sweep", "s.ini", "--output", "short.h5", "--shard", "1/1", "--resume", says=["files they read"])
        self.write("s.ini", study)
        self.good("sweep", "s.ini", "--output", "r.h5", "--resume")
        self.journal.write_bytes(kept)
        self.write("graph.txt", program.GRAPH.replace("10.000", "11.000"))
        self.good("trace", "import", "graph.txt", "--importer", "pipedream:batch=64", "--model", "small", "--output", "t.h5")
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", "--resume", says=["files they read"])

    def test_without_a_journal_it_begins_and_with_the_file_it_has_nothing_to_do(self):
        self.good("sweep", "s.ini", "--output", "r.h5", "--resume")
        before = (self.path / "r.h5").stat().st_mtime_ns
        result = self.tandem("sweep", "s.ini", "--output", "r.h5", "--resume")
        self.assertEqual(result.returncode, 0)
        self.assertIn("has all runs", result.stderr)
        self.assertEqual((self.path / "r.h5").stat().st_mtime_ns, before)
        self.write("s.ini", STUDY.replace("10Gbps", "20Gbps"))
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", "--resume", says=["not of this study", "take it away"])
        self.assertEqual((self.path / "r.h5").stat().st_mtime_ns, before)
        self.good("sweep", "s.ini", "--output", "r.h5")  # begun anew, as the command says
        self.assertNotEqual((self.path / "r.h5").stat().st_mtime_ns, before)

    def test_the_file_of_another_build_is_not_taken_for_its_own(self):
        self.good("sweep", "s.ini", "--output", "r.h5")
        with h5py.File(self.path / "r.h5", "r+") as file:
            own = file.attrs["program_hash"]
            self.assertRegex(own.decode(), "^[0-9a-f]{16}$")
            file.attrs["program_hash"] = numpy.bytes_(b"0123456789abcdef")
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", "--resume", says=["this build of tandem", "take it away"])
        with h5py.File(self.path / "r.h5", "r+") as file:
            file.attrs["program_hash"] = own
        self.good("sweep", "s.ini", "--output", "r.h5", "--resume")

    def test_failed_runs_are_tried_again(self):
        self.write("f.ini", FAILING)
        self.assertEqual(self.tandem("sweep", "f.ini", "--output", "r.h5").returncode, 1)
        first = self.bytes_of("r.h5")
        result = self.tandem("sweep", "f.ini", "--output", "r.h5", "--resume")
        self.assertEqual(result.returncode, 1)
        self.assertIn("2 of 4 runs are in", result.stderr)
        self.assertEqual(result.stderr.count("failed: run"), 2)
        self.assertEqual(self.bytes_of("r.h5"), first)
        # A sweep that got through may be repeated.
        self.assertEqual(self.tandem("sweep", "f.ini", "--output", "r.h5").returncode, 1)


class Kept(Case):
    def test_an_interrupted_sweep_is_not_overwritten(self):
        self.interrupted(5)
        before = self.journal.read_bytes()
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", says=["5 runs of an interrupted sweep", "--resume"])
        self.assertEqual(self.journal.read_bytes(), before)

    def test_runs_without_a_result_file_are_not_overwritten(self):
        whole = self.whole()
        self.interrupted(RUNS)  # after the last run
        before = self.journal.read_bytes()
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", says=["all 24 runs", "was not written", "--resume"])
        self.write("other.ini", STUDY.replace("10Gbps", "20Gbps"))
        self.bad(1, "sweep", "other.ini", "--output", "r.h5", says=["all 24 runs", "of another study"])
        # Nor where there is a file, but another study's.
        self.good("sweep", "other.ini", "--output", "other.h5")
        (self.path / "other.h5").rename(self.path / "r.h5")
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", says=["all 24 runs", "was not written"])
        self.bad(1, "sweep", "other.ini", "--output", "r.h5", says=["all 24 runs", "of another study"])
        self.assertEqual(self.journal.read_bytes(), before)
        self.good("sweep", "s.ini", "--output", "r.h5", "--resume")
        self.assertEqual(self.bytes_of("r.h5"), whole)
        # With its file, it may be repeated.
        self.journal.write_bytes(before)
        self.good("sweep", "s.ini", "--output", "r.h5")
        self.assertFalse(self.journal.exists())

    def test_the_only_shard_is_not_overwritten(self):
        words = ["sweep", "s.ini", "--output", "r.h5", "--shard", "1/1"]
        self.good(*words)
        self.bad(1, *words, says=["shard-1-of-1.journal is there, with 24 runs of this shard", "--resume"])

    def test_files_that_cannot_be_read_are_not_taken_for_empty_ones(self):
        self.write("order.txt", "0\n1\n")
        self.write("s.ini", "trace = lenet5\ndevice = v100\nranks = 2\nplacement = file:order.txt\n")
        self.path.chmod(0o777)
        shutil.copy(program.TANDEM, self.path / "tandem")
        nobody = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}

        def sweep():
            result = subprocess.run(["./tandem", "sweep", "s.ini", "--output", "r.h5"], cwd=self.path, text=True,
                                    capture_output=True, timeout=300, **nobody)
            return result.returncode, result.stderr

        (self.path / "tandem").chmod(0o755)
        (self.path / "order.txt").chmod(0)
        self.assertEqual(sweep(), (1, "error: order.txt: cannot be read: Permission denied\n"))
        (self.path / "order.txt").chmod(0o644)
        (self.path / "tandem").chmod(0o711 if nobody else 0o111)
        self.assertEqual(sweep(), (1, "error: /proc/self/exe: cannot be read: Permission denied\n"))
        (self.path / "tandem").chmod(0o755)
        self.assertEqual(sweep(), (0, ""))

    def test_two_sweeps_on_one_file_are_refused(self):
        self.write("slow.ini", SLOW)
        first = self.start("sweep", "slow.ini", "--output", "r.h5", "--jobs", "1")
        try:
            Killed.wait_for_journal(self)
            for words in ([], ["--resume"]):
                self.bad(1, "sweep", "slow.ini", "--output", "r.h5", *words, says=["another sweep is writing it"])
            self.good("sweep", "s.ini", "--output", "other.h5")  # another file is no matter
            self.assertIsNone(first.poll(), "the test needs a slower study")
        finally:
            first.kill()
            first.wait()
            first.stderr.close()
        # With the sweep, its lock is gone.
        self.bad(1, "sweep", "slow.ini", "--output", "r.h5", says=["interrupted sweep"])

    def test_the_lock_of_another_process_holds(self):
        with open(self.journal, "w", encoding="utf-8") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            self.bad(1, "sweep", "s.ini", "--output", "r.h5", says=["another sweep is writing it"])

    def test_options_that_need_a_place(self):
        self.bad(2, "sweep", "s.ini", "--resume", says=["--resume needs --output"])
        self.bad(2, "sweep", "s.ini", "--shard", "1/2", says=["--shard needs --output"])
        for text in ("1", "0/2", "3/2", "1/0", "a/b", "1/2/3"):
            self.bad(2, "sweep", "s.ini", "--output", "r.h5", "--shard", text, says=["--shard"])
        self.bad(2, "sweep", "s.ini", "--output", "s.ini", says=["is the input"])


class Shards(Case):
    def shard(self, number, count, *words):
        return self.good("sweep", "s.ini", "--output", "r.h5", "--shard", f"{number}/{count}", *words)

    def test_merged_they_equal_one_process(self):
        whole = self.whole()
        for count in (1, 3, RUNS + 2):
            for number in range(count, 0, -1):
                done = self.tandem("sweep", "s.ini", "--output", "r.h5", "--shard", f"{number}/{count}")
                self.assertEqual(done.returncode, 0, done.stderr)
                when = "then" if count == 1 else f"when all {count} are"
                self.assertEqual(done.stderr.splitlines()[-1],
                                 f"shard {number} of {count} is done; {when}: tandem merge --output r.h5")
            self.assertFalse((self.path / "r.h5").exists())
            merged = self.tandem("merge", "--output", "r.h5")
            self.assertEqual(merged.returncode, 0)
            self.assertEqual(merged.stderr, f"r.h5: {RUNS} runs of {count} shard{'s' if count > 1 else ''}\n")
            self.assertEqual(self.bytes_of("r.h5"), whole)
            (self.path / "r.h5").unlink()
            for journal in self.path.glob("r.h5.*.journal"):
                journal.rename(self.path / f"old-{journal.name}")
        # Journals may also be named, in any order, and lie anywhere.
        self.good("merge", "old-r.h5.shard-3-of-3.journal", "old-r.h5.shard-1-of-3.journal",
                  "old-r.h5.shard-2-of-3.journal", "--output", "named.h5")
        self.assertEqual(self.bytes_of("named.h5"), whole)

    def test_a_shard_goes_on_and_is_idle_when_done(self):
        whole = self.whole()
        self.shard(2, 2)
        self.shard(1, 2)
        journal = self.path / "r.h5.shard-1-of-2.journal"
        complete = journal.read_bytes()
        journal.write_bytes(complete[:len(complete) // 2])
        self.bad(1, "sweep", "s.ini", "--output", "r.h5", "--shard", "1/2", says=["--resume"])
        self.bad(1, "merge", "--output", "r.h5", says=["runs are missing, of shard 1 of 2"])
        self.shard(1, 2, "--resume")
        done = journal.read_bytes()
        self.shard(1, 2, "--resume")
        self.assertEqual(journal.read_bytes(), done)
        self.good("merge", "--output", "r.h5")
        self.assertEqual(self.bytes_of("r.h5"), whole)

    def test_failed_runs(self):
        self.write("s.ini", FAILING)
        result = self.tandem("sweep", "s.ini", "--output", "whole.h5")
        self.assertEqual(result.returncode, 1)
        # Each shard has one run, and that of the first and third fails.
        for number, status in [(1, 1), (2, 0), (3, 1), (4, 0)]:
            result = self.tandem("sweep", "s.ini", "--output", "r.h5", "--shard", f"{number}/4")
            self.assertEqual(result.returncode, status, result.stderr)
        merged = self.tandem("merge", "--output", "r.h5")
        self.assertEqual(merged.returncode, 1)
        self.assertEqual(merged.stderr.splitlines(), ["r.h5: 4 runs of 4 shards, 2 failed",
                                                      "error: 2 of 4 runs failed; r.h5 says why"])
        self.assertEqual(self.bytes_of("r.h5"), self.bytes_of("whole.h5"))

    def test_what_does_not_belong_together_is_refused(self):
        self.bad(2, "merge", says=["--output"])
        self.bad(1, "merge", "--output", "r.h5", says=["no journals of shards"])
        self.bad(1, "merge", "none.journal", "--output", "r.h5", says=["none.journal", "No such file"])
        self.shard(1, 2)
        self.bad(1, "merge", "--output", "r.h5", says=["12 of 24 runs are missing, of shard 2 of 2"])
        self.write("s.ini", STUDY.replace("10Gbps", "20Gbps"))
        self.shard(2, 2)
        self.bad(1, "merge", "--output", "r.h5", says=["shard-2-of-2.journal", "does not belong", "options of its runs"])
        self.bad(2, "merge", "r.h5.shard-1-of-2.journal", "--output", "r.h5.shard-1-of-2.journal", says=["is the input"])
        self.bad(1, "merge", "s.ini", "--output", "r.h5", says=["s.ini: line 1 is damaged: this is no journal"])

    def test_dry_run_lists_the_shard(self):
        self.assertIn(f"{RUNS} runs", self.good("sweep", "s.ini", "--dry-run"))
        self.assertIn(f"{RUNS // 3} runs", self.good("sweep", "s.ini", "--dry-run", "--shard", "2/3"))
        self.assertEqual([p.name for p in self.path.iterdir()], ["s.ini"])


program.main()
