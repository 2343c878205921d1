#!/usr/bin/python3
"""record_pytorch_test.py TANDEM WRITE_MODEL: scripts/record_pytorch.py on a CPU, from outside and from within.

The oracles: the built-in models' layers, edges and work; PyTorch's own gradients of whole models; hand-drawn graphs.
"""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "record_pytorch.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPT.parent))

try:
    import h5py
    import numpy
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import record_pytorch as recorder  # noqa: E402

TANDEM, WRITE_MODEL = sys.argv[1:3]
del sys.argv[1:3]


# ---- models, each with something that a recorder can get wrong ----


class Block(nn.Module):
    """torchvision's bottleneck with functions where that has modules."""

    def __init__(self, inputs, width, stride=1, downsample=None):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = downsample

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = F.relu(self.bn2(self.conv2(out)), inplace=True)
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            x = self.downsample(x)
        return F.relu(out + x, inplace=True)


class FunctionalResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3)):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        inputs, self.stages = 64, len(blocks)
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                width, stride = 64 << stage, 2 if stage > 0 and i == 0 else 1
                down = i == 0 and nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                                nn.BatchNorm2d(4 * width))
                layers.append(Block(inputs, width, stride, down or None))
                inputs = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, stride=2, padding=1)
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class UntraceableResNet(FunctionalResNet):
    """Control flow on values: torch.fx gives up."""

    def forward(self, x):
        return super().forward(x) if x.abs().sum() > 0 else self.fc(x)


class Inception(nn.Module):
    """Branches, a concat, a sum of one tensor with itself, an Identity, outputs that fan out, an unused head."""

    def __init__(self, branch_on_values=False):
        super().__init__()
        self.branch_on_values = branch_on_values
        self.stem = nn.Conv2d(3, 8, 3, padding="same")
        self.one = nn.Conv2d(8, 4, 1)
        self.three = nn.Conv2d(8, 6, 3, padding=1, groups=2)
        self.pool = nn.MaxPool2d(3, 1, 1)
        self.nothing = nn.Identity()
        self.unused = nn.Linear(8, 2)
        self.shared = nn.Linear(18, 18)
        self.scale = nn.Parameter(torch.ones(1, 18, 1, 1))
        self.head = nn.Linear(18, 5)

    def forward(self, x):
        if self.branch_on_values and float(x.sum()) == 12345.0:
            return x
        x = self.stem(x)
        F.relu_(x)  # nobody uses the result by name
        x = self.nothing(x)
        aux = self.unused(x.mean((2, 3)))
        y = torch.cat([self.one(x), self.three(x), self.pool(x)], 1)
        z = y * torch.sigmoid(self.scale)
        z += y
        y = z + z
        left, right = y.chunk(2, dim=1)
        y = torch.cat((right, left), dim=1)
        y = y.mean((2, 3), keepdim=True).view(y.size(0), -1)
        y = self.shared(torch.tanh(self.shared(y)))
        return self.head(y), aux


class Plain(nn.Module):
    """In one dimension, with pools rounded up and a normalization over the channels."""

    def __init__(self, features=10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(2, 8, 5, stride=2), nn.ReLU(inplace=True),
                                  nn.MaxPool1d(3, 2, ceil_mode=True), nn.LocalResponseNorm(3), nn.Dropout(0.5),
                                  nn.AdaptiveAvgPool1d(4), nn.Flatten())
        self.fc = nn.Linear(32, features)

    def forward(self, x):
        return self.fc(self.body(x))


class Standardized(nn.Module):
    """A weight that is computed from a parameter, a frozen parameter, several results of a layer, a named output."""

    def __init__(self, branch_on_values=False):
        super().__init__()
        self.branch_on_values = branch_on_values
        self.conv = nn.Conv2d(3, 8, 3)
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.head = nn.Linear(6, 4)
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        if self.branch_on_values and float(x.sum()) == 12345.0:
            return x
        weight = self.conv.weight
        y = F.conv2d(x, (weight - weight.mean()) / weight.std(), self.conv.bias, padding=1)
        sequence, (hidden, _) = self.lstm(y.flatten(2).transpose(1, 2))
        return {"out": self.head(sequence.mean(1) + hidden[0]), "features": y}


