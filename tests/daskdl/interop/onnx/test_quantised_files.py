"""Files of onnxruntime's quantizer are computed in int8 and give onnxruntime's results."""

from __future__ import annotations

import numpy as np
import pytest

import daskdl
from daskdl import nn
from daskdl.interop.onnx import load, save
from daskdl.interop.onnx.reader import from_proto
from daskdl.kernels.int8.scale import to_floats
from daskdl.predict import Predictor
from tests.daskdl.interop.onnx.models import file_of, run_onnxruntime

quantization = pytest.importorskip("onnxruntime.quantization")
onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class Residual(nn.Module):
    """A convolution with a shortcut."""

    def __init__(self):
        self.layers = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, seed=1), nn.ReLU())

    def forward(self, x):
        return x + self.layers(x)


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, seed=0), nn.ReLU(), nn.MaxPool2d(2), Residual(),
        nn.Conv2d(8, 8, 3, groups=8, seed=4), nn.Conv2d(8, 12, 1, bias=False, seed=2),
        nn.GlobalAvgPool(), nn.Linear(12, 5, seed=3),
    )  # fmt: skip


def quantised(rng, folder, form, kind, per_channel):
    """Write a network and its quantised file; return the file and images (N, C, H, W)."""
    images = rng.normal(size=(12, 3, 16, 16)).astype(np.float32)
    save(network(), folder / "float.onnx", (16, 16, 3), channels_first=True)
    batches = iter([{"x": images[i : i + 4]} for i in range(0, 12, 4)])

    class Reader(quantization.CalibrationDataReader):
        def get_next(self):
            return next(batches, None)

    quantization.quantize_static(
        folder / "float.onnx", folder / "int8.onnx", Reader(), per_channel=per_channel,
        quant_format=getattr(quantization.QuantFormat, form),
        activation_type=getattr(quantization.QuantType, kind),
        weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    return folder / "int8.onnx", images


def operators(graph):
    return [node.operator for node in graph._steps.nodes]


@pytest.mark.parametrize(
    ("form", "kind", "per_channel"),
    [("QDQ", "QUInt8", True), ("QDQ", "QInt8", False), ("QOperator", "QUInt8", True)],
)
@pytest.mark.filterwarnings("ignore")
def test_files_of_the_quantizer_are_computed_in_int8(rng, tmp_path, form, kind, per_channel):
    path, images = quantised(rng, tmp_path, form, kind, per_channel)
    graph = load(path)
    assert operators(graph).count("int8:Conv") == 4
    assert operators(graph).count("int8:Linear") == 1
    proto = onnx.load(path)
    (expected,) = run_onnxruntime(proto, images)
    scales = {t.name: t for t in proto.graph.initializer}
    rounded_back = [n for n in proto.graph.node if n.op_type == "DequantizeLinear"]
    unit = float(numpy_helper.to_array(scales[rounded_back[-1].input[1]]).max())
    result = graph.predict(images, precision="int8")
    assert np.abs(result - expected).max() <= 1.001 * unit
    assert (np.abs(result - expected) < 0.01 * unit).mean() > 0.9
    np.testing.assert_array_equal(graph.predict(images[:1]), result[:1])
    recorded = Predictor(graph, batch_size=len(images))
    np.testing.assert_array_equal(recorded(images), result)
    (program,) = recorded._shared()._programs.values()
    floats = [step for step in program.steps if step.function is to_floats]
    assert len(floats) == 1  # for the results
    save(graph, tmp_path / "again.onnx")
    daskdl.save(graph, tmp_path / "graph.safetensors")
    for again in (load(tmp_path / "again.onnx"), daskdl.load(tmp_path / "graph.safetensors")):
        np.testing.assert_array_equal(again.predict(images), result)


def rounding(x, y, scale="s", zero="z"):
    return [
        helper.make_node("QuantizeLinear", [x, scale, zero], [f"{y}/q"]),
        helper.make_node("DequantizeLinear", [f"{y}/q", scale, zero], [y]),
    ]


def weights(rng, **changed):
    numbers = rng.integers(-60, 60, (4, 4, 1, 1)).astype(np.int8)
    arrays = {"s": np.float32(0.02), "z": np.uint8(120), "w/q": numbers,
              "w/s": np.float32(0.01), "w/z": np.int8(0)}  # fmt: skip
    return arrays | changed


CONV = [
    *rounding("x", "x/r"),
    helper.make_node("DequantizeLinear", ["w/q", "w/s", "w/z"], ["w"]),
    helper.make_node("Conv", ["x/r", "w"], ["c"]),
]


def test_results_that_are_read_before_they_are_rounded(rng):
    """Only nodes behind the rounding read a convolution's bytes."""
    nodes = [*CONV, *rounding("c", "c/r"), helper.make_node("Sub", ["c", "c/r"], ["y"])]
    proto = file_of(nodes, {"x": ["N", 4, 3, 3]}, ["y"], weights(rng))
    x = rng.normal(size=(2, 4, 3, 3)).astype(np.float32)
    (expected,) = run_onnxruntime(proto, x)
    result = from_proto(proto, "g").eval().predict(x)
    change = np.abs(result - expected)
    assert change.max() <= 0.0201  # halves go up or down
    assert (change < 1e-5).mean() > 0.9
    assert np.abs(result).max() > 0.005


@pytest.mark.parametrize("zero", [np.uint8(128), np.uint8(100)], ids=["middle", "elsewhere"])
def test_weights_from_0_to_255(rng, zero):
    """Weights are int8 if their zero point is 128, and floats otherwise."""
    numbers = rng.integers(70, 190, (4, 4, 1, 1)).astype(np.uint8)
    nodes = [*CONV, *rounding("c", "y")]
    proto = file_of(
        nodes, {"x": ["N", 4, 3, 3]}, ["y"], weights(rng, **{"w/q": numbers, "w/z": zero})
    )
    x = rng.normal(size=(2, 4, 3, 3)).astype(np.float32)
    (expected,) = run_onnxruntime(proto, x)
    graph = from_proto(proto, "g").eval()
    assert ("int8:Conv" in operators(graph)) == (zero == 128)
    assert np.abs(graph.predict(x) - expected).max() <= 0.0201


def test_integers_that_others_read_stay_integers(rng):
    """A value is an output as integers, and is read with another scale."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "w/s", "z"], ["y"]),
        helper.make_node("Cast", ["q"], ["n"], to=1),
    ]
    proto = file_of(nodes, {"x": ["N", 4]}, ["y", "n"], weights(rng))
    x = rng.normal(size=(3, 4)).astype(np.float32)
    for result, expected in zip(
        from_proto(proto, "g").eval().predict(x), run_onnxruntime(proto, x), strict=True
    ):
        np.testing.assert_array_equal(result, expected)


def test_weights_that_the_file_rounds_itself(rng):
    """Training tools for int8 write weights as floats before QuantizeLinear; x has three axes."""
    nodes = [
        *rounding("x", "x/r"), *rounding("v", "v/r", "w/s", "w/z"),
        helper.make_node("MatMul", ["x/r", "v/r"], ["y"]),
    ]  # fmt: skip
    arrays = weights(rng, v=rng.uniform(-0.5, 0.5, (6, 70)).astype(np.float32))
    proto = file_of(nodes, {"x": ["N", 5, 6]}, ["y"], arrays)
    graph = from_proto(proto, "g").eval()
    assert operators(graph) == ["int8:Round", "int8:Linear"]
    x = rng.normal(size=(3, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(graph.predict(x), run_onnxruntime(proto, x)[0], atol=1e-5)


def test_models_quantised_here_are_written_in_qdq_form(rng, tmp_path):
    """onnxruntime and our reader compute the same; batch norms are part of the weights."""
    images = rng.normal(size=(12, 16, 16, 3)).astype(np.float32)
    model = nn.Sequential(*network().layers[:6], nn.BatchNorm(12), *network().layers[6:])
    model.layers[6].weight.data[::2] *= -1
    model(images)
    small = daskdl.quantize(model.eval(), images, ends=True, tried=0)
    expected = small.predict(images)
    save(small, tmp_path / "small.onnx", (16, 16, 3))
    graph = load(tmp_path / "small.onnx")
    assert operators(graph).count("int8:Conv") == 4
    assert "BatchNormalization" not in operators(graph)
    unit = small.model.layers[-1].of_x[0] * np.abs(small.model.layers[-1].weight).sum(1).max()
    proto = onnx.load(tmp_path / "small.onnx")
    np.testing.assert_array_equal(graph.predict(images), expected)
    (result,) = run_onnxruntime(proto, images)
    assert np.abs(result - expected).max() <= unit  # halves
    assert (np.abs(result - expected) < 1e-5).mean() > 0.9


def test_graphs_of_files_are_quantised_here(rng, tmp_path):
    """Convolutions of all kinds, a residual sum that reads bytes, and QDQ for onnxruntime."""
    images = rng.normal(size=(12, 3, 16, 16)).astype(np.float32)
    save(network(), tmp_path / "float.onnx", (16, 16, 3), channels_first=True)
    graph = load(tmp_path / "float.onnx").eval()
    small = daskdl.quantize(graph, images, ends=True, error=np.inf)
    kinds = operators(small.model)
    assert (kinds.count("int8:Conv"), kinds.count("int8:Linear"), kinds.count("Conv")) == (4, 1, 0)
    expected, result = graph.predict(images), small.predict(images)
    assert 0 < np.linalg.norm(result - expected) < 0.1 * np.linalg.norm(expected)
    assert max(row[4] for row in small.rows) < 0.1
    np.testing.assert_array_equal(small.predict(images[:1]), result[:1])
    save(small, tmp_path / "small.onnx", (3, 16, 16))
    np.testing.assert_array_equal(load(tmp_path / "small.onnx").predict(images), result)
    (by_runtime,) = run_onnxruntime(onnx.load(tmp_path / "small.onnx"), images)
    assert (np.abs(by_runtime - result) < 1e-5).mean() > 0.7  # halves
    assert np.abs(by_runtime - result).max() < 0.02


def test_affine_maps_of_sequences_are_written(rng, tmp_path):
    model = nn.Sequential(
        nn.Linear(6, 8, seed=0), nn.Tanh(), nn.Linear(8, 5, seed=1), nn.ReLU(),
        nn.Linear(5, 3, bias=False, seed=2),
    )  # fmt: skip
    for shape in ((6,), (7, 6)):
        x = rng.normal(size=(20, *shape)).astype(np.float32)
        small = daskdl.quantize(model, x, ends=True, tried=0)
        save(small, tmp_path / "small.onnx", shape)
        (result,) = run_onnxruntime(onnx.load(tmp_path / "small.onnx"), x)
        expected = small.predict(x)
        np.testing.assert_array_equal(load(tmp_path / "small.onnx").predict(x), expected)
        change = np.abs(result - expected)
        assert (change < 1e-5).mean() > 0.95  # halves
        assert change.max() < 0.03
