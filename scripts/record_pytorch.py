#!/usr/bin/env python3
"""Records a Tandem trace (traces/FORMAT.md) of a PyTorch model's training iteration, layer by layer.

This one file is all that a GPU machine needs beside PyTorch (1.13 or 2.x), h5py and NumPy:

    scp scripts/record_pytorch.py gpu-machine:
    python3 record_pytorch.py torchvision.models:resnet50 --input 3x224x224 --batch 32 64 128 --output resnet50.h5
    python3 record_pytorch.py mypkg.nets:build --args "depth=3" --input 3x32x32 --batch 64 --amp --output my.h5
    python3 record_pytorch.py net.py:Net --input 784 --batch 64 --device cpu --threads 4 --output net.h5

The target is called and must return an nn.Module; a cross-entropy loss is added. Leave the device to this program
alone, and look at "sum of layers / whole iteration" at the end: near 1, the layers' times add up to what training
takes; below 1 on a GPU, the host cannot keep it busy or something ran outside of layers, and the trace says for how
long. `tandem trace check my.h5` and `tandem trace show my.h5` read the result.
"""

import os
import sys


def keep_memory():
    """Starts over with a C library that keeps freed memory: on a CPU, first-touch page faults of ever new large
    tensors can double a layer's time. The library reads these settings only when a process starts."""
    settings = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 46), "MALLOC_TOP_PAD_": str(64 << 20)}
    if not sys.platform.startswith("linux") or all(name in os.environ for name in settings):
        return
    arguments = getattr(sys, "orig_argv", [sys.executable, *sys.argv])[1:]
    os.execve(sys.executable, [sys.executable, *arguments], {**settings, **os.environ})


if __name__ == "__main__":
    keep_memory()

import argparse  # noqa: E402
import ast  # noqa: E402
import collections  # noqa: E402
import contextlib  # noqa: E402
import datetime  # noqa: E402
import dis  # noqa: E402
import gc  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import math  # noqa: E402
import operator  # noqa: E402
import time  # noqa: E402
import unittest.mock  # noqa: E402
import warnings  # noqa: E402

try:
    import h5py
    import numpy
    import torch
    import torch.fx
    from torch.nn import functional
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError as missing:
    sys.exit(f"error: {missing}; PyTorch 1.13 or newer, h5py and NumPy are needed")

nn = torch.nn
PASSES = ("forward", "backward_data", "backward_weight", "update")
WHOLE = ("forward", "backward", "update")
SPLIT_AXES = ("batch", "height", "output-channel", "input-channel")
SPLIT_PARTS = (1, 2, 4, 8)
LEARNING_RATE = 1e-4  # small: the same samples are learnt over and over, and must stay finite


class RecordError(Exception):
    """What the user must know, in one line. Exit status 2 where the command line is at fault, 1 otherwise."""

    def __init__(self, message, status=1):
        super().__init__(" ".join(str(message).split()))
        self.status = status


def reason(error):
    """The first line of an exception: PyTorch's may be followed by pages."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


# ---- the graph: calls on tensors, in the order they are made ----


class Ref:
    """The tensor number `out` of those that step number `step` returns. Step -1 is the model's input."""

    def __init__(self, step, out=0):
        self.step, self.out = step, out

    def __eq__(self, other):
        return (self.step, self.out) == (other.step, other.out)

    def __hash__(self):
        return hash((self.step, self.out))


INPUT = Ref(-1)


class Expression:
    """A tensor made of parameters alone (a transposed weight, a normalized one). Every step that reads it makes it
    anew, so that the gradient finds its way to the parameters."""

    def __init__(self, call, args, kwargs, out, shape):
        self.call, self.args, self.kwargs, self.out, self.shape = call, args, kwargs, out, shape

    def value(self):
        args, kwargs = fill((self.args, self.kwargs), {})
        return tensors_in(self.call(*args, **kwargs))[self.out]

    def parameters(self):
        return [p for leaf in leaves_in((self.args, self.kwargs)) for p in parameters_of(leaf)]


class Step:
    """One call: a layer to be. Its arguments hold Refs where tensors go that other steps make."""

    def __init__(self, call, args, kwargs, scope="", op=""):
        self.call, self.args, self.kwargs = call, args, kwargs
        self.module = call if isinstance(call, nn.Module) else None
        self.scope, self.op = scope, op  # qualified name of the module around the call; name of the operation
        leaves = leaves_in((args, kwargs))
        self.refs = [leaf for leaf in leaves if isinstance(leaf, Ref)]
        self.has_expressions = any(isinstance(leaf, Expression) for leaf in leaves)
        self.overwritten = set()  # Refs whose memory the call writes
        self.also_after = []  # Refs that changed memory which this step reads under another name
        self.is_view = False  # returns its input's memory, seen otherwise
        self.name, self.kind, self.groups, self.window = "", "other", 1, {}
        self.input_shapes, self.output_shape = [], []
        self.learns = []  # parameters whose gradients the backward pass computes
        self.parameters = []  # (name, tensor); a parameter that several steps share belongs to the first
        self.needs_input_gradient, self.activation_bytes, self.workspace_bytes = False, 0, 0
        self.samples = {name: [] for name in PASSES}
        self.splits = []

    def bind(self, tensors):
        """The call, ready to be timed. Making what consists of parameters alone is part of it."""
        if self.has_expressions:
            return lambda: self.run(*fill((self.args, self.kwargs), tensors))
        args, kwargs = fill((self.args, self.kwargs), tensors)
        return lambda: self.run(args, kwargs)

    def run(self, args, kwargs):
        return self.call(*args, **kwargs)

    @property
    def in_place(self):
        return bool(self.overwritten) or self.is_view

    @property
    def moves_nothing(self):
        return self.kind == "flatten" and self.is_view

    @property
    def backward_splits(self):
        """Whether gradients of inputs and of parameters come from calls of their own in every library."""
        return self.kind in ("conv", "fc")

    @property
    def backward_is_joint(self):
        return bool(self.learns) and not self.backward_splits


