"""Dice by hand and by its slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.lossmeans import check_slopes


@given(
    shape=hnp.array_shapes(min_dims=3, max_dims=4, max_side=4),
    squared=st.booleans(),
    smooth=st.sampled_from([0.01, 1.0]),
)
def test_values_and_slopes(shape, squared, smooth):
    rng = np.random.default_rng(shape)
    p, t = rng.random(shape), np.round(rng.random(shape))

    def ours(*x, **k):
        return losses.dice(*x, squared=squared, smooth=smooth, **k)

    check_slopes(ours, p, constants=(t,))
    each = [
        1 - (2 * (a * b).sum() + smooth) / ((a**q).sum() + (b**q).sum() + smooth)
        for i in range(shape[0])
        for c in range(shape[-1])
        for a, b, q in [(p[i, ..., c], t[i, ..., c], 2 if squared else 1)]
    ]
    assert float(ours(p, t)) == pytest.approx(np.mean(each))


def test_perfect_and_empty_are_zero():
    t = np.round(np.random.default_rng(0).random((2, 4, 4, 1)))
    assert float(losses.dice(t, t)) == pytest.approx(0)
    assert float(losses.dice(0 * t, 0 * t)) == 0


def test_a_matrix_has_no_pixels():
    with pytest.raises(ShapeError, match=r"dice: expected shape .* found \(2, 3\)"):
        losses.dice(np.zeros((2, 3)), np.zeros((2, 3)))


def test_of_no_samples_there_is_a_gradient():
    x = Tensor(np.zeros((0, 4, 2)), requires_grad=True)
    losses.dice(x, np.zeros((0, 4, 2))).backward()
    assert x.grad.shape == (0, 4, 2)
