"""Models written as ONNX pass its checker; onnxruntime gives the same for any batch."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import daskdl
from daskdl import models, nn, ops
from daskdl.errors import ModelFileError, SettingsError
from daskdl.interop.onnx import load, save, to_proto
from daskdl.interop.onnx.reader import from_proto
from daskdl.models.vgg import VGG16Trunk
from daskdl.nn.losses.loss import Loss
from tests.daskdl.gradients import normal
from tests.daskdl.interop.onnx.models import file_of, picture_model, run_onnxruntime

node = onnx.helper.make_node
#: How each model of the zoo is made, the shape of a sample, and its dtype.
ZOO = {
    "ConvLSTMForecaster": (lambda: models.ConvLSTMForecaster(2, 3, (4, 3)), (2, 8, 12, 1), "f4"),
    "GoogLeNet": (lambda: models.GoogLeNet(3, auxiliary=True), (32, 32, 3), "f4"),
    "InceptionV1": (lambda: models.InceptionV1(3, auxiliary=True), (64, 64, 3), "f4"),
    "LeNet5": (lambda: models.LeNet5(), (28, 28, 1), "f4"),
    "MobileSSD": (lambda: models.MobileSSD(2, 128, width=0.1), (128, 128, 3), "f4"),
    "UNet": (lambda: models.UNet(2, 3, (4, 6, 8)), (16, 24, 2), "f4"),
    "FPN": (lambda: models.FPN(3, 2, (4, 8), 8), (16, 24, 3), "f4"),
    "VGG16": (lambda: models.VGG16(3, width=0.03, hidden=16), (224, 224, 3), "f4"),
    "DeepBit": (lambda: models.DeepBit(8, VGG16Trunk(width=0.03, hidden=16)), (224, 224, 3), "f4"),
    "NeuMF": (lambda: models.NeuMF(50, 70, 8, (16, 8)), (2,), "i8"),
    "ResNet": (lambda: models.ResNet(18, 3, width=4), (32, 32, 3), "f4"),
    "ResNet of bottlenecks": (lambda: models.ResNet(50, 3, "small", 4), (16, 16, 3), "f4"),
    **{
        f"TextClassifier {e}": (
            lambda e=e: models.TextClassifier(20, 3, 8, e, channels=6, hidden=5), (7,), "i8",
        )
        for e in ("cnn", "gru", "lstm")
    },
}  # fmt: skip


def run(proto, *inputs):
    onnx.checker.check_model(proto, full_check=True)
    return run_onnxruntime(proto, *inputs)


def samples_of(shape, dtype, batch):
    if dtype == "i8":
        ids = np.random.default_rng(batch).integers(1, 20, (batch, *shape))
        if len(shape) == 1 and shape[0] > 2:  # texts that end in padding, one without words
            ids[0, 3:] = 0
            ids[-1] = 0
        return ids
    return normal(batch, *shape).astype("f4")


def perturbed(model):
    """Change all parameters and statistics, so that a missing one is noticed."""
    rng = np.random.default_rng(0)
    for _, tensor in model.held():
        tensor.data[...] += np.abs(rng.normal(size=tensor.shape)) * 0.05
    return model


def test_the_whole_zoo_is_written():
    parts = {name: getattr(models, name) for name in models.__all__}
    zoo = {
        name
        for name, part in parts.items()
        if name != "load" and issubclass(part, nn.Module) and not issubclass(part, Loss)
    }
    others = {"TabularNet"}  # has inputs by name
    others |= {"SSD", "MobileNetTrunk", "PriorBoxes"}  # as MobileSSD, or parts of it
    assert {name.split()[0] for name in ZOO} | others | {"SSD300"} == zoo


@pytest.mark.long  # a picture takes seconds, and there is no smaller SSD300
def test_onnxruntime_gives_the_same_as_ssd300():
    model = models.SSD300(2)
    x = normal(1, 300, 300, 3).astype("f4")
    for result, wanted in zip(run(to_proto(model, x.shape[1:]), x), model.predict(x), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_onnxruntime_gives_the_same(name):
    make, shape, dtype = ZOO[name]
    model = perturbed(make())
    proto = to_proto(model, shape, {"f4": "float32", "i8": "int64"}[dtype])
    for batch in (1, 5):
        x = samples_of(shape, dtype, batch)
        right = model.predict(x)
        right = right if isinstance(right, tuple) else (right,)
        for result, wanted in zip(run(proto, x), right, strict=True):
            # Rounding errors grow with the largest terms of a sum.
            atol = max(1e-4, 1e-6 * np.abs(wanted).max(initial=0))
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=atol)


def test_images_may_come_channels_first():
    model = perturbed(models.ResNet(18, 3, "small", 4))
    proto = to_proto(model, (16, 16, 3), channels_first=True)
    x = normal(2, 16, 16, 3).astype("f4")
    (result,) = run(proto, np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    np.testing.assert_allclose(result, model.predict(x), rtol=1e-4, atol=1e-4)
    assert sum(node.op_type == "Transpose" for node in proto.graph.node) == 0


LAYERS = {
    "activations": (
        lambda: nn.Sequential(
            nn.GELU(), nn.SiLU(), nn.ELU(), nn.LeakyReLU(), nn.HardTanh(), nn.Softplus(),
            nn.HardSigmoid(), nn.ReLU6(), nn.PReLU(4), nn.Softmax(), nn.Square(), nn.Sqrt(),
        ), (6, 4),
    ),
    "transformer": (lambda: nn.TransformerBlock(4, 2, 6, causal=True, seed=0), (6, 4)),
    "norms": (
        lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.LayerNorm(4), nn.BatchNorm(4), nn.Normalize()),
        (5, 6, 4),
    ),
    "recurrent": (
        lambda: nn.LSTM(4, 3, layers=2, bidirectional=True, returns="sequence", seed=0), (6, 4),
    ),
    "gru": (lambda: nn.GRU(4, 3, returns="last", seed=0), (6, 4)),
    "rnn": (lambda: nn.RNN(4, 3, returns="last", nonlinearity="relu", seed=0), (6, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 3, 4, 2, 1, seed=0), (6, 5, 4)),
    "volumes": (lambda: nn.Conv1d(4, 8, 3, padding="causal", dilation=2, seed=0), (6, 4)),
    "resized": (lambda: nn.Upsample((2, 3), mode="bilinear"), (6, 5, 4)),
    "blocks": (lambda: nn.Sequential(nn.SpaceToDepth(2), nn.DepthToSpace(2)), (4, 6, 3)),
    "indexed": (lambda: nn.Sequential(nn.Narrow(1, 2, 3), nn.Select(1, -1)), (6, 4)),
    "flipped": (lambda: nn.Sequential(nn.Flip(1), nn.Repeat(3)), (4,)),
    "reduced": (lambda: nn.Sequential(nn.Mean(1), nn.Max(1)), (6, 5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    model, x = make(), normal(4, *shape).astype("f4")
    (result,) = run(to_proto(model, shape), x)
    np.testing.assert_allclose(result, model.predict(x), rtol=1e-4, atol=1e-4)


def test_a_graph_is_written_as_it_was_read(tmp_path):
    graph = from_proto(picture_model(), "m")
    save(graph, tmp_path / "m.onnx")
    again = load(tmp_path / "m.onnx")
    assert dict(again.named_parameters()).keys() == dict(graph.named_parameters()).keys()
    x = normal(3, 2, 8, 8).astype("f4")
    np.testing.assert_allclose(again.predict(x), graph.predict(x), rtol=1e-5, atol=1e-5)
    (result,) = run(onnx.load(tmp_path / "m.onnx"), x)
    np.testing.assert_allclose(result, graph.predict(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(ModelFileError, match="expected an existing folder, found no"):
        save(graph, tmp_path / "none" / "m.onnx")


def loop_model():
    """Return a loop of s = s + 1, whose states are stacked to axes that only the file states."""
    step = [node("Cast", ["i"], ["f"], to=1), node("Identity", ["c"], ["d"]),
            node("Add", ["s", "one"], ["t"]), node("Identity", ["t"], ["o"])]  # fmt: skip
    empty = onnx.helper.make_empty_tensor_value_info
    body = onnx.helper.make_graph(step, "b", [*map(empty, "ics")], [*map(empty, "dto")])
    loop = node("Loop", ["n", "true", "x"], ["last", "y"], body=body)
    constants = {"n": np.array(3), "true": np.array(True), "one": np.float32(1)}
    proto = file_of([loop], {"x": ["N", 3]}, ["y"], constants)
    proto.graph.output[0].type.tensor_type.shape.dim.extend([onnx.TensorShapeProto.Dimension()] * 3)
    return proto


SPLIT = node("SplitToSequence", ["x"], ["y"], axis=1)
MATMUL = node("MatMul", ["x", "w"], ["y"])


@pytest.mark.parametrize(
    "proto",
    [
        loop_model(),
        file_of([SPLIT], {"x": ["N", 3]}),
        file_of([MATMUL], {"x": ["N", 3]}, constants={"w": np.ones((3, 2), "f4")}, opset=8),
    ],
    ids=["a loop", "a sequence", "an old file"],
)
def test_what_nodes_do_not_state_is_written(proto, tmp_path):
    graph, x = from_proto(proto, "m").eval(), normal(2, 3).astype("f4")
    daskdl.save(graph, tmp_path / "m.safetensors")
    results = run(to_proto(daskdl.load(tmp_path / "m.safetensors")), x)
    right = graph(x) if isinstance(graph(x), list) else [graph(x)]
    results = results[0] if isinstance(results[0], list) else results
    for result, wanted in zip(results, right, strict=True):
        np.testing.assert_allclose(result, wanted.data, rtol=1e-4, atol=1e-4)


def test_a_sequence_as_input_is_not_written():
    proto = file_of([node("SequenceAt", ["x", "i"], ["y"])], {"x": None}, ["y"], {"i": np.array(0)})
    proto.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = 1
    graph = from_proto(proto, "m")
    with pytest.raises(SettingsError, match="input 'x': expected an array, found a sequence"):
        to_proto(graph)


def test_a_part_of_a_graph_with_a_new_head_is_written():
    trunk = from_proto(picture_model(), "m").until("features")
    model = nn.Sequential(trunk, nn.Linear(64, 2, seed=0))
    x = normal(3, 2, 8, 8).astype("f4")
    (result,) = run(to_proto(model, (2, 8, 8)), x)
    np.testing.assert_allclose(result, model.predict(x), rtol=1e-4, atol=1e-4)


def test_operations_that_onnx_lacks_are_refused():
    class Sorted(nn.Module):
        def forward(self, x):
            return ops.add(x, np.sort(x.data, axis=0))

    with pytest.raises(SettingsError, match=r"an array of shape .* is computed of the samples"):
        to_proto(Sorted(), (4,))

    class Turned(nn.Module):
        def forward(self, x):
            return ops.det(x)

    with pytest.raises(SettingsError, match="Turned: operation 'det' cannot be written as ONNX"):
        to_proto(Turned(), (4, 4))


def test_folders_and_modules_of_torch_are_refused(tmp_path, torch):
    from daskdl.torch import TorchModule

    with pytest.raises(ModelFileError, match="expected the name of a file, found a folder"):
        save(nn.Linear(3, 2), tmp_path, (3,))
    wrapped = TorchModule(torch.nn.Linear(3, 2))
    with pytest.raises(SettingsError, match=r"torch\.onnx\.export\(model\.module, \.\.\.\)"):
        save(wrapped, tmp_path / "m.onnx", (3,))
