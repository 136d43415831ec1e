"""Winograd's transforms and their accuracy; conv2d's tests cover shapes and paddings."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels import winograd
from daskdl.kernels.conv2d import Geometry
from daskdl.kernels.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient


def same(kernel):
    return Geometry((kernel, kernel), (1, 1), (kernel // 2,) * 4)


@pytest.mark.parametrize("kernel", [3, 5])
def test_filter_matrix_interpolates_exactly(kernel):
    """A filter's transform at a point is its polynomial there, scaled."""
    g = np.arange(1.0, kernel + 1)
    points = np.array([0, 1, -1, 2, -2])
    scale = np.array([1 / 4, -1 / 6, -1 / 6, 1 / 24, 1 / 24])
    transformed = winograd.filter_matrix(kernel) @ g
    np.testing.assert_allclose(transformed[:5], np.polyval(g[::-1], points) * scale)
    assert transformed[5] == g[-1]


@pytest.mark.parametrize("kernel", [3, 5])
def test_transformed_weights_have_36_products_each_way(kernel):
    weight = np.random.default_rng(0).normal(size=(7, kernel, kernel, 5)).astype(np.float32)
    assert winograd.transform_weights(weight).shape == (36, 5, 7)
    assert winograd.transform_weights_adjoint(weight).shape == (36, 7, 5)
    assert winograd.transform_weights(weight).dtype == np.float32


@pytest.mark.parametrize("kernel", [3, 5])
def test_float32_is_right_to_1e_5_of_the_largest_value(kernel):
    """Smooth, positive input as after a ReLU, 64 channels: where Winograd's error is worst."""
    rng = np.random.default_rng(1)
    x = rng.random((2, 16, 18, 64)).astype(np.float32)
    weight = (rng.normal(size=(16, kernel, kernel, 64)) / (8 * kernel)).astype(np.float32)
    pad = (kernel // 2, kernel // 2)
    y = winograd.convolve(x, winograd.transform_weights(weight), kernel, pad, (16, 18), None)
    exact = correlate(x.astype(float), weight.astype(float), same(kernel))
    assert np.abs(y - exact).max() < 1e-5 * np.abs(exact).max()
    dw = winograd.weight_gradient(x, y, kernel, pad)
    exact = correlate_weight_gradient(x.astype(float), y.astype(float), same(kernel))
    assert np.abs(dw - exact).max() < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("tiles", [1, winograd.BLOCK - 1, winograd.BLOCK, winograd.BLOCK + 1])
def test_any_number_of_tiles_fills_its_blocks(tiles):
    rng = np.random.default_rng(tiles)
    x = rng.normal(size=(1, 4, 4 * tiles, 8))
    weight = rng.normal(size=(8, 3, 3, 8))
    with thread_budget(1):
        y = winograd.convolve(x, winograd.transform_weights(weight), 3, (1, 1), x.shape[1:3], None)
    np.testing.assert_allclose(y, correlate(x, weight, same(3)), atol=1e-11)


def test_parts_of_two_threads_sum_to_the_whole_gradient():
    rng = np.random.default_rng(2)
    x, dy = rng.normal(size=(2, 4, 24, 40, 8))
    with thread_budget(1):
        alone = winograd.weight_gradient(x, dy, 3, (1, 1))
    with thread_budget(2):
        together = winograd.weight_gradient(x, dy, 3, (1, 1))
    np.testing.assert_allclose(together, alone, atol=1e-10)
