"""A quantized model predicts nearly the same, with the same bits in any batch, and is a file."""

from __future__ import annotations

import numpy as np
import pytest

import daskdl
from daskdl import nn
from daskdl.errors import DataError, SettingsError
from daskdl.kernels.int8.prepared import quantised
from daskdl.metrics import Accuracy
from daskdl.models.resnet import ResNet
from daskdl.predict import Predictor
from daskdl.quantization.observed import least_error, percentile

rng = np.random.default_rng(0)


def network():
    """Return a small residual network, with norms as after training, and images."""
    model = ResNet(18, classes=4, stem="small", seed=0)
    x = rng.normal(size=(12, 8, 8, 3)).astype(np.float32)
    for _ in range(3):
        model(x)
    return model.eval(), x


def affine():
    return nn.Sequential(
        nn.Linear(5, 16, seed=0), nn.ReLU(), nn.Linear(16, 10, seed=1), nn.Tanh(),
        nn.Linear(10, 3, seed=2),
    ), rng.normal(size=(40, 5)).astype(np.float32)  # fmt: skip


def change(expected, result):
    return float(np.linalg.norm(expected - result) / np.linalg.norm(expected - expected.mean(0)))


def test_residual_network_predicts_nearly_the_same(tmp_path):
    model, x = network()
    small = daskdl.quantize(model, x, tried=0)
    expected, result = model.predict(x), small.predict(x, precision="int8")
    assert 0 < change(expected, result) < 0.1
    kinds = {type(module).__name__ for _, module in small.modules()}
    assert {"Int8Conv2d", "Conv2d", "Linear"} <= kinds
    assert "Int8Linear" not in kinds  # the last layer
    single = np.concatenate(
        [Predictor(small, threads=2, batch_size=5)(x[i : i + 1]) for i in range(12)]
    )
    np.testing.assert_array_equal(single, result)
    recorded = Predictor(small, batch_size=12)
    np.testing.assert_array_equal(recorded(x), result)
    np.testing.assert_array_equal(recorded(x), result)
    (program,) = recorded._shared()._programs.values()
    assert program is not None
    daskdl.save(small, tmp_path / "small.safetensors")
    daskdl.save(model, tmp_path / "model.safetensors")
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("small", "model")]
    assert sizes[0] < 0.28 * sizes[1]
    loaded = daskdl.load(tmp_path / "small.safetensors")
    np.testing.assert_array_equal(loaded.predict(x), result)
    assert loaded.table == small.table


def test_an_unjoined_pass_is_near_a_joined_one():
    """Joined passes fold batch norms, as in float32; the layers' whole numbers are the same."""
    model, x = network()
    small = daskdl.quantize(model, x, tried=0).eval()
    assert change(small.predict(x), small(x).data) < 0.05


def test_the_model_stays_as_it_is():
    model, x = affine()
    before, expected = model.snapshot(), model.predict(x)
    daskdl.quantize(model, x)
    np.testing.assert_array_equal(model.snapshot(), before)
    np.testing.assert_array_equal(model.predict(x), expected)
    assert model.training


def test_a_percentile_is_without_an_outlier():
    """A number that came once does not make all other steps coarse."""
    model = nn.Sequential(nn.Identity(), nn.Linear(4, 4, seed=0))
    x = rng.normal(size=(9000, 4)).astype(np.float32)
    x[0, 0] = 100
    changes = {}
    for way in ("extremes", "percentile"):
        small = daskdl.quantize(model, x, activations=way, error=np.inf)
        changes[way] = change(model.predict(x[1:]), small.predict(x[1:]))
    assert changes["percentile"] < 0.5 * changes["extremes"]


def test_rows_with_scales_of_their_own(tmp_path):
    """A row of large numbers does not make the others coarse; numpy has the same bits."""
    model, x = affine()
    x[0] *= 1000
    small = daskdl.quantize(model, x, activations="dynamic", ends=True, tried=0)
    static = daskdl.quantize(model, x, ends=True, tried=0)
    expected, result = model.predict(x), small.predict(x)
    assert change(expected[1:], result[1:]) < 0.05 * change(expected[1:], static.predict(x)[1:])
    np.testing.assert_array_equal(small.predict(x[:1]), result[:1])
    np.testing.assert_array_equal(small.eval()(x).data, result)
    recorded = Predictor(small, batch_size=40)
    np.testing.assert_array_equal([recorded(x), recorded(x)], [result, result])
    daskdl.save(small, tmp_path / "small.safetensors")
    np.testing.assert_array_equal(daskdl.load(tmp_path / "small.safetensors").predict(x), result)

    layer = small.model.layers[0]
    numbers, scale = quantised(model.layers[0].weight.data)
    rows = (np.abs(x).max(1) / np.float32(127))[:, None]
    sums = np.rint(x * (np.float32(1) / rows)).astype(np.int64) @ numbers.T.astype(np.int64)
    by_numpy = sums.astype(np.float32) * scale * rows + model.layers[0].bias.data
    np.testing.assert_array_equal(layer.predict(x), by_numpy)


