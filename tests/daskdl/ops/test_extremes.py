"""Largest and smallest elements along an axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


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
