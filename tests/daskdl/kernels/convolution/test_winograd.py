"""Winograd's convolutions: transforms, tiles, and the whole."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from daskdl.kernels.convolution import winograd
from daskdl.kernels.convolution import winograd_tiles as tiles
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.winograd_transforms import apply, scheme, tile_transform
from daskdl.kernels.products.microkernel import DEPTH, LANES, address
from tests.daskdl.convolutions import correlate, correlate_weight_gradient, draw
from tests.daskdl.gradients import same_bits


def same(kernel):
    return Geometry((kernel, kernel), (1, 1), (kernel // 2,) * 4)


@pytest.mark.slow
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


@pytest.mark.slow
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
    sizes = [np.prod([1.0, 1, 2, 2]), np.prod([1.0, 1, 2, 2, 0.5, 0.5])]  # distances to 0
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "channels"),
    [*((n, 8) for n in (1, 5, 6, 7, 97)), (6, tiles.CHUNK + 3), (6, DEPTH + 5)],
)
def test_any_number_of_tiles_and_channels_fills_its_blocks(number, channels, monkeypatch):
    x, weight = draw((1, 4, 4 * number, channels), (8, 3, 3, channels))
    for few in (0, winograd.FEW):
        monkeypatch.setattr(winograd, "FEW", few)
        y = winograd.convolve(x, winograd.Weights(weight, False), (1, 1), x.shape[1:3], None)
        np.testing.assert_allclose(y, correlate(x, weight, same(3)), atol=1e-11)


def test_the_gradient_to_the_weights_has_the_same_bits_on_any_number_of_threads():
    x, dy = draw((2, 24, 40, 20), (2, 24, 40, 20), dtype=np.float32)
    same_bits(lambda: winograd.weight_gradient(x, dy, 3, (1, 1)), 1, 2, 3)


@pytest.mark.parametrize("kernel", [3, 5])
def test_nan_and_infinity_reach_every_pixel_that_sees_them(kernel):
    for value in (np.nan, np.inf):
        x = np.ones((1, 9, 9, 8), np.float32)
        x[0, 4, 4, 3] = value
        weights = winograd.Weights(np.ones((8, kernel, kernel, 8), np.float32), False)
        y = winograd.convolve(x, weights, (kernel // 2,) * 2, (9, 9), None)
        near = slice(4 - kernel // 2, 5 + kernel // 2)
        assert not np.isfinite(y[0, near, near]).any()


@pytest.mark.slow
@pytest.mark.parametrize("channels", [96, 100])  # whole strips; an end that is no whole vector
@pytest.mark.parametrize("kernel", [3, 5])
def test_narrow_strips_equal_one_strip_of_all_channels(kernel, channels):
    rng = np.random.default_rng(0)
    side, rows, columns, number = kernel + 3, 9, 14, 2 * 3 * 4
    x = rng.normal(size=(2, rows, columns, channels))
    spare = np.empty((side * side, tiles.CHUNK))
    strip, step, width = 16, number * 16 + 8, 112
    for transform, corner in ((tiles.inputs, (2, 2, rows, columns)), (tiles.gradients, ())):
        whole = np.full((side * side, number * width), np.nan)
        strips = np.full((side * side, 7 * step), np.nan)
        transform(x, whole, width, 0, kernel, *corner, 0, number, 0, spare)
        transform(x, strips, strip, step, kernel, *corner, 0, number, 0, spare)
        actual = strips.reshape(side * side, 7, step)[:, :, : number * strip]
        actual = actual.reshape(side * side, 7, number, strip).transpose(0, 2, 1, 3)
        actual = actual.reshape(side * side, number, width)[:, :, :channels]
        expected = whole.reshape(side * side, number, width)[:, :, :channels]
        np.testing.assert_array_equal(actual, expected)


CASES = [(3, 4), (5, 4), (5, 2), (3, 2)]


@pytest.mark.parametrize(("kernel", "m"), CASES)
def test_the_matrices_convolve(kernel, m):
    matrices = scheme(kernel, m)
    rng = np.random.default_rng(kernel)
    g, d = rng.normal(size=kernel), rng.normal(size=m + kernel - 1)
    y = matrices.output @ ((matrices.filter @ g) * (matrices.input @ d))
    np.testing.assert_allclose(y, np.correlate(d, g, "valid"), atol=1e-12)


class Counted:
    """A vector that counts the operations on it."""

    operations = 0

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        Counted.operations += 1
        return Counted(self.value + other.value)

    def __sub__(self, other):
        Counted.operations += 1
        return Counted(self.value - other.value)

    def __mul__(self, factor):  # fused with a sum, hence not counted
        return Counted(self.value * factor)


@pytest.mark.parametrize("name", ["input", "filter", "output"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("kernel", "m"), CASES)
def test_apply_is_the_product_in_fewer_operations(kernel, m, name, transposed):
    matrix = getattr(scheme(kernel, m), name)
    matrix = matrix.T if transposed else matrix
    vectors = np.random.default_rng(0).normal(size=(matrix.shape[1], 5))
    Counted.operations = 0
    results = apply(matrix, [Counted(v) for v in vectors])
    np.testing.assert_allclose([r.value for r in results], matrix @ vectors, atol=1e-12)
    assert Counted.operations <= np.count_nonzero(matrix) - len(matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_are_transformed_along_both_axes_and_nothing_else_is_written(dtype):
    matrix = scheme(3, 4).output
    transform = tile_transform(matrix)

    @njit
    def run(x, y, channels):
        size = x.itemsize
        width, wide = x.shape[2] * size, y.shape[2] * size
        transform(
            x, address(x), x.shape[1] * width, width, address(y), y.shape[1] * wide, wide, channels
        )

    x = np.random.default_rng(0).normal(size=(6, 7, 3 * LANES)).astype(dtype)
    y = np.full((5, 4, 3 * LANES), 7, dtype)
    run(x, y, 2 * LANES)
    expected = np.einsum("ip,pqc,jq->ijc", matrix, x[:, :6], matrix)[..., : 2 * LANES]
    np.testing.assert_allclose(y[:4, :, : 2 * LANES], expected, rtol=1e-4, atol=1e-4)
    assert (y[4] == 7).all()
    assert (y[..., 2 * LANES :] == 7).all()
