"""The affine map over the last axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


@given(
    shape=hnp.array_shapes(max_dims=4, max_side=4), out=st.integers(1, 5), with_bias=st.booleans()
)
def test_gradient(shape, out, with_bias):
    x, weight = normal(*shape), normal(out, shape[-1], seed=1)
    bias = normal(out, seed=2) if with_bias else None
    expected = x @ weight.T + (bias if with_bias else 0)
    np.testing.assert_allclose(ops.linear(x, weight, bias).data, expected, atol=1e-12)
    check_gradient(ops.linear, x, weight, bias)


@pytest.mark.parametrize("shape", [(7, 5), (2, 3, 5)])
def test_agrees_with_pytorch(shape, torch):
    arrays = [normal(*s).astype("f4") for s in (shape, (4, 5), (4,))]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    expected = torch.nn.functional.linear(*theirs)
    expected.square().sum().backward()
    result = ops.linear(*ours)
    result.backward(2 * result.data)
    np.testing.assert_allclose(result.data, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad, other.grad.numpy(), rtol=1e-5, atol=1e-4)


def test_input_that_is_a_view_is_taken_as_it_is():
    x = normal(4, 3, 5).swapaxes(0, 1)
    check_gradient(ops.linear, x, normal(2, 5), None)


@pytest.mark.parametrize("dtype", ["f8", "f2", "u1", "i8", "?", ">f4"])
def test_numbers_of_another_kind_are_taken_in_the_dtype_of_the_weight(dtype):
    x = (3 * normal(2, 3, 5)).astype(dtype)
    weight, bias = (Tensor(normal(*s).astype("f4"), requires_grad=True) for s in ((4, 5), (4,)))
    y = ops.linear(x, weight, bias)
    y.backward(np.ones(y.shape, "f4"))
    assert y.dtype == weight.grad.dtype == np.float32
    same = ops.linear(x.astype("f4"), weight, bias)
    np.testing.assert_array_equal(y.data, same.data)
    np.testing.assert_allclose(weight.grad, np.tile(x.astype("f4").sum((0, 1)), (4, 1)), rtol=1e-5)


def test_objects_are_refused():
    with pytest.raises(ShapeError, match=r"linear: expected x of numbers, found object \(2, 5\)"):
        ops.linear(np.ones((2, 5), object), normal(4, 5), None)