def walk(value, each):
    """`value` with each(leaf) for every leaf, however nested."""
    if isinstance(value, (list, tuple)):
        parts = [walk(item, each) for item in value]
        if isinstance(value, list):
            return parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {key: walk(item, each) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(walk(value.start, each), walk(value.stop, each), walk(value.step, each))
    return each(value)


def leaves_in(value):
    found = []
    walk(value, found.append)
    return found


def tensors_in(value):
    if not isinstance(value, (torch.Tensor, list, tuple, dict)) and hasattr(value, "__dict__"):
        value = vars(value)  # a data class of outputs
    return [leaf for leaf in leaves_in(value) if isinstance(leaf, torch.Tensor)]


def parameters_of(leaf):
    if isinstance(leaf, Expression):
        return leaf.parameters()
    return [leaf] if isinstance(leaf, nn.Parameter) else []


def fill(value, tensors):
    def tensor_for(leaf):
        if isinstance(leaf, Ref):
            return tensors[leaf]
        return leaf.value() if isinstance(leaf, Expression) else leaf

    return walk(value, tensor_for)


def memory_of(tensor):
    """What two tensors have in common that share memory."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


def location(tensor):
    return (memory_of(tensor), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def versions(args, kwargs):
    """Counts that rise when a call writes to one of its arguments."""
    return {id(t): t._version for t in leaves_in((args, kwargs)) if isinstance(t, torch.Tensor)}


def written_since(before, args, kwargs):
    return [t for t in leaves_in((args, kwargs)) if isinstance(t, torch.Tensor) and t._version != before[id(t)]]


class Graph:
    """Collects the steps of one forward pass. Tensors are told apart by the memory they show, so that edges stay true
    through in-place operations whose result nobody uses by name."""

    def __init__(self, model_input):
        self.steps = []
        self.kept = [model_input]  # memory in use is not given out twice
        self.at = {location(model_input): INPUT}  # location -> Ref or Expression
        self.writers = {}  # memory -> Ref that wrote it last
        self.pruned = 0

    def add(self, call, args, kwargs, result, written, scope="", op=""):
        outs = tensors_in(result)
        inputs = [t for t in leaves_in((args, kwargs)) if isinstance(t, torch.Tensor)]
        known = {location(t) for t in inputs}
        overwritten = {self.at[location(t)] for t in written if isinstance(self.at.get(location(t)), Ref)}
        if not outs or (not overwritten and all(location(t) in known for t in outs)):
            return  # no tensor, or its own argument: a size, an Identity, a Dropout that is off
        step = Step(call, *walk((args, kwargs), self.resolve), scope, op)
        self.kept += outs
        if step.refs:
            self.add_step(step, overwritten, inputs, outs)
        elif any(parameters_of(leaf) for leaf in leaves_in((step.args, step.kwargs))):
            for number, out in enumerate(outs):
                self.at[location(out)] = Expression(call, step.args, step.kwargs, number, out.shape)

    def add_step(self, step, overwritten, inputs, outs):
        read = [t for t in inputs if isinstance(self.at.get(location(t)), Ref)]
        step.input_shapes = [list(t.shape) for t in read]
        step.overwritten = overwritten
        step.is_view = not overwritten and all(memory_of(t) in map(memory_of, read) for t in outs)
        # Several views of one tensor (chunk, split) stand for all of it.
        step.output_shape = step.input_shapes[0] if step.is_view and len(outs) > 1 else list(outs[0].shape)
        step.also_after = [w for t, r in zip(read, step.refs) for w in [self.writers.get(memory_of(t), INPUT)]
                           if w.step > r.step]
        number = len(self.steps)
        self.steps.append(step)
        for out_number, out in enumerate(outs):
            self.at[location(out)] = Ref(number, out_number)
        if overwritten:
            self.writers[memory_of(outs[0])] = Ref(number)

    def resolve(self, leaf):
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, nn.Parameter):
            return leaf
        return self.at.get(location(leaf), leaf)

    def finish(self, result):
        """Appends the loss of the first real-valued tensor of the model's result, and leaves out what it does not
        need."""
        outs = [t for t in tensors_in(result) if t.is_floating_point()]
        ref = self.at.get(location(outs[0])) if outs else None
        if not isinstance(ref, Ref) or ref == INPUT:
            raise RecordError("the model's output does not depend on its input through any layer")
        logits = outs[0]
        if logits.dim() < 2 or logits.shape[1] < 1:
            raise RecordError(f"the model's output has the shape {shape_text(logits.shape)}; a loss over classes needs "
                              "batch x classes")
        labels_shape = (logits.shape[0], *logits.shape[2:])
        labels = torch.randint(logits.shape[1], labels_shape, device=logits.device)
        step = Step(functional.cross_entropy, (ref, labels), {}, op="loss")
        step.kind, step.input_shapes, step.output_shape = "softmax-loss", [list(logits.shape)], list(logits.shape)
        self.steps.append(step)
        self.prune()
        self.kept, self.at, self.writers = [], {}, {}
        return labels

    def prune(self):
        needed = set()
        for number in reversed(range(len(self.steps))):
            if number in needed or number == len(self.steps) - 1:
                step = self.steps[number]
                needed |= {number} | {ref.step for ref in step.refs + step.also_after}
        kept = sorted(needed - {-1})
        position = {old: new for new, old in enumerate(kept)}
        position[-1] = -1

        def moved(leaf):
            return Ref(position[leaf.step], leaf.out) if isinstance(leaf, Ref) else leaf

        self.pruned = len(self.steps) - len(kept)
        self.steps = [self.steps[number] for number in kept]
        for step in self.steps:
            step.args, step.kwargs = walk((step.args, step.kwargs), moved)
            step.refs, step.also_after = walk(step.refs, moved), walk(step.also_after, moved)
            step.overwritten = {moved(ref) for ref in step.overwritten}


# ---- tracing: symbolically by torch.fx, or what ran by way of PyTorch's dispatcher ----


class ScopedTracer(torch.fx.Tracer):
    """Remembers within which module a function was called."""

    def __init__(self):
        super().__init__()
        self.scopes, self.scope_of = [""], {}

    def call_module(self, m, forward, args, kwargs):
        self.scopes.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.scopes.pop()

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        self.scope_of[node.name] = self.scopes[-1]
        return node


@contextlib.contextmanager
def newer_proxies():
    """Old torch.fx turns `x += y` into `x = x + y`, which takes memory that the model does not, and before PyTorch 2.1
    it does not understand `a, b = x` on Python 3.11."""

    def recorded(function):
        return lambda x, y: x.tracer.create_proxy("call_function", function, (x, y), {})

    def unpacked(proxy):
        frame = sys._getframe(1)
        at = next(i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti)
        return map(proxy.__getitem__, range(at.argval)) if at.opname == "UNPACK_SEQUENCE" else proxy.tracer.iter(proxy)

    with contextlib.ExitStack() as stack:
        if torch.__version__.startswith(("1.", "2.0")):
            stack.enter_context(unittest.mock.patch.object(torch.fx.Proxy, "__iter__", unpacked))
        for function in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
            stack.enter_context(unittest.mock.patch.object(torch.fx.Proxy, f"__{function.__name__}__",
                                                           recorded(function), create=True))
        yield


def method_call(name):
    return lambda tensor, *args, **kwargs: getattr(tensor, name)(*args, **kwargs)


class RecordingInterpreter(torch.fx.Interpreter):
    def __init__(self, module, graph, scope_of):
        super().__init__(module)
        self.recorded, self.scope_of = graph, scope_of

    def run_node(self, n):
        if n.op not in ("call_module", "call_function", "call_method"):
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_module":
            call, scope, op = self.fetch_attr(n.target), n.target, ""
        else:
            scope = self.scope_of.get(n.name, "")
            call = n.target if n.op == "call_function" else method_call(n.target)
            op = getattr(n.target, "__name__", str(n.target))
        before = versions(args, kwargs)
        result = call(*args, **kwargs)
        self.recorded.add(call, args, kwargs, result, written_since(before, args, kwargs), scope, op)
        return result


class RecordingMode(TorchDispatchMode):
    """Records operators as they run, outside of PyTorch's own modules, which stay whole."""

    def __init__(self, graph):
        super().__init__()
        self.recorded, self.scopes, self.within_leaf = graph, [""], False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not self.within_leaf:
            self.recorded.add(func, args, kwargs, result, self.written(func, args), self.scopes[-1],
                              func._schema.name.split("::")[-1])
        return result

    @staticmethod
    def written(func, args):
        """Below autograd versions do not count yet; the operator's declaration says what it writes."""
        writes = [a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments]
        return [t for arg, write in zip(args, writes) if write for t in tensors_in(arg)]


@contextlib.contextmanager
def recorded_modules(model, mode):
    """Tells `mode` about the modules that are entered."""
    names = {module: name for name, module in model.named_modules()}
    is_leaf = torch.fx.Tracer().is_leaf_module
    original = nn.Module.__call__

    def call(module, *args, **kwargs):
        name = names.get(module)
        if mode.within_leaf or not name:
            return original(module, *args, **kwargs)
        if not is_leaf(module, name):
            mode.scopes.append(name)
            try:
                return original(module, *args, **kwargs)
            finally:
                mode.scopes.pop()
        before = versions(args, kwargs)
        mode.within_leaf = True
        try:
            result = original(module, *args, **kwargs)
        finally:
            mode.within_leaf = False
        mode.recorded.add(module, args, kwargs, result, written_since(before, args, kwargs), name)
        return result

    with unittest.mock.patch.object(nn.Module, "__call__", call):
        yield


class Tracing:
    """How the model's graph is had: once for all batches."""

    def __init__(self, model):
        self.model, self.module, self.fallback = model, None, ""
        tracer = ScopedTracer()
        try:
            with newer_proxies():
                self.module = torch.fx.GraphModule(model, tracer.trace(model))
        except Exception as error:  # whatever the model's own code makes of symbols
            self.fallback = reason(error)
        self.scope_of = tracer.scope_of

    def graph(self, x):
        """The graph at x's batch, with shapes, and labels for its loss."""
        graph = Graph(x)
        with torch.no_grad():
            if self.module is not None:
                result = RecordingInterpreter(self.module, graph, self.scope_of).run(x)
            else:
                with RecordingMode(graph) as mode, recorded_modules(self.model, mode):
                    result = self.model(x)
            labels = graph.finish(result)
        describe_layers(graph, self.model)
        return graph, labels


# ---- what a step is to Tandem: kind, window, parameters, name ----

MODULE_KINDS = (
    ("conv", (nn.Conv1d, nn.Conv2d, nn.Conv3d)),
    ("fc", (nn.Linear,)),
    ("bn", (nn.modules.batchnorm._BatchNorm,)),
    ("relu", (nn.ReLU, nn.ReLU6, nn.LeakyReLU)),
    ("max-pool", (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d,
                  nn.AdaptiveMaxPool3d)),
    ("avg-pool", (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
                  nn.AdaptiveAvgPool3d)),
    ("lrn", (nn.LocalResponseNorm,)),
    ("dropout", (nn.modules.dropout._DropoutNd,)),
    ("flatten", (nn.Flatten, nn.Unflatten)),
)

# Of torch.nn.functional, of tensors' methods and of the dispatcher's operators, without a trailing underscore.
FUNCTION_KINDS = {
    "conv": "conv1d conv2d conv3d convolution",
    "fc": "linear addmm mm matmul",
    "bn": "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit "
          "_batch_norm_with_update",
    "relu": "relu relu6 leaky_relu hardtanh",
    "max-pool": "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
                "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    "avg-pool": "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
                "_adaptive_avg_pool2d _adaptive_avg_pool3d mean",
    "add": "add iadd",
    "concat": "cat concat concatenate",
    "lrn": "local_response_norm",
    "dropout": "dropout dropout1d dropout2d dropout3d feature_dropout native_dropout",
    "flatten": "flatten view reshape view_as reshape_as _unsafe_view _reshape_alias squeeze unsqueeze unflatten",
}
KIND_OF_FUNCTION = {name: kind for kind, names in FUNCTION_KINDS.items() for name in names.split()}


def describe_layers(graph, model):
    own_name = {id(p): name.rpartition(".")[2] for name, p in model.named_parameters()}
    owned = set()
    for step in graph.steps:
        step.learns = parameters_read(step)
        step.parameters = [(own_name.get(id(p), "weight"), p) for p in step.learns if id(p) not in owned]
        owned |= {id(p) for p in step.learns}
        step.kind = kind_of(step)
        set_window(step)
    name_layers(graph.steps)


def parameters_read(step):
    """Those that learn, each once. A frozen parameter has no gradient, and is part of the layer's input."""
    if step.module is not None:
        found = step.module.parameters()
    else:
        found = (p for leaf in leaves_in((step.args, step.kwargs)) for p in parameters_of(leaf))
    return list({id(p): p for p in found if p.requires_grad}.values())


def kind_of(step):
    if step.kind != "other":
        return step.kind
    if step.module is not None:
        return next((kind for kind, classes in MODULE_KINDS if isinstance(step.module, classes)), "other")
    kind = KIND_OF_FUNCTION.get(step.op.rstrip("_"), "other")
    first, out = step.input_shapes[0], step.output_shape
    sound = {
        "conv": len(step.refs) == 1 and not options_of(step).get("transposed"),
        "fc": len(step.refs) == 1 and any(p.dim() == 2 for p in step.learns),
        "add": len(step.refs) == 2 and step.input_shapes[0] == step.input_shapes[1] == out,
        # A mean over all positions is a pool; one over channels or samples is not.
        "avg-pool": step.op != "mean" or (len(first) > 2 and out[:2] == first[:2] and math.prod(out[2:]) == 1),
    }
    return kind if sound.get(kind, True) else "other"


ARGUMENTS = {
    "conv": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "convolution": ("input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding",
                    "groups"),
    "max-pool": ("input", "kernel_size", "stride", "padding", "dilation"),
    "avg-pool": ("input", "kernel_size", "stride", "padding"),
}


def options_of(step):
    """kernel_size, stride, padding, dilation, groups of a module or a function's call, where it has them."""
    if step.module is not None:
        return {name: getattr(step.module, name) for name in ("kernel_size", "stride", "padding", "dilation", "groups")
                if hasattr(step.module, name)}
    kind = KIND_OF_FUNCTION.get(step.op.rstrip("_"), "other")
    names = ARGUMENTS.get(step.op if step.op == "convolution" else kind, ())
    return {**dict(zip(names, step.args)), **step.kwargs}


def set_window(step):
    rank = len(step.input_shapes[0]) - 2
    if step.kind not in ("conv", "max-pool", "avg-pool") or not 1 <= rank <= 3:
        return
    options = options_of(step)
    if step.kind == "conv" and "kernel_size" not in options:
        options["kernel_size"] = list(options["weight"].shape[2:])
    step.groups = options.get("groups", 1) if step.kind == "conv" else 1
    if options.get("kernel_size") is None or step.op == "mean" or "adaptive" in step.op:
        kernel = adaptive_kernel(step, rank)
        stride, pads, dilation = [k if o > 1 else 1 for k, o in zip(kernel, step.output_shape[2:] or [1] * rank)], 0, 1
    else:
        kernel = per_dimension(options["kernel_size"], rank)
        stride = per_dimension(options.get("stride") or kernel, rank)
        pads, dilation = options.get("padding", 0), options.get("dilation", 1)
    if kernel:
        step.window = dict(kernel=kernel, stride=stride, dilation=per_dimension(dilation, rank))
        step.window["pad_begin"], step.window["pad_end"] = pads_of(pads, step)


def per_dimension(value, rank):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * rank if len(values) == 1 else values


def adaptive_kernel(step, rank):
    """Of an adaptive pool whose windows are all of one size; otherwise it has no window."""
    extents = list(zip(step.input_shapes[0][2:], step.output_shape[2:] or [1] * rank))
    return [i // o for i, o in extents] if all(i % o == 0 for i, o in extents) else []


def pads_of(padding, step):
    window, rank = step.window, len(step.window["kernel"])
    reach = [d * (k - 1) for d, k in zip(window["dilation"], window["kernel"])]
    if padding == "valid":
        padding = 0
    if padding == "same":
        return [r // 2 for r in reach], [r - r // 2 for r in reach]
    begin = per_dimension(padding, rank)
    # Where an output is rounded up, the last window reaches beyond the pad.
    extents = zip(step.input_shapes[0][2:], step.output_shape[2:] or [1] * rank, window["stride"], reach, begin)
    return begin, [max(pad, (o - 1) * s + r + 1 - i - pad) for i, o, s, r, pad in extents]


def name_layers(steps):
    """Qualified module names; a function's is that of the module around it and of what it does. A module or function
    that is called several times is numbered from 1."""
    bases = [base_name(step) for step in steps]
    counts, uses, taken = collections.Counter(bases), collections.Counter(), set()
    for step, base in zip(steps, bases):
        uses[base] += 1
        step.name = base if counts[base] == 1 else f"{base}{uses[base]}"
        while step.name in taken or (counts[base] > 1 and step.name in counts):
            step.name += "_"
        taken.add(step.name)


def base_name(step):
    if step.module is not None:
        return step.scope
    of_kind = step.kind in ("conv", "bn", "relu", "max-pool", "avg-pool", "add", "dropout", "flatten")
    what = step.kind.replace("-", "_") if of_kind else step.op.strip("_") or "call"
    return f"{step.scope}.{what}" if step.scope else what


# ---- work by formula, as traces/layer_work.cpp has it: a multiply-add counts 2 ----


def flops_of(step):
    n_in, n_out = math.prod(step.input_shapes[0]), math.prod(step.output_shape)
    window = math.prod(step.window.get("kernel", []))
    forward = data = weight = 0.0
    if step.kind == "conv":
        forward = data = weight = 2.0 * n_out * step.input_shapes[0][1] / step.groups * window
    elif step.kind == "fc":
        forward = data = weight = 2.0 * n_in * step.output_shape[-1]
    elif step.kind == "bn":
        forward, data, weight = 6.0 * n_in, 5.0 * n_in, 4.0 * n_in
    elif step.kind in ("relu", "dropout"):
        forward, data = n_in, n_in
    elif step.kind == "max-pool":
        forward, data = n_out * window, n_out
    elif step.kind == "avg-pool":
        forward, data = n_out * window, n_out * window
    elif step.kind == "add":
        forward = n_out * (len(step.input_shapes) - 1)
    elif step.kind == "softmax-loss":
        forward, data = 5.0 * n_in, n_in
    data = data if step.needs_input_gradient else 0
    if step.backward_is_joint:
        data, weight = 0, weight + data
    return [forward, data, weight, 4.0 * sum(p.numel() for _, p in step.parameters)]


# ---- clocks ----


class HostClock:
    """For a CPU, on which a call is done when it returns."""

    def mark(self):
        return time.perf_counter()

    def seconds(self, begin, end):
        return end - begin

    def run_ahead(self, seconds):
        pass

    def finish(self):
        pass


class CudaClock:
    """Marks are events in the stream: nothing waits for the GPU until an iteration is over."""

    MOST_AHEAD = 0.2

    def __init__(self, device):
        self.device = device

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin, end):
        return begin.elapsed_time(end) * 1e-3

    def run_ahead(self, seconds):
        """Keeps the GPU waiting while the host queues work for that long, so that two events have between them what
        the GPU does and not its wait for the host. A GPU's clock is at most about 2 GHz."""
        if seconds > 0:
            torch.cuda._sleep(int(min(seconds * 1.2, self.MOST_AHEAD) * 2e9))

    def finish(self):
        torch.cuda.synchronize(self.device)


# ---- timing ----


class Setup:
    """What all iterations of a recording share."""

    def __init__(self, options):
        self.options = options
        self.device = torch.device(options.device)
        self.clock = CudaClock(self.device) if self.device.type == "cuda" else HostClock()
        names = {"float16": torch.float16, "bfloat16": torch.bfloat16}
        self.amp = names[options.amp_dtype] if options.amp else None

    def autocast(self):
        if self.amp is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.amp)

    def samples(self, shape, dtype=None):
        x = torch.randn(shape, device=self.device, dtype=dtype)
        return x.to(memory_format=channels_last(len(shape))) if self.options.channels_last and len(shape) > 3 else x

    def optimizer(self, parameters):
        if self.options.optimizer == "adam":
            return torch.optim.Adam(parameters, lr=LEARNING_RATE)
        return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9 * (self.options.optimizer == "momentum"))