def untraceable_inception():
    return Inception(branch_on_values=True)


def graph_of(model, shape):
    torch.manual_seed(1)
    x = torch.randn(shape)
    tracing = recorder.Tracing(model.train())
    graph, labels = tracing.graph(x)
    return tracing, graph, x, labels


def options_for(*arguments):
    return recorder.parse_options(["nets:any", "--input", "3x8x8", "--batch", "4", "--device", "cpu",
                                   "--output", "t.h5", *arguments])


class Gradients(unittest.TestCase):
    """Step by step, gradients are those that PyTorch computes for the whole model."""

    def check(self, model, shape, fallback, joint=False):
        tracing, graph, x, labels = graph_of(model, shape)
        self.assertEqual(bool(tracing.fallback), fallback, tracing.fallback)
        setup = recorder.Setup(options_for())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with unittest.mock.patch.object(recorder, "LEARNING_RATE", 0.0):
            recorder.LayerTimer(graph, x, setup, optimizer).iteration(joint)
        mine = {name: p.grad for name, p in model.named_parameters()}
        model.zero_grad(set_to_none=True)
        F.cross_entropy(recorder.first_real(model(x)), labels).backward()
        self.assertTrue(any(gradient is not None for gradient in mine.values()))
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                self.assertIsNone(mine[name], name)
            else:
                scale = float(parameter.grad.abs().max()) + 1e-12
                self.assertLess(float((parameter.grad - mine[name]).abs().max()) / scale, 1e-4, name)

    def test_residuals(self):
        for joint in (False, True):
            self.check(FunctionalResNet((1, 2)), (2, 3, 64, 64), False, joint)

    def test_residuals_without_fx(self):
        self.check(UntraceableResNet((1, 2)), (2, 3, 64, 64), True)

    def test_branches(self):
        self.check(Inception(), (2, 3, 8, 8), False)
        self.check(untraceable_inception(), (2, 3, 8, 8), True)

    def test_computed_weights_and_several_results(self):
        self.check(Standardized(), (2, 3, 6, 6), False)
        self.check(Standardized(branch_on_values=True), (2, 3, 6, 6), True)
        _, graph, _, _ = graph_of(Standardized(), (2, 3, 6, 6))
        steps = {step.name: step for step in graph.steps}
        self.assertEqual([name for name, _ in steps["head"].parameters], ["weight"])
        conv = steps["conv"]
        self.assertEqual((conv.kind, conv.window["kernel"], len(conv.parameters)), ("conv", [3, 3], 2))

    def test_torchvision(self):
        # Nothing random: dropout would differ from run to run.
        for name in ("squeezenet1_1", "densenet121", "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf"):
            with self.subTest(name):
                model = torchvision.models.get_model(name)
                for module in model.modules():
                    if isinstance(module, nn.Dropout):
                        module.p = 0.0
                self.check(model, (2, 3, 96, 96), False)

    def test_output_masks(self):
        """A split backward asks convolution_backward for input or weights, never both, and each product once."""
        seen = []

        class Watch(recorder.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if "convolution_backward" in str(func):
                    seen.append(tuple(args[-1]))
                return func(*args, **(kwargs or {}))

        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, bias=False), nn.Flatten())
        _, graph, x, _ = graph_of(model, (2, 3, 8, 8))
        timer = recorder.LayerTimer(graph, x, recorder.Setup(options_for()), torch.optim.SGD([nn.Parameter(x)], lr=0.1))
        with Watch():
            timer.iteration()
        self.assertEqual(seen, [(True, False, False), (False, True, False), (False, True, True)])


