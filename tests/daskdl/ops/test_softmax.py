"""Softmax and its logarithm: gradients along any axis, agreement with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

each = pytest.mark.parametrize("name", ["softmax", "log_softmax"])


@each
@given(shape=hnp.array_shapes(max_dims=4, max_side=5), data=st.data())
def test_gradient(name, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check_gradient(lambda x: getattr(ops, name)(x, axis=axis), normal(*shape))


@each
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_agrees_with_pytorch(name, axis, torch):
    x, dy = (3 * normal(6, 9, 40, seed=s).astype("f4") for s in (0, 1))
    theirs = torch.tensor(x, requires_grad=True)
    expected = getattr(torch, name)(theirs, axis)
    expected.backward(torch.from_numpy(dy))
    ours = Tensor(x, requires_grad=True)
    y = getattr(ops, name)(ours, axis=axis)
    y.backward(dy)
    np.testing.assert_allclose(y.data, expected.detach().numpy(), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), rtol=2e-5, atol=5e-6)


@each
def test_an_axis_that_is_not_there_is_told(name):
    with pytest.raises(ShapeError, match=rf"{name}: expected an axis of x, .* \(2, 3\), found 2"):
        getattr(ops, name)(np.ones((2, 3)), axis=2)