def channels_last(rank):
    return torch.channels_last if rank == 4 else torch.channels_last_3d


class Tape:
    """What the backward pass of a step needs: its inputs, cut off from the steps that made them, and its outputs."""

    def __init__(self, leaves, outs):
        self.leaves, self.outs = leaves, outs


class LayerTimer:
    """Runs whole iterations step by step, each with an autograd graph of its own, so that the gradients of its inputs
    and of its parameters can be asked for, and timed, apart. Autograd then tells a convolution's backward by its
    output mask, and a matrix product's by leaving one out, what not to compute."""

    def __init__(self, graph, x, setup, optimizer):
        self.graph, self.x, self.setup, self.clock = graph, x, setup, setup.clock
        self.queueing = {}  # phase -> least time the host took to queue it
        self.optimizers = []
        for step in graph.steps:
            own = setup.optimizer([p for _, p in step.parameters]) if step.parameters else None
            if own is not None:
                own.state = optimizer.state  # momenta are there once
            self.optimizers.append(own)
        self.spans = []

    def iteration(self, joint=False):
        """Seconds by (step, pass). `joint` asks for all gradients of a step at once."""
        self.spans = []
        for step in self.graph.steps:
            for _, parameter in step.parameters:
                parameter.grad = None
        tapes = self.phase("forward", self.forward)
        self.phase("backward", lambda: self.backward(tapes, joint))
        self.phase("update", self.update)
        self.clock.finish()
        times = collections.defaultdict(float)
        for number, name, begin, end in self.spans:
            times[number, name] += self.clock.seconds(begin, end)
        return times

    def phase(self, name, run):
        self.clock.run_ahead(self.queueing.get(name, 0))
        begin = time.perf_counter()
        result = run()
        self.queueing[name] = min(self.queueing.get(name, math.inf), time.perf_counter() - begin)
        return result

    def forward(self):
        values, tapes = {INPUT: self.x}, []
        with self.setup.autocast():
            for number, step in enumerate(self.graph.steps):
                leaves, tensors = {}, {}
                for ref in step.refs:
                    leaves[ref] = values[ref].detach().requires_grad_(values[ref].requires_grad)
                    tensors[ref] = writable(leaves[ref]) if ref in step.overwritten else leaves[ref]
                result = self.timed(number, "forward", step.bind(tensors))
                outs = tensors_in(result)
                values.update({Ref(number, i): out for i, out in enumerate(outs)})
                tapes.append(Tape(leaves, outs))
        return tapes

    def backward(self, tapes, joint):
        gradients = collections.defaultdict(list)
        for number in reversed(range(len(tapes))):
            step, tape = self.graph.steps[number], tapes.pop()
            if number + 1 == len(self.graph.steps):
                gradients[Ref(number)] = [None]  # of the loss by itself: 1
            arrived = {i: gradients.pop(Ref(number, i), []) for i, out in enumerate(tape.outs) if out.requires_grad}
            arrived = {i: found for i, found in arrived.items() if found}
            if arrived:
                self.backward_step(number, step, tape, arrived, gradients, joint)

    def backward_step(self, number, step, tape, arrived, gradients, joint):
        leaves = [(ref, leaf) for ref, leaf in tape.leaves.items() if leaf.requires_grad]
        calls = backward_calls(step, [leaf for _, leaf in leaves], joint)
        summed = []

        def run(wanted, last):
            if not summed:  # where an output fans out, adding up its gradients is its producer's work
                summed.extend(added_up(found) for found in arrived.values())
            return torch.autograd.grad([tape.outs[i] for i in arrived], wanted, summed, retain_graph=not last,
                                       allow_unused=True)

        found = {}
        for name, wanted in calls:
            last = name == calls[-1][0]
            results = self.timed(number, name, lambda: accumulate(wanted, run(wanted, last)))
            found.update({id(tensor): gradient for tensor, gradient in zip(wanted, results)})
        for ref, leaf in leaves:
            if found.get(id(leaf)) is not None:
                gradients[ref].append(found[id(leaf)])

    def update(self):
        for number, own in enumerate(self.optimizers):
            if own is not None:
                self.timed(number, "update", own.step)

    def timed(self, number, name, run):
        if self.graph.steps[number].moves_nothing:
            return run()
        begin = self.clock.mark()
        result = run()
        self.spans.append((number, name, begin, self.clock.mark()))
        return result


