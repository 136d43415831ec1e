"""Arithmetic of tensors, by name and by operator."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

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


@pytest.mark.parametrize(("a", "b"), [((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (2, 3))])
def test_matmul_says_which_shapes_it_expects(a, b):
    with pytest.raises(ShapeError, match=r"expected shapes \(\.\.\., M, K\) and \(\.\.\., K, N\)"):
        Tensor(np.ones(a)) @ Tensor(np.ones(b))


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
def test_is_numpys_and_has_a_gradient(function):
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


def test_what_does_not_fit_is_said():
    x = Tensor(np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"index: expected one of shape \(3, 2\), found .*slice"):
        x[:, 5]
    with pytest.raises(TypeError, match="unsupported operand"):
        x ** Tensor(2.0)
    with pytest.raises(IndexError, match="out of bounds"):
        x[3]
    assert x[2, 0].item() == 1
