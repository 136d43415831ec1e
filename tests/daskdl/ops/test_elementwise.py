"""Elementary functions: gradients, PyTorch's numbers, and where they are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement

EDGES = np.array([[-np.inf, -1, -0.0, 0, 0.5, 1, np.inf, np.nan]])


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "square", "abs"])
def test_functions(name, torch):
    x = np.abs(normal(3, 4)) + 0.1
    check_gradient(getattr(ops, name), x)
    check_agreement(torch, getattr(ops, name), getattr(torch, name), x)
    expected = getattr(torch, name)(torch.tensor(EDGES))
    np.testing.assert_allclose(getattr(ops, name)(EDGES).data, expected)


@pytest.mark.parametrize("exponent", [-1.5, -1, 0, 0.5, 1, 2, 3])
def test_powers(exponent, torch):
    x = np.abs(normal(3, 4)) + 0.1
    check_gradient(lambda t: ops.power(t, exponent=exponent), x)
    check_agreement(torch, lambda t: ops.power(t, exponent=exponent), lambda t: t**exponent, x)
    np.testing.assert_allclose(
        ops.power(EDGES, exponent=exponent).data, torch.tensor(EDGES) ** exponent
    )


@pytest.mark.parametrize(("low", "high"), [(-0.5, 0.5), (None, 0.1), (0.1, None)])
def test_clip(low, high, torch):
    x = np.append(normal(12), [-0.5, 0.5, 0.1]).astype("f4")
    ours, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, right = ops.clip(ours, low=low, high=high), theirs.clamp(low, high)
    y.backward(x)
    right.backward(torch.tensor(x))
    np.testing.assert_array_equal(y.data, right.detach())
    np.testing.assert_array_equal(ours.grad, theirs.grad)
    with pytest.raises(SettingsError, match="expected low <= high, found 1 and 0"):
        ops.clip(x, low=1, high=0)


@settings(max_examples=10)
@given(shapes=st.sampled_from([((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((3, 4), ())]))
def test_choices_of_two(shapes, torch):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    condition = normal(3, 4, seed=2) > 0
    for name in ("maximum", "minimum"):
        check_gradient(getattr(ops, name), a, b)
        check_agreement(torch, getattr(ops, name), getattr(torch, name), a, b)
    check_gradient(lambda a, b: ops.where(condition, a, b), a, b)
    check_agreement(
        torch,
        lambda a, b: ops.where(condition, a, b),
        lambda a, b: torch.where(torch.tensor(condition), a, b),
        a,
        b,
    )


def test_equals_share_the_gradient_as_in_pytorch(torch):
    x = np.ones((2, 3), "f4")
    check_agreement(torch, ops.maximum, torch.maximum, x, x)
    check_agreement(torch, ops.minimum, torch.minimum, x, x)


def test_numbers_keep_single_precision():
    x = np.ones((2, 3), "f4")
    assert ops.maximum(x, 0.5).dtype == ops.minimum(0.5, x).dtype == np.float32
    assert ops.power(x, exponent=0.5).dtype == ops.clip(x, low=0.1).dtype == np.float32
    assert ops.where(x > 0, x, 0.0).dtype == np.float32


def test_whole_numbers_do_not_round_the_setting():
    x = Tensor(np.array([4, 0]))
    np.testing.assert_allclose((x**0.5).data, [2, 0])
    np.testing.assert_allclose(ops.clip(x, low=0.5, high=2.5).data, [2.5, 0.5])
    np.testing.assert_allclose(ops.clip(x, low=2).data, [4, 2])