def writable(leaf):
    """The same memory, but not a leaf of autograd, which must not be written to."""
    return torch.ops.aten._unsafe_view(leaf, list(leaf.shape)) if leaf.requires_grad else leaf


def backward_calls(step, leaves, joint=False):
    """[(pass, tensors whose gradients it computes)]: inputs first, for the layers below wait for them."""
    if step.backward_splits and leaves and step.learns and not joint:
        return [("backward_data", leaves), ("backward_weight", step.learns)]
    wanted = leaves + step.learns
    return [("backward_weight" if step.learns else "backward_data", wanted)] if wanted else []


def added_up(gradients):
    total = gradients[0]
    for number, gradient in enumerate(gradients[1:]):
        # The first sum is new memory: an addition hands the same gradient to both of its inputs.
        total = total + gradient if number == 0 else total.add_(gradient)
    return total


def accumulate(wanted, results):
    for tensor, gradient in zip(wanted, results):
        if isinstance(tensor, nn.Parameter) and gradient is not None:
            tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient
    return results


def measure_memory(timer):
    """One iteration that looks at what steps produce, keep for the backward pass, and pass on."""
    steps = timer.graph.steps
    used = {ref for step in steps for ref in step.refs}
    kept = [{} for _ in steps]
    current = []
    original = timer.timed

    def timed(number, name, run):
        current[:] = [number]
        return original(number, name, run)

    def pack(tensor):
        if current:
            kept[current[0]][memory_of(tensor)] = tensor.numel() * tensor.element_size()
        return tensor

    with unittest.mock.patch.object(timer, "timed", timed), \
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        tapes = timer.forward()
    for number, (step, tape) in enumerate(zip(steps, tapes)):
        shown = [out for i, out in enumerate(tape.outs) if Ref(number, i) in used]
        if not step.in_place:
            step.activation_bytes = sum(out.numel() * out.element_size() for out in shown)
        known = {memory_of(t) for t in [*tape.leaves.values(), *shown, *step.learns]}
        step.workspace_bytes = sum(size for memory, size in kept[number].items() if memory not in known)
        step.needs_input_gradient = any(leaf.requires_grad for leaf in tape.leaves.values())
    loss, logits = steps[-1], tapes[-1].leaves[steps[-1].refs[0]]
    loss.activation_bytes = logits.numel() * logits.element_size()  # the probabilities, as large as what they come from


