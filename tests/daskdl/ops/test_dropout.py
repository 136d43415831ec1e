"""The operation: its gradient has the mask of its result; rates that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (50, 60)])
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_gradient(shape, rate):
    check_gradient(lambda x: ops.dropout(x, rate=rate, seed=3, counter=5), normal(*shape))


def test_gradient_has_the_mask_of_the_result():
    x = Tensor(np.ones((40, 50), np.float32), requires_grad=True)
    y = ops.dropout(x, rate=0.5, seed=1)
    y.backward(np.asfortranarray(np.ones((40, 50), np.float32)))
    np.testing.assert_array_equal(x.grad, y.data)


def test_layout_does_not_change_the_draws():
    x = np.ones((30, 40), np.float32)
    expected = ops.dropout(x, rate=0.5, seed=1).data
    np.testing.assert_array_equal(
        ops.dropout(np.asfortranarray(x), rate=0.5, seed=1).data, expected
    )


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(SettingsError, match=f"dropout: expected 0 <= rate <= 1, found {rate}"):
        ops.dropout(np.ones(3), rate=rate, seed=0)


def test_integers_are_refused():
    with pytest.raises(ShapeError, match="dropout: expected x of float32 or float64, found int64"):
        ops.dropout(np.ones(3, int), rate=0.5, seed=0)
