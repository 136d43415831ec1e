"""Reductions along axes: sums, extremes, cumulative sums, largest values."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=15)
@given(axis=st.integers(-3, 2), keepdims=st.booleans(), name=st.sampled_from(["amax", "amin"]))
def test_along_any_axis(axis, keepdims, name):
    x = normal(2, 3, 4)
    y = getattr(ops, name)(x, axis=axis, keepdims=keepdims).data
    np.testing.assert_array_equal(y, getattr(np, name)(x, axis=axis, keepdims=keepdims))
    check_gradient(lambda t: getattr(ops, name)(t, axis=axis, keepdims=keepdims), x)


def test_the_first_of_equals_gets_the_gradient():
    x = Tensor(np.array([[1.0, 2, 2], [0, 0, 0]]), requires_grad=True)
    ops.amax(x).backward([1.0, 1.0])
    np.testing.assert_array_equal(x.grad, [[0, 1, 0], [1, 0, 0]])


def test_an_axis_without_elements_is_refused():
    for axis, shape in ((2, (2, 3)), (1, (2, 0))):
        with pytest.raises(ShapeError, match=rf"amax: .* found axis {axis} of shape"):
            ops.amax(np.ones(shape), axis=axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(axis, exclusive, reverse):
    settings = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    for function, numpys in ((ops.cumsum, np.cumsum), (ops.cumprod, np.cumprod)):
        x = normal(3, 4, 2)
        check_gradient(lambda t, f=function: f(t, **settings), x)
        if not exclusive and not reverse:
            np.testing.assert_allclose(function(x, axis=axis).data, numpys(x, axis))


def test_an_exclusive_sum_starts_at_nothing():
    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(ops.cumsum(x, axis=0, exclusive=True).data, [0, 1, 3])
    np.testing.assert_array_equal(
        ops.cumprod(x, axis=0, exclusive=True, reverse=True).data, [6, 3, 1]
    )
    with pytest.raises(ShapeError, match=r"cumsum: expected an axis of x, whose shape is \(3,\)"):
        ops.cumsum(x, axis=1)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("k", "axis"), [(2, 0), (3, -1), (0, 1)])
def test_values(largest, k, axis, torch):
    x = normal(3, 4, 5)
    values, places = ops.topk(x, k=k, axis=axis, largest=largest)
    right, at = torch.tensor(x).topk(k, axis, largest)
    np.testing.assert_array_equal(values.data, right)
    np.testing.assert_array_equal(places.data, at)
    if k:
        check_gradient(lambda t: ops.topk(t, k=k, axis=axis, largest=largest)[0], x)


def test_of_equals_the_first_comes_first():
    x = np.array([1.0, 3, 3, 2, 3])
    np.testing.assert_array_equal(ops.topk(x, k=3)[1].data, [1, 2, 4])
    np.testing.assert_array_equal(ops.topk(-x, k=3, largest=False)[1].data, [1, 2, 4])
    with pytest.raises(ShapeError, match="found k=6, axis=-1"):
        ops.topk(x, k=6)