class Edges(unittest.TestCase):
    maxDiff = None
    """The graph of Inception, drawn by hand: {layer: (kind, what it reads)}."""

    def graph(self, model):
        tracing, graph, x, _ = graph_of(model, (2, 3, 8, 8))
        names = [step.name for step in graph.steps]
        return graph, {step.name: (step.kind, [names[i] for i in recorder.inputs_of(step)[0]]) for step in graph.steps}

    COMMON = {
        "stem": ("conv", []),
        "relu": ("relu", ["stem"]),
        "one": ("conv", ["relu"]),
        "three": ("conv", ["relu"]),
        "pool": ("max-pool", ["relu"]),
        "cat1": ("concat", ["one", "three", "pool"]),
        "mul": ("other", ["cat1"]),
        "add1": ("add", ["mul", "cat1"]),
        "add2": ("add", ["add1", "add1"]),
        "avg_pool": ("avg-pool", ["cat2"]),
        "flatten": ("flatten", ["avg_pool"]),
        "shared1": ("fc", ["flatten"]),
        "tanh": ("other", ["shared1"]),
        "shared2": ("fc", ["tanh"]),
        "head": ("fc", ["shared2"]),
        "loss": ("softmax-loss", ["head"]),
    }

    def test_fx(self):
        graph, found = self.graph(Inception())
        self.assertEqual(found, {**self.COMMON, "chunk": ("other", ["add2"]), "cat2": ("concat", ["chunk", "chunk"])})
        steps = {step.name: step for step in graph.steps}
        self.assertEqual({name for name, step in steps.items() if step.in_place}, {"relu", "add1", "chunk", "flatten"})
        self.assertEqual([name for name, _ in steps["mul"].parameters], ["scale"])
        self.assertEqual((len(steps["shared1"].parameters), len(steps["shared2"].parameters)), (2, 0))
        self.assertEqual(steps["stem"].window["pad_begin"], [1, 1])
        self.assertEqual((steps["three"].groups, steps["avg_pool"].window["kernel"]), (2, [8, 8]))
        self.assertEqual(graph.pruned, 2)  # the unused head and its mean

    def test_dispatch(self):
        _, found = self.graph(untraceable_inception())
        split = next(name for name in found if name in ("chunk", "split"))
        self.assertEqual(found, {**self.COMMON, split: ("other", ["add2"]), "cat2": ("concat", [split, split])})

    def test_windows_that_round_up(self):
        _, graph, _, _ = graph_of(Plain(), (2, 2, 32))
        steps = {step.kind: step for step in graph.steps}
        pool = steps["max-pool"]
        self.assertEqual((pool.output_shape, pool.window["pad_begin"], pool.window["pad_end"]), ([2, 8, 7], [0], [1]))
        average = steps["avg-pool"]  # 7 positions to 4: windows of several sizes
        self.assertEqual((average.output_shape, average.window), ([2, 8, 4], {}))
        self.assertEqual([step.kind for step in graph.steps], ["conv", "relu", "max-pool", "lrn", "dropout", "avg-pool",
                                                               "flatten", "fc", "softmax-loss"])


