"""Functions of each number, and arithmetic of tensors by name and by operator."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.nn.like_pytorch import check_agreement

EDGES = np.array([[-np.inf, -1.5, -1, -0.0, 0, 0.5, 1, 1.5, np.inf, np.nan]])
FUNCTIONS = (
    "exp", "log", "sqrt", "square", "abs", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "erf",
)  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, torch):
    function, theirs = getattr(ops, name), getattr(torch, name)
    x = np.tanh(normal(3, 4)) * 0.9
    least = {"log": 0.1, "sqrt": 0.1, "arccosh": 1.5}.get(name)
    x = x if least is None else least + np.abs(x)
    check_gradient(function, x)
    check_agreement(torch, function, theirs, x)
    np.testing.assert_allclose(function(EDGES).data, theirs(torch.tensor(EDGES)), rtol=1e-12)


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


@settings(max_examples=10)
@given(shapes=st.sampled_from([((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((3, 4), ())]))
def test_maximum_minimum_and_where(shapes, torch):
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


ALL = {
    "threshold": ({"threshold": 0.3, "value": 2.0}, "threshold", (0.3, 2.0)),
    "hard_shrink": ({"edge": 0.4}, "hardshrink", (0.4,)),
    "soft_shrink": ({"edge": 0.4}, "softshrink", (0.4,)),
    "softsign": ({}, "softsign", ()),
}


@pytest.mark.parametrize("name", ALL)
def test_gradient_and_edges(name, torch):
    settings, theirs, arguments = ALL[name]
    check_gradient(lambda t: getattr(ops, name)(t, **settings), normal(4, 5))
    x = np.array([-np.inf, -0.4, -0.3, 0, 0.3, 0.4, 1, np.inf, np.nan])
    expected = getattr(torch.nn.functional, theirs)(torch.tensor(x), *arguments).numpy()
    with np.errstate(invalid="ignore"):
        actual = getattr(ops, name)(x, **settings).data
    finite = np.isfinite(x)
    np.testing.assert_allclose(actual[finite], expected[finite])
    assert np.isnan(actual[-1]) == np.isnan(expected[-1])


@pytest.mark.parametrize("shape", [(), (7,), (3, 4, 5), (50, 60)])
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_gradient_of_dropout(shape, rate):
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


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4))])
def test_pow(shapes, torch):
    base, exponent = np.abs(normal(*shapes[0])) + 0.2, normal(*shapes[1], seed=1)
    check_gradient(ops.pow, base, exponent)
    check_agreement(torch, ops.pow, torch.pow, base, exponent)


def test_pow_at_zero_and_below():
    base = np.array([-2.0, 0, 0, -2.0])
    exponent = np.array([2.0, 2.0, 0.0, 0.5])
    np.testing.assert_array_equal(ops.pow(base, exponent).data, [4, 0, 1, np.nan])


@pytest.mark.parametrize("truncated", [False, True])
def test_remainder(truncated, torch):
    a, b = 5 * normal(3, 4), normal(3, 4, seed=1) + 3
    theirs = torch.fmod if truncated else torch.remainder
    check_gradient(lambda a, b: ops.remainder(a, b, truncated=truncated), a, b)
    check_agreement(torch, lambda a, b: ops.remainder(a, b, truncated=truncated), theirs, a, b)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("operation", OPERATORS, ids=lambda o: o.__name__)
@given(shapes=hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
def test_broadcasting_matches_numpy_and_its_gradient(operation, shapes):
    a, b = normal(*shapes.input_shapes[0]), np.abs(normal(*shapes.input_shapes[1], seed=1)) + 0.5
    result = operation(Tensor(a), Tensor(b))
    np.testing.assert_array_equal(result.data, operation(a, b))
    check_gradient(operation, a, b)


@given(
    shapes=hnp.mutually_broadcastable_shapes(
        signature=np.matmul.signature, max_dims=2, max_side=3
    ).filter(lambda s: min(map(len, s.input_shapes)) >= 2)
)
def test_matmul_broadcasts_its_leading_axes(shapes):
    a, b = (normal(*shape, seed=i) for i, shape in enumerate(shapes.input_shapes))
    np.testing.assert_array_equal((Tensor(a) @ Tensor(b)).data, a @ b)
    check_gradient(operator.matmul, a, b)


@pytest.mark.parametrize("operation", OPERATORS, ids=lambda o: o.__name__)
@pytest.mark.parametrize("number", [2, 0.5])
def test_numbers_take_the_arrays_dtype(operation, number):
    x = Tensor(np.array([1, 2], np.float32), requires_grad=True)
    for result, expected in (
        (operation(x, number), operation(x.data, number)),
        (operation(number, x), operation(number, x.data)),
    ):
        np.testing.assert_array_equal(result.data, expected)
        assert result.dtype == np.float32
        result.backward(np.ones(2))
    assert x.grad.dtype == np.float32


@given(shape=hnp.array_shapes(max_dims=4, max_side=4))
def test_mean_is_numpys(shape):
    x = normal(*shape)
    np.testing.assert_allclose(float(ops.mean(Tensor(x))), x.mean())
    check_gradient(ops.mean, x)


def test_mean_of_many_float32_numbers_loses_next_to_nothing():
    x = np.full(1 << 20, 0.1, np.float32)
    np.testing.assert_allclose(ops.mean(Tensor(x)).data, np.float32(0.1), rtol=3e-7)
    assert ops.mean(Tensor(x)).dtype == np.float32


@st.composite
def summed(draw):
    shape = draw(hnp.array_shapes(max_dims=4, max_side=3))
    return shape, draw(hnp.broadcastable_shapes(shape, max_dims=len(shape), max_side=1))


@given(case=summed())
def test_unbroadcast_gives_the_inputs_shape_and_keeps_the_sum(case):
    from daskdl.ops.pointwise.arithmetic import unbroadcast

    shape, target = case
    gradient = normal(*shape)
    result = unbroadcast(gradient, target)
    assert result.shape == target
    np.testing.assert_allclose(result.sum(), gradient.sum(), atol=1e-12)


def test_gradients_are_cast_back():
    x = Tensor(np.array([1.5, -2.5], "f4"), requires_grad=True)
    y = ops.cast(x, dtype=np.float64)
    assert y.dtype == np.float64
    y.backward(np.array([3.0, 4.0]))
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad, [3, 4])


def test_whole_numbers_have_no_gradient():
    x = Tensor(np.array([1.5, -2.5], "f4"), requires_grad=True)
    y = ops.cast(x, dtype=np.int64)
    np.testing.assert_array_equal(y.data, [1, -2])
    y.backward(np.array([3, 4]))
    assert x.grad is None


IDS = np.array([[2, 0], [2, 2]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: x**2,
        lambda x: x**3.0,
        lambda x: x[1],
        lambda x: x[..., -1],
        lambda x: x[:, 1:, ::2],
        lambda x: x[:, None, 2],
        lambda x: x[IDS],
        lambda x: x[1, IDS],
        lambda x: x[[0, 2, 0]],
        lambda x: x[np.array([True, False, True])],
        lambda x: x.reshape(2, 18),
        lambda x: x.reshape((4, -1)),
        lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose((1, 0, 2)),
        lambda x: x.transpose(),
        lambda x: x.sum(),
        lambda x: x.sum(1),
        lambda x: x.sum(axis=(0, 2), keepdims=True),
        lambda x: x.mean(axis=-1),
    ],
)
def test_operators_and_methods_are_numpys_and_have_a_gradient(function):
    x = normal(3, 4, 3)
    np.testing.assert_allclose(function(Tensor(x)).data, function(x), rtol=1e-14)
    check_gradient(function, x)


def test_a_tensor_may_be_an_index():
    x = normal(3, 2)
    np.testing.assert_array_equal(Tensor(x)[Tensor([2, 0])].data, x[[2, 0]])


def test_a_loop_over_a_tensor_ends():
    assert [row.shape for row in Tensor(normal(3, 2))] == [(2,)] * 3


def test_dtype_stays():
    x = Tensor(np.ones(3, np.float32))
    assert {y.dtype for y in (-x, x**2, x**0.5, x.sum(), x.mean())} == {np.dtype("f4")}


def test_unfit_operands_are_refused():
    x = Tensor(np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"index: expected one of shape \(3, 2\), found .*slice"):
        x[:, 5]
    with pytest.raises(TypeError, match="unsupported operand"):
        x ** Tensor(2.0)
    with pytest.raises(IndexError, match="out of bounds"):
        x[3]
    assert x[2, 0].item() == 1
