"""The matrices of Winograd's convolution and how few operations apply them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from daskdl.kernels.convolution.winograd_transforms import apply, scheme, tile_transform
from daskdl.kernels.products.microkernel import LANES, address

CASES = [(3, 4), (5, 4), (5, 2), (3, 2)]


@pytest.mark.parametrize(("kernel", "m"), CASES)
def test_the_matrices_convolve(kernel, m):
    found = scheme(kernel, m)
    rng = np.random.default_rng(kernel)
    g, d = rng.normal(size=kernel), rng.normal(size=m + kernel - 1)
    y = found.output @ ((found.filter @ g) * (found.input @ d))
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