def test_layers_that_change_too_much_stay_float32():
    model, x = affine()
    everything = daskdl.quantize(model, x, error=1.0)
    nothing = daskdl.quantize(model, x, error=1e-6)
    partial = daskdl.quantize(model, x, keep=["layers.2"])
    for small, why in ((everything, ""), (nothing, "changes too much"), (partial, "kept")):
        row = {row[0]: row for row in small.rows}["layers.2"]
        assert row[5] == why
        assert row[1] == (why == "")
    assert "changes too much" in nothing.table
    np.testing.assert_array_equal(nothing.predict(x), model.predict(x))


def test_layers_of_any_number_of_channels_and_of_sequences():
    model = nn.Sequential(
        nn.Conv2d(3, 5, 3, seed=0), nn.ReLU(), nn.Conv2d(5, 7, 3, seed=1), nn.ReLU(),
        nn.Conv2d(7, 6, 1, 2, seed=2), nn.Linear(6, 3, seed=3),
    )  # fmt: skip
    x = rng.normal(size=(6, 9, 9, 3)).astype(np.float32)
    assert change(model.predict(x), daskdl.quantize(model, x, tried=0).predict(x)) < 0.05


def test_samples_of_other_kinds():
    model, x = affine()
    expected = daskdl.quantize(model, x)
    samples = daskdl.SampleSet.from_arrays(x=x, y=x[:, 0], partitions=3)
    assert daskdl.quantize(model, samples).rows == expected.rows


def test_layers_of_a_graph(tmp_path):
    """Layers are named by their results, and have the bits of the same layers as modules."""
    layers = nn.Linear(40, 300, seed=0), nn.Linear(300, 200, seed=1)
    graph = nn.Graph(
        [
            ("MatMul", ("x", "v"), ("a",)), ("Relu", ("a",), ("b",)),
            ("Gemm", ("b", "w", "c"), ("y",), (("transB", 1),)),
        ],
        [("x", "float32", (None, 40))], ["y"], [("v", (40, 300)), ("w", (200, 300)), ("c", (200,))],
    )  # fmt: skip
    first, last = (layer.weight.data for layer in layers)
    graph.load_state_dict({"v": first.T, "w": last, "c": layers[1].bias.data})
    x = rng.normal(size=(40, 40)).astype(np.float32)
    small = daskdl.quantize(nn.Sequential(graph), x, ends=True)
    assert [row[:2] for row in small.rows] == [("layers.0.a", True), ("layers.0.y", True)]
    layers[0].bias.data[:] = 0
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    result = small.predict(x, precision="int8")
    np.testing.assert_array_equal(result, daskdl.quantize(model, x, ends=True).predict(x))
    daskdl.save(small, tmp_path / "small.safetensors")
    daskdl.save(graph, tmp_path / "graph.safetensors")
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("small", "graph")]
    assert sizes[0] < 0.3 * sizes[1]
    loaded = daskdl.load(tmp_path / "small.safetensors")
    np.testing.assert_array_equal(loaded.predict(x), result)
    partial = daskdl.quantize(graph, x, ends=True, keep=["a"])
    assert [row[:2] for row in partial.rows] == [("a", False), ("y", True)]
    with pytest.raises(SettingsError, match=r"keep: expected names of layers, such as 'y'"):
        daskdl.quantize(graph, x, keep=["z"])


def test_an_evaluation_in_int8():
    model, x = affine()
    small = daskdl.quantize(model, x)
    options = {"y": model.predict_class(x), "client": False}
    scores = small.evaluate(x, [Accuracy()], precision="int8", **options)
    assert scores["accuracy"] > 0.9
    with pytest.raises(SettingsError, match=r"evaluate, precision: expected for int8 a model of"):
        model.evaluate(x, [Accuracy()], precision="int8", **options)


