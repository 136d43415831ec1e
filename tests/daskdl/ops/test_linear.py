"""The affine map over the last axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
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
