"""Pooling of sequences and volumes: gradients, ties, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.nn.beside_pytorch import channels_last, channels_second


@pytest.mark.parametrize("name", ["max_pool", "avg_pool"])
def test_gradients(name):
    check_gradient(
        lambda t: getattr(ops, f"{name}1d")(t, kernel_size=3, stride=2, pad=(1, 0)), normal(2, 7, 3)
    )
    check_gradient(
        lambda t: getattr(ops, f"{name}3d")(
            t, kernel_size=(2, 3, 1), stride=(1, 2, 2), pad=(0, 1, 1, 0, 0, 0), ceil_mode=True
        ),
        normal(2, 3, 5, 4, 3),
    )


def test_of_equals_the_first_of_the_window_gets_the_gradient(torch):
    x = np.random.default_rng(0).integers(0, 2, (1, 4, 5, 4, 2)).astype("f4")
    theirs = torch.tensor(x, requires_grad=True)
    y = torch.nn.functional.max_pool3d(channels_second(torch, theirs), 2, 1)
    y.sum().backward()
    ours = Tensor(x, requires_grad=True)
    result = ops.max_pool3d(ours, kernel_size=(2, 2, 2), stride=(1, 1, 1))
    result.backward(np.ones_like(result.data))
    np.testing.assert_array_equal(result.data, channels_last(torch, y).detach())
    np.testing.assert_array_equal(ours.grad, theirs.grad)


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"expected x of shape \(N, T, C\), found \(2, 3\)"):
        ops.max_pool1d(np.ones((2, 3)), kernel_size=2)
    with pytest.raises(ShapeError, match=r"expected x of shape \(N, D, H, W, C\), found \(2, 3\)"):
        ops.avg_pool3d(np.ones((2, 3)), kernel_size=(2, 2, 2))
