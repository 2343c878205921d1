#!/usr/bin/python3
"""onnx_torch_test.py TANDEM WRITE_MODEL: models as PyTorch exports them to ONNX against the built-in models.

The exporter is the independent oracle of the format (field numbers, attributes, how operators are written); the built-in
models, whose parameter counts are torchvision's, that of layers and shapes.
"""

import os
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import h5py
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TANDEM, WRITE_MODEL = sys.argv[1:3]
del sys.argv[1:3]
BATCH = 4


def rows(group, name):
    """Lists of a column whose rows have any number of entries."""
    offset = group[name + "_offset"][:]
    return [tuple(group[name][a:b]) for a, b in zip(offset, offset[1:])]


def layers(path):
    """Every field of every layer but names and times; the edges are ids."""
    with h5py.File(path) as f:
        table = f["layers"]
        columns = {name: list(table[name][:]) for name in (
            "groups", "in_place", "needs_input_gradient", "backward_is_joint", "activation_bytes", "flops_forward",
            "flops_backward_data", "flops_backward_weight", "flops_update")}
        columns["kind"] = list(table["kind"].asstr()[:])
        for name in ("inputs", "output_shape", "kernel", "stride", "pad_begin", "pad_end", "dilation"):
            columns[name] = rows(table, name)
        parameters = [[] for _ in columns["kind"]]
        for layer, name, shape in zip(f["parameters/layer"][:], f["parameters/name"].asstr()[:],
                                      rows(f["parameters"], "shape")):
            parameters[layer].append((name, shape))
        columns["parameters"] = parameters
        return [dict(zip(columns, values)) for values in zip(*columns.values())]


def weighted(all_layers):
    """What is known of convolutions and fully connected layers, in their order."""
    return [(layer["kind"], layer["output_shape"], layer["kernel"], layer["stride"], layer["parameters"])
            for layer in all_layers if layer["kind"] in ("conv", "fc")]


def count(all_layers):
    total = 0
    for layer in all_layers:
        for _, shape in layer["parameters"]:
            elements = 1
            for extent in shape:
                elements *= int(extent)
            total += elements
    return total


class Torch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name

    def file(self, name):
        return os.path.join(self.path, name)

    def export(self, model, training, **options):
        """Without values: the weights' shapes are all that is read, and files stay small."""
        mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
        options = {"export_params": False, **options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model.train(training), torch.zeros(BATCH, 3, 224, 224), self.file("m.onnx"), training=mode,
                              do_constant_folding=not training, opset_version=13, **options)

    def imported(self, *options):
        subprocess.run([TANDEM, "trace", "import", self.file("m.onnx"), "--output", self.file("m.h5"), *options],
                       check=True, stdout=subprocess.DEVNULL)
        return layers(self.file("m.h5"))

    def built_in(self, name):
        subprocess.run([WRITE_MODEL, name, str(BATCH), self.file("b.h5")], check=True)
        return layers(self.file("b.h5"))

    def compare(self, seen, wanted):
        self.assertEqual([layer["kind"] for layer in seen], [layer["kind"] for layer in wanted])
        for index, (a, b) in enumerate(zip(seen, wanted)):
            self.assertEqual(a, b, f"layer {index}")

    def test_resnets_are_the_built_in_ones_in_every_field(self):
        for name, parameters in (("resnet18", 11_689_512), ("resnet50", 25_557_032)):
            with self.subTest(name):
                self.export(getattr(torchvision.models, name)(), True)
                seen = self.imported()
                self.assertEqual(count(seen), parameters)
                self.compare(seen, self.built_in(name)[:-1])  # an export has no loss

    def test_vgg16_is_the_built_in_one_but_for_the_pool_that_changes_nothing(self):
        self.export(torchvision.models.vgg16(), True)
        seen = self.imported()
        self.assertEqual(count(seen), 138_357_544)
        self.assertEqual(weighted(seen), weighted(self.built_in("vgg16")))

    def test_alexnet_and_googlenet(self):
        for name, parameters, options in (("alexnet", 61_100_840, {}),
                                          ("googlenet", 6_624_904, {"aux_logits": False, "init_weights": False})):
            with self.subTest(name):
                self.export(getattr(torchvision.models, name)(**options), True)
                seen = self.imported()
                self.assertEqual(count(seen), parameters)
                self.assertEqual(weighted(seen), weighted(self.built_in(name)))
                self.assertNotIn("other", [layer["kind"] for layer in seen])

    def test_an_inference_export_has_its_normalization_folded_away(self):
        self.export(torchvision.models.resnet50(), False)
        seen = self.imported()
        wanted = self.built_in("resnet50")
        self.assertNotIn("bn", [layer["kind"] for layer in seen])
        self.assertEqual([layer[:4] for layer in weighted(seen)], [layer[:4] for layer in weighted(wanted)])

    def test_a_symbolic_batch_and_weights_with_values(self):
        model = torchvision.models.resnet18()
        self.export(model, True, export_params=True, input_names=["image"], dynamic_axes={"image": {0: "batch"}})
        refused = subprocess.run([TANDEM, "trace", "import", self.file("m.onnx"), "--output", self.file("m.h5")],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("symbolic ('batch'); give it as onnx:batch=N", refused.stderr)
        self.compare(self.imported("--importer", f"onnx:batch={BATCH}"), self.built_in("resnet18")[:-1])


unittest.main()
