"""Biases: numpy's sums in any layout and dtype, and with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.bias import LEAST, add_bias, bias_gradient

SHAPES = [(0, 3), (4, 0), (1, 1), (7,), (2, 3, 5), (2 * LEAST // 40 + 3, 40), (3, LEAST, 2)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_is_numpys_sum(shape, dtype, threads):
    rng = np.random.default_rng(0)
    y, bias = rng.normal(size=shape).astype(dtype), rng.normal(size=shape[-1]).astype(dtype)
    expected = y + bias
    with thread_budget(threads):
        add_bias(y, bias)
        gradient = bias_gradient(expected)
    np.testing.assert_array_equal(y, expected)
    assert gradient.dtype == y.dtype
    exact = expected.astype("f8").sum(tuple(range(len(shape) - 1)))
    np.testing.assert_allclose(gradient, exact, rtol=1e-5, atol=1e-3 if dtype == "f4" else 1e-9)


def test_takes_any_layout_and_dtype():
    y, bias = np.ones((4, 3, 2), "f4"), np.arange(2.0)
    turned, whole = y.transpose(1, 0, 2), np.zeros((2, 2), int)
    add_bias(turned, bias)
    np.testing.assert_array_equal(y, np.broadcast_to(1 + bias, y.shape))
    add_bias(whole, np.array([1, 2]))
    np.testing.assert_array_equal(whole, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(bias_gradient(turned), [12, 24])
    assert bias_gradient(turned.astype("f2")).dtype == np.float16
