"""Activations: gradients, agreement with PyTorch, and no overflow anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

ALL = {
    "relu": (ops.relu, "relu"),
    "leaky_relu": (ops.leaky_relu, None),
    "sigmoid": (ops.sigmoid, "sigmoid"),
    "tanh": (ops.tanh, "tanh"),
    "softplus": (ops.softplus, "softplus"),
}
each = pytest.mark.parametrize("name", ALL)


@each
@given(shape=hnp.array_shapes(max_dims=5, max_side=4))
def test_gradient(name, shape):
    x = normal(*shape)
    check_gradient(ALL[name][0], x + np.sign(x) * 1e-3)  # away from the kink at 0


@each
def test_agrees_with_pytorch(name, torch):
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    function = getattr(torch.nn.functional, ALL[name][1] or name)
    settings = {"slope": 0.2} if name == "leaky_relu" else {}
    theirs = torch.tensor(x, requires_grad=True)
    expected = function(theirs, 0.2) if settings else function(theirs)
    expected.sum().backward()
    ours = Tensor(x, requires_grad=True)
    result = ALL[name][0](ours, **settings)
    result.backward(np.ones_like(x))
    np.testing.assert_allclose(result.data, expected.detach().numpy(), atol=1e-6, rtol=2e-6)
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), atol=1e-6, rtol=2e-6)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_out_it_is_finite_and_keeps_its_dtype(name, dtype):
    x = Tensor(np.array([-1e30, -100, 0, 100, 1e30], dtype), requires_grad=True)
    y = ALL[name][0](x)
    y.backward(np.ones(5))
    assert y.dtype == x.grad.dtype == dtype
    assert np.isfinite(y.data).all()
    assert np.isfinite(x.grad).all()


@each
def test_nan_stays_nan(name):
    with np.errstate(invalid="ignore"):  # logaddexp says so aloud
        y = ALL[name][0](Tensor(np.array([np.nan, 1.0])))
    assert np.isnan(y.data).tolist() == [True, False]


def test_relus_gradient_at_zero_is_zero():
    x = Tensor(np.zeros(1), requires_grad=True)
    ops.relu(x).backward()
    assert x.grad == 0


def test_slope_is_that_of_the_negative_side():
    x = Tensor(np.array([-2.0, 3.0]), requires_grad=True)
    y = ops.leaky_relu(x, slope=0.1)
    y.backward(np.ones(2))
    np.testing.assert_allclose(y.data, [-0.2, 3])
    np.testing.assert_allclose(x.grad, [0.1, 1])
