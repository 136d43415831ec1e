"""Arguments of operations: one sentence that names the argument, what was expected and found."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from daskdl.ops.arguments import check_floats, check_like


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_of_the_right_axes_pass(dtype):
    x = np.zeros((2, 3), dtype)
    check_floats("something", x)
    check_floats("something", x, axes=2)
    check_like("something", x, (3,), weight=np.zeros(3, dtype), bias=None)


@pytest.mark.parametrize(
    ("x", "axes", "sentence"),
    [
        (np.zeros((2, 3)), 4, "something: x: expected 4 axes, found shape (2, 3)"),
        (np.zeros(()), None, "something: x: expected at least 1 axis, found a scalar"),
        (np.zeros(2, "f2"), 1, "something: x: expected float32 or float64, found float16"),
    ],
)
def test_what_else_is_refused(x, axes, sentence):
    with pytest.raises(ShapeError) as error:
        check_floats("something", x, axes=axes)
    assert str(error.value).startswith(sentence)


def test_what_does_not_fit_x_is_refused():
    x = np.zeros((2, 3))
    with pytest.raises(ShapeError, match=r"weight: expected shape \(3,\) for x of shape \(2, 3\)"):
        check_like("something", x, (3,), weight=np.zeros(2))
    with pytest.raises(ShapeError, match="bias: expected float64 as x, found float32"):
        check_like("something", x, (3,), bias=np.zeros(3, "f4"))
