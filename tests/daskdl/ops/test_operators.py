"""Operators and methods of tensors do what numpy's do, and have gradients."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

IDS = np.array([[2, 0], [2, 2]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: x**2,
        lambda x: x**3.0,
        lambda x: x[1],
        lambda x: x[..., -1],
        lambda x: x[:, 1:, ::2],
        lambda x: x[:, None, 2],
        lambda x: x[IDS],
        lambda x: x[1, IDS],
        lambda x: x[[0, 2, 0]],
        lambda x: x[np.array([True, False, True])],
        lambda x: x.reshape(2, 18),
        lambda x: x.reshape((4, -1)),
        lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose((1, 0, 2)),
        lambda x: x.transpose(),
        lambda x: x.sum(),
        lambda x: x.sum(1),
        lambda x: x.sum(axis=(0, 2), keepdims=True),
        lambda x: x.mean(axis=-1),
    ],
)
def test_is_numpys_and_has_a_gradient(function):
    x = normal(3, 4, 3)
    np.testing.assert_allclose(function(Tensor(x)).data, function(x), rtol=1e-14)
    check_gradient(function, x)


def test_a_tensor_may_be_an_index():
    x = normal(3, 2)
    np.testing.assert_array_equal(Tensor(x)[Tensor([2, 0])].data, x[[2, 0]])


def test_a_loop_over_a_tensor_ends():
    assert [row.shape for row in Tensor(normal(3, 2))] == [(2,)] * 3


def test_dtype_stays():
    x = Tensor(np.ones(3, np.float32))
    assert {y.dtype for y in (-x, x**2, x**0.5, x.sum(), x.mean())} == {np.dtype("f4")}


def test_what_does_not_fit_is_said():
    x = Tensor(np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"index: expected one of shape \(3, 2\), found .*slice"):
        x[:, 5]
    with pytest.raises(TypeError, match="unsupported operand"):
        x ** Tensor(2.0)
    with pytest.raises(IndexError, match="out of bounds"):
        x[3]
    assert x[2, 0].item() == 1
