"""Tiles: those that meet an edge are cut as if the image were padded with zeros."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import winograd_tiles as tiles
from daskdl.kernels.convolution.winograd_transforms import scheme


@pytest.mark.parametrize("channels", [8, 16, 70])  # whole vectors, panels, more than a chunk
@pytest.mark.parametrize("kernel", [3, 5])
def test_tiles_at_edges_are_tiles_of_a_padded_image(kernel, channels):
    side, rows, columns = kernel + 3, 9, 14
    x = np.random.default_rng(0).normal(size=(2, rows, columns, channels))
    padded = np.pad(x, ((0, 0), (2, 12), (2, 12), (0, 0)))
    width = -(-channels // 16) * 16
    number = 2 * 3 * 4
    v = np.full((side * side, number * width + 16), np.nan)
    spare = np.empty((side * side, tiles.CHUNK))
    tiles.inputs(x, v, width, 0, kernel, 2, 2, rows, columns, 0, number, 0, spare)
    matrix = scheme(kernel, 4).input
    for index in range(number):
        n, rest = divmod(index, 12)
        i, j = rest // 4 * 4, rest % 4 * 4
        tile = padded[n, i : i + side, j : j + side]
        expected = np.einsum("ap,pqc,bq->abc", matrix, tile, matrix).reshape(side**2, -1)
        found = v[:, index * width : index * width + channels]
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("kernel", [3, 5])
def test_gradients_and_outputs_are_adjoint(kernel):
    """<outputs(p), dy> = <p, gradients(dy)>."""
    rng = np.random.default_rng(0)
    side, shape, width, number = kernel + 3, (2, 7, 9, 21), 32, 2 * 2 * 3
    dy, y = rng.normal(size=shape), np.empty(shape)
    spare = np.empty((side * side, tiles.CHUNK))
    products = rng.normal(size=(side * side, number * width))
    tiles.outputs(products, width, kernel, y, 0, 21, 0, number, False, spare, None)
    z = np.zeros_like(products)
    tiles.gradients(dy, z, width, 0, kernel, 0, number, 0, spare)
    wanted = np.arange(number * width) % width < 21
    left, right = (y * dy).sum(), (products * z)[:, wanted].sum()
    np.testing.assert_allclose(left, right, rtol=1e-10)
    once = y.copy()
    tiles.outputs(products, width, kernel, y, 0, 21, 0, number, True, spare, None)
    np.testing.assert_allclose(y, 2 * once)


@pytest.mark.parametrize("channels", [96, 100])  # whole strips; an end that is no whole vector
@pytest.mark.parametrize("kernel", [3, 5])
def test_narrow_strips_hold_what_one_of_all_channels_does(kernel, channels):
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
        found = strips.reshape(side * side, 7, step)[:, :, : number * strip]
        found = found.reshape(side * side, 7, number, strip).transpose(0, 2, 1, 3)
        found = found.reshape(side * side, number, width)[:, :, :channels]
        expected = whole.reshape(side * side, number, width)[:, :, :channels]
        np.testing.assert_array_equal(found, expected)
