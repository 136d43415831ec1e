"""Initial weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl import nn
from daskdl.nn import init
from daskdl.nn.core import parameter as initialise
from daskdl.nn.core.parameter import Parameter
from tests.daskdl.test_same_bits import differing, digests


def weight(*shape):
    return Parameter(np.full(shape, np.nan))


def test_constants():
    assert (init.zeros(weight(3)).data == 0).all()
    assert (init.ones(weight(3)).data == 1).all()
    assert (init.constant(weight(2, 3), 0.5).data == 0.5).all()


@pytest.mark.parametrize("shape", [(80, 100), (60, 3, 3, 20)])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("xavier_uniform", {"gain": 2.0}),
        ("xavier_normal", {"gain": 0.5}),
        ("kaiming_uniform", {"nonlinearity": "relu"}),
        ("kaiming_uniform", {"a": 0.3, "mode": "fan_out"}),
        ("kaiming_normal", {"nonlinearity": "tanh", "mode": "fan_out"}),
        ("uniform", {"a": -0.1, "b": 0.3}),
        ("normal", {"mean": 0.2, "std": 0.5}),
        ("trunc_normal", {"std": 0.5, "a": -0.5, "b": 1.0}),
    ],
)
def test_agree_with_pytorch(name, arguments, shape, torch):
    names = {"kaiming": {"a": "slope"}, "uniform": {"a": "low", "b": "high"}}
    names["trunc"] = {"a": "low", "b": "high", "std": "deviation"}
    names["normal"] = {"std": "deviation"}
    ours = {names.get(name.split("_")[0], {}).get(k, k): v for k, v in arguments.items()}
    function = getattr(init, "truncated_normal" if name == "trunc_normal" else name)
    drawn = function(weight(*shape), **ours, seed=1).data
    torch.manual_seed(0)
    theirs = torch.empty(shape[0], shape[-1], *shape[1:-1])
    expected = getattr(torch.nn.init, f"{name}_")(theirs, **arguments).numpy()
    assert drawn.std() == pytest.approx(expected.std(), rel=0.03)
    assert drawn.mean() == pytest.approx(expected.mean(), abs=0.05 * float(expected.std()))
    if "normal" not in name or name == "trunc_normal":
        assert drawn.min() == pytest.approx(expected.min(), rel=0.01)
        assert drawn.max() == pytest.approx(expected.max(), rel=0.01)
    np.testing.assert_array_equal(function(weight(*shape), **ours, seed=1).data, drawn)
    assert (function(weight(*shape), **ours, seed=2).data != drawn).any()


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (8, 2, 2, 3)])
def test_orthogonal(shape):
    matrix = init.orthogonal(weight(*shape), gain=2.0, seed=0).data.reshape(shape[0], -1)
    product = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


@pytest.mark.parametrize(
    "name", ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
)
def test_gains(name, torch):
    ours = init.gain(name.removesuffix("2d"))
    assert ours == pytest.approx(torch.nn.init.calculate_gain(name))


def test_bilinear_filters_interpolate():
    """A transposed convolution of stride 2 with them doubles an image by linear interpolation."""
    layer = nn.ConvTranspose2d(1, 1, 4, 2, 1, bias=False)
    init.bilinear(layer.weight)
    x = np.arange(6, dtype="f4").reshape(1, 1, 6, 1).repeat(6, 1)
    result, expected = layer(x).data, nn.Upsample(2, "bilinear")(x).data
    np.testing.assert_allclose(result[:, 2:-2, 2:-2], expected[:, 2:-2, 2:-2], atol=1e-6)


def test_other_names():
    assert init.he_normal is init.kaiming_normal
    assert init.glorot_uniform is init.xavier_uniform


@pytest.mark.parametrize(
    ("draw", "bound"),
    [
        (lambda rng: initialise.uniform(rng, (100, 200), 25), 1 / 5),
        (lambda rng: initialise.glorot(rng, (100, 200), (70, 80)), math.sqrt(6 / 150)),
    ],
)
def test_uniform_within_its_bound(draw, bound):
    first, again, other = (draw(initialise.generator(seed)).data for seed in (1, 1, 2))
    assert first.dtype == np.float32
    assert 0.99 * bound < np.abs(first).max() <= bound * (1 + 1e-6)
    assert first.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert abs(first.mean()) < 0.02 * bound
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_without_a_seed_every_layer_differs():
    first, second = (initialise.generator(None).random(4) for _ in range(2))
    assert (first != second).any()


def test_a_forked_process_does_not_draw_what_its_parent_does(monkeypatch):
    mine = initialise.generator(None)
    assert initialise.generator(None) is mine
    monkeypatch.setattr(initialise.os, "getpid", lambda: -1)
    assert initialise.generator(None) is not mine


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_layers_are_the_same_cold_and_warm(tmp_path):
    cold, warm = (
        digests("2", "--kinds", "layers", NUMBA_CACHE_DIR=str(tmp_path))["2"] for _ in range(2)
    )
    assert len(cold) > 100
    assert differing(cold, warm) == []
