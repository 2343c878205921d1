"""scripts/cluster: a sweep as a job array of a real Slurm, and with GNU parallel.

The test starts a Slurm of its own (munged, slurmctld, slurmd on this machine, in a temporary folder, on free ports),
and ends it. Where that cannot be, for want of the packages, of root or of what Slurm needs, it is skipped (exit 77).
"""

import ctypes
import getpass
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import program

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/cluster"
STUDY = """\
trace = lenet5
device = v100
ranks = 2 4 9
topology = star torus:dimensions=2
link-latency = 1us 2us 5us
"""
SKIPPED = 77
PR_SET_PDEATHSIG = 1

CONFIGURATION = """\
ClusterName=tandemtest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=10000
MinJobAge=300
KillWait=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=10 State=UP
"""


class CannotStart(Exception):
    pass


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    def __init__(self):
        for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo"):
            if shutil.which(name, path=self.path()) is None:
                raise CannotStart(f"there is no {name} (packages slurm-wlm and munge)")
        if os.geteuid() != 0:
            raise CannotStart("a slurmd of one's own needs root")
        self.daemons = []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem-slurm-"))
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"), PATH=self.path())
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    @staticmethod
    def path():
        return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

    def begin(self):
        self.folder.chmod(0o755)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        ctld_port, slurmd_port = free_ports(2)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], user=getpass.getuser(), folder=self.folder,
            ctld_port=ctld_port, slurmd_port=slurmd_port, cpus=os.cpu_count()))
        files = [f"--{name}={self.folder}/munge.{name.split('-')[0]}"
                 for name in ("socket", "key-file", "pid-file", "log-file", "seed-file")]
        self.start("munged", "--foreground", "--force", "--num-threads=2", *files)
        self.wait(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start("slurmctld", "-D", "-c", "-f", self.folder / "slurm.conf")
        self.start("slurmd", "-D", "-f", self.folder / "slurm.conf")
        self.wait(lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle", "the node")

    def start(self, *command):
        def end_with_the_test():
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

        output = open(self.folder / f"{command[0]}.out", "wb")
        with output:
            self.daemons.append((command[0], subprocess.Popen(
                [str(word) for word in command], env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True, preexec_fn=end_with_the_test)))

    def wait(self, is_ready, what):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for name, daemon in self.daemons:
                if daemon.poll() is not None:
                    raise CannotStart(f"{name} ended: {self.last_words(name)}")
            if is_ready():
                return
            time.sleep(0.2)
        raise CannotStart(f"{what} is not ready after a minute: {self.last_words('slurmctld')}")

    def last_words(self, name):
        for suffix in ("out", "log"):
            file = self.folder / f"{name}.{suffix}"
            lines = file.read_text(errors="replace").split("\n") if file.exists() else []
            lines = [line for line in lines if line.strip()]
            if lines:
                return " | ".join(lines[-3:])
        return "without a word"

    def ask(self, *command):
        result = subprocess.run(command, env=self.environment, text=True, capture_output=True, timeout=60)
        return result.stdout.strip() if result.returncode == 0 else None

    def end(self):
        """Jobs first: their processes are children of nobody here."""
        if len(self.daemons) == 3:
            try:
                self.ask("scancel", "--full", f"--user={getpass.getuser()}")
                for _ in range(50):
                    if not self.ask("squeue", "-h"):
                        break
                    time.sleep(0.2)
            except subprocess.TimeoutExpired:
                pass
        for _, daemon in reversed(self.daemons):
            daemon.terminate()
        for _, daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []
        shutil.rmtree(self.folder, ignore_errors=True)


class OnSlurm(program.Case):
    slurm = None

    def setUp(self):
        super().setUp()
        self.path.chmod(0o755)
        self.write("s.ini", STUDY)
        self.good("sweep", "s.ini", "--output", "whole.h5")
        self.environment = dict(self.slurm.environment, TANDEM=program.TANDEM)

    def submit(self, shards, *options):
        result = subprocess.run([SCRIPTS / "slurm", "s.ini", "r.h5", str(shards), *options], cwd=self.path,
                                env=self.environment, text=True, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.split()

    def state_of(self, job):
        return self.slurm.ask("squeue", "-h", "-t", "all", "-o", "%T", "-j", job)

    def wait_for(self, job):
        end = time.monotonic() + 200
        while time.monotonic() < end:
            states = (self.state_of(job) or "").split()
            if states and all(state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL") for state in states):
                return states
            time.sleep(0.3)
        self.fail(f"job {job}: {self.state_of(job)}; {self.logs()}")

    def logs(self):
        return {file.name: file.read_text(errors="replace")[-500:] for file in self.path.glob("slurm-*.out")}

    def test_a_job_array_gives_the_file_of_one_process(self):
        array, merge = self.submit(4, "--cpus-per-task=1")
        self.assertEqual(self.wait_for(merge), ["COMPLETED"], self.logs())
        self.assertEqual(set(self.wait_for(array)), {"COMPLETED"})
        self.assertEqual(len(list(self.path.glob("r.h5.shard-*-of-4.journal"))), 4)
        self.assertEqual((self.path / "r.h5").read_bytes(), (self.path / "whole.h5").read_bytes())

    def test_what_was_cancelled_is_submitted_again(self):
        array, merge = self.submit(3, "--hold")
        self.assertIsNotNone(self.slurm.ask("scancel", f"{array}_2"))
        self.assertIsNotNone(self.slurm.ask("scontrol", "release", array))
        self.assertEqual(self.wait_for(merge), ["FAILED"], self.logs())
        self.assertFalse((self.path / "r.h5").exists())
        self.assertIn("6 of 18 runs are missing, of shard 2 of 3", str(self.logs()))
        done = self.path / "r.h5.shard-1-of-3.journal"
        before = done.read_bytes()
        _, merge = self.submit(3)
        self.assertEqual(self.wait_for(merge), ["COMPLETED"], self.logs())
        self.assertEqual(done.read_bytes(), before)  # nothing was run again
        self.assertEqual((self.path / "r.h5").read_bytes(), (self.path / "whole.h5").read_bytes())


class WithParallel(program.Case):
    def test_shards_give_the_file_of_one_process(self):
        self.write("s.ini", STUDY)
        self.good("sweep", "s.ini", "--output", "whole.h5")
        for name in ("r.h5", "with blank's.h5"):
            result = subprocess.run([SCRIPTS / "parallel", "s.ini", name, "4", "--jobs", "2"], cwd=self.path,
                                    env=dict(os.environ, TANDEM=program.TANDEM), text=True, capture_output=True,
                                    timeout=200)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual((self.path / name).read_bytes(), (self.path / "whole.h5").read_bytes())


def suite(what):
    if what == "slurm":
        OnSlurm.slurm = Slurm()
        return unittest.defaultTestLoader.loadTestsFromTestCase(OnSlurm)
    if shutil.which("parallel") is None:
        raise CannotStart("there is no GNU parallel (package parallel)")
    return unittest.defaultTestLoader.loadTestsFromTestCase(WithParallel)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the daemons are ended
    try:
        tests = suite(sys.argv[1])
        return 0 if unittest.TextTestRunner().run(tests).wasSuccessful() else 1
    except CannotStart as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    finally:
        if OnSlurm.slurm is not None:
            OnSlurm.slurm.end()


sys.exit(main())
