"""2,000 runs at 64 ranks fit into ten minutes of two processors: 0.6 s of processor time a run."""

import resource

import program

LIMIT_S = 10 * 60 * 2 / 2000
STUDY = """\
trace = resnet50-cpu
device = v100
ranks = 64
topology = torus mesh-rail-cube:m=8 fat-tree leaf-spine
algorithm = ring blueconnect
link-bandwidth = 10Gbps 25Gbps 100Gbps 400Gbps
"""


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Speed(program.Case):
    def test_a_run_at_64_ranks(self):
        self.write("s.ini", STUDY)
        before = processor_time()
        self.good("sweep", "s.ini", "--output", "r.h5")
        each = (processor_time() - before) / 32
        print(f"{each:.3f} s of processor time a run")
        self.assertLess(each, LIMIT_S)


program.main()
