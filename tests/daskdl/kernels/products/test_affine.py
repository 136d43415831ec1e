"""Affine maps of inference: the product, finished; the same bits whichever rows are beside."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.pointwise import FEW
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.slow
@pytest.mark.parametrize(("inside", "outside"), [(5, 3), (300, 70), (64, 64), (17, 40), (1024, 40)])
@pytest.mark.parametrize("rows", [1, 4, 7, 19, FEW + 5])
def test_rows_are_finished_and_have_their_own_bits(inside, outside, rows):
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, inside)).astype(np.float32)
    weight = rng.standard_normal((outside, inside)).astype(np.float32)
    bias = rng.standard_normal(outside).astype(np.float32)
    beside = rng.standard_normal((rows, outside)).astype(np.float32)
    made = Affine(weight, bias)
    found = made(x, beside, -1, 4)
    expected = np.clip(x.astype(float) @ weight.T + bias + beside, -1, 4)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for threads in (1, 2):
        with thread_budget(threads):
            np.testing.assert_array_equal(made(x, beside, -1, 4), found)
            np.testing.assert_array_equal(made(x[-1:], beside[-1:], -1, 4), found[-1:])
    np.testing.assert_allclose(made(x), x.astype(float) @ weight.T + bias, atol=1e-4)


def test_leading_axes_stay():
    made = Affine(np.ones((2, 3), np.float32))
    assert made(np.ones((4, 5, 3), np.float32)).shape == (4, 5, 2)
    assert made(np.ones((0, 3), np.float32)).shape == (0, 2)
