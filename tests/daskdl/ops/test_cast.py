"""Numbers in another dtype: their gradients come back in their own."""

from __future__ import annotations

import numpy as np

from daskdl import ops
from daskdl.tensor import Tensor


def test_gradients_are_cast_back():
    x = Tensor(np.array([1.5, -2.5], "f4"), requires_grad=True)
    y = ops.cast(x, dtype=np.float64)
    assert y.dtype == np.float64
    y.backward(np.array([3.0, 4.0]))
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad, [3, 4])


def test_whole_numbers_have_no_gradient():
    x = Tensor(np.array([1.5, -2.5], "f4"), requires_grad=True)
    y = ops.cast(x, dtype=np.int64)
    np.testing.assert_array_equal(y.data, [1, -2])
    y.backward(np.array([3, 4]))
    assert x.grad is None