class Splits(unittest.TestCase):
    def variants(self, model, shape, axis):
        _, graph, _, _ = graph_of(model, shape)
        step = graph.steps[0]
        make = recorder.conv_variants if step.kind == "conv" else recorder.fc_variants
        return [(fraction, v.input, v.output, v.groups) for fraction, v in make(step, axis)]

    def test_height_has_its_halo(self):
        conv = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Flatten())
        rows = self.variants(conv, (2, 3, 32, 32), "height")
        self.assertEqual(rows, [(1, (2, 3, 32, 32), (2, 4, 16, 16), 1), (0.5, (2, 3, 17, 32), (2, 4, 8, 16), 1),
                                (0.25, (2, 3, 9, 32), (2, 4, 4, 16), 1), (0.125, (2, 3, 5, 32), (2, 4, 2, 16), 1)])

    def test_channels(self):
        conv = nn.Sequential(nn.Conv2d(3, 10, 3), nn.Flatten())
        self.assertEqual([(f, i[1], o[1]) for f, i, o, _ in self.variants(conv, (2, 3, 8, 8), "output-channel")],
                         [(1, 3, 10), (0.5, 3, 5), (0.3, 3, 3), (0.2, 3, 2)])
        self.assertEqual([i[1] for _, i, _, _ in self.variants(conv, (2, 3, 8, 8), "input-channel")], [3, 2])

    def test_groups_stay_whole(self):
        conv = nn.Sequential(nn.Conv2d(8, 16, 3, groups=4), nn.Flatten())
        self.assertEqual([(i[1], o[1], g) for _, i, o, g in self.variants(conv, (2, 8, 8, 8), "output-channel")],
                         [(8, 16, 4), (4, 8, 2), (2, 4, 1)])
        self.assertEqual(self.variants(conv, (2, 8, 8, 8), "input-channel"), [])

    def test_every_variant_runs_to_its_shape(self):
        setup = recorder.Setup(options_for())
        for layer in (nn.Conv2d(8, 8, 3, padding="same"), nn.Conv2d(8, 6, (5, 2), padding="same"),
                      nn.Conv2d(8, 4, 1, 2), nn.Conv2d(8, 8, 3, dilation=2, padding=2, groups=2), nn.Linear(9, 20)):
            for axis in recorder.SPLIT_AXES[1:]:
                _, graph, _, _ = graph_of(nn.Sequential(layer, nn.Flatten()), (2, 8, 9, 9))
                make = recorder.conv_variants if graph.steps[0].kind == "conv" else recorder.fc_variants
                for _, v in make(graph.steps[0], axis):
                    out = recorder.variant_call(v)(torch.randn(v.input), torch.randn(v.weight), None)
                    self.assertEqual(tuple(out.shape), tuple(v.output), (layer, axis))
                    samples = recorder.time_variant(v, setup, 2)
                    self.assertEqual([len(samples[name]) for name in recorder.PASSES], [2, 0, 2, 0])


class FakeEvent:
    """A CUDA event on a clock of its own, so that the GPU's code path runs where there is none."""

    def __init__(self, enable_timing):
        assert enable_timing
        self.at = None

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class Cuda(unittest.TestCase):
    def test_events_and_what_no_layer_accounts_for(self):
        options = options_for("--repetitions", "3", "--warmup", "1", "--splits", "height")
        slept = []
        with unittest.mock.patch.object(torch.cuda, "Event", FakeEvent), \
                unittest.mock.patch.object(torch.cuda, "synchronize", lambda device: None), \
                unittest.mock.patch.object(torch.cuda, "_sleep", slept.append, create=True):
            setup = recorder.Setup(options)
            setup.clock = recorder.CudaClock(setup.device)
            model = Inception().train()
            recording = recorder.Recording(model, recorder.Tracing(model), setup, 4, lambda *_: None)
            recorder.record_all_splits(recording.graph.steps, setup, lambda *_: None)
        self.assertTrue(slept)  # the host runs ahead
        self.assertLess(max(slept), 0.2 * 2e9 + 1)
        self.assertGreater(recording.ratios()["all"], 0)
        for step in recording.graph.steps:
            self.assertEqual(len(step.samples["forward"]), 0 if step.name == "flatten" else 3, step.name)
        recording.setup.device = torch.device("cuda")
        recording.iteration = {"forward": [0.1, 0.1], "backward": [0.2, 0.2], "update": [0.1, 0.1], "wall": [0.5, 0.5]}
        recording.sums, recording.busy = [0.3, 0.36], 0.35
        outside = recording.outside()
        numpy.testing.assert_allclose(outside["launch-gap"], [0.05, 0.05])
        numpy.testing.assert_allclose(outside["unmatched"], [0.05, 0])
        recording.busy = None
        numpy.testing.assert_allclose(recording.outside()["unmatched"], [0.1, 0.04])