class WholeTimer:
    """Runs iterations as a training loop does, timed as a whole."""

    def __init__(self, model, x, labels, setup, optimizer):
        self.model, self.x, self.labels, self.setup, self.optimizer = model, x, labels, setup, optimizer

    def iteration(self):
        """Seconds by pass, and under "wall" those of the host until all is done."""
        clock = self.setup.clock
        for parameter in self.model.parameters():
            parameter.grad = None
        clock.finish()
        start = time.perf_counter()
        marks = [clock.mark()]
        with self.setup.autocast():
            loss = functional.cross_entropy(first_real(self.model(self.x)), self.labels)
        marks.append(clock.mark())
        loss.backward()
        marks.append(clock.mark())
        self.optimizer.step()
        marks.append(clock.mark())
        clock.finish()
        times = {name: clock.seconds(*marks[i:i + 2]) for i, name in enumerate(WHOLE)}
        times["wall"] = time.perf_counter() - start
        self.loss = loss
        return times


def first_real(result):
    return next(t for t in tensors_in(result) if t.is_floating_point())


def gpu_busy(whole):
    """Seconds for which any kernel or copy runs in an iteration, by PyTorch's profiler; None where it cannot say."""
    try:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profiler:
            whole.iteration()
        spans = sorted((e.time_range.start, e.time_range.end) for e in profiler.events()
                       if str(e.device_type).endswith("CUDA") and not is_annotation(e))
    except Exception:  # no CUPTI, no permission: the profiler is a convenience here
        return None
    busy = last = 0.0
    for begin, end in spans:
        busy += max(0.0, end - max(begin, last))
        last = max(last, end)
    return busy * 1e-6 if busy > 0 else None


def is_annotation(event):
    return getattr(event, "is_user_annotation", False) or event.name.startswith(("Optimizer.", "ProfilerStep"))


class Recording:
    """All samples of one batch."""

    def __init__(self, model, tracing, setup, batch, progress):
        options = setup.options
        self.batch, self.setup = batch, setup
        self.x = setup.samples([batch, *options.input])
        check_model(model, self.x, setup)
        self.graph, labels = tracing.graph(self.x)
        trainable = [p for p in model.parameters() if p.requires_grad]
        if not trainable:
            raise RecordError("the model has no parameters that learn")
        optimizer = setup.optimizer(trainable)
        self.layers = LayerTimer(self.graph, self.x, setup, optimizer)
        self.whole = WholeTimer(model, self.x, labels, setup, optimizer)
        self.iteration = {name: [] for name in (*WHOLE, "wall")}
        self.sums, self.joint = [], []  # of layers, an iteration; of joint over split backward passes
        self.busy = None
        measure_memory(self.layers)
        self.run(options, progress)

    def run(self, options, progress):
        for i in range(options.warmup):
            progress(f"batch {self.batch}: warming up", i, options.warmup)
            self.layers.iteration()
            self.whole.iteration()
        for i in range(options.repetitions):
            progress(f"batch {self.batch}: timing layers and whole iterations", i, options.repetitions)
            times = self.layers.iteration()
            for (number, name), seconds in times.items():
                self.graph.steps[number].samples[name].append(seconds)
            self.sums.append(sum(times.values()))
            for name, seconds in self.whole.iteration().items():
                self.iteration[name].append(seconds)
        for i in range(min(3, options.repetitions)):
            progress(f"batch {self.batch}: timing backward passes jointly", i, 3)
            self.joint.append(backward_time(self.layers.iteration(joint=True)))
        if self.setup.device.type == "cuda":
            self.busy = gpu_busy(self.whole)
        if not math.isfinite(float(self.whole.loss)):
            warn(f"the loss became {float(self.whole.loss)}; times of not-a-number values may differ")

    def layer_sum(self, *names):
        return sum(typical(step.samples[name]) for step in self.graph.steps for name in names)

    def ratios(self):
        """Sum of layers over whole iteration, by pass and in all."""
        sums = {"forward": self.layer_sum("forward"), "backward": self.layer_sum("backward_data", "backward_weight"),
                "update": self.layer_sum("update")}
        wholes = {name: typical(self.iteration[name]) for name in WHOLE}
        ratios = {name: sums[name] / wholes[name] for name in WHOLE}
        ratios["all"] = sum(sums.values()) / sum(wholes.values())
        return ratios

    def joint_ratio(self):
        return self.layer_sum("backward_data", "backward_weight") / typical(self.joint)

    def outside(self):
        """GPU time of whole iterations that no layer accounts for: {kind: samples}."""
        if self.setup.device.type != "cuda":
            return {}
        wholes = [sum(parts) for parts in zip(*(self.iteration[name] for name in WHOLE))]
        busy = [self.busy or whole for whole in wholes]
        found = {"launch-gap": [max(0.0, w - b) for w, b in zip(wholes, busy)],
                 "unmatched": [max(0.0, min(w, b) - s) for w, b, s in zip(wholes, busy, self.sums)]}
        return {kind: samples for kind, samples in found.items() if any(samples)}


def backward_time(times):
    return sum(seconds for (_, name), seconds in times.items() if name.startswith("backward"))


def check_model(model, x, setup):
    """A first pass, so that what is wrong with the model is told apart from what is wrong with this program."""
    try:
        with setup.autocast():
            outs = [out for out in tensors_in(model(x)) if out.requires_grad]
        if outs:
            outs[0].float().sum().backward()
    except Exception as error:
        if out_of_memory(error):
            raise
        raise RecordError(f"the model does not train on an input of {shape_text(x.shape)} (batch first): "
                          f"{reason(error)}") from error


def typical(samples):
    """The 20 % quantile: disturbances only ever add time."""
    return float(numpy.quantile(samples, 0.2)) if samples else 0.0


# ---- split curves ----


class Variant(collections.namedtuple("Variant", "kind input weight output bias stride padding dilation groups data")):
    """A layer at another shape, with nothing that does not matter for its time: equal ones are measured once. `data`:
    whether the gradient of the input is wanted."""


def record_splits(step, axes, measure):
    """Appends rows (axis, fraction, input shape, output shape, samples) to the step's splits."""
    if not step.backward_splits or len(step.refs) != 1 or (step.kind == "conv" and not step.window):
        return
    variants = conv_variants if step.kind == "conv" else fc_variants
    for axis in axes:
        for fraction, variant in variants(step, axis):
            step.splits.append((axis, fraction, variant.input, variant.output, measure(variant)))