def test_a_shared_layer_is_replaced_wherever_it_is():
    shared = nn.Linear(4, 4, seed=0)
    model = nn.Sequential(
        nn.Linear(4, 4, seed=1), shared, nn.ReLU(), shared, nn.Linear(4, 2, seed=2)
    )
    x = rng.normal(size=(30, 4)).astype(np.float32)
    small = daskdl.quantize(model, x, tried=0)
    assert small.model.layers[1] is small.model.layers[3]
    assert type(small.model.layers[1]) is nn.Int8Linear


def test_error_messages():
    model, x = affine()
    with pytest.raises(
        SettingsError, match="one of extremes, percentile, error, dynamic, found 'best'"
    ):
        daskdl.quantize(model, x, activations="best")
    with pytest.raises(SettingsError, match="with Conv2d or Linear layers, found none"):
        daskdl.quantize(nn.ReLU(), x)
    graph = nn.Graph([("Relu", ("x",), ("y",))], [("x", "float32", (None, 2))], ["y"])
    with pytest.raises(SettingsError, match="with Conv2d or Linear layers, found none in Graph"):
        daskdl.quantize(graph, x)
    with pytest.raises(SettingsError, match=r"such as 'layers\.2'"):
        daskdl.quantize(model, x, keep=["layers.22"])
    with pytest.raises(DataError, match="finite inputs of layer"):
        daskdl.quantize(model, np.where(x > 2, np.inf, x))
    with pytest.raises(SettingsError, match=r"or an ONNX file of int8, found Seq"):
        model.predict(x, precision="int8")
    with pytest.raises(SettingsError, match=r"counterpart, found 'layers\.1', ReLU"):
        nn.Quantized(model, [("layers.1", 1.0, 0)])
    small = daskdl.quantize(model, x)
    with pytest.raises(SettingsError, match="a model in inference, found one that is trained"):
        small(daskdl.Tensor(x, requires_grad=True)).sum().backward()


def test_ranges_of_histograms():
    counts = np.zeros(512)
    counts[100:200], counts[-1] = 1e6, 1
    assert percentile(counts, 0.0, 512.0) == (100, 200)
    assert 190 < least_error(counts, 0.0, 512.0)[1] < 210
    counts[-1] = 1e6
    assert least_error(counts, 0.0, 512.0)[1] > 450
    assert least_error(np.ones(512), -1.0, 1.0) == (-1, 1)


def test_depthwise_and_grouped_convolutions():
    """Layers as in MobileNet-v2 and ResNeXt; two filters for each channel stay float32."""

    def conv(seed, *arguments, groups=1):
        return [nn.Conv2d(*arguments, seed=seed, groups=groups), nn.ReLU6()]

    model = nn.Sequential(
        *conv(0, 3, 24, 1), *conv(1, 24, 24, 3, 2, 1, groups=24), *conv(2, 24, 16, 3, groups=2),
        *conv(3, 16, 32, 1, groups=16), nn.Conv2d(32, 4, 1, seed=4),
    )  # fmt: skip
    x = rng.normal(size=(6, 17, 15, 3)).astype(np.float32)
    small = daskdl.quantize(model, x, ends=True, tried=0)
    kinds = [type(small.model.layers[i]).__name__ for i in range(0, 9, 2)]
    assert kinds == ["Int8Conv2d"] * 3 + ["Conv2d", "Int8Conv2d"]
    result = small.predict(x)
    assert 0 < change(model.predict(x), result) < 0.1
    np.testing.assert_array_equal(small.predict(x[:1]), result[:1])


def test_first_layer_of_few_channels_and_maxima_of_bytes():
    """Taps of three channels side by side; maxima of bytes are bytes of maxima."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, (5, 3), 2, (2, 1), seed=0), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 4, 1, seed=1),
    )  # fmt: skip
    x = rng.normal(size=(5, 17, 15, 3)).astype(np.float32)
    small = daskdl.quantize(model, x, ends=True, tried=0)
    assert all(row[1] for row in small.rows)
    result = small.predict(x)
    assert change(model.predict(x), result) < 0.05
    first, _, pool, last = small.model.layers
    floats = pool.predict(first.predict(x).clip(0))
    np.testing.assert_array_equal(result, last.predict(floats))