class File(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        cls.path = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def record(self, target, *arguments, status=0):
        """A run within this process: starting Python with PyTorch takes seconds."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            got = recorder.main([target, "--device", "cpu", *map(str, arguments)])
        self.assertEqual(got, status, err.getvalue())
        return out.getvalue(), err.getvalue()

    def checked(self, target, name, *arguments):
        """The recorded file, found sound by tandem."""
        output = self.path / name
        self.record(target, *arguments, "--output", output)
        process = subprocess.run([TANDEM, "trace", "check", str(output)], capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        return h5py.File(output, "r")

    def built_in(self, name, batch):
        path = self.path / f"built-in-{name}-{batch}.h5"
        subprocess.run([WRITE_MODEL, name, str(batch), str(path)], check=True)
        return h5py.File(path, "r")

    def assert_same_layers(self, mine, built_in, names=True):
        columns = ["/layers/kind", "/layers/groups", "/layers/needs_input_gradient", "/layers/backward_is_joint"]
        columns += [f"/layers/flops_{name}" for name in recorder.PASSES]
        columns += ["/input_shapes/layer", "/parameters/layer", "/parameters/name"] + ["/layers/name"] * names
        for name in ("/layers/inputs", "/layers/output_shape", "/layers/kernel", "/layers/stride", "/layers/pad_begin",
                     "/layers/pad_end", "/layers/dilation", "/input_shapes/shape", "/parameters/shape"):
            columns += [name, f"{name}_offset"]
        for name in columns:
            self.assertEqual(mine[name][:].tolist(), built_in[name][:].tolist(), name)
        adds = built_in["/layers/kind"][:] == b"add"
        for name in ("/layers/in_place", "/layers/activation_bytes"):
            self.assertEqual(mine[name][:][~adds].tolist(), built_in[name][:][~adds].tolist(), name)
        return adds

    ONCE = ("--batch", "1", "--repetitions", "1", "--warmup", "0", "--splits", "none", "--input", "3x224x224")

    def test_resnet50_is_the_built_in_one(self):
        mine = self.checked("torchvision.models:resnet50", "r50.h5", *self.ONCE)
        adds = self.assert_same_layers(mine, self.built_in("resnet50", 1))
        # torchvision writes `out += identity`; the built-in model's sum has memory of its own.
        self.assertEqual(set(mine["/layers/in_place"][:][adds]), {1})
        self.assertEqual(set(mine["/layers/activation_bytes"][:][adds]), {0})

    def test_functional_residuals_are_the_built_in_ones(self):
        built_in = self.built_in("resnet50", 1)
        (self.path / "residuals.py").write_text("from __main__ import FunctionalResNet, UntraceableResNet\n")
        for name in ("FunctionalResNet", "UntraceableResNet"):
            with self.subTest(name):
                mine = self.checked(f"{self.path}/residuals.py:{name}", f"{name}.h5", *self.ONCE)
                adds = self.assert_same_layers(mine, built_in, names=False)
                for column in ("/layers/in_place", "/layers/activation_bytes"):
                    self.assertEqual(mine[column][:][adds].tolist(), built_in[column][:][adds].tolist())
                self.assertEqual([n.decode() for n in mine["/layers/name"][:] if b"layer2.0" in n],
                                 [n.decode() for n in built_in["/layers/name"][:] if b"layer2.0" in n])

    def test_the_other_built_in_models(self):
        """Layers, edges, shapes and windows; torchvision's adaptive pool that is the identity is one layer more."""
        for name, arguments in (("alexnet", {}), ("vgg16", {}), ("resnet18", {}), ("resnet101", {}),
                                ("googlenet", {"aux_logits": False, "init_weights": False})):
            with self.subTest(name), self.built_in(name, 1) as built_in:
                _, graph, _, _ = graph_of(getattr(torchvision.models, name)(**arguments), (1, 3, 224, 224))
                names = built_in["/layers/name"].asstr()[:].tolist()
                extra = [step for step in graph.steps if step.name not in names]
                self.assertEqual([step.window["kernel"] for step in extra], [[1, 1]] * (name in ("alexnet", "vgg16")))
                steps = [step for step in graph.steps if step not in extra]
                self.assertEqual([step.name for step in steps], names)
                self.assertEqual([step.kind for step in steps], built_in["/layers/kind"].asstr()[:].tolist())
                shapes = [extent for step in steps for extent in step.output_shape]
                self.assertEqual(shapes, built_in["/layers/output_shape"][:].tolist())
                for field in ("kernel", "stride", "pad_begin", "pad_end", "dilation"):
                    values = [value for step in steps for value in step.window.get(field, [])]
                    self.assertEqual(values, built_in[f"/layers/{field}"][:].tolist(), field)
                edges = self.edges([recorder.inputs_of(step)[0] for step in graph.steps], graph.steps, extra)
                offsets = built_in["/layers/inputs_offset"][:]
                inputs = built_in["/layers/inputs"][:]
                self.assertEqual(edges, [[names[i] for i in inputs[a:b]] for a, b in zip(offsets, offsets[1:])])

    @staticmethod
    def edges(inputs, steps, left_out):
        """Names of the layers that each reads, through those that are left out."""

        def name(number):
            return name(inputs[number][0]) if steps[number] in left_out else steps[number].name

        return [[name(i) for i in read] for read, step in zip(inputs, steps) if step not in left_out]

    def test_batches_and_splits(self):
        (self.path / "plain.py").write_text("from __main__ import Plain\n")
        mine = self.checked(f"{self.path}/plain.py:Plain", "plain.h5", "--args", "features=6", "--input", "2x32",
                            "--batch", "2", "8", "4", "--repetitions", "2", "--warmup", "1", "--split-repetitions", "2",
                            "--name", "small", "--optimizer", "adam", "--threads", "1")
        self.assertEqual((mine.attrs["model"], mine.attrs["batch"], mine.attrs["threads"]), (b"small", 8, 1))
        self.assertEqual(mine["/batches/batch"][:].tolist(), [2, 4])
        self.assertEqual(mine["/batches/forward_offset"][:].tolist(), [0, 2, 4])
        self.assertEqual(len(mine["/iteration/backward"]), 2)
        self.assertNotIn("outside", mine)
        self.assertEqual(mine["/layers/output_shape"][-2:].tolist(), [8, 6])
        axes, layers = mine["/splits/axis"].asstr()[:], mine["/splits/layer"][:]
        fractions = mine["/splits/fraction"][:]
        batch = [(int(layer), float(f)) for layer, axis, f in zip(layers, axes, fractions) if axis == "batch"]
        timed = [layer for layer in range(9) if layer != 6]  # all but the view
        self.assertEqual(batch, [(layer, f) for layer in timed for f in (0.5, 0.25)])
        self.assertEqual(fractions[(axes == "output-channel") & (layers == 0)].tolist(), [1, 0.5, 0.25, 0.125])
        self.assertEqual(fractions[(axes == "height") & (layers == 7)].tolist(), [])
        offsets = mine["/samples/backward_data_offset"][:]
        self.assertEqual(numpy.diff(offsets).tolist(), [0, 2, 2, 2, 2, 2, 0, 2, 2])
        self.assertEqual(numpy.diff(mine["/samples/update_offset"][:]).tolist(), [2, 0, 0, 0, 0, 0, 0, 2, 0])

    def test_one_batch_makes_its_own_curve(self):
        (self.path / "curve.py").write_text("from __main__ import Plain\n")
        mine = self.checked(f"{self.path}/curve.py:Plain", "curve.h5", "--input", "2x32", "--batch", "8",
                            "--repetitions", "1", "--warmup", "0", "--splits", "batch")
        self.assertEqual(mine["/batches/batch"][:].tolist(), [1, 2, 4])
        self.assertEqual(set(mine["/splits/axis"].asstr()[:]), {"batch"})

    def test_mixed_precision_and_channels_last(self):
        mine = self.checked("torchvision.models:resnet18", "amp.h5", "--input", "3x32x32", "--batch", "2", "--amp",
                            "--channels-last", "--repetitions", "1", "--warmup", "0", "--splits", "none")
        self.assertEqual((mine.attrs["dtype"], mine.attrs["layout"]), (b"bfloat16", b"nhwc"))
        self.assertEqual(int(mine["/layers/activation_bytes"][0]), 2 * 2 * 64 * 16 * 16)
        self.assertTrue(any("mixed precision" in note for note in mine["/notes"].asstr()[:]))

    def test_fallback_says_why(self):
        (self.path / "fallback.py").write_text("from __main__ import untraceable_inception\n")
        mine = self.checked(f"{self.path}/fallback.py:untraceable_inception", "f.h5", "--input", "3x8x8", "--batch",
                            "2", "--repetitions", "1", "--warmup", "0", "--splits", "none")
        self.assertTrue(any("torch.fx cannot trace" in note for note in mine["/notes"].asstr()[:]))

    def refused(self, status, part, target, *arguments, output="refused.h5"):
        if "--input" not in arguments:
            arguments += ("--input", "3x32x32")
        before = sorted(os.listdir(self.path))
        out, err = self.record(target, "--batch", "2", "--repetitions", "1", "--warmup", "0", "--splits", "none",
                               *arguments, "--output", self.path / output, status=status)
        lines = [line for line in err.splitlines() if not line.startswith("batch ")]
        self.assertEqual(len(lines), 1, err)
        self.assertTrue(lines[0].startswith("error: "), err)
        self.assertIn(part, lines[0])
        self.assertEqual((out, sorted(os.listdir(self.path))), ("", before))

    def test_bad_targets(self):
        self.refused(2, "module:callable", "torchvision.models")
        self.refused(2, "No module named 'no_such_module'", "no_such_module:build")
        self.refused(2, "there is no 'resnet51'", "torchvision.models:resnet51")
        self.refused(2, "no such file", "none.py:build")
        self.refused(2, "cannot be called", "os:name")
        self.refused(2, "an nn.Module is expected", "os:getcwd")
        self.refused(1, "calling it failed: TypeError", "os:getcwd", "--args", "1")
        bad = self.path / "bad.py"
        bad.write_text("this is no Python\n")
        self.refused(2, "SyntaxError", f"{bad}:build")

    def test_bad_inputs(self):
        self.refused(1, "the model does not train on an input of 2x4x32x32", "torchvision.models:resnet18",
                     "--input", "4x32x32")
        for shape in ("3x0x3", "axb", "1x2x3x4x5", ""):
            self.refused(2, "--input", "torchvision.models:resnet18", "--input", shape)
        self.refused(2, "--batch", "torchvision.models:resnet18", "--batch", "0")
        self.refused(2, "literals are expected", "torchvision.models:resnet18", "--args", "open('x')")
        self.refused(2, "--splits", "torchvision.models:resnet18", "--splits", "depth")
        self.refused(2, "two or three spatial extents", "torch.nn:Flatten", "--input", "7", "--channels-last")
        self.refused(1, "no parameters that learn", "torch.nn:Flatten")
        self.refused(1, "does not depend on its input", "torch.nn:Identity")

    def test_bad_devices_and_outputs(self):
        target = "torchvision.models:resnet18"
        self.refused(2, "cuda, cuda:N or cpu", target, "--device", "gpu")
        self.refused(2, "cuda, cuda:N or cpu", target, "--device", "meta")
        if not torch.cuda.is_available():
            self.refused(2, "no CUDA device", target, "--device", "cuda:1")
        self.refused(2, "a CPU has bfloat16", target, "--amp", "--amp-dtype", "float16")
        self.refused(1, "there is no folder", target, output="none/t.h5")
        self.refused(1, "it is a folder", target, output="")
        if os.path.isdir("/proc/self"):  # takes no files, though nothing says so ahead of time
            _, err = self.record("torch.nn:Linear", "--args", "7, 3", "--input", "7", "--batch", "1", "--output",
                                 "/proc/t.h5", "--splits", "none", status=1)
            self.assertIn("cannot write", err)

    def test_as_a_program(self):
        output = self.path / "program.h5"
        command = [sys.executable, "-B", SCRIPT, "torch.nn:Linear", "--args", "7, 3", "--input", "7", "--batch", "4",
                   "--device", "cpu", "--repetitions", "1", "--output", output]
        process = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertIn("sum of layers / whole iteration", process.stdout)
        self.assertNotIn("\033", process.stderr)
        first = subprocess.run([*command[:-1], self.path / "none" / "x.h5"], capture_output=True, text=True)
        self.assertEqual((first.returncode, first.stderr.count("\n")), (1, 1), first.stderr)
        usage = subprocess.run([sys.executable, SCRIPT, "--help"], capture_output=True, text=True)
        self.assertEqual(usage.returncode, 0)
        self.assertIn("--channels-last", usage.stdout)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(verbosity=1)
