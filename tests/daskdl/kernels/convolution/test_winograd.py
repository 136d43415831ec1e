"""Winograd's accuracy and the ways it handles few tiles and many; conv2d's tests cover shapes."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import winograd
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient


def same(kernel):
    return Geometry((kernel, kernel), (1, 1), (kernel // 2,) * 4)


def draw(*shapes, dtype=np.float64):
    rng = np.random.default_rng([len(shapes), *shapes[0]])
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("kernel", [3, 5])
def test_float32_is_right_to_3e_5_of_the_largest_value(kernel):
    """Smooth, positive input as after a ReLU, 64 channels: where Winograd's error is worst."""
    rng = np.random.default_rng(1)
    x = rng.random((2, 16, 18, 64)).astype(np.float32)
    weight = (rng.normal(size=(16, kernel, kernel, 64)) / (8 * kernel)).astype(np.float32)
    pad = (kernel // 2, kernel // 2)
    y = winograd.convolve(x, winograd.Weights(weight, False), pad, (16, 18), None)
    exact = correlate(x.astype(float), weight.astype(float), same(kernel))
    assert np.abs(y - exact).max() < 3e-5 * np.abs(exact).max()
    dw = winograd.weight_gradient(x, y, kernel, pad)
    exact = correlate_weight_gradient(x.astype(float), y.astype(float), same(kernel))
    assert np.abs(dw - exact).max() < 3e-5 * np.abs(exact).max()


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("kernel", [3, 5])
def test_transformed_weights_are_panels_by_point(kernel, adjoint):
    (weight,) = draw((7, kernel, kernel, 40))
    transformed = winograd.transform(winograd.Weights(weight, adjoint))
    channels, filters = (7, 40) if adjoint else (40, 7)
    assert transformed.filters == filters
    assert transformed.panels.shape[1:3] == ((kernel + 3) ** 2, channels + 1)
    columns = transformed.panels.shape[3]
    first, last = transformed.panels[0, 0, 0, 0], transformed.panels[0, -1, 0, 0]
    corner = (0, 0, 0, 0) if not adjoint else (0, -1, -1, 0)  # the point 0 sees one weight only
    sizes = [np.prod([1.0, 1, 2, 2]), np.prod([1.0, 1, 2, 2, 0.5, 0.5])]  # of 0 from the others
    scale = [1 / sizes[0], -1 / sizes[1]][kernel == 5] ** 2
    np.testing.assert_allclose(first, weight[corner] * scale)
    corner = (0, -1, -1, 0) if not adjoint else (0, 0, 0, 0)
    np.testing.assert_allclose(last, weight[corner])
    used = filters % columns
    assert not transformed.panels[-1, :, :channels, used:].any()


def test_points_do_not_share_the_end_of_their_address():
    """Where they did, transforming tiles took three times as long."""
    for channels in (1, 32, 64, 96, 128, 256, 512):
        assert winograd._width(channels) % 256
        for block in range(1, 200):
            _, step, size = winograd._strips(channels, 32, block)
            assert step % 256
            assert size % 256


@pytest.mark.parametrize("limit", ["FEW", "BLOCK", "PANELS", "SUMMED", "WIDE"])
def test_how_tiles_are_cut_changes_nothing(limit, monkeypatch):
    """Few tiles are handled by filters, many in blocks; both are the plain sum."""
    x, weight, dy = draw((2, 30, 33, 40), (35, 3, 3, 40), (2, 30, 33, 35))
    monkeypatch.setattr(winograd, "FEW", 1 << 30 if limit in ("FEW", "PANELS") else 0)
    if limit != "FEW":
        monkeypatch.setattr(winograd, limit, 1)
    for weights in (winograd.Weights(weight, False),) * 2 + (
        winograd.transform(winograd.Weights(weight, False)),
    ):
        y = winograd.convolve(x, weights, (1, 1), (30, 33), None)
        np.testing.assert_allclose(y, correlate(x, weight, same(3)), atol=1e-11)
    for least in (16, 1000):  # in blocks, and all tiles at once
        monkeypatch.setattr(winograd, "LEAST_TILES", least)
        dw = winograd.weight_gradient(x, dy, 3, (1, 1))
        np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, same(3)), atol=1e-10)


@pytest.mark.parametrize("tiles", [1, 5, 6, 7, 97])
def test_any_number_of_tiles_fills_its_blocks(tiles, monkeypatch):
    x, weight = draw((1, 4, 4 * tiles, 8), (8, 3, 3, 8))
    for few in (0, winograd.FEW):
        monkeypatch.setattr(winograd, "FEW", few)
        y = winograd.convolve(x, winograd.Weights(weight, False), (1, 1), x.shape[1:3], None)
        np.testing.assert_allclose(y, correlate(x, weight, same(3)), atol=1e-11)


def test_the_gradient_to_the_weights_has_the_same_bits_on_any_number_of_threads():
    x, dy = draw((2, 24, 40, 20), (2, 24, 40, 20), dtype=np.float32)
    results = []
    for n in (1, 2, 3):
        with thread_budget(n):
            results.append(winograd.weight_gradient(x, dy, 3, (1, 1)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("kernel", [3, 5])
def test_nan_and_infinity_reach_every_pixel_that_sees_them(kernel):
    for value in (np.nan, np.inf):
        x = np.ones((1, 9, 9, 8), np.float32)
        x[0, 4, 4, 3] = value
        weights = winograd.Weights(np.ones((8, kernel, kernel, 8), np.float32), False)
        y = winograd.convolve(x, weights, (kernel // 2,) * 2, (9, 9), None)
        near = slice(4 - kernel // 2, 5 + kernel // 2)
        assert not np.isfinite(y[0, near, near]).any()