def parts_of(extent):
    """The largest part's extent at each number of parts; what cannot be cut that often is left out."""
    return [-(-extent // parts) for parts in SPLIT_PARTS if parts <= extent]


def fc_variants(step, axis):
    shape, features = step.input_shapes[0], step.output_shape[-1]
    bias = any(p.dim() == 1 for p in step.learns)

    def variant(inputs, outputs):
        return Variant("fc", (*shape[:-1], inputs), (outputs, inputs), (*shape[:-1], outputs), bias, (), (), (), 1,
                       step.needs_input_gradient)

    if axis == "output-channel":
        return [(part / features, variant(shape[-1], part)) for part in parts_of(features)]
    if axis == "input-channel":
        return [(part / shape[-1], variant(part, features)) for part in parts_of(shape[-1])]
    return []


def conv_variants(step, axis):
    inputs, outputs, groups = step.input_shapes[0][1], step.output_shape[1], step.groups
    if axis == "height":
        rows = step.output_shape[height_dimension(step)]
        return [(part / rows, conv_variant(step, inputs, outputs, groups, part)) for part in parts_of(rows)]
    if groups > 1:  # output channels take their groups' input channels along; input channels cannot be cut alone
        parts = [n for n in SPLIT_PARTS if groups % n == 0] if axis == "output-channel" else []
        return [(1 / n, conv_variant(step, inputs // n, outputs // n, groups // n)) for n in parts]
    if axis == "output-channel":
        return [(part / outputs, conv_variant(step, inputs, part, 1)) for part in parts_of(outputs)]
    return [(part / inputs, conv_variant(step, part, outputs, 1)) for part in parts_of(inputs)]


def height_dimension(step):
    return 2 if len(step.window["kernel"]) < 3 else 3


def conv_variant(step, inputs, outputs, groups, rows=None):
    window = step.window
    extents, padding = list(step.input_shapes[0][2:]), list(window["pad_begin"])
    for d, (begin, end) in enumerate(zip(window["pad_begin"], window["pad_end"])):
        if begin != end:  # torch.nn.functional pads both sides alike
            extents[d], padding[d] = extents[d] + begin + end, 0
    shape = list(step.output_shape[2:])
    at = height_dimension(step) - 2
    if rows is not None and rows != shape[at]:
        # A part from the middle: the rows of its neighbours, or of the pad, are there already.
        reach = window["dilation"][at] * (window["kernel"][at] - 1)
        extents[at], padding[at] = (rows - 1) * window["stride"][at] + reach + 1, 0
        shape[at] = rows
    batch = step.input_shapes[0][0]
    bias = any(p.dim() == 1 for p in step.learns)
    return Variant("conv", (batch, inputs, *extents), (outputs, inputs // groups, *window["kernel"]),
                   (batch, outputs, *shape), bias, tuple(window["stride"]), tuple(padding), tuple(window["dilation"]),
                   groups, step.needs_input_gradient)


def time_variant(variant, setup, repetitions, warmup=2):
    """Seconds by pass, from a loop over this one layer."""
    clock = setup.clock
    x = setup.samples(variant.input, setup.amp).requires_grad_(variant.data)
    weight = nn.Parameter(setup.samples(variant.weight) * 0.01)
    bias = nn.Parameter(torch.zeros(variant.weight[0], device=setup.device)) if variant.bias else None
    step = Step(variant_call(variant), (INPUT, weight, bias), {})
    step.kind, step.learns = variant.kind, [p for p in (weight, bias) if p is not None]
    calls = backward_calls(step, [x] if variant.data else [])
    spans, gradient = [], None
    for i in range(warmup + repetitions):
        clock.run_ahead(0.002)
        with setup.autocast():
            begin = clock.mark()
            out = step.call(x, weight, bias)
            spans.append((i, "forward", begin, clock.mark()))
        gradient = torch.randn_like(out) if gradient is None else gradient
        for name, wanted in calls:
            begin = clock.mark()
            torch.autograd.grad(out, wanted, gradient, retain_graph=name != calls[-1][0])
            spans.append((i, name, begin, clock.mark()))
    clock.finish()
    samples = {name: [] for name in PASSES}
    for i, name, begin, end in spans:
        if i >= warmup:
            samples[name].append(clock.seconds(begin, end))
    return samples


def variant_call(variant):
    if variant.kind == "fc":
        return functional.linear
    convolution = getattr(functional, f"conv{len(variant.stride)}d")
    return lambda x, w, b: convolution(x, w, b, variant.stride, variant.padding, variant.dilation, variant.groups)


def record_all_splits(steps, setup, progress):
    axes = [axis for axis in SPLIT_AXES[1:] if axis in setup.options.splits]
    measured = {}

    def measure(variant):
        if variant not in measured:
            measured[variant] = time_variant(variant, setup, setup.options.split_repetitions)
        return measured[variant]

    for number, step in enumerate(steps if axes else []):
        progress("timing split layers", number, len(steps))
        record_splits(step, axes, measure)


def add_batch_rows(steps, recording, largest):
    """The layers of another batch's recording as points on the batch axis. Returns how many match none."""
    by_name = {step.name: step for step in recording.graph.steps}
    unmatched = 0
    for step in steps:
        other = by_name.get(step.name)
        if other is None or other.kind != step.kind:
            unmatched += 1
            continue
        samples = {**other.samples, "update": []}  # an update does not depend on the batch
        if any(samples.values()):
            step.splits.append(("batch", recording.batch / largest, other.input_shapes[0], other.output_shape, samples))
    return unmatched


# ---- the trace ----


def device_facts(device):
    """Name and nominal clock."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device), 0.0
    fields = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name", "unknown")
    if "cpu family" in fields and "model" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    try:
        return name, float(fields.get("cpu MHz", 0)) * 1e6
    except ValueError:
        return name, 0.0


def notes_on(main, others, tracing, frozen, unmatched):
    options, setup = main.setup.options, main.setup
    notes = [
        "each pass of each layer is timed in its place within whole iterations; the whole-iteration samples are of "
        "iterations of the plain training loop, taken in turn with them",
        "gradients of inputs and of weights are computed by calls of their own for convolutions and fully connected "
        f"layers; together all backward passes take {main.joint_ratio():.2f} times as long as with joint calls",
        "where an output fans out, adding up its gradients counts as the producer's backward",
        f"update is {options.optimizer}, one optimizer a layer where the whole iteration has one for all; without "
        "weight decay",
        "the model's input is on the device: no data loading, no copy to the device",
    ]
    if setup.device.type == "cuda":
        notes.append(f"GPU times by CUDA events, with the host ahead of the GPU; cuDNN "
                     f"{torch.backends.cudnn.version()}, cudnn.benchmark {'on' if options.cudnn_benchmark else 'off'}, "
                     f"TF32 {'on' if options.tf32 else 'off'}")
        notes.append(f"host's wall clock of a whole iteration: {typical(main.iteration['wall']):.6f} s"
                     + ("" if main.busy is None else f"; GPU busy for {main.busy:.6f} s by PyTorch's profiler"))
    if setup.amp is not None:
        notes.append(f"automatic mixed precision: parameters and their gradients are float32, most activations "
                     f"{options.amp_dtype}; without loss scaling")
    if tracing.fallback:
        notes.append(f"the graph is of what ran, because torch.fx cannot trace the model ({tracing.fallback})")
    if main.graph.pruned:
        notes.append(f"{main.graph.pruned} operations that the first output does not need are left out")
    partly = sum(bool(step.also_after) for step in main.graph.steps)
    if partly:
        notes.append(f"{partly} layers read memory of which an in-place operation changed a part; their gradient is "
                     "not led back through that operation")
    if frozen:
        notes.append(f"{frozen} parameters are frozen and left out: no gradient, no update")
    if unmatched:
        notes.append(f"{unmatched} layers have no point on the batch axis: at another batch the model did other things")
    if any(row[0] != "batch" for step in main.graph.steps for row in step.splits):
        notes.append("splits along height and channels are timed in a loop over one layer; compare them with their own "
                     "rows of fraction 1")
    if others:
        notes.append("splits along the batch are timed within whole iterations at those batches")
    return notes + unsteady(main.graph.steps)


def unsteady(steps, ratio=1.5, shown=10):
    found = []
    for step in steps:
        for name, samples in step.samples.items():
            if samples and max(samples) > ratio * numpy.median(samples):
                found.append((float(numpy.median(samples)), max(samples), step.name, name.replace("_", "-")))
    if not found:
        return []
    found.sort(reverse=True)
    return [f"{len(found)} timings have a maximum above {ratio} times their median; the longest follow"] + [
        f"layer '{layer}': {name} took up to {most:.3g} s where its median is {median:.3g} s"
        for median, most, layer, name in found[:shown]]


def record(options, progress):
    """The facts of a trace: {"attributes", "notes", "steps", "main", "others"}."""
    setup = Setup(options)
    torch.manual_seed(options.seed)
    model = load_model(options, setup)
    check_model(model, setup.samples([options.batch[0], *options.input]), setup)  # lazy modules take their shapes
    tracing = Tracing(model)
    recordings = []
    for batch in sorted(set(options.batch), reverse=True):
        recordings.append(Recording(model, tracing, setup, batch, progress))
        release(recordings[-1])
    main, others = recordings[0], recordings[1:]  # by falling batch, as the rows of a curve
    unmatched = max((add_batch_rows(main.graph.steps, other, main.batch) for other in others), default=0)
    record_all_splits(main.graph.steps, setup, progress)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    return {"attributes": attributes_of(setup, main), "notes": notes_on(main, others, tracing, frozen, unmatched),
            "main": main, "others": others[::-1]}


def release(recording):
    """Memory of a batch that is done with, before the next one takes its own."""
    recording.x = recording.layers = recording.whole = None
    gc.collect()
    if recording.setup.device.type == "cuda":
        torch.cuda.empty_cache()


def attributes_of(setup, main):
    options = setup.options
    device, clock = device_facts(setup.device)
    return {
        "format": "tandem-trace", "format_version": 1, "model": options.name, "recorder": "record_pytorch.py",
        "library": "PyTorch", "library_version": torch.__version__.split("+")[0], "device": device,
        "threads": torch.get_num_threads() if setup.device.type == "cpu" else 0, "clock_hz": clock,
        "dtype": options.amp_dtype if options.amp else "float32", "layout": "nhwc" if options.channels_last else "nchw",
        "batch": main.batch, "cache_mode": "in situ", "date": datetime.date.today().isoformat(),
    }


# ---- the file ----


class TraceFile:
    """Columns as traces/FORMAT.md wants them."""

    def __init__(self, path):
        self.file = h5py.File(path, "w")

    def attribute(self, name, value):
        if isinstance(value, str):
            data = value.encode("utf-8", "replace")
            self.file.attrs.create(name, data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))
        else:
            self.file.attrs.create(name, value, dtype="f8" if isinstance(value, float) else "i8")

    def numbers(self, name, values, dtype, unit=""):
        dataset = self.file.create_dataset(name, data=numpy.array(values, dtype=dtype), track_times=False)
        if unit:
            dataset.attrs.create("unit", unit.encode(), dtype=h5py.string_dtype("utf-8", len(unit)))

    def texts(self, name, values):
        encoded = [value.replace("\0", "").encode("utf-8", "replace") for value in values]
        width = max([1, *map(len, encoded)])
        data = numpy.array(encoded, dtype=h5py.string_dtype("utf-8", width))
        self.file.create_dataset(name, data=data, track_times=False)

    def lists(self, name, rows, dtype, unit=""):
        self.numbers(name, [value for row in rows for value in row], dtype, unit)
        self.numbers(f"{name}_offset", numpy.cumsum([0, *map(len, rows)]), "i8")

    def samples(self, group, rows):
        for name in PASSES:
            self.lists(f"{group}/{name}", [row[name] for row in rows], "f8", "s")


def write_trace(path, trace):
    """Beside the file, then renamed: never half a trace."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp.{os.getpid()}")
    try:
        out = TraceFile(temporary)
        try:
            for key, value in trace["attributes"].items():
                out.attribute(key, value)
            out.texts("/notes", trace["notes"])
            for key in WHOLE:
                out.numbers(f"/iteration/{key}", trace["main"].iteration[key], "f8", "s")
            steps = trace["main"].graph.steps
            write_layers(out, steps)
            write_tables(out, steps)
            write_surroundings(out, trace)
        finally:
            out.file.close()
        os.replace(temporary, path)
    except OSError as error:
        raise RecordError(f"{path}: cannot write: {error.strerror or reason(error)}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def inputs_of(step):
    """Ids of the layers read and the shapes they give; where none is read, the shape of the model's input."""
    pairs = [(ref.step, shape) for ref, shape in zip(step.refs, step.input_shapes) if ref != INPUT]
    for ref in step.also_after:
        if ref.step not in [number for number, _ in pairs]:
            pairs.append((ref.step, step.input_shapes[0]))
    return ([number for number, _ in pairs], [shape for _, shape in pairs]) if pairs else ([], step.input_shapes[:1])


def write_layers(out, steps):
    out.texts("/layers/name", [step.name for step in steps])
    out.texts("/layers/kind", [step.kind for step in steps])
    for field in ("groups", "in_place", "needs_input_gradient", "backward_is_joint"):
        out.numbers(f"/layers/{field}", [int(getattr(step, field)) for step in steps], "i4")
    for field in ("activation_bytes", "workspace_bytes"):
        out.numbers(f"/layers/{field}", [getattr(step, field) for step in steps], "i8", "B")
    for column, name in zip(zip(*map(flops_of, steps)), PASSES):
        out.numbers(f"/layers/flops_{name}", column, "f8", "FLOP")
    out.lists("/layers/inputs", [inputs_of(step)[0] for step in steps], "i4")
    out.lists("/layers/output_shape", [step.output_shape for step in steps], "i8")
    for field in ("kernel", "stride", "pad_begin", "pad_end", "dilation"):
        out.lists(f"/layers/{field}", [step.window.get(field, []) for step in steps], "i4")
    out.samples("/samples", [step.samples for step in steps])


def write_tables(out, steps):
    shapes = [(number, shape) for number, step in enumerate(steps) for shape in inputs_of(step)[1]]
    out.numbers("/input_shapes/layer", [number for number, _ in shapes], "i8")
    out.lists("/input_shapes/shape", [shape for _, shape in shapes], "i8")
    tensors = [(number, name, p) for number, step in enumerate(steps) for name, p in step.parameters]
    out.numbers("/parameters/layer", [number for number, _, _ in tensors], "i8")
    out.texts("/parameters/name", [name for _, name, _ in tensors])
    out.lists("/parameters/shape", [list(p.shape) or [1] for _, _, p in tensors], "i8")
    rows = [(number, *row) for number, step in enumerate(steps) for row in step.splits]
    out.numbers("/splits/layer", [row[0] for row in rows], "i8")
    out.texts("/splits/axis", [row[1] for row in rows])
    out.numbers("/splits/fraction", [row[2] for row in rows], "f8", "1")
    out.lists("/splits/input_shape", [row[3] for row in rows], "i8")
    out.lists("/splits/output_shape", [row[4] for row in rows], "i8")
    out.samples("/splits/samples", [row[5] for row in rows])


def write_surroundings(out, trace):
    if trace["others"]:
        out.numbers("/batches/batch", [other.batch for other in trace["others"]], "i8")
        for key in WHOLE:
            out.lists(f"/batches/{key}", [other.iteration[key] for other in trace["others"]], "f8", "s")
    outside = trace["main"].outside()
    if outside:
        out.texts("/outside/kind", list(outside))
        out.lists("/outside/samples", list(outside.values()), "f8", "s")


# ---- the model ----


def load_model(options, setup):
    where, _, what = options.target.rpartition(":")
    if not where or not what:
        raise RecordError(f"target '{options.target}': module:callable or file.py:callable is expected", 2)
    build = find_callable(load_module(where), what, options.target)
    args, kwargs = options.args
    try:
        model = build if isinstance(build, nn.Module) else build(*args, **kwargs)
    except Exception as error:
        raise RecordError(f"target '{options.target}': calling it failed: {reason(error)}") from error
    if not isinstance(model, nn.Module):
        raise RecordError(f"target '{options.target}' returned a {type(model).__name__}; an nn.Module is expected", 2)
    model = model.to(setup.device).train()
    if not options.channels_last:
        return model
    try:
        return model.to(memory_format=channels_last(1 + len(options.input)))
    except RuntimeError as error:
        raise RecordError(f"--channels-last: the model's parameters do not take it: {reason(error)}", 2) from error


def load_module(where):
    try:
        if not where.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return importlib.import_module(where)
        if not os.path.isfile(where):
            raise RecordError(f"{where}: no such file", 2)
        spec = importlib.util.spec_from_file_location(os.path.basename(where)[:-3], where)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    except RecordError:
        raise
    except Exception as error:  # also what the module's own code throws
        raise RecordError(f"cannot import '{where}': {reason(error)}", 2) from error


def find_callable(module, what, target):
    found = module
    for part in what.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise RecordError(f"target '{target}': there is no '{what}' in {module.__name__}", 2)
    if not callable(found):
        raise RecordError(f"target '{target}': '{what}' is a {type(found).__name__} and cannot be called", 2)
    return found


# ---- command line ----


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise RecordError(message, 2)


def shape_text(shape):
    return "x".join(map(str, shape))


def input_shape(text):
    try:
        shape = [int(part) for part in text.lower().split("x")]
    except ValueError:
        shape = [0]
    if min(shape) < 1 or not 1 <= len(shape) <= 4:
        raise argparse.ArgumentTypeError(f"'{text}': channels and 1 to 3 extents are expected, such as 3x224x224, or "
                                         "the length of a vector")
    return shape


def count_from(least):
    def parse(text):
        value = int(text) if text.isdecimal() else -1
        if value < least or value > 1 << 20:
            raise argparse.ArgumentTypeError(f"'{text}': a whole number from {least} on is expected")
        return value

    return parse


def call_arguments(text):
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        return ([ast.literal_eval(value) for value in call.args],
                {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords})
    except (SyntaxError, ValueError, TypeError, AttributeError) as error:
        raise argparse.ArgumentTypeError(f"'{text}': literals are expected, such as \"10, wide=True\"") from error


def parse_options(arguments):
    parser = Parser(prog="record_pytorch.py", description="Records a Tandem trace of a PyTorch model, layer by layer.",
                    formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("target", metavar="MODULE:CALLABLE", help="what returns the nn.Module; or FILE.py:CALLABLE")
    add("--input", type=input_shape, required=True, metavar="CxHxW", help="shape of one sample")
    add("--batch", type=count_from(1), nargs="+", required=True, metavar="N",
        help="samples an iteration; of several, the largest is the trace's and the others are its batch curve")
    add("--output", required=True, metavar="FILE", help="the trace (HDF5)")
    add("--args", type=call_arguments, default=([], {}), metavar="TEXT",
        help="arguments of the callable, as literals: \"10, wide=True\"")
    add("--name", default=None, help="the model's name in the trace; default: the callable's")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cuda, cuda:N or cpu")
    add("--amp", action="store_true", help="automatic mixed precision")
    add("--amp-dtype", choices=("float16", "bfloat16"), default=None, help="default: float16; bfloat16 on a CPU")
    add("--tf32", action="store_true", help="let a GPU round float32 products to TF32")
    add("--channels-last", action="store_true", help="NHWC memory layout")
    add("--optimizer", choices=("sgd", "momentum", "adam"), default="momentum", help="what updates the parameters")
    add("--repetitions", type=count_from(1), default=20, metavar="N",
        help="timed iterations of each sort: with timers around layers, and without")
    add("--warmup", type=count_from(0), default=5, metavar="N", help="iterations of each sort thrown away first")
    add("--threads", type=count_from(1), default=None, metavar="N", help="of a CPU; default: PyTorch's choice")
    add("--splits", nargs="+", choices=(*SPLIT_AXES, "none"), default=list(SPLIT_AXES), metavar="AXIS",
        help=f"axes along which layers are also timed at 1/2, 1/4 and 1/8: {', '.join(SPLIT_AXES)}; or none. Several "
             "values of --batch take the place of those fractions")
    add("--no-split-curves", dest="splits", action="store_const", const=["none"], help="the same as --splits none")
    add("--split-repetitions", type=count_from(1), default=5, metavar="N", help="timed runs of a split layer")
    add("--no-cudnn-benchmark", dest="cudnn_benchmark", action="store_false",
        help="let cuDNN choose by rule instead of by trial")
    add("--seed", type=count_from(0), default=0, metavar="N", help="of weights and samples")
    return complete(parser.parse_args(arguments))


def complete(options):
    options.name = options.name or options.target.rpartition(":")[2]
    options.splits = [] if "none" in options.splits else options.splits
    check_device(options)
    if options.channels_last and len(options.input) not in (3, 4):
        raise RecordError(f"--channels-last: needs two or three spatial extents; the input is "
                          f"{shape_text(options.input)}", 2)
    options.amp_dtype = options.amp_dtype or ("float16" if options.device.startswith("cuda") else "bfloat16")
    if len(set(options.batch)) == 1 and "batch" in options.splits:
        largest = options.batch[0]
        options.batch = [largest // parts for parts in SPLIT_PARTS if parts <= largest]
    check_output(options.output)
    return options


def check_device(options):
    try:
        device = torch.device(options.device)
    except RuntimeError as error:
        raise RecordError(f"--device {options.device}: cuda, cuda:N or cpu is expected", 2) from error
    if device.type not in ("cuda", "cpu"):
        raise RecordError(f"--device {options.device}: cuda, cuda:N or cpu is expected", 2)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RecordError(f"--device {options.device}: PyTorch {torch.__version__} sees no CUDA device here", 2)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise RecordError(f"--device {options.device}: there are {torch.cuda.device_count()} CUDA devices", 2)
    if options.amp and options.amp_dtype == "float16" and device.type == "cpu":
        raise RecordError("--amp-dtype float16: a CPU has bfloat16", 2)


def check_output(path):
    """Before an hour of recording, not after it."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise RecordError(f"{path}: cannot write: it is a folder")
    if not os.path.isdir(folder):
        raise RecordError(f"{path}: cannot write: there is no folder '{folder}'")
    if not os.access(folder, os.W_OK):
        raise RecordError(f"{path}: cannot write: no permission in '{folder}'")


def apply(options):
    warnings.filterwarnings("ignore")
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.device.startswith("cuda"):
        torch.cuda.set_device(torch.device(options.device))
        torch.backends.cudnn.benchmark = options.cudnn_benchmark
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.tf32


def warn(message):
    print(f"warning: {message}", file=sys.stderr)


class Progress:
    """One line that is written over on a terminal; elsewhere a line a stage."""

    def __init__(self, stream):
        self.stream, self.stage = stream, None

    def __call__(self, stage, done, total):
        if self.stream.isatty():
            self.stream.write(f"\r\033[K{stage}: {done + 1} of {total}")
            self.stream.flush()
        elif stage != self.stage:
            self.stream.write(f"{stage}\n")
        self.stage = stage

    def finish(self):
        if self.stream.isatty() and self.stage:
            self.stream.write("\r\033[K")
        self.stage = None


def out_of_memory(error):
    text = str(error)
    return isinstance(error, (MemoryError, getattr(torch.cuda, "OutOfMemoryError", MemoryError))) or (
        isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text
                                             or "not enough memory" in text))


def report(options, trace):
    main = trace["main"]
    rows = sum(len(step.splits) for step in main.graph.steps)
    print(f"{options.output}: {options.name}, batch {main.batch}, {len(main.graph.steps)} layers, "
          f"{sum(p.numel() for step in main.graph.steps for _, p in step.parameters)} parameters, {rows} split timings")
    for recording in [main, *trace["others"]]:
        ratios = ", ".join(f"{name} {value:.3f}" for name, value in recording.ratios().items())
        print(f"batch {recording.batch}: sum of layers / whole iteration: {ratios}")
    print(f"backward passes timed apart / jointly: {main.joint_ratio():.3f}")
    for kind, samples in main.outside().items():
        print(f"{kind}: {typical(samples):.6f} s of GPU time an iteration that no layer accounts for")


def run(arguments):
    options = parse_options(arguments)
    apply(options)
    progress = Progress(sys.stderr)
    try:
        trace = record(options, progress)
    except RecordError:
        raise
    except Exception as error:
        if not out_of_memory(error):
            at = error.__traceback__
            while at.tb_next:
                at = at.tb_next
            raise RecordError(f"recording failed: {reason(error)} "
                              f"(line {at.tb_lineno} of {os.path.basename(at.tb_frame.f_code.co_filename)})") from error
        raise RecordError(f"out of memory at batch {max(options.batch)}: a smaller --batch is needed") from error
    finally:
        progress.finish()
    write_trace(options.output, trace)
    report(options, trace)


def main(arguments=None):
    try:
        run(sys.argv[1:] if arguments is None else arguments)
        return 0
    except RecordError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
