"""Vectors divided by their length: gradients, PyTorch's numbers, vectors of length zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.layouts import layouts
from tests.daskdl.peers import check_agreement


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    eps=st.sampled_from([1e-12, 2.0]),  # about half of the vectors are shorter than the second
)
def test_gradient(shape, eps):
    check_gradient(lambda x: ops.normalize(x, eps=eps), normal(*shape))


@pytest.mark.parametrize("shape", [(7, 33), (3, 4, 3300), (5, 1)])
def test_agrees_with_pytorch(shape, torch):
    check_agreement(
        torch, ops.normalize, lambda x: torch.nn.functional.normalize(x, dim=-1), normal(*shape)
    )


def test_zero_stays_zero_and_nan_stays_in_its_row(torch):
    x = normal(4, 3).astype("f4")
    x[1], x[2, 0] = 0, np.nan
    expected = torch.nn.functional.normalize(torch.tensor(x), dim=-1)
    np.testing.assert_allclose(ops.normalize(x).data, expected.numpy(), atol=1e-6)


def test_any_layout_gives_the_same():
    x = normal(4, 3, 6).astype("f4")
    expected = ops.normalize(x).data
    for other in layouts(x):
        np.testing.assert_allclose(ops.normalize(other).data, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty(shape):
    x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
    y = ops.normalize(x)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape


def test_whole_numbers_are_refused():
    with pytest.raises(ShapeError, match="normalize: x: expected float32 or float64, found int64"):
        ops.normalize(np.zeros((2, 3), "i8"))
