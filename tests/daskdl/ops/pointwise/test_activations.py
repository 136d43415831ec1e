"""Activations: one function of each number, or over channels (softmax)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from daskdl import ops
from daskdl.kernels.runtime.memory import LARGE
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, layouts, normal, same_bits


def tanh_form(x):
    """Return x Phi(x) by the formula with a hyperbolic tangent."""
    return x * special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3))


#: Ours, PyTorch's name and its settings, the truth for float64.
ALL = {
    "relu": (ops.relu, "relu", {}, lambda x: np.maximum(x, 0)),
    "relu6": (ops.relu6, "relu6", {}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (
        partial(ops.leaky_relu, slope=0.2),
        "leaky_relu",
        {"negative_slope": 0.2},
        lambda x: np.where(x > 0, x, np.float32(0.2) * x),
    ),
    "elu": (
        partial(ops.elu, alpha=1.5),
        "elu",
        {"alpha": 1.5},
        lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0))),
    ),
    "gelu": (ops.gelu, "gelu", {}, lambda x: x * special.ndtr(x)),
    "gelu_tanh": (
        partial(ops.gelu, approximate="tanh"),
        "gelu",
        {"approximate": "tanh"},
        tanh_form,
    ),
    "silu": (ops.silu, "silu", {}, lambda x: x * special.expit(x)),
    "sigmoid": (ops.sigmoid, "sigmoid", {}, special.expit),
    "tanh": (ops.tanh, "tanh", {}, np.tanh),
    "softplus": (ops.softplus, "softplus", {}, lambda x: np.logaddexp(0, x)),
    "hard_sigmoid": (ops.hard_sigmoid, "hardsigmoid", {}, lambda x: np.clip(x + 3, 0, 6) / 6),
    "hard_tanh": (ops.hard_tanh, "hardtanh", {}, lambda x: np.clip(x, -1, 1)),
    "hard_swish": (ops.hard_swish, "hardswish", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
}
each = pytest.mark.parametrize("name", ALL)


@each
@given(shape=hnp.array_shapes(min_dims=0, max_dims=5, max_side=4))
def test_gradient(name, shape):
    x = 2 * normal(*shape)
    for kink in (-3, -1, 0, 1, 3, 6):
        x = np.where(np.abs(x - kink) < 1e-3, kink + 2e-3, x)
    check_gradient(ALL[name][0], x)


@each
def test_an_empty_batch_stays_empty(name):
    x = Tensor(np.empty((0, 3)), requires_grad=True)
    y = ALL[name][0](x)
    y.backward(np.empty((0, 3)))
    assert y.shape == x.grad.shape == (0, 3)


@each
def test_is_as_accurate_as_float32_allows(name):
    x = np.concatenate([np.linspace(-8, 8, 40001), np.geomspace(1e-20, 1, 1001)]).astype("f4")
    expected = ALL[name][3](x.astype("f8"))
    np.testing.assert_allclose(ALL[name][0](x).data, expected, rtol=2e-6, atol=1e-8)


@each
def test_nan_and_infinity_are_pytorchs(name, torch):
    ours_function, theirs_name, settings, _ = ALL[name]
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0], np.float32)
    # In float64: the processor decides which library computes PyTorch's float32 functions, and so
    # their results for infinity.
    wide = torch.tensor(x, dtype=torch.float64)
    expected = getattr(torch.nn.functional, theirs_name)(wide, **settings).numpy()
    np.testing.assert_allclose(ours_function(x).data, expected.astype(np.float32), rtol=1e-6)


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_of_large_numbers_are_finite_and_keep_the_dtype(name, dtype):
    x = Tensor(np.array([-1e18, -100, 0, 100, 1e18], dtype), requires_grad=True)
    y = ALL[name][0](x)
    y.backward(np.ones(5))
    assert y.dtype == x.grad.dtype == dtype
    if name != "gelu_tanh" or dtype == np.float64:  # x^3 of 1e18 is not a float32
        assert np.isfinite(y.data).all()
        assert np.isfinite(x.grad).all()


@each
def test_any_layout_is_right(name):
    numbers = np.random.default_rng(0).normal(size=(3, 8)).astype("f4")
    expected = ALL[name][0](numbers).data
    for x in layouts(numbers):
        tensor = Tensor(x, requires_grad=True)
        y = ALL[name][0](tensor)
        np.testing.assert_array_equal(y.data, expected)
        y.backward(np.asfortranarray(np.ones_like(expected)))
        assert tensor.grad.shape == expected.shape


@pytest.mark.parametrize("n", [(1 << 16) + 7, LARGE // 4 + 7])
def test_two_threads_give_the_bits_of_one(n):
    x = np.random.default_rng(0).standard_normal(n, np.float32)

    def both_ways():
        tensor = Tensor(x, requires_grad=True)
        y = ops.relu(tensor)
        y.backward(x)
        return y.data, tensor.grad

    np.testing.assert_array_equal(same_bits(both_ways)[1], np.where(x > 0, x, 0))


def test_relus_gradient_at_zero_is_zero():
    x = Tensor(np.zeros(1), requires_grad=True)
    ops.relu(x).backward()
    assert x.grad == 0


@given(shape=hnp.array_shapes(max_dims=4, max_side=4))
def test_prelu_gradient(shape):
    x = normal(*shape)
    x = np.where(np.abs(x) < 1e-3, 2e-3, x)
    check_gradient(ops.prelu, x, normal(shape[-1], seed=1))
    check_gradient(ops.prelu, x, normal(1, seed=1))


each_softmax = pytest.mark.parametrize("name", ["softmax", "log_softmax"])


@each_softmax
@given(shape=hnp.array_shapes(max_dims=4, max_side=5), data=st.data())
def test_gradient_softmax(name, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check_gradient(lambda x: getattr(ops, name)(x, axis=axis), normal(*shape))
