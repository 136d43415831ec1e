"""Int8 layers compute numpy's whole numbers, joined or not, and refuse unfit inputs."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.prepared import Product, quantised
from daskdl.kernels.int8.product import End
from daskdl.kernels.int8.scale import Scale, scale_of
from daskdl.nn.quantized import int8_of, takes_int8
from daskdl.ops import int8
from daskdl.ops.int8 import MOST
from tests.daskdl.convolutions import bytes_of, convolved

rng = np.random.default_rng(0)


def expected_of(layer, of_x, x, end=End()):  # noqa: B008
    """Return the result of a float32 layer's int8 counterpart by numpy."""
    weight, scale = quantised(layer.weight.data)
    scale_and_bias = scale * np.float32(of_x.scale), layer.bias.data
    if isinstance(layer, nn.Linear):
        rows = bytes_of(x, of_x).reshape(1, 1, -1, x.shape[-1])
        y = convolved(
            rows, of_x.zero, weight[:, None, None], *scale_and_bias, Geometry((1, 1)), end
        )
        return y.reshape(*x.shape[:-1], -1)
    more = layer._padding.of(x.shape[1:3]), layer.dilation, layer.groups
    geometry = Geometry(layer.kernel, layer.stride, *more)
    return convolved(bytes_of(x, of_x), of_x.zero, weight, *scale_and_bias, geometry, end)


@pytest.mark.parametrize("zero", [0, 100])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(8, 20, 3, 2, "same", seed=0), (2, 7, 6, 8)),
        (nn.Conv2d(4, 70, (1, 2), padding=(1, 0), dilation=2, seed=0), (1, 5, 6, 4)),
        (nn.Linear(16, 33, seed=0), (2, 3, 16)),
        (nn.Conv2d(19, 19, 3, padding=1, groups=19, seed=0), (2, 5, 6, 19)),
        (nn.Conv2d(8, 6, 3, groups=2, seed=0), (2, 5, 6, 8)),
    ],
    ids=["strided", "dilated", "affine", "depthwise", "grouped"],
)
def test_has_numpys_bits(layer, shape, zero):
    x, of_x = rng.normal(size=shape).astype(np.float32), Scale(float(np.float32(0.02)), zero)
    int8_layer = int8_of(layer, *of_x)
    expected = expected_of(layer, of_x, x)
    np.testing.assert_array_equal(int8_layer(x).data, expected)
    np.testing.assert_array_equal(int8_layer.predict(x), expected)
    np.testing.assert_array_equal(nn.Sequential(int8_layer, nn.ReLU()).predict(x), expected.clip(0))


def test_results_are_rounded_once_for_all_readers():
    """A residual sum reads the same bytes as the layer that it adds."""
    first, second = nn.Linear(8, 8, seed=0), nn.Linear(8, 8, seed=1)
    x, of_x = rng.normal(size=(5, 8)).astype(np.float32), scale_of(-3.0, 3.0)
    of_middle = scale_of(0.0, 1.5)
    middle = expected_of(first, of_x, x, End(low=0.0, into=of_middle))
    zero, factor = np.float32(of_middle.zero), np.float32(of_middle.scale)
    floats = (middle.astype(np.float32) - zero) * factor
    expected = expected_of(second, of_middle, floats, End(middle, of_middle))

    block = nn.Residual(int8_of(second, *of_middle))
    model = nn.Sequential(int8_of(first, *of_x), nn.ReLU(), block)
    np.testing.assert_array_equal(model.predict(x), expected)


def test_an_int8_layer_shows_weights_near_those_of_float32():
    layer = nn.Conv2d(4, 6, 3, seed=0)
    int8_layer = int8_of(layer, 0.1, 0)
    scale = np.abs(layer.weight.data).reshape(6, -1).max(1) / 127
    assert np.abs(int8_layer.weight - layer.weight.data).max() <= 0.5001 * scale.max()


def test_weights_are_prepared_once_until_they_change(monkeypatch):
    """Without a predictor, as nowcast calls its networks."""
    made = []
    monkeypatch.setattr(int8, "Product", lambda *parts: made.append(1) or Product(*parts))
    layer, x = int8_of(nn.Linear(8, 4, seed=0), 0.02, 100), rng.normal(size=(3, 8))
    first, again = (layer(x.astype(np.float32)).data for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(made) == 1
    layer.load_state_dict(int8_of(nn.Linear(8, 4, seed=1), 0.02, 100).state_dict())
    assert np.abs(layer(x.astype(np.float32)).data - first).min() > 0
    assert len(made) == 2
    del layer
    assert not any(shape == (4, 1, 1, 8) for _, (_, _, shape, *_), _ in int8._products.values())


def test_sums_that_may_leave_int32_stay_float32():
    assert MOST == (2**31 - 1) // (255 * 128)
    assert takes_int8(nn.Linear(MOST, 1))
    assert not takes_int8(nn.Linear(MOST + 1, 1))
    assert not takes_int8(nn.Conv2d(4, 4, 1, groups=2))


def test_refusals_name_the_layer():
    int8_layer = int8_of(nn.Linear(4, 3, seed=0), 0.1, 0)
    with pytest.raises(ShapeError, match=r"Int8Linear: expected an input of shape \(\.\.\., 4\)"):
        int8_layer.predict(np.zeros((2, 5), np.float32))
    with pytest.raises(SettingsError, match=r"counterpart, found 'layers\.1', ReLU"):
        nn.Quantized(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), [("layers.1", 1.0, 0)])
