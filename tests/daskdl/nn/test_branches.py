"""Containers whose layers stand side by side."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal

X = normal(2, 3, 4).astype("f4")


def test_each_layer_gets_what_it_is_meant_to():
    a, b = nn.Linear(4, 3, seed=0), nn.Linear(4, 3, seed=1)
    ya, yb = a(X).data, b(X).data
    for first, second in (nn.Branches(a, b)(X), nn.Parallel(a, b)(X, X), nn.Parallel(a, b)((X, X))):
        np.testing.assert_array_equal(first.data, ya)
        np.testing.assert_array_equal(second.data, yb)
    first, second = nn.Map(a)(X, X + 1)
    np.testing.assert_array_equal(first.data, ya)
    np.testing.assert_array_equal(second.data, a(X + 1).data)
    np.testing.assert_array_equal(nn.Concat(a, b)(X).data, np.concatenate([ya, yb], -1))
    np.testing.assert_array_equal(nn.Concat(a, b, axis=1)(X).data, np.concatenate([ya, yb], 1))
    np.testing.assert_array_equal(nn.Residual(a, b, nn.ReLU())(X).data, np.maximum(ya + yb, 0))
    assert nn.Identity()(X) is X


def test_a_shortcut_takes_its_part_of_the_gradient():
    x = Tensor(X, requires_grad=True)
    nn.Residual(nn.Affine(3.0))(x).backward(np.ones_like(X))
    np.testing.assert_array_equal(x.grad, np.full_like(X, 4))


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"Concat: .* axis -1 alone, found \(2, 3, 4\), \(2, 12\)"):
        nn.Concat(nn.Tanh(), nn.Flatten())(X)
    with pytest.raises(ShapeError, match=r"Parallel: expected 2 inputs, .* found 1"):
        nn.Parallel(nn.Tanh(), nn.Tanh())(X)
    with pytest.raises(ShapeError, match=r"Residual: .* found \(2, 12\) and \(2, 3, 4\)"):
        nn.Residual(nn.Flatten())(X)
