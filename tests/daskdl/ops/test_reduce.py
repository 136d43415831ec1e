"""Sums and means: gradients over any axes, agreement with PyTorch, mistakes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

AXES = [None, 0, -1, (0, 1), (0, 2), (2, 0), (0, 1, 2), ()]


@pytest.mark.parametrize("function", [ops.sum, ops.mean])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_gradient(function, axis, keepdims):
    check_gradient(lambda x: function(x, axis=axis, keepdims=keepdims), normal(3, 1, 4))


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("axis", AXES[:-1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_agrees_with_pytorch(name, axis, keepdims, torch):
    x = normal(3, 5, 4).astype("f4")
    expected = getattr(torch, name)(torch.from_numpy(x), dim=axis, keepdim=keepdims).numpy()
    result = getattr(ops, name)(x, axis=axis, keepdims=keepdims)
    assert result.shape == expected.shape
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.data, expected, rtol=1e-6, atol=1e-6)


def test_nothing_sums_to_zero_and_has_no_mean():
    x = np.empty((0, 3), "f4")
    assert ops.sum(x, axis=0).data.tolist() == [0, 0, 0]
    assert np.isnan(ops.mean(x).data)


def test_gradient_can_be_added_to():
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    for _ in range(2):
        ops.sum(x, axis=1).backward(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(x.grad, [[2, 2, 2], [4, 4, 4]])


@pytest.mark.parametrize("axis", [2, -3, (0, 0), "channels"])
def test_axes_that_are_not_there_are_told(axis):
    sentence = f"mean: expected axes of x, whose shape is (2, 3), each once, found {axis}"
    with pytest.raises(ShapeError, match=re.escape(sentence)):
        ops.mean(np.ones((2, 3)), axis=axis)
